//! `broker` as a process.

use super::rig::*;
use tokio::time::timeout;

#[tokio::test]
async fn an_interrupt_or_a_polite_kill_stops_the_broker_in_good_order() {
    for name in ["INT", "TERM"] {
        let mut broker = Broker::start(&["--topic", "orders:1"]).await;
        signal(&broker.process, name);
        let status = timeout(LONG, broker.process.wait()).await.expect("it stops").unwrap();
        assert_eq!(status.code(), Some(0), "SIG{name}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_broker_takes_more_connections_than_it_may_have_files_open_by_default() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut command = tokio::process::Command::new("sh");
    let script = "ulimit -Sn 64 && exec \"$0\" broker --listen 127.0.0.1:0";
    command.args(["-c", script, env!("CARGO_BIN_EXE_tontine")]).kill_on_drop(true);
    let mut process = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let said = line(&mut tokio::io::BufReader::new(process.stdout.take().unwrap())).await;
    let address = said.trim().strip_prefix("listening on ").unwrap().to_owned();
    let mut connections = Vec::new();
    for _ in 0..100 {
        connections.push(timeout(LONG, tokio::net::TcpStream::connect(&address)).await.unwrap().unwrap());
    }
    for connection in &mut connections {
        // ApiVersions in version 0, of no client id.
        connection.write_all(&[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff]).await.unwrap();
        let mut size = [0; 4];
        timeout(LONG, connection.read_exact(&mut size)).await.expect("each is served").unwrap();
    }
}

#[tokio::test]
async fn several_nodes_say_where_each_of_them_listens() {
    let broker = Broker::start(&["--nodes", "3", "--topic", "orders:3"]).await;
    assert_eq!(broker.address.split(',').count(), 3);
    let described = broker.run(&["topic", "describe", "orders", "--format", "json"]).await.json();
    let mut leaders: Vec<_> =
        described[0]["partitions"].as_array().unwrap().iter().map(|p| &p["leader"]).collect();
    leaders.sort_by_key(|leader| leader.as_i64());
    leaders.dedup();
    assert_eq!(leaders.len(), 3, "leaders are spread");
}

#[tokio::test]
async fn a_port_in_use_is_a_clear_error() {
    let broker = Broker::start(&[]).await;
    run(&["broker", "--listen", &broker.address]).await.failed(1, "another process listens there");
}

#[tokio::test]
async fn a_setting_that_is_none_names_the_nearest_and_a_wrong_address_says_how_to_write_one() {
    let listen = ["broker", "--listen", "127.0.0.1:0"];
    let wrong = async |more: &[&str], saying: &str| run(&[&listen, more].concat()).await.failed(2, saying);
    wrong(&["--config", "num.partitons=3"], "did you mean `num.partitions`?").await;
    wrong(&["--config", "foo=bar"], "unknown configuration key `foo`: docs/BROKER.md").await;
    wrong(&["--config", "num.partitions=0"], "num.partitions").await;
    wrong(&["--config", "num.partitions"], "is not key=value").await;
    wrong(&["--topic", "orders:none"], "is not name:partitions").await;
    wrong(&["--topic", "a b:1"], "a b").await;
    run(&["broker", "--listen", "rubbish"]).await.failed(2, "write host:port");
}

#[tokio::test]
async fn the_commands_of_the_readme_work_as_they_stand() {
    let readme = include_str!("../../../../README.md");
    let section = readme.split("## The command line").nth(1).unwrap();
    let mut commands = section.split("```").nth(1).unwrap().lines().skip(1);
    let first = commands.next().unwrap();
    let arguments: Vec<&str> = first.split('#').next().unwrap().split_whitespace().skip(2).collect();
    let broker = Broker::start(&arguments).await;
    let directory = std::path::Path::new(env!("CARGO_BIN_EXE_tontine")).parent().unwrap();
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default());
    for typed in commands {
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", typed]).env("PATH", &path).env("TONTINE_BOOTSTRAP_SERVER", &broker.address);
        shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).kill_on_drop(true);
        let ran = ended(shell.spawn().unwrap()).await;
        assert_eq!(ran.code, Some(0), "{typed}: {ran:?}");
    }
}
