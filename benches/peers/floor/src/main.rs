//! The floor: one blocking socket, one buffer that is used again and again, every batch's checksum, and nothing else. No
//! group, no records. What a client costs beyond this is its own doing.

use measure::{Args, Run};
use std::{
    io::{Read, Write},
    net::TcpStream,
};

/// Bytes put together, or taken apart, in the order of the wire.
struct Out(Vec<u8>);

impl Out {
    fn i16(&mut self, value: i16) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }
    fn i32(&mut self, value: i32) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }
    fn text(&mut self, text: &str) -> &mut Self {
        self.i16(text.len() as i16).0.extend(text.as_bytes());
        self
    }
}

struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, size: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(size);
        self.0 = rest;
        taken
    }
    fn i16(&mut self) -> i16 {
        i16::from_be_bytes(self.take(2).try_into().unwrap())
    }
    fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().unwrap())
    }
}

/// Fetch version 4, all partitions, with the sizes that consumers ask for by default.
fn request(topic: &str, offsets: &[i64]) -> Vec<u8> {
    let mut out = Out(vec![0; 4]);
    out.i16(1).i16(4).i32(1).text("floor");
    out.i32(-1).i32(500).i32(1).i32(50 << 20).0.push(0);
    out.i32(1).text(topic).i32(offsets.len() as i32);
    for (partition, offset) in offsets.iter().enumerate() {
        out.i32(partition as i32).0.extend(offset.to_be_bytes());
        out.i32(1 << 20);
    }
    let size = (out.0.len() - 4) as i32;
    out.0[..4].copy_from_slice(&size.to_be_bytes());
    out.0
}

/// Checks the batches of one partition; answers how many records they hold, and what comes next.
fn batches(mut bytes: &[u8], next: &mut i64) -> u64 {
    let mut records = 0;
    while bytes.len() >= 61 {
        let i32_at = |at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let size = 12 + i32_at(8) as usize;
        if size > bytes.len() {
            break;
        }
        let stored = i32_at(17) as u32;
        assert_eq!(crc32c::crc32c(&bytes[21..size]), stored, "the checksum of a batch");
        *next = i64::from_be_bytes(bytes[..8].try_into().unwrap()) + i64::from(i32_at(23)) + 1;
        records += i32_at(57) as u64;
        bytes = &bytes[size..];
    }
    records
}

fn main() {
    let mut run = Run::start(Args::parse());
    let mut stream = TcpStream::connect(&run.args().bootstrap).expect("a broker");
    stream.set_nodelay(true).unwrap();
    let mut offsets = vec![0i64; run.args().partitions as usize];
    let mut buffer = vec![1u8; 64 << 20];
    let topic = run.args().topic.clone();
    run.subscribing();
    while run.go_on() {
        stream.write_all(&request(&topic, &offsets)).unwrap();
        let mut size = [0; 4];
        stream.read_exact(&mut size).unwrap();
        let size = u32::from_be_bytes(size) as usize;
        let frame = &mut buffer[..size];
        stream.read_exact(frame).unwrap();
        let mut input = In(frame);
        input.take(8);
        for _ in 0..input.i32() {
            let length = input.i16() as usize;
            input.take(length);
            for _ in 0..input.i32() {
                let partition = input.i32() as usize;
                assert_eq!(input.i16(), 0, "the broker's answer for partition {partition}");
                input.take(16);
                let aborted = input.i32().max(0) as usize;
                input.take(aborted * 16);
                let bytes = input.i32().max(0) as usize;
                let records = batches(input.take(bytes), &mut offsets[partition]);
                run.records(records, bytes as u64);
            }
        }
    }
    run.print("floor: recv + crc", "-");
}
