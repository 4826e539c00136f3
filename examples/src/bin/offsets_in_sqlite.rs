//! Offsets in the same database as the results: each record has its effect exactly once, whatever crashes when.
//!
//! Rows and offset are written in one transaction, so they cannot disagree. Three things make that work in a group:
//!
//! 1. `on_partitions_assigned` seeks to the offset in the database, and puts this member's generation beside it.
//! 2. Every transaction checks that generation. A member that slept through the loss of its partitions finds a newer one
//!    and writes nothing: not behind its successor's back.
//! 3. `on_partitions_revoked` writes what is left, before the next owner reads the offset.
//!
//! ```sh
//! cargo run -p tontine-examples --bin offsets_in_sqlite [HOST:PORT]                   # shows it, and checks itself
//! cargo run -p tontine-examples --bin offsets_in_sqlite -- HOST:PORT TOPIC DATABASE   # one member, until Ctrl-C
//! ```

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::timeout;
use tontine::{
    Assigned, Consumer, ListenerResult, Lost, OwnedRecord, RebalanceListener, Records, Revoked,
    TopicPartition,
};
use tontine_examples::{Playground, Result};

/// Write this many records in one transaction.
const BATCH: usize = 100;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS bookings (topic TEXT, partition INTEGER, offset INTEGER, text TEXT);
    CREATE TABLE IF NOT EXISTS offsets (
        topic TEXT, partition INTEGER, next INTEGER, generation INTEGER NOT NULL, PRIMARY KEY (topic, partition));";

/// The database, and what has been read and not yet been written.
struct Books {
    database: Connection,
    /// The generation in which each partition became ours.
    owned: BTreeMap<TopicPartition, i32>,
    waiting: BTreeMap<TopicPartition, Vec<OwnedRecord>>,
}

impl Books {
    fn open(path: &Path) -> Result<Self> {
        let database = Connection::open(path)?;
        // Other members write to the same file. (Whoever prefers its write-ahead log turns that on once, before the first
        // member starts: SQLite refuses to change the journal under others, and does not wait for them.)
        database.busy_timeout(Duration::from_secs(10))?;
        database.execute_batch(SCHEMA)?;
        Ok(Self { database, owned: BTreeMap::new(), waiting: BTreeMap::new() })
    }

    /// Makes this generation the owner of a partition; answers where to read on, `None` at the beginning. Older owners
    /// are shut out from here on. If a newer one was here first, this one comes too late, and says so.
    fn take(&mut self, partition: &TopicPartition, generation: i32) -> Result<Option<i64>> {
        let sql = "INSERT INTO offsets VALUES (?1, ?2, NULL, ?3) ON CONFLICT DO UPDATE SET generation = ?3
                   WHERE generation <= ?3 RETURNING next";
        let key = params![partition.topic(), partition.partition(), generation];
        let next = self.database.query_row(sql, key, |row| row.get(0)).optional()?;
        let next = next.ok_or_else(|| format!("{partition} has an owner of a newer generation already"))?;
        self.owned.insert(partition.clone(), generation);
        Ok(next)
    }

    fn add(&mut self, records: &Records) {
        for record in records {
            self.waiting.entry(record.topic_partition().clone()).or_default().push(record.to_owned());
        }
    }

    fn is_full(&self) -> bool {
        self.waiting.values().map(Vec::len).sum::<usize>() >= BATCH
    }

    /// Writes what waits and the offsets behind it, all or nothing. Answers the offsets.
    fn write(&mut self) -> Result<BTreeMap<TopicPartition, i64>> {
        let mut written = BTreeMap::new();
        let transaction = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (partition, records) in &self.waiting {
            let Some(next) = records.last().map(|record| record.offset() + 1) else { continue };
            let (topic, number) = (partition.topic(), partition.partition());
            let sql = "UPDATE offsets SET next = ?1 WHERE topic = ?2 AND partition = ?3 AND generation = ?4";
            let owned = self.owned.get(partition);
            if transaction.execute(sql, params![next, topic, number, owned])? == 0 {
                eprintln!("{partition} has a newer owner: {} records are left to it", records.len());
                continue;
            }
            let mut insert = transaction.prepare_cached("INSERT INTO bookings VALUES (?1, ?2, ?3, ?4)")?;
            for record in records {
                let text = String::from_utf8_lossy(record.value().unwrap_or_default());
                insert.execute(params![topic, number, record.offset(), text])?;
            }
            written.insert(partition.clone(), next);
        }
        transaction.commit()?;
        self.waiting.clear();
        Ok(written)
    }

    /// Nothing of these partitions is written any more.
    fn forget(&mut self, partitions: &[TopicPartition]) {
        self.waiting.retain(|partition, _| !partitions.contains(partition));
        self.owned.retain(|partition, _| !partitions.contains(partition));
    }
}

/// The loop and the listener share the books. SQLite answers within milliseconds, so waiting for it in async code does
/// no harm; a database behind a network has an async client, and would be kept in an async mutex.
type Shared = Arc<Mutex<Books>>;

fn lock(books: &Shared) -> MutexGuard<'_, Books> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Listener(Shared);

impl RebalanceListener for Listener {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        let generation = cx.group_metadata()?.generation.unwrap_or(0);
        for partition in cx.partitions().to_vec() {
            let next = lock(&self.0).take(&partition, generation)?;
            match next {
                Some(offset) => cx.seek(&partition, offset)?,
                None => cx.seek_to_beginning(&[partition])?,
            }
        }
        Ok(())
    }

    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        let written = lock(&self.0).write()?;
        lock(&self.0).forget(cx.partitions());
        if let Err(error) = cx.commit_sync_offsets(written).await {
            eprintln!("Kafka does not know how far we are: {error}");
        }
        Ok(())
    }

    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        lock(&self.0).forget(cx.partitions());
        Ok(())
    }
}

/// Reads and writes until `stop`. Any error ends it: started again, it goes on from the database.
async fn member(servers: &str, topic: &str, database: &Path, stop: impl Future<Output = ()>) -> Result {
    let books = Arc::new(Mutex::new(Books::open(database)?));
    let mut consumer = Consumer::builder()
        .set("bootstrap.servers", servers)
        .group_id("bookkeeping")
        .enable_auto_commit(false)
        // A member that dies in silence is replaced after this long.
        .session_timeout(Duration::from_secs(6))
        .heartbeat_interval(Duration::from_secs(1))
        .build()?;
    consumer.subscribe([topic], Listener(books.clone())).await?;
    let mut stop = std::pin::pin!(stop);
    loop {
        let records = tokio::select! {
            () = &mut stop => break,
            polled = consumer.poll(Duration::from_millis(100)) => polled?,
        };
        lock(&books).add(&records);
        if lock(&books).is_full() || records.is_empty() {
            let written = lock(&books).write()?;
            // For Kafka's tools, which show lag by it. Nothing depends on it, so nobody waits for it.
            drop(consumer.commit_async_offsets(written));
        }
    }
    // Revokes everything, and so writes what is left.
    Ok(consumer.close().await?)
}

/// How many bookings there are, and how many records they are about.
fn count(database: &Path) -> Result<(u32, u32)> {
    let books = Books::open(database)?;
    let sql = "SELECT count(*), count(DISTINCT topic || partition || '-' || offset) FROM bookings";
    Ok(books.database.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

async fn until_booked(database: &Path, records: u32) -> Result {
    let enough = async {
        while count(database)?.0 < records {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Result::Ok(())
    };
    timeout(Duration::from_secs(60), enough).await?
}

/// A member crashes with records in its hands, another takes over: each record is booked once.
async fn show() -> Result {
    const RECORDS: u32 = 2000;
    let playground = Playground::open(4, RECORDS as usize).await?;
    let directory = tempfile::tempdir()?;
    let database = directory.path().join("books.db");
    let start = || {
        let (servers, topic) = (playground.servers.clone(), playground.topic.clone());
        let database = database.clone();
        tokio::spawn(async move { member(&servers, &topic, &database, std::future::pending()).await })
    };
    let first = start();
    until_booked(&database, 1).await?;
    first.abort();
    println!("the first member is gone, after {} bookings", count(&database)?.0);
    let second = start();
    until_booked(&database, RECORDS).await?;
    second.abort();
    let (bookings, records) = count(&database)?;
    println!("{bookings} bookings of {records} records: each exactly once");
    assert_eq!((bookings, records), (RECORDS, RECORDS));
    playground.close().await
}

#[tokio::main]
async fn main() -> Result {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, servers, topic, database] = arguments.as_slice() else { return show().await };
    let interrupted = async {
        // Without the signal there is no way to stop it but to kill it, and that does no harm either.
        let _ = tokio::signal::ctrl_c().await;
    };
    member(servers, topic, Path::new(database), interrupted).await
}
