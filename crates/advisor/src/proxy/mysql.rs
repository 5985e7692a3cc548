//! The protocol of MySQL and MariaDB, as far as statements are concerned.
//!
//! 1. A packet has three bytes of length, a sequence number, and its payload; one of 16 MiB - 1 goes on in the next.
//!    A command begins with sequence number 0. Where that is merely the number after 255, as in the file of a
//!    `LOAD DATA LOCAL`, it is none.
//! 2. The first packet of a client tells whether the connection goes on encrypted or compressed.
//! 3. A prepared statement is known by the number that the server answers; its values are in the place of its
//!    parameters when it is executed.
//! 4. Behind a gap the next piece that is exactly one command is taken for one.

use std::collections::HashMap;

use super::relay::{Chunk, Tail, Watch};
use super::statement::{MAX_STATEMENT_BYTES, Running, with_values};

const CONNECT_WITH_DB: u32 = 8;
const COMPRESS: u32 = 0x20;
const SSL: u32 = 0x800;
const SECURE_CONNECTION: u32 = 0x8000;
const LENENC_AUTH: u32 = 0x20_0000;
const ZSTD: u32 = 0x400_0000;
const QUERY_ATTRIBUTES: u32 = 0x800_0000;

/// A payload of this length goes on in the next packet.
const FULL: usize = 0xff_ffff;
/// Statements that a connection has prepared.
const MAX_PREPARED: usize = 1024;

/// What is known of a connection.
#[derive(Debug, Default)]
pub struct Session {
    has_greeted: bool,
    capabilities: u32,
    hidden: &'static str,
    is_lost: bool,
    /// Bytes of a packet's head that are here.
    head: Vec<u8>,
    /// Bytes of the packet that are still to come.
    left: usize,
    packet_len: usize,
    last_sequence: Option<u8>,
    last_len: usize,
    is_command: bool,
    payload: Vec<u8>,
    payload_len: usize,
    preparing: Option<String>,
    prepared: HashMap<u32, Prepared>,
}

#[derive(Debug)]
struct Prepared {
    text: String,
    parameters: usize,
    types: Vec<u16>,
    has_long_data: bool,
}

impl Watch for Session {
    fn see(&mut self, chunk: &Chunk, running: &mut Running) -> bool {
        match chunk {
            Chunk::Gap => self.is_lost = true,
            Chunk::FromServer(tail) => self.answer(tail, running),
            Chunk::FromClient(bytes) => return self.client(bytes, running),
        }
        true
    }

    fn hidden(&self) -> &'static str {
        self.hidden
    }
}

impl Session {
    fn client(&mut self, mut bytes: &[u8], running: &mut Running) -> bool {
        if self.is_lost {
            if !self.has_greeted {
                self.hidden = "overtaken";
                return false;
            }
            let is_one_command = bytes.len() > 4 && bytes[3] == 0 && length(bytes) + 4 == bytes.len();
            if !is_one_command {
                return true;
            }
            (self.is_lost, self.left, self.last_sequence, self.last_len) = (false, 0, None, 0);
            self.head.clear();
        }
        while !bytes.is_empty() {
            if self.left == 0 {
                let take = (4 - self.head.len()).min(bytes.len());
                self.head.extend_from_slice(&bytes[..take]);
                bytes = &bytes[take..];
                if self.head.len() < 4 {
                    return true;
                }
                self.begin_packet();
                if self.left > 0 {
                    continue;
                }
            } else {
                let take = self.left.min(bytes.len());
                if self.payload.len() < MAX_STATEMENT_BYTES {
                    let keep = take.min(MAX_STATEMENT_BYTES - self.payload.len());
                    self.payload.extend_from_slice(&bytes[..keep]);
                }
                self.payload_len += take;
                self.left -= take;
                bytes = &bytes[take..];
            }
            if self.left == 0 && self.packet_len < FULL && !self.end_payload(running) {
                return false;
            }
        }
        true
    }

    fn begin_packet(&mut self) {
        let (len, sequence) = (length(&self.head), self.head[3]);
        self.head.clear();
        let goes_on = self.last_len == FULL;
        if !goes_on {
            self.payload.clear();
            self.payload_len = 0;
            self.is_command = sequence == 0 && self.last_sequence != Some(255);
        }
        (self.left, self.packet_len, self.last_len, self.last_sequence) = (len, len, len, Some(sequence));
    }

    /// A payload is whole. Whether more can be seen.
    fn end_payload(&mut self, running: &mut Running) -> bool {
        let payload = std::mem::take(&mut self.payload);
        let is_cut = self.payload_len > payload.len();
        if !self.has_greeted {
            self.has_greeted = true;
            return self.greet(&payload, running);
        }
        if self.is_command && !is_cut {
            self.command(&payload, running);
        } else if self.is_command {
            // Too long to be looked at; what ran before is over all the same.
            running.end();
        }
        true
    }

    fn greet(&mut self, payload: &[u8], running: &mut Running) -> bool {
        let Some(capabilities) = payload.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes)) else {
            self.hidden = "unknown";
            return false;
        };
        self.capabilities = capabilities;
        if capabilities & SSL != 0 {
            self.hidden = "encrypted";
            return false;
        }
        if capabilities & (COMPRESS | ZSTD) != 0 {
            self.hidden = "compressed";
            return false;
        }
        running.database = greeted_database(capabilities, payload);
        true
    }

    fn command(&mut self, payload: &[u8], running: &mut Running) {
        let Some((command, rest)) = payload.split_first() else { return };
        self.preparing = None;
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
        match command {
            0x02 => {
                running.end();
                running.database = text(rest);
            }
            0x03 => match self.query_text(rest).and_then(text) {
                Some(statement) => running.begin(&statement, None),
                None => running.end(),
            },
            0x11 => {
                running.end();
                self.prepared.clear();
                running.database = changed_database(self.capabilities, rest);
            }
            0x16 => {
                running.end();
                self.preparing = text(rest);
            }
            0x17 => match self.executed(rest) {
                Some((statement, prepared)) => running.begin(&statement, Some(&prepared)),
                None => running.end(),
            },
            0x18 => {
                let prepared = statement_id(rest).and_then(|id| self.prepared.get_mut(&id));
                if let Some(prepared) = prepared {
                    prepared.has_long_data = true;
                }
            }
            0x19 => {
                statement_id(rest).and_then(|id| self.prepared.remove(&id));
            }
            0x1a => {
                let prepared = statement_id(rest).and_then(|id| self.prepared.get_mut(&id));
                if let Some(prepared) = prepared {
                    prepared.has_long_data = false;
                }
            }
            0x1f => {
                running.end();
                self.prepared.clear();
            }
            _ => running.end(),
        }
    }

    /// The text of a query, behind its attributes.
    fn query_text<'a>(&self, rest: &'a [u8]) -> Option<&'a [u8]> {
        if self.capabilities & QUERY_ATTRIBUTES == 0 {
            return Some(rest);
        }
        // Without attributes: their number, 0, and that of their sets, 1.
        rest.strip_prefix(&[0, 1])
    }

    /// The statement that is executed, with its values, and as it was prepared.
    fn executed(&mut self, rest: &[u8]) -> Option<(String, String)> {
        let id = statement_id(rest)?;
        let has_attributes = self.capabilities & QUERY_ATTRIBUTES != 0;
        let prepared = self.prepared.get_mut(&id)?;
        let long_data = std::mem::take(&mut prepared.has_long_data);
        if long_data {
            return None;
        }
        let values = values(prepared, rest.get(4..)?, has_attributes)?;
        Some((with_values(&prepared.text, &values)?, prepared.text.clone()))
    }

    fn answer(&mut self, tail: &Tail, running: &mut Running) {
        if let Some(text) = self.preparing.take()
            && let [_, _, _, 1, 0, a, b, c, d, _, _, low, high, ..] = tail.head.as_slice()
            && self.prepared.len() < MAX_PREPARED
        {
            let parameters = usize::from(u16::from_le_bytes([*low, *high]));
            let (types, has_long_data) = (Vec::new(), false);
            let prepared = Prepared { text, parameters, types, has_long_data };
            self.prepared.insert(u32::from_le_bytes([*a, *b, *c, *d]), prepared);
        }
        running.answered(ends_answer(tail));
    }
}

/// Whether what the server sent ends as an answer does.
fn ends_answer(tail: &Tail) -> bool {
    let is_single = tail.len > 4 && length(&tail.head) + 4 == tail.len;
    if is_single && matches!(tail.head.get(4), Some(0x00 | 0xff)) {
        return true;
    }
    let last = &tail.tail;
    // An error behind rows, or what ends rows: its length fits the rest.
    (0..last.len().saturating_sub(4)).any(|at| {
        let packet = &last[at..];
        let fits = length(packet) + 4 == packet.len() && packet.len() >= 9;
        fits && matches!(packet[4], 0xfe | 0xff)
    })
}

fn length(head: &[u8]) -> usize {
    match head {
        [a, b, c, ..] => usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16,
        _ => 0,
    }
}

fn statement_id(rest: &[u8]) -> Option<u32> {
    rest.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))
}

/// What comes before a zero, and what behind it.
fn until_zero(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == 0)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// The database that a client wants to begin in.
fn greeted_database(capabilities: u32, payload: &[u8]) -> Option<String> {
    if capabilities & CONNECT_WITH_DB == 0 {
        return None;
    }
    let (_, rest) = until_zero(payload.get(32..)?)?;
    let rest = if capabilities & LENENC_AUTH != 0 {
        let (len, rest) = encoded_length(rest)?;
        rest.get(len..)?
    } else if capabilities & SECURE_CONNECTION != 0 {
        rest.get(usize::from(*rest.first()?) + 1..)?
    } else {
        until_zero(rest)?.1
    };
    name(rest)
}

fn changed_database(capabilities: u32, rest: &[u8]) -> Option<String> {
    let (_, rest) = until_zero(rest)?;
    let rest = match capabilities & SECURE_CONNECTION {
        0 => until_zero(rest)?.1,
        _ => rest.get(usize::from(*rest.first()?) + 1..)?,
    };
    name(rest)
}

fn name(rest: &[u8]) -> Option<String> {
    let (name, _) = until_zero(rest).unwrap_or((rest, &[]));
    std::str::from_utf8(name).ok().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// A number of one, three, four or nine bytes.
fn encoded_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let width = match first {
        0..=0xfa => return Some((usize::from(*first), rest)),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => return None,
    };
    let number = rest.get(..width)?.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    Some((usize::try_from(number).ok()?, &rest[width..]))
}

/// The values of an execution as literals; `rest` is what follows the statement's number.
fn values(prepared: &mut Prepared, rest: &[u8], has_attributes: bool) -> Option<Vec<String>> {
    let count = prepared.parameters;
    if count == 0 {
        return Some(Vec::new());
    }
    let (flags, mut rest) = (*rest.first()?, rest.get(5..)?);
    if has_attributes && flags & 8 != 0 {
        let (all, behind) = encoded_length(rest)?;
        if all != count {
            return None;
        }
        rest = behind;
    }
    let nulls = rest.get(..count.div_ceil(8))?;
    rest = rest.get(count.div_ceil(8)..)?;
    let (is_new, mut rest) = rest.split_first()?;
    if *is_new == 1 {
        prepared.types.clear();
        for _ in 0..count {
            prepared.types.push(u16::from_le_bytes(*rest.first_chunk::<2>()?));
            rest = &rest[2..];
            if has_attributes {
                let (len, behind) = encoded_length(rest)?;
                rest = behind.get(len..)?;
            }
        }
    }
    let mut values = Vec::with_capacity(count);
    for no in 0..count {
        if nulls[no / 8] & (1 << (no % 8)) != 0 {
            values.push("NULL".to_owned());
            continue;
        }
        let (value, behind) = literal(*prepared.types.get(no)?, rest)?;
        values.push(value);
        rest = behind;
    }
    Some(values)
}

/// A value as a literal, and what follows it.
fn literal(kind: u16, rest: &[u8]) -> Option<(String, &[u8])> {
    let (is_unsigned, kind) = (kind & 0x8000 != 0, kind & 0xff);
    let fixed = |width: usize| {
        let bytes = rest.get(..width)?;
        let number = bytes.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        let shift = 64 - 8 * width as u32;
        let signed = ((number << shift) as i64) >> shift;
        Some((if is_unsigned { number.to_string() } else { signed.to_string() }, &rest[width..]))
    };
    match kind {
        1 => fixed(1),
        2 | 13 => fixed(2),
        3 | 9 => fixed(4),
        8 => fixed(8),
        4 => Some((f32::from_le_bytes(*rest.first_chunk::<4>()?).to_string(), &rest[4..])),
        5 => Some((format!("{:e}", f64::from_le_bytes(*rest.first_chunk::<8>()?)), &rest[8..])),
        6 => Some(("NULL".to_owned(), rest)),
        7 | 10 | 12 => {
            let (len, rest) = rest.split_first()?;
            let bytes = rest.get(..usize::from(*len))?;
            let at = |no: usize| u32::from(bytes.get(no).copied().unwrap_or(0));
            let date = format!("{:04}-{:02}-{:02}", at(0) | at(1) << 8, at(2), at(3));
            let time = format!(" {:02}:{:02}:{:02}", at(4), at(5), at(6));
            let text = if bytes.len() > 4 { date + &time } else { date };
            Some((format!("'{text}'"), &rest[usize::from(*len)..]))
        }
        // Decimals, texts and bytes.
        0 | 15 | 16 | 245..=254 => {
            let (len, rest) = encoded_length(rest)?;
            let bytes = rest.get(..len)?;
            Some((text_literal(bytes), &rest[len..]))
        }
        _ => None,
    }
}

/// A text as it may stand in a statement whatever quoting its mode has.
fn text_literal(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(['\\', '\0']) => format!("'{}'", text.replace('\'', "''")),
        _ => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("x'{digits}'")
        }
    }
}

#[cfg(test)]
mod tests;
