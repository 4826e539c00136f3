//! Whatever is typed wrong or is not there: a clear error that says what to do, in bounded time, with the right exit code.

use super::rig::*;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// Settings that bound the wait.
const SOON: [&str; 2] = ["-X", "default.api.timeout.ms=1000"];

#[tokio::test]
async fn what_is_typed_wrong_exits_with_2_and_says_what_is_right() {
    let wrong = async |arguments: &[&str], saying: &str| run(arguments).await.failed(2, saying);
    wrong(&["nonsense"], "unrecognized subcommand").await;
    wrong(&["consume"], "--topic").await;
    wrong(&["consume", "-t", "orders", "-X", "grup.id=x"], "did you mean `group.id`?").await;
    wrong(&["consume", "-t", "orders", "-X", "fetch.min.bytes=-4"], "out of range").await;
    wrong(&["consume", "-t", "orders", "-X", "fetch.min.bytes"], "is not key=value").await;
    wrong(&["consume", "-t", "orders", "-g", " "], "group.id: it must not be blank").await;
    wrong(&["consume", "-t", "orders", "-g", "g", "--assignor", "rnage"], "rnage").await;
    wrong(&["consume", "-t", "orders", "-b", "here"], "bootstrap.servers").await;
    wrong(&["consume", "-t", "orders", "--config", "/nonexistent"], "could not read /nonexistent").await;
    wrong(&["consume", "-t", "", "-g", "g"], "topic").await;
    wrong(&["consume", "-t", "a b"], "`a b` cannot be a topic").await;
    wrong(&["produce", "-t", "orders", "-z", "brotli"], "compression.type").await;
    wrong(&["produce", "-t", "orders", "--acks", "2"], "acks").await;
    wrong(&["topic", "create", "orders", "--partitions", "0"], "--partitions").await;
}

#[tokio::test]
async fn help_and_version_are_no_errors() {
    assert!(run(&["--help"]).await.ok().contains("demo"));
    assert!(run(&["--version"]).await.ok().starts_with("tontine "));
}

#[tokio::test]
async fn a_refused_address_is_named_in_bounded_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let commands: [&[&str]; 4] = [
        &["topic", "list"],
        &["group", "list"],
        &["consume", "-t", "orders", "-e"],
        &["consume", "-t", "orders", "-g", "g", "-e"],
    ];
    for arguments in commands {
        let ran = run(&[arguments, &["-b", &address], &SOON].concat()).await;
        assert!(ran.stderr.contains(&address), "{ran:?}");
        ran.failed(1, "connection refused");
    }
    let produce = ["produce", "-t", "orders", "-n", "1", "-b", &address];
    run(&[&produce[..], &["-X", "max.block.ms=1000"]].concat()).await.failed(1, "connection refused");
}

#[tokio::test]
async fn a_web_server_is_recognised_as_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 1024];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    run(&[&["topic", "list", "-b", &address], &SOON[..]].concat()).await.failed(1, "this is a web server");
}

#[tokio::test]
async fn a_listener_that_never_answers_is_given_up_in_time() {
    // The kernel takes the connection; nobody reads it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    run(&[&["topic", "list", "-b", &address], &SOON[..]].concat()).await.failed(1, &address);
}

#[tokio::test]
async fn a_topic_that_does_not_exist_is_an_error_and_reading_does_not_create_it() {
    let broker = Broker::start(&[]).await;
    let read = [&["consume", "-t", "nope", "--exit-at-end"], &SOON[..]].concat();
    broker.run(&read).await.failed(1, "no broker knows the topic");
    assert_eq!(broker.run(&["topic", "list", "--format", "json"]).await.json(), serde_json::json!([]));
}

#[tokio::test]
async fn a_topic_that_appears_later_is_read() {
    let broker = Broker::start(&[]).await;
    let read = ["consume", "-t", "later", "--from", "earliest", "-n", "1", "--format", "value"];
    let quick = ["-X", "metadata.max.age.ms=100"];
    let mut waiting = Vec::new();
    for group in [&[][..], &["-g", "g"]] {
        waiting.push(broker.command(&[&read[..], &quick, group].concat()).spawn().unwrap());
    }
    broker.run(&["topic", "create", "later"]).await.ok();
    broker.feed(&["produce", "-t", "later"], "here\n").await.ok();
    for reader in waiting {
        assert_eq!(ended(reader).await.ok(), "here\n");
    }
}
