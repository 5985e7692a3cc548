//! The protocol of PostgreSQL, as far as statements are concerned.
//!
//! 1. The first message has no type: a request to encrypt, or the start, which names the database. Whoever goes on with
//!    a record of TLS is not seen any more.
//! 2. Later messages have a type, a length that counts itself, and a body. `Q` is a query; `P` prepares one, `B` binds
//!    values to it, `E` executes it. Values that were sent as text take the place of parameters; with others the
//!    statement is not explained.
//! 3. `ReadyForQuery` ends an answer.

use std::collections::HashMap;

use super::relay::{Chunk, Tail, Watch};
use super::statement::{MAX_STATEMENT_BYTES, Running, with_values};

const START: u32 = 3 << 16;
const ENCRYPT: [u32; 2] = [80_877_103, 80_877_104];
/// Prepared statements and portals that are known of a connection.
const MAX_NAMES: usize = 1024;
/// The first byte of a TLS record that begins a connection.
const TLS: u8 = 0x16;

/// What is known of a connection.
#[derive(Debug, Default)]
pub struct Session {
    has_started: bool,
    hidden: &'static str,
    is_lost: bool,
    waiting: Vec<u8>,
    /// Bytes of a message that is too long to be looked at.
    skip: usize,
    prepared: HashMap<String, String>,
    /// The statements that portals execute: with values, and as they were prepared.
    portals: HashMap<String, (String, String)>,
}

impl Watch for Session {
    fn see(&mut self, chunk: &Chunk, running: &mut Running) -> bool {
        match chunk {
            Chunk::Gap => self.is_lost = true,
            Chunk::FromServer(tail) => {
                if is_ready(tail) {
                    running.end();
                }
            }
            Chunk::FromClient(bytes) => return self.client(bytes, running),
        }
        true
    }

    fn hidden(&self) -> &'static str {
        self.hidden
    }
}

impl Session {
    fn client(&mut self, bytes: &[u8], running: &mut Running) -> bool {
        if self.is_lost {
            if !self.has_started {
                self.hidden = "overtaken";
                return false;
            }
            if !is_whole(bytes) {
                return true;
            }
            (self.is_lost, self.skip) = (false, 0);
            self.waiting.clear();
        }
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        self.waiting.extend_from_slice(&bytes[skipped..]);
        let waiting = std::mem::take(&mut self.waiting);
        let mut rest = waiting.as_slice();
        if !self.has_started && rest.first() == Some(&TLS) {
            self.hidden = "encrypted";
            return false;
        }
        loop {
            let head = if self.has_started { 1 } else { 0 };
            let Some(len) = rest.get(head..head + 4).and_then(number) else { break };
            let all = head + (len as usize).max(4);
            if all > MAX_STATEMENT_BYTES {
                self.skip = all - rest.len().min(all);
                rest = rest.get(all..).unwrap_or_default();
                running.end();
                continue;
            }
            let Some(message) = rest.get(..all) else { break };
            let body = &message[head + 4..];
            if self.has_started {
                self.message(message[0], body, running);
            } else {
                self.start(body, running);
            }
            rest = &rest[all..];
        }
        self.waiting = rest.to_vec();
        true
    }

    fn start(&mut self, body: &[u8], running: &mut Running) {
        match number(body) {
            Some(code) if ENCRYPT.contains(&code) => {}
            Some(code) => {
                self.has_started = true;
                if code >= START {
                    running.database = parameter(&body[4..], "database").or(parameter(&body[4..], "user"));
                }
            }
            None => {}
        }
    }

    fn message(&mut self, kind: u8, body: &[u8], running: &mut Running) {
        match kind {
            b'Q' => {
                if let Some((text, _)) = text(body) {
                    running.begin(&text, None);
                }
            }
            b'P' => {
                if let Some((name, rest)) = text(body)
                    && let Some((statement, _)) = text(rest)
                    && self.prepared.len() < MAX_NAMES
                {
                    self.prepared.insert(name, statement);
                }
            }
            b'B' => {
                if let Some((portal, statement)) = self.bound(body)
                    && self.portals.len() < MAX_NAMES
                {
                    self.portals.insert(portal, statement);
                }
            }
            b'E' => {
                if let Some((portal, _)) = text(body)
                    && let Some((statement, prepared)) = self.portals.get(&portal)
                {
                    running.begin(statement, Some(prepared));
                }
            }
            b'C' => match body.split_first() {
                Some((b'S', name)) => {
                    text(name).and_then(|(name, _)| self.prepared.remove(&name));
                }
                Some((b'P', name)) => {
                    text(name).and_then(|(name, _)| self.portals.remove(&name));
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// The portal, and the statement that it will execute.
    fn bound(&self, body: &[u8]) -> Option<(String, (String, String))> {
        let (portal, rest) = text(body)?;
        let (name, mut rest) = text(rest)?;
        let prepared = self.prepared.get(&name)?;
        let formats: Vec<u16> = (0..short(&mut rest)?).map(|_| short(&mut rest)).collect::<Option<_>>()?;
        let count = usize::from(short(&mut rest)?);
        let mut values = Vec::with_capacity(count.min(MAX_NAMES));
        for no in 0..count {
            let len = number(rest)?;
            rest = rest.get(4..)?;
            if len == u32::MAX {
                values.push("NULL".to_owned());
                continue;
            }
            let bytes = rest.get(..len as usize)?;
            rest = &rest[len as usize..];
            if formats.get(no).or(formats.first().filter(|_| formats.len() == 1)) == Some(&1) {
                return None;
            }
            let value = std::str::from_utf8(bytes).ok()?;
            values.push(format!("'{}'", value.replace('\'', "''")));
        }
        Some((portal, (with_values(prepared, &values)?, prepared.clone())))
    }
}

fn is_ready(tail: &Tail) -> bool {
    matches!(tail.tail.as_slice(), [.., b'Z', 0, 0, 0, 5, b'I' | b'T' | b'E'])
}

/// Whether the bytes are whole messages that clients send.
fn is_whole(mut bytes: &[u8]) -> bool {
    while let Some((kind, rest)) = bytes.split_first() {
        let len = number(rest).map(|len| len as usize).filter(|len| *len >= 4);
        let Some(behind) = len.and_then(|len| rest.get(len..)) else { return false };
        if !b"QPBEDCSHXFdcfp".contains(kind) {
            return false;
        }
        bytes = behind;
    }
    true
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))
}

fn short(rest: &mut &[u8]) -> Option<u16> {
    let value = u16::from_be_bytes(*rest.first_chunk::<2>()?);
    *rest = &rest[2..];
    Some(value)
}

/// A text that a zero ends, and what follows it.
fn text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let at = bytes.iter().position(|byte| *byte == 0)?;
    Some((std::str::from_utf8(&bytes[..at]).ok()?.to_owned(), &bytes[at + 1..]))
}

fn parameter(mut rest: &[u8], wanted: &str) -> Option<String> {
    loop {
        let (name, behind) = text(rest)?;
        let (value, behind) = text(behind)?;
        if name == wanted {
            return Some(value);
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::sync::mpsc::channel;

    use super::*;
    use crate::proxy::Event;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let len = (body.len() as u32 + 4).to_be_bytes();
        let head: &[u8] = if kind == 0 { &[] } else { &[kind] };
        [head, &len, body].concat()
    }

    #[test]
    fn queries_and_portals_are_seen() {
        let (sender, mut events) = channel(64);
        let (mut session, mut running) = (Session::default(), Running::new(1, sender));
        let start = [&START.to_be_bytes() as &[u8], b"user\0u\0database\0shop\0\0"].concat();
        let sent = [
            message(0, &start),
            message(b'Q', b"select 1\0"),
            message(b'P', b"s\0select $1\0\0\0"),
            message(b'B', b"\0s\0\0\0\0\x01\0\0\0\x03a'b\0\0"),
            message(b'E', b"\0\0\0\0\0"),
            message(b'S', b""),
        ]
        .concat();
        for piece in sent.chunks(5) {
            assert!(session.see(&Chunk::FromClient(piece.to_vec()), &mut running));
        }
        let ready = Tail::of(b"C\0\0\0\x05xZ\0\0\0\x05I");
        session.see(&Chunk::FromServer(ready), &mut running);
        let mut seen = Vec::new();
        while let Ok(event) = events.try_recv() {
            match event {
                Event::Begins { statement, database, .. } => {
                    seen.push(format!("{}: {statement}", database.unwrap()))
                }
                Event::Ends { no, .. } => seen.push(format!("end {no}")),
                Event::PlansChange => {}
            }
        }
        assert_eq!(seen, ["shop: select 1", "end 1", "shop: select 'a''b'", "end 2"]);
    }

    #[test]
    fn encrypted_connections_are_given_up() {
        let (sender, _events) = channel(1);
        let (mut session, mut running) = (Session::default(), Running::new(1, sender));
        let request = message(0, &ENCRYPT[0].to_be_bytes());
        assert!(session.see(&Chunk::FromClient(request), &mut running));
        assert!(!session.see(&Chunk::FromClient(vec![TLS, 3, 1]), &mut running));
        assert_eq!(session.hidden(), "encrypted");
    }
}
