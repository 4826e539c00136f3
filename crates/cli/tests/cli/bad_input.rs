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
    wrong(&["topic", "create", "orders", "--replication-factor", "0"], "--replication-factor").await;
    wrong(&["topic", "alter", "orders", "--partitions", "0"], "--partitions").await;
    wrong(&["demo", "--protocol", "consumer", "--assignor", "range"], "has no effect with").await;
}

#[tokio::test]
async fn a_name_that_no_broker_could_accept_is_refused_by_every_command_before_anything_is_sent() {
    let commands: [&[&str]; 8] = [
        &["topic", "create"],
        &["topic", "describe", "orders"],
        &["topic", "alter", "--partitions", "2"],
        &["topic", "delete"],
        &["produce", "-t"],
        &["consume", "-t"],
        &["broker", "--topic"],
        &["bench", "gap", "-g", "g", "-t"],
    ];
    for name in ["", "..", "a b"] {
        for command in commands {
            run(&[command, &[name]].concat()).await.failed(2, "cannot be a topic");
        }
    }
    let commands: [&[&str]; 3] =
        [&["group", "describe"], &["group", "delete"], &["consume", "-t", "t", "-g"]];
    for command in commands {
        run(&[command, &[" "]].concat()).await.failed(2, "it must not be blank");
    }
}

#[tokio::test]
async fn a_file_of_settings_serves_every_command_and_its_typos_none() {
    let broker = Broker::start(&["--topic", "orders:1"]).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("client.properties");
    let file = path.to_str().unwrap();
    let shared =
        "session.timeout.ms=10000\nlinger.ms=1\nmax.poll.records=7\nkey.serializer=x\nclient.id=me\n";
    std::fs::write(&path, shared).unwrap();
    let commands: [&[&str]; 4] = [
        &["topic", "list"],
        &["produce", "-t", "orders", "-n", "1"],
        &["consume", "-t", "orders", "-g", "g", "--from", "earliest", "-n", "1"],
        &["group", "describe", "g"],
    ];
    for command in commands {
        broker.run(&[command, &["--config", file]].concat()).await.ok();
    }
    std::fs::write(&path, "sesion.timeout.ms=10000\n").unwrap();
    for command in commands {
        broker
            .run(&[command, &["--config", file]].concat())
            .await
            .failed(2, "`sesion.timeout.ms` is not a setting");
    }
    let ran = broker.run(&["topic", "list", "-X", "linger.ms=1"]).await;
    assert!(ran.stderr.contains("-X linger.ms has no effect on this command"), "{ran:?}");
    ran.ok();
}

#[tokio::test]
async fn settings_that_do_not_go_well_together_are_warned_about() {
    let broker = Broker::start(&["--topic", "orders:1"]).await;
    let read = ["consume", "-t", "orders", "-g", "q", "-n", "0", "-X", "session.timeout.ms=7000"];
    let ran = broker.run(&read).await;
    assert!(ran.stderr.contains("session.timeout.ms (7000) is shorter than three times"), "{ran:?}");
    assert!(!ran.stderr.contains('\u{1b}'), "no colours where no terminal is: {ran:?}");
    ran.ok();
}

#[tokio::test]
async fn nobody_has_to_wait_a_minute_to_hear_that_there_is_no_broker() {
    // The kernel takes the connections; nobody reads them.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let within = |seconds: u64| format!("within {seconds}s");
    let silent = async |arguments: &[&str], limit: String| {
        let ran = run(&[arguments, &["-b", &address]].concat()).await;
        assert!(ran.stderr.contains(&limit) && ran.stderr.contains(&address), "{ran:?}");
        ran.failed(1, &address);
    };
    let commands: [&[&str]; 4] =
        [&["topic", "list"], &["group", "list"], &["consume", "-t", "t"], &["consume", "-t", "t", "-g", "g"]];
    let all = commands.map(|arguments| silent(arguments, within(10)));
    let [a, b, c, d] = all;
    let demo = silent(&["demo"], within(10));
    let produce = silent(&["produce", "-t", "t", "-n", "1"], within(15));
    tokio::join!(a, b, c, d, demo, produce);
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
