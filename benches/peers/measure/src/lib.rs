//! What every peer shares: arguments, what is counted, and the line that `tontine bench consume` prints too.

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeVal,
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// What the script asks for: `--bootstrap-server`, `--topic`, `--group`, `--records`, `--protocol`, `--mode`.
pub struct Args {
    pub bootstrap: String,
    pub topic: String,
    pub group: String,
    pub records: u64,
    /// `classic` or `consumer`.
    pub protocol: String,
    /// `default` or `tuned`.
    pub mode: String,
    /// How many partitions the topic has; only the floor has to be told.
    pub partitions: i32,
}

impl Args {
    pub fn parse() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let mut given: BTreeMap<String, String> =
            words.chunks_exact(2).map(|pair| (pair[0].trim_start_matches('-').to_owned(), pair[1].clone())).collect();
        let mut take = |name: &str, or: &str| given.remove(name).unwrap_or_else(|| or.to_owned());
        Self {
            bootstrap: take("bootstrap-server", "127.0.0.1:9092"),
            topic: take("topic", "bench"),
            group: take("group", "bench"),
            records: take("records", "1000000").parse().expect("--records is a number"),
            protocol: take("protocol", "classic"),
            mode: take("mode", "default"),
            partitions: take("partitions", "8").parse().expect("--partitions is a number"),
        }
    }

    pub fn is_tuned(&self) -> bool {
        self.mode == "tuned"
    }

    pub fn is_consumer_protocol(&self) -> bool {
        self.protocol == "consumer"
    }
}

#[derive(Clone, Copy)]
struct Usage {
    at: Instant,
    cpu: Duration,
}

impl Usage {
    fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF).expect("usage of this process");
        let duration = |t: TimeVal| Duration::new(t.tv_sec() as u64, t.tv_usec() as u32 * 1000);
        Self { at: Instant::now(), cpu: duration(usage.user_time()) + duration(usage.system_time()) }
    }
}

/// A run: started before the client is built, told of the subscription and of every record.
pub struct Run {
    args: Args,
    built: Usage,
    subscribed: Usage,
    first: Option<(Usage, u64)>,
    records: u64,
    bytes: u64,
}

impl Run {
    pub fn start(args: Args) -> Self {
        let now = Usage::now();
        Self { args, built: now, subscribed: now, first: None, records: 0, bytes: 0 }
    }

    pub fn args(&self) -> &Args {
        &self.args
    }

    /// The client is built; the subscription comes next.
    pub fn subscribing(&mut self) {
        self.subscribed = Usage::now();
    }

    /// A record: what its key and value hold together.
    #[inline]
    pub fn record(&mut self, key: Option<usize>, value: Option<usize>) {
        self.records += 1;
        self.bytes += (key.unwrap_or(0) + value.unwrap_or(0)) as u64;
    }

    /// So many records at once.
    pub fn records(&mut self, records: u64, bytes: u64) {
        self.records += records;
        self.bytes += bytes;
    }

    /// A poll has been looked at. Whether there is more to read.
    pub fn go_on(&mut self) -> bool {
        if self.first.is_none() && self.records > 0 {
            self.first = Some((Usage::now(), self.records));
        }
        self.records < self.args.records
    }

    /// Everything has been read: the line.
    pub fn print(&self, peer: &str, version: &str) {
        let last = Usage::now();
        let (first, already) = self.first.expect("something was read");
        let span = |from: &Usage| ((last.at - from.at).as_secs_f64(), (last.cpu - from.cpu).as_secs_f64());
        let ((wall, cpu), flowed) = (span(&first), (self.records - already).max(1) as f64);
        let ((all_wall, all_cpu), all) = (span(&self.subscribed), self.records as f64);
        let rss = getrusage(UsageWho::RUSAGE_SELF).expect("usage of this process").max_rss();
        println!(
            "{{\"peer\":\"{peer}\",\"version\":\"{version}\",\"protocol\":\"{}\",\"mode\":\"{}\",\"records\":{},\"bytes\":{},\
             \"first_record_ms\":{:.1},\"wall_s\":{wall:.6},\"cpu_s\":{cpu:.6},\"cpu_ns_per_record\":{:.1},\
             \"records_per_s\":{:.1},\"subscribe_wall_s\":{all_wall:.6},\"subscribe_cpu_s\":{all_cpu:.6},\
             \"subscribe_cpu_ns_per_record\":{:.1},\"subscribe_records_per_s\":{:.1},\"max_rss_kb\":{rss}}}",
            self.args.protocol,
            self.args.mode,
            self.records,
            self.bytes,
            (first.at - self.built.at).as_secs_f64() * 1e3,
            cpu * 1e9 / flowed,
            flowed / wall.max(1e-9),
            all_cpu * 1e9 / all,
            all / all_wall.max(1e-9),
        );
    }
}
