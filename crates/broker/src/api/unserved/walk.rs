//! Goes through a request step by step, and writes the answer that says `UNSUPPORTED_VERSION` wherever it has an error.

use bytes::Bytes;
use tontine_wire::codec::Reader;
use tontine_wire::{DecodeError, ErrorCode};

/// A field that is taken from the request as it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field {
    /// A number, a flag or an id of so many bytes.
    Fixed(usize),
    /// A text, or null.
    Text,
    /// Bytes or records, or null.
    Blob,
}

/// One step through the request, the answer, or both. They are read and written in order.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Answer: the error.
    Code,
    /// Answer: no text.
    Null,
    /// Answer: a text of no characters.
    EmptyText,
    /// Answer: an array without items, or no bytes.
    Empty,
    /// Answer: these bytes.
    Put(&'static [u8]),
    /// Request: left out of the answer.
    Skip(Field),
    /// Request and answer: a field that is in both.
    Echo(Field),
    /// Answer: an array, of whatever the steps in it find.
    Gather(&'static [Step]),
    /// Request: an array; each of its structs makes an item of what is gathered.
    Items(&'static [Step]),
    /// Request: an array; each of its plain values makes an item of what is gathered.
    Values(&'static [Step]),
    /// Request: an array; what is gathered comes from within its structs, if at all.
    Over(&'static [Step]),
    /// Request: an array of plain values that is left out.
    Past(Field),
    /// From this version on.
    Since(i16, &'static [Step]),
    /// Up to this version.
    Until(i16, &'static [Step]),
    /// Request: how many acknowledgements are wanted; with none there is no answer.
    Acks,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Answered {
    /// The answer, its length included.
    Frame(Bytes),
    /// The client wants none.
    Unwanted,
}

/// A refusal can be larger than the request; nobody needs one of many megabytes.
const LARGEST: usize = 4 << 20;

pub(super) struct Walk {
    reader: Reader,
    version: i16,
    flexible: bool,
    out: Vec<u8>,
    items: usize,
    unwanted: bool,
}

impl Walk {
    pub(super) fn new(reader: Reader, version: i16, flexible: bool) -> Self {
        Self { reader, version, flexible, out: Vec::new(), items: 0, unwanted: false }
    }

    pub(super) fn answer(&mut self, correlation_id: i32, steps: &[Step]) -> Result<Answered, DecodeError> {
        self.out.extend_from_slice(&[0; 4]);
        self.out.extend_from_slice(&correlation_id.to_be_bytes());
        self.put_tags();
        self.walk(steps)?;
        self.put_tags();
        if self.unwanted {
            return Ok(Answered::Unwanted);
        }
        let mut frame = std::mem::take(&mut self.out);
        let size = u32::try_from(frame.len() - 4).map_err(|_| DecodeError::TooManyValues)?;
        if let Some(head) = frame.first_chunk_mut() {
            *head = size.to_be_bytes();
        }
        Ok(Answered::Frame(frame.into()))
    }

    fn walk(&mut self, steps: &[Step]) -> Result<(), DecodeError> {
        for step in steps {
            self.step(*step)?;
            if self.out.len() > LARGEST {
                return Err(DecodeError::TooManyValues);
            }
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), DecodeError> {
        match step {
            Step::Code => self.out.extend_from_slice(&ErrorCode::UNSUPPORTED_VERSION.0.to_be_bytes()),
            Step::Null => self.out.extend_from_slice(if self.flexible { &[0] } else { &[0xff, 0xff] }),
            Step::EmptyText => self.out.extend_from_slice(if self.flexible { &[1] } else { &[0, 0] }),
            Step::Empty => self.put_count(0),
            Step::Put(bytes) => self.out.extend_from_slice(bytes),
            Step::Skip(field) => self.take(field, false)?,
            Step::Echo(field) => self.take(field, true)?,
            Step::Gather(steps) => self.gather(steps)?,
            Step::Items(steps) => self.each(steps, true, true)?,
            Step::Values(steps) => self.each(steps, true, false)?,
            Step::Over(steps) => self.each(steps, false, true)?,
            Step::Past(field) => self.each(&[Step::Skip(field)], false, false)?,
            Step::Since(first, steps) if self.version >= first => self.walk(steps)?,
            Step::Until(last, steps) if self.version <= last => self.walk(steps)?,
            Step::Since(..) | Step::Until(..) => {}
            Step::Acks => self.unwanted = self.reader.take(2)?.iter().all(|byte| *byte == 0),
        }
        Ok(())
    }

    fn gather(&mut self, steps: &[Step]) -> Result<(), DecodeError> {
        let around = std::mem::take(&mut self.out);
        let items_around = std::mem::take(&mut self.items);
        self.walk(steps)?;
        let gathered = std::mem::replace(&mut self.out, around);
        let items = std::mem::replace(&mut self.items, items_around);
        self.put_count(items);
        self.out.extend_from_slice(&gathered);
        Ok(())
    }

    fn each(&mut self, steps: &[Step], items: bool, structs: bool) -> Result<(), DecodeError> {
        for _ in 0..self.length(4)? {
            self.walk(steps)?;
            if structs && self.flexible {
                self.reader.skip_tags()?;
            }
            if items {
                self.put_tags();
                self.items += 1;
            }
        }
        Ok(())
    }

    fn take(&mut self, field: Field, echo: bool) -> Result<(), DecodeError> {
        let left = self.reader.clone();
        let size = match field {
            Field::Fixed(size) => size,
            Field::Text => self.length(2)?,
            Field::Blob => self.length(4)?,
        };
        self.reader.take(size)?;
        if echo {
            let taken = left.remaining() - self.reader.remaining();
            self.out.extend_from_slice(&left.rest().slice(..taken));
        }
        Ok(())
    }

    /// The length of a text (two bytes), of bytes or of an array (four bytes); null is 0.
    fn length(&mut self, bytes: usize) -> Result<usize, DecodeError> {
        if self.flexible {
            return Ok(self.reader.uvarint()?.saturating_sub(1) as usize);
        }
        let head = self.reader.take(bytes)?;
        if head.iter().all(|byte| *byte == 0xff) {
            return Ok(0);
        }
        if head.first().is_some_and(|byte| *byte >= 0x80) {
            return Err(DecodeError::BadLength);
        }
        Ok(head.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)))
    }

    fn put_count(&mut self, count: usize) {
        if !self.flexible {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            return self.out.extend_from_slice(&count.to_be_bytes());
        }
        let mut left = count + 1;
        while left >= 0x80 {
            self.out.push((left & 0x7f) as u8 | 0x80);
            left >>= 7;
        }
        self.out.push(left as u8);
    }

    fn put_tags(&mut self) {
        if self.flexible {
            self.out.push(0);
        }
    }
}
