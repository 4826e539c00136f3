//! Which versions a broker speaks, and which one a request takes. Mirrors Kafka's `NodeApiVersions`.

use std::collections::BTreeMap;
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Request, api_versions as wire},
};

/// The version of ApiVersions that is tried first; brokers back to Kafka 2.4 answer it or name what they speak.
pub(super) const FIRST_TRY: i16 = 4;

/// The versions that a broker speaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Versions(BTreeMap<i16, (i16, i16)>);

impl Versions {
    pub(super) fn new(answer: &wire::ApiVersionsResponse) -> Self {
        Self(answer.api_keys.iter().map(|v| (v.api_key, (v.min_version, v.max_version))).collect())
    }

    /// The highest version that both sides speak, no higher than `at_most`; an error in words otherwise.
    pub(super) fn choose(&self, key: ApiKey, at_most: i16) -> Result<i16, String> {
        let ours = key.versions();
        let name = key.name();
        let Some(&(low, high)) = self.0.get(&(key as i16)) else {
            return Err(format!("does not know {name}"));
        };
        let version = high.min(*ours.end()).min(at_most);
        if version < low.max(*ours.start()) {
            return Err(format!(
                "speaks {name} in versions {low} to {high}, but this client needs {} to {}",
                ours.start(),
                at_most.min(*ours.end())
            ));
        }
        Ok(version)
    }
}

/// The first version that has room for all a request says, where the one that both sides speak could lack it. What does
/// not fit would be left out without a word.
pub(super) fn needs(request: &Request) -> Option<i16> {
    match request {
        Request::ConsumerGroupHeartbeat(heartbeat) => {
            heartbeat.subscribed_topic_regex.as_ref().filter(|regex| !regex.is_empty()).map(|_| 1)
        }
        _ => None,
    }
}

/// The request that asks a broker for its versions.
pub(super) fn request() -> Request {
    wire::ApiVersionsRequest {
        client_software_name: "tontine".to_owned(),
        client_software_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Default::default()
    }
    .into()
}

/// The version to ask again in, after a broker refused [`FIRST_TRY`] and said what it speaks.
pub(super) fn second_try(answer: &wire::ApiVersionsResponse) -> i16 {
    let own = answer.api_keys.iter().find(|v| v.api_key == ApiKey::ApiVersions as i16);
    own.map_or(0, |v| v.max_version.clamp(0, FIRST_TRY - 1))
}

/// Whether these bytes, an answer without its header, start with this code. In all versions the code comes first.
pub(super) fn starts_with(body: &[u8], code: ErrorCode) -> bool {
    body.first_chunk::<2>().is_some_and(|first| i16::from_be_bytes(*first) == code.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaks(key: ApiKey, low: i16, high: i16) -> Versions {
        let one = wire::ApiVersion { api_key: key as i16, min_version: low, max_version: high };
        Versions::new(&wire::ApiVersionsResponse { api_keys: vec![one], ..Default::default() })
    }

    #[test]
    fn the_highest_common_version_is_taken() {
        assert_eq!(speaks(ApiKey::Metadata, 0, 9).choose(ApiKey::Metadata, i16::MAX), Ok(9));
        assert_eq!(speaks(ApiKey::Metadata, 0, 99).choose(ApiKey::Metadata, i16::MAX), Ok(13));
        assert_eq!(speaks(ApiKey::Metadata, 0, 99).choose(ApiKey::Metadata, 5), Ok(5));
    }

    #[test]
    fn no_common_version_is_an_error_that_names_both_sides() {
        let error = speaks(ApiKey::Metadata, 90, 99).choose(ApiKey::Metadata, i16::MAX).unwrap_err();
        assert_eq!(error, "speaks Metadata in versions 90 to 99, but this client needs 0 to 13");
        assert!(speaks(ApiKey::Metadata, 0, 9).choose(ApiKey::Heartbeat, i16::MAX).is_err());
    }
}
