//! Addresses as Kafka writes them: `PLAINTEXT://host:port`, or just `host:port`.

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

/// Why a text is no address that can be listened on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AddressError {
    #[error("`{0}` is not an address: write host:port, for example 127.0.0.1:9092")]
    Malformed(String),
    #[error("`{0}` wants {1}: only PLAINTEXT is served")]
    Protocol(String, String),
}

impl Address {
    /// Reads one address. An empty host stands for every interface.
    pub(super) fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        let (protocol, rest) = text.split_once("://").unwrap_or(("PLAINTEXT", text));
        if protocol.contains("SSL") || protocol.contains("SASL") {
            return Err(AddressError::Protocol(text.to_owned(), protocol.to_owned()));
        }
        let malformed = || AddressError::Malformed(text.to_owned());
        let (host, port) = rest.rsplit_once(':').ok_or_else(malformed)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = if host.is_empty() { "0.0.0.0" } else { host };
        Ok(Self { host: host.to_owned(), port: port.parse().map_err(|_| malformed())? })
    }

    /// The first address of a list that is meant for clients.
    pub(super) fn first_of(list: &str) -> Result<Self, AddressError> {
        let parts = || list.split(',').map(str::trim).filter(|part| !part.is_empty());
        let for_clients = parts().find(|part| !part.starts_with("CONTROLLER://"));
        Self::parse(for_clients.unwrap_or(list))
    }

    /// What clients can connect to: nobody can connect to "every interface".
    pub(super) fn reachable_host(&self) -> &str {
        match self.host.as_str() {
            "0.0.0.0" | "::" => "127.0.0.1",
            host => host,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_a_protocol() {
        let of = |text| Address::first_of(text).map(|address| (address.host, address.port));
        assert_eq!(of("127.0.0.1:9092"), Ok(("127.0.0.1".into(), 9092)));
        assert_eq!(of("PLAINTEXT://:9092"), Ok(("0.0.0.0".into(), 9092)));
        assert_eq!(of("CONTROLLER://:9093, PLAINTEXT://[::1]:9094"), Ok(("::1".into(), 9094)));
        assert!(of("SSL://:9092").unwrap_err().to_string().contains("only PLAINTEXT"));
        assert!(of("9092").unwrap_err().to_string().contains("host:port"));
    }
}
