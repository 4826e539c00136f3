//! The rows that every client has: brokers, connections, metadata, retries.

use crate::Error;

/// What only the Java client can use, or what is not needed here; a name that ends with `.` stands for all that start so.
pub(super) const IGNORED: &[&str] = &[
    "client.dns.lookup",
    "bootstrap.resolve.timeout.ms",
    "metadata.cluster.check.enable",
    "enable.metrics.push",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "auto.include.jmx.reporter",
    "config.providers",
    "config.providers.",
    "security.providers",
    "sasl.",
    "ssl.",
    "log_level",
    "log.connection.close",
    "socket.keepalive.enable",
    "socket.nagle.disable",
    "broker.address.family",
    "broker.address.ttl",
    "api.version.request",
    "statistics.interval.ms",
    "debug",
];

macro_rules! table_with_network_rows {
    ($(#[$meta:meta])* $config:ident, $(#[$bmeta:meta])* $builder:ident { $($extra:tt)* }, ignored $ignored:expr, { $($own:tt)* }) => {
        table! { $(#[$meta])* $config, $(#[$bmeta])* $builder { $($extra)* }, ignored $ignored, {
            bootstrap_servers: Vec<String> = Vec::new(), "bootstrap.servers" | "metadata.broker.list", Range::Any, Both,
                "Brokers to start from, as host:port,host:port. One that answers is enough: it names all the others.";
            client_id: String = String::new(), "client.id", Range::Any, Both,
                "How this client calls itself towards brokers. Made up when it is not set.";
            $($own)*
            request_timeout: Duration = ms(30_000), "request.timeout.ms" | "socket.timeout.ms", Range::from(0), Both,
                "How long a broker may take for one answer. After that the connection is closed and another way is tried.";
            default_api_timeout: Duration = ms(60_000), "default.api.timeout.ms", Range::from(0), Both,
                "How long a call that has no timeout of its own may take, retries included.";
            retry_backoff: Duration = ms(100), "retry.backoff.ms", Range::from(0), Both,
                "The pause before the first retry of a request. It doubles with each further one, give or take a fifth.";
            retry_backoff_max: Duration = ms(1_000), "retry.backoff.max.ms", Range::from(0), Both,
                "The longest pause between retries.";
            reconnect_backoff: Duration = ms(50), "reconnect.backoff.ms", Range::from(0), Both,
                "The pause before a broker that could not be reached is tried again. It doubles with each failure.";
            reconnect_backoff_max: Duration = ms(1_000), "reconnect.backoff.max.ms", Range::from(0), Both,
                "The longest pause between attempts to reach a broker. Setting only reconnect.backoff.ms makes this the same.";
            socket_connection_setup_timeout: Duration = ms(10_000), "socket.connection.setup.timeout.ms", Range::from(0), Both,
                "How long opening a connection may take. It doubles with each failure.";
            socket_connection_setup_timeout_max: Duration = ms(30_000), "socket.connection.setup.timeout.max.ms", Range::from(0), Both,
                "The longest time that opening a connection may take.";
            connections_max_idle: Duration = ms(540_000), "connections.max.idle.ms", Range::from(0), Both,
                "A connection that nobody used for this long is closed.";
            metadata_max_age: Duration = ms(300_000), "metadata.max.age.ms" | "topic.metadata.refresh.interval.ms", Range::from(0), Both,
                "Brokers, topics and leaders are asked for this often even when nothing seems to have changed.";
            metadata_recovery_strategy: String = "rebootstrap".to_owned(), "metadata.recovery.strategy", Range::NotBlank, Both,
                "What to do when no known broker can be reached: `rebootstrap` starts again from bootstrap.servers, `none` goes on trying.";
            metadata_recovery_rebootstrap_trigger: Duration = ms(300_000), "metadata.recovery.rebootstrap.trigger.ms", Range::from(0), Both,
                "After this long without fresh metadata the client starts again from bootstrap.servers.";
            send_buffer: i32 = -1, "send.buffer.bytes" | "socket.send.buffer.bytes", Range::from(-1), Both,
                "The size of the socket's send buffer; -1 leaves it to the system, which then adapts it.";
            receive_buffer: i32 = -1, "receive.buffer.bytes" | "socket.receive.buffer.bytes", Range::from(-1), Both,
                "The size of the socket's receive buffer; -1 leaves it to the system, which then adapts it.";
            security_protocol: String = "PLAINTEXT".to_owned(), "security.protocol", Range::NotBlank, Both,
                "How connections are secured. Only PLAINTEXT is supported.";
        } }
    };
}

/// The servers as host and port.
pub(crate) fn bootstrap(servers: &[String]) -> Result<Vec<(String, u16)>, Error> {
    if servers.is_empty() {
        return Err(Error::configuration(
            "bootstrap.servers is not set: name at least one broker as host:port",
        ));
    }
    servers.iter().map(|server| host_and_port(server)).collect()
}

fn host_and_port(server: &str) -> Result<(String, u16), Error> {
    let wrong = |why: &str| Error::configuration(format!("bootstrap.servers: `{server}` {why}"));
    // Java accepts the name of a listener in front, as in PLAINTEXT://host:9092.
    let address = server.split_once("://").map_or(server, |(_, rest)| rest);
    let (host, port) = address.rsplit_once(':').ok_or_else(|| wrong("has no port: write host:port"))?;
    let port = port.parse().ok().filter(|p| *p != 0).ok_or_else(|| wrong("has no port from 1 to 65535"))?;
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(wrong("has no host: write host:port"));
    }
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_as_java_reads_them() {
        let one =
            |text: &str| bootstrap(&[text.to_owned()]).map(|mut v| v.remove(0)).map_err(|e| e.to_string());
        assert_eq!(one("kafka:9092"), Ok(("kafka".to_owned(), 9092)));
        assert_eq!(one("[::1]:9092"), Ok(("::1".to_owned(), 9092)));
        assert_eq!(one("PLAINTEXT://kafka:9092"), Ok(("kafka".to_owned(), 9092)));
        assert_eq!(one("kafka"), Err("bootstrap.servers: `kafka` has no port: write host:port".to_owned()));
        assert!(one("kafka:70000").is_err());
        assert!(one(":9092").is_err());
        assert!(bootstrap(&[]).is_err());
    }
}
