//! librdkafka, as `rdkafka-sys` builds it, read in batches from its raw queue: the cheapest way there is to read with it.
//! CRCs are checked and uncommitted records read, neither of which is its default. Tuned: a long queue, no back-off,
//! larger batches.

use measure::{Args, Run};
use rdkafka_sys::bindings::*;
use std::{
    ffi::{CStr, CString},
    ptr,
};

fn set(conf: *mut rd_kafka_conf_t, key: &str, value: &str) {
    let (key, value) = (CString::new(key).unwrap(), CString::new(value).unwrap());
    let mut why = [0; 512];
    // SAFETY: the strings and the buffer outlive the call.
    let result =
        unsafe { rd_kafka_conf_set(conf, key.as_ptr(), value.as_ptr(), why.as_mut_ptr(), why.len()) };
    assert_eq!(result, rd_kafka_conf_res_t::RD_KAFKA_CONF_OK, "{key:?}");
}

fn conf(args: &Args) -> *mut rd_kafka_conf_t {
    // SAFETY: nothing is passed; the handle goes to rd_kafka_new.
    let conf = unsafe { rd_kafka_conf_new() };
    set(conf, "bootstrap.servers", &args.bootstrap);
    set(conf, "group.id", &args.group);
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "enable.auto.commit", "false");
    set(conf, "enable.auto.offset.store", "false");
    set(conf, "check.crcs", "true");
    set(conf, "isolation.level", "read_uncommitted");
    if args.is_consumer_protocol() {
        set(conf, "group.protocol", "consumer");
    } else {
        set(conf, "partition.assignment.strategy", "cooperative-sticky");
    }
    if args.is_tuned() {
        set(conf, "queued.min.messages", "1000000");
        set(conf, "queued.max.messages.kbytes", "1000000");
        set(conf, "fetch.queue.backoff.ms", "10");
    }
    conf
}

fn main() {
    let mut run = Run::start(Args::parse());
    let conf = conf(run.args());
    let topic = CString::new(run.args().topic.as_str()).unwrap();
    let size = if run.args().is_tuned() { 10_000 } else { 1_000 };
    let mut batch = vec![ptr::null_mut::<rd_kafka_message_t>(); size];
    let mut why = [0; 512];
    // SAFETY: handles are used as librdkafka's documentation says, messages are read between their receipt and their
    // destruction, and the process ends without closing anything.
    let version = unsafe {
        let client = rd_kafka_new(rd_kafka_type_t::RD_KAFKA_CONSUMER, conf, why.as_mut_ptr(), why.len());
        assert!(!client.is_null(), "{:?}", CStr::from_ptr(why.as_ptr()));
        rd_kafka_poll_set_consumer(client);
        run.subscribing();
        let topics = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(topics, topic.as_ptr(), -1);
        assert_eq!(rd_kafka_subscribe(client, topics), rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR);
        let queue = rd_kafka_queue_get_consumer(client);
        while run.go_on() {
            let got = rd_kafka_consume_batch_queue(queue, 1_000, batch.as_mut_ptr(), size);
            for message in &batch[..got.max(0) as usize] {
                let m = &**message;
                if m.err == rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
                    run.record(Some(m.key_len), Some(m.len));
                }
                rd_kafka_message_destroy(*message);
            }
        }
        CStr::from_ptr(rd_kafka_version_str()).to_string_lossy().into_owned()
    };
    run.print("librdkafka (batch queue)", &version);
    std::process::exit(0);
}
