//! What the tests share: runs that write certificates, and certificates taken apart.
//!
//! In: models as text. Out: reports, certificates, and the parts of a certificate, which can be changed and put together
//! again with a right checksum.
#![allow(dead_code)]

use deltamark::load::{Format, LoadOptions, parse};
use deltamark::{Check, Loaded, Report};
use deltamark_verify::{Accepted, Failure, Limits, verify};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes that a set takes in tests.
const ROOM: u64 = 2 << 30;

/// A model in this format.
pub fn loaded(text: &str, format: &str) -> Loaded {
    let format = Format::by_name(format).expect("a format");
    parse("model", format, text.as_bytes(), &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

/// A path that no other test uses.
pub fn path() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("deltamark-{}-{}.cert", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(name)
}

/// Makes a run with a certificate. It is empty if none was written.
pub fn certified(check: Check<'_>) -> (Report, Vec<u8>) {
    let path = path();
    let report = check.certificate(path.to_string_lossy(), None).run().unwrap_or_else(|error| panic!("{error}"));
    let bytes = std::fs::read(&path).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    (report, bytes)
}

/// Checks a certificate without limits.
pub fn verified(certificate: &[u8], text: &str) -> Result<Accepted, Failure> {
    verify(certificate, text.as_bytes(), &Limits { memory: ROOM, whole: ROOM, stop: &|| None })
}

/// A certificate taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    pub language: String,
    pub text: (u64, u64),
    pub variables: u64,
    pub states: Vec<Vec<i64>>,
    pub claims: Vec<Claim>,
}

/// A claim of it. Without a path its evidence is the set; otherwise a path, and whether it ends in a fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub kind: u64,
    pub name: String,
    pub text: String,
    pub ends: Vec<String>,
    pub path: Option<(Vec<Vec<i64>>, bool)>,
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn number(&mut self) -> u64 {
        let mut value = 0;
        for place in 0.. {
            let byte = self.0[0];
            self.0 = &self.0[1..];
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken.to_vec()
    }

    fn words(&mut self) -> String {
        let length = self.number() as usize;
        String::from_utf8(self.bytes(length)).expect("UTF-8")
    }

    fn state(&mut self, last: &mut [i64]) -> bool {
        let changes = self.number();
        let mut cell = 0;
        for _ in 1..changes {
            cell += self.number() as usize;
            let word = self.number();
            last[cell] += (word >> 1) as i64 ^ -((word & 1) as i64);
            cell += 1;
        }
        changes > 0
    }
}

/// Takes a right certificate apart.
pub fn parts(certificate: &[u8]) -> Parts {
    let mut cursor = Cursor(&certificate[8..certificate.len() - 4]);
    let language = cursor.words();
    let length = cursor.number();
    let hash = u64::from_le_bytes(cursor.bytes(8).try_into().expect("8 bytes"));
    assert_eq!(cursor.number(), 0, "no options");
    let variables = cursor.number();
    let mut last = vec![0; variables as usize];
    let mut states = Vec::new();
    while cursor.state(&mut last) {
        states.push(last.clone());
    }
    let mut claims = Vec::new();
    while cursor.number() == 1 {
        let (kind, name, text) = (cursor.number(), cursor.words(), cursor.words());
        let ends = (0..cursor.number()).map(|_| cursor.words()).collect();
        let path = match cursor.number() {
            0 => None,
            ending => {
                let mut last = vec![0; variables as usize];
                let mut path = Vec::new();
                for _ in 0..cursor.number() {
                    cursor.state(&mut last);
                    path.push(last.clone());
                }
                Some((path, ending == 2))
            }
        };
        claims.push(Claim { kind, name, text, ends, path });
    }
    assert!(cursor.0.is_empty(), "all was read");
    Parts { language, text: (length, hash), variables, states, claims }
}

fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_words(words: &str, out: &mut Vec<u8>) {
    put(words.len() as u64, out);
    out.extend_from_slice(words.as_bytes());
}

fn put_states(states: &[Vec<i64>], variables: u64, out: &mut Vec<u8>) {
    let mut last = vec![0; variables as usize];
    for state in states {
        let changed: Vec<usize> = (0..state.len()).filter(|&cell| state[cell] != last[cell]).collect();
        put(changed.len() as u64 + 1, out);
        let mut next = 0;
        for cell in changed {
            let difference = state[cell] - last[cell];
            put((cell - next) as u64, out);
            put((difference << 1 ^ difference >> 63) as u64, out);
            next = cell + 1;
        }
        last.clone_from(state);
    }
}

/// Puts a certificate together.
pub fn sealed(parts: &Parts) -> Vec<u8> {
    let mut out = b"DMCERT\0\x01".to_vec();
    put_words(&parts.language, &mut out);
    put(parts.text.0, &mut out);
    out.extend_from_slice(&parts.text.1.to_le_bytes());
    put(0, &mut out);
    put(parts.variables, &mut out);
    put_states(&parts.states, parts.variables, &mut out);
    put(0, &mut out);
    for claim in &parts.claims {
        put(1, &mut out);
        put(claim.kind, &mut out);
        put_words(&claim.name, &mut out);
        put_words(&claim.text, &mut out);
        put(claim.ends.len() as u64, &mut out);
        claim.ends.iter().for_each(|end| put_words(end, &mut out));
        match &claim.path {
            None => put(0, &mut out),
            Some((path, fault)) => {
                put(1 + u64::from(*fault), &mut out);
                put(path.len() as u64, &mut out);
                put_states(path, parts.variables, &mut out);
            }
        }
    }
    put(0, &mut out);
    resealed(out)
}

/// The same bytes with a right checksum behind them.
pub fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}
