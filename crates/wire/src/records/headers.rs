//! The headers of a record, decoded as they are asked for.
//!
//! They are stepped over once when the record is read, so that going through them cannot fail.

use super::varint;
use std::borrow::Cow;

/// The headers of a record: an iterator that decodes them as it goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers<'a> {
    left: u32,
    rest: &'a [u8],
}

impl<'a> Headers<'a> {
    /// Steps over all headers of a record; they must end where the record does.
    #[inline(always)]
    pub(super) fn check(body: &'a [u8]) -> Option<Self> {
        if let [0] = body { Some(Self::default()) } else { Self::walk(body) }
    }

    fn walk(mut body: &'a [u8]) -> Option<Self> {
        let left = u32::try_from(varint::get_i32(&mut body)?).ok()?;
        let headers = Self { left, rest: body };
        let mut walker = headers;
        while walker.left > 0 {
            walker.next_header()?;
        }
        walker.rest.is_empty().then_some(headers)
    }

    #[inline(always)]
    fn next_header(&mut self) -> Option<Header<'a>> {
        self.left = self.left.checked_sub(1)?;
        let key = varint::nullable(&mut self.rest)??;
        let value = varint::nullable(&mut self.rest)?;
        Some(Header { key, value })
    }

    /// Headers that have been checked before, their count in front.
    pub(super) fn counted(mut body: &'a [u8]) -> Self {
        let left = varint::get_i32(&mut body).and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        Self { left, rest: body }
    }

    /// Headers that have been checked before.
    pub(super) fn checked(left: u32, rest: &'a [u8]) -> Self {
        Self { left, rest }
    }

    /// What [`Headers::checked`] takes.
    pub(super) fn raw(&self) -> (u32, &'a [u8]) {
        (self.left, self.rest)
    }

    /// The value of the last header with this key: the one that counts when a producer sets a header again.
    pub fn value_of(self, key: &str) -> Option<Option<&'a [u8]>> {
        self.filter(|header| header.key == key.as_bytes()).fold(None, |_, header| Some(header.value))
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        self.next_header()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Headers<'_> {}

/// One header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    key: &'a [u8],
    value: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    /// The key; what is not UTF-8 in it is replaced, as Java does.
    pub fn key(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.key)
    }

    /// The key as it was sent.
    pub fn key_bytes(&self) -> &'a [u8] {
        self.key
    }

    /// The value.
    pub fn value(&self) -> Option<&'a [u8]> {
        self.value
    }
}
