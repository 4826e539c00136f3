//! Runs every example as a newcomer does, and kills members of the one that must not care.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};
use tontine::{Producer, ProducerRecord};
use tontine_broker::Broker;

/// Long enough for anything that ends at all.
const LONG: Duration = Duration::from_secs(120);

/// Runs a program to its end; fails when it takes for ever.
async fn run(program: &str) -> Output {
    let running = tokio::process::Command::new(program).kill_on_drop(true).output();
    tokio::time::timeout(LONG, running).await.expect("the example ends").unwrap()
}

async fn runs_and_says(program: &str, line: &str) {
    let output = run(program).await;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.contains(line), "{stdout}");
}

#[tokio::test]
async fn commit_each_batch_runs() {
    runs_and_says(env!("CARGO_BIN_EXE_commit_each_batch"), "handled 1000 records").await;
}

#[tokio::test]
async fn commit_in_revoked_runs() {
    runs_and_says(env!("CARGO_BIN_EXE_commit_in_revoked"), "records, 0 of them twice").await;
}

#[tokio::test]
async fn offsets_in_sqlite_runs() {
    runs_and_says(env!("CARGO_BIN_EXE_offsets_in_sqlite"), "each exactly once").await;
}

#[tokio::test]
async fn own_assignor_runs() {
    runs_and_says(env!("CARGO_BIN_EXE_own_assignor"), "8 partitions were dealt by weight").await;
}

#[tokio::test]
async fn two_groups_runs() {
    runs_and_says(env!("CARGO_BIN_EXE_two_groups"), "billing read 1000 records, shipping read 1000").await;
}

/// A member of the SQLite example as a process of its own, which does not outlive the test.
struct Member(Child);

impl Member {
    fn start(broker: &Broker, database: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_offsets_in_sqlite"));
        command.args([&broker.bootstrap_servers(), "orders"]).arg(database);
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }

    fn signal(&self, signal: &str) {
        let done = Command::new("kill").args([format!("-{signal}"), self.0.id().to_string()]).status();
        assert!(done.unwrap().success());
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn produce(producer: &Producer, records: usize) {
    for number in 0..records {
        let record = ProducerRecord::to("orders").partition((number % 4) as i32).value(number.to_string());
        drop(producer.send(record).await.unwrap());
    }
    producer.flush().await.unwrap();
}

/// Bookings, and the records they are about. Nothing before a member has made the tables.
fn count(database: &Path) -> (u32, u32) {
    let open = || -> rusqlite::Result<(u32, u32)> {
        let connection = rusqlite::Connection::open(database)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        let sql = "SELECT count(*), count(DISTINCT partition || '-' || offset) FROM bookings";
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
    };
    open().unwrap_or_default()
}

async fn until_booked(database: &Path, records: u32) {
    let enough = async {
        while count(database).0 < records {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(LONG, enough).await;
    waited.unwrap_or_else(|_| panic!("only {:?} of {records} are booked", count(database)));
}

/// Two members share the topic; `signal` hits the first in the middle of its work; the second takes over.
async fn every_record_is_booked_once_although_a_member_gets(signal: &str, then: Option<&str>) {
    let broker = Broker::builder().topic("orders", 4).start().await.unwrap();
    let producer = Producer::builder().bootstrap_servers(broker.bootstrap_servers()).build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("books.db");
    let first = Member::start(&broker, &database);
    // So many that the first one cannot be through with them when the signal comes.
    produce(&producer, 20_000).await;
    until_booked(&database, 1).await;
    if then.is_some() {
        // One that sleeps in the middle of a transaction locks the whole file: let it sleep right before one.
        let lock = rusqlite::Connection::open(&database).unwrap();
        lock.busy_timeout(Duration::from_secs(10)).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        first.signal(signal);
    } else {
        first.signal(signal);
    }
    let second = Member::start(&broker, &database);
    until_booked(&database, 20_000).await;
    if let Some(then) = then {
        first.signal(then);
    }
    produce(&producer, 4_000).await;
    until_booked(&database, 24_000).await;
    for member in [first, second] {
        member.signal("INT");
        drop(member);
    }
    assert_eq!(count(&database), (24_000, 24_000), "bookings and records");
}

#[tokio::test]
async fn every_record_is_booked_once_although_a_member_is_killed() {
    every_record_is_booked_once_although_a_member_gets("KILL", None).await;
}

#[tokio::test]
async fn a_member_that_slept_through_its_successor_books_nothing_twice() {
    every_record_is_booked_once_although_a_member_gets("STOP", Some("CONT")).await;
}
