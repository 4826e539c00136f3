//! `broker --config-file`: a properties file as it comes with Apache Kafka.

use super::rig::*;

/// The settings of the file that Apache Kafka 4.x ships, with a port and a directory of the test's own.
fn shipped(directory: &str) -> String {
    format!(
        "# The role of this server.\n\
         process.roles=broker,controller\n\
         node.id=7\n\
         controller.quorum.bootstrap.servers=localhost:9093\n\
         listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://:9093\n\
         inter.broker.listener.name=PLAINTEXT\n\
         controller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT\n\
         num.network.threads=3\n\
         num.io.threads=8\n\
         socket.send.buffer.bytes=102400\n\
         socket.receive.buffer.bytes=102400\n\
         socket.request.max.bytes=104857600\n\
         log.dirs={directory}\n\
         num.partitions=2\n\
         num.recovery.threads.per.data.dir=1\n\
         offsets.topic.replication.factor=1\n\
         share.coordinator.state.topic.replication.factor=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n\
         log.retention.hours=168\n\
         log.segment.bytes=1073741824\n\
         log.retention.check.interval.ms=300000\n"
    )
}

#[tokio::test]
async fn kafkas_own_file_loads_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let file = directory.path().join("server.properties");
    std::fs::write(&file, shipped(data.to_str().unwrap())).unwrap();
    let mut process = command(&["broker", "--config-file", file.to_str().unwrap()]).spawn().unwrap();
    let mut stdout = tokio::io::BufReader::new(process.stdout.take().unwrap());
    let said = line(&mut stdout).await;
    let address = said.strip_prefix("listening on ").unwrap().trim();
    run(&["topic", "create", "orders", "-b", address]).await.ok();
    let described = run(&["topic", "describe", "orders", "--format", "json", "-b", address]).await.json();
    assert_eq!(described[0]["partitions"][0]["leader"], 7);
    signal(&process, "TERM");
    let ran = ended(process).await;
    assert_eq!(ran.code, Some(0));
    let said = ran.stderr.lines().find(|line| line.contains("have no effect here")).unwrap();
    assert!(said.contains("num.io.threads") && !said.contains("log.dirs"), "{said}");
    assert!(data.join("meta.properties").exists());
}

#[tokio::test]
async fn a_file_with_a_key_that_kafka_does_not_have_is_refused_and_the_command_line_counts_first() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.properties");
    let file = file.to_str().unwrap();
    std::fs::write(file, "num.partitons=3\n").unwrap();
    run(&["broker", "--config-file", file]).await.failed(2, "did you mean `num.partitions`?");
    run(&["broker", "--config-file", "nowhere"]).await.failed(2, "could not read nowhere");
    std::fs::write(file, "num.partitions=3\nlog.retention.hours = 1\n").unwrap();
    let printed =
        run(&["broker", "--config-file", file, "--config", "num.partitions=4", "--print-config"]).await.ok();
    assert!(printed.lines().any(|line| line == "num.partitions=4"), "{printed}");
    assert!(printed.lines().any(|line| line == "log.retention.hours=1"), "{printed}");
}
