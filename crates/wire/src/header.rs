//! What stands before every request and every answer.

use crate::api::ApiKey;
use crate::codec::{DecodeError, Reader, Wire, Writer, put_uvarint};

/// The header of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestHeader {
    /// The API.
    pub key: ApiKey,
    /// The version of the API.
    pub version: i16,
    /// Comes back in the answer.
    pub correlation_id: i32,
    /// How the client calls itself.
    pub client_id: Option<String>,
}

/// The numbers at the front of a request, which can be read whatever the API and the version are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestStart {
    /// The API's number.
    pub key: i16,
    /// The version of the API.
    pub version: i16,
    /// Comes back in the answer.
    pub correlation_id: i32,
}

impl RequestStart {
    /// Reads the numbers.
    pub fn get(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            key: i16::get(reader, 0, false)?,
            version: i16::get(reader, 0, false)?,
            correlation_id: i32::get(reader, 0, false)?,
        })
    }
}

impl RequestHeader {
    /// Appends the header: version 2 with tags for flexible versions, version 1 otherwise.
    pub fn put(&self, out: &mut Writer) {
        (self.key as i16).put(out, 0, false);
        self.version.put(out, 0, false);
        self.correlation_id.put(out, 0, false);
        self.client_id.put(out, 0, false);
        if self.key.is_flexible(self.version) {
            put_uvarint(out, 0);
        }
    }

    /// Reads what follows the numbers.
    pub fn get_rest(start: RequestStart, reader: &mut Reader) -> Result<Self, DecodeError> {
        let key = ApiKey::from_code(start.key)?;
        let client_id = Option::<String>::get(reader, 0, false)?;
        if key.is_flexible(start.version) {
            reader.skip_tags()?;
        }
        Ok(Self { key, version: start.version, correlation_id: start.correlation_id, client_id })
    }
}

/// Whether the header of this answer carries tags. ApiVersions never does: its reader does not know the version yet.
fn response_has_tags(key: ApiKey, version: i16) -> bool {
    key != ApiKey::ApiVersions && key.is_flexible(version)
}

/// Appends the header of an answer.
pub fn put_response_header(out: &mut Writer, key: ApiKey, version: i16, correlation_id: i32) {
    correlation_id.put(out, 0, false);
    if response_has_tags(key, version) {
        put_uvarint(out, 0);
    }
}

/// Steps over what follows the correlation id in the header of an answer.
pub fn skip_response_tags(key: ApiKey, version: i16, reader: &mut Reader) -> Result<(), DecodeError> {
    if response_has_tags(key, version) { reader.skip_tags() } else { Ok(()) }
}
