//! The keys in a `.frm`.

use super::frm_bytes::{Bytes, corrupt, names};
use crate::Result;

const KEY_LEN: usize = 8;
const PART_LEN: usize = 9;
/// Stored inverted: set means the key is not unique.
const FLAG_UNIQUE: u16 = 1;
const FLAG_FULLTEXT: u16 = 128;
const FLAG_SPATIAL: u16 = 1024;
const FLAG_COMMENT: u16 = 4096;
const FLAG_PARSER: u16 = 1 << 14;
const ALGORITHM_BTREE: u8 = 1;
const ALGORITHM_HASH: u8 = 3;
const ALGORITHM_LONG_HASH: u8 = 5;
/// MariaDB 11.7 and later: an index whose nodes are rows of a hidden table with a file of its own.
const ALGORITHM_VECTOR: u8 = 7;
const FIELD_NUMBER_MASK: u16 = 0x3fff;
const PART_REVERSED: u8 = 128;

pub(super) struct FrmKey {
    pub(super) name: String,
    pub(super) unique: bool,
    /// Whether it is an ordinary B+tree; a long unique key is a tree over hashes.
    pub(super) is_btree: bool,
    pub(super) fulltext: bool,
    pub(super) spatial: bool,
    /// The algorithm that was asked for.
    pub(super) algorithm: Option<&'static str>,
    pub(super) block_size: u16,
    pub(super) comment: String,
    pub(super) has_parser: bool,
    has_comment: bool,
    /// Whether it is no tree of its table, but a table beside it.
    pub(super) is_vector: bool,
    pub(super) parts: Vec<FrmKeyPart>,
}

pub(super) struct FrmKeyPart {
    /// Position in the form, from 0.
    pub(super) field: usize,
    pub(super) length_bytes: u16,
    pub(super) descending: bool,
}

/// Reads all keys from the start of the key section.
pub(super) fn read(section: Bytes<'_>) -> Result<Vec<FrmKey>> {
    let low = section.u8(0)?;
    let count = match low & 0x80 {
        0 => usize::from(low),
        _ => usize::from(section.u8(1)?) << 7 | usize::from(low & 0x7f),
    };
    let mut at = 6;
    let mut keys = Vec::with_capacity(count.min(256));
    for _ in 0..count {
        let (key, used) = read_key(section.rest(at)?)?;
        keys.push(key);
        at += used;
    }
    if count == 0 {
        return Ok(keys);
    }
    let (list, used) = names(section.rest(at)?)?;
    at += used;
    if list.len() != count {
        return Err(corrupt(format!("{count} keys have {} names", list.len())));
    }
    for (key, name) in keys.iter_mut().zip(list) {
        key.name = String::from_utf8_lossy(name).into_owned();
    }
    for key in keys.iter_mut().filter(|key| key.has_comment) {
        // What only SHOW CREATE TABLE prints keeps no table from being read.
        let Ok(comment) = section.size16(at).and_then(|len| section.slice(at + 2, len)) else { break };
        key.comment = String::from_utf8_lossy(comment.as_slice()).into_owned();
        at += 2 + comment.len();
    }
    Ok(keys)
}

fn read_key(bytes: Bytes<'_>) -> Result<(FrmKey, usize)> {
    let flags = bytes.u16(0)? ^ FLAG_UNIQUE;
    let part_count = usize::from(bytes.u8(4)?);
    let algorithm = bytes.u8(5)?;
    let long_hash = algorithm == ALGORITHM_LONG_HASH;
    let mut parts = Vec::with_capacity(part_count);
    for no in 0..part_count {
        let part = bytes.slice(KEY_LEN + no * PART_LEN, PART_LEN)?;
        let number = usize::from(part.u16(0)? & FIELD_NUMBER_MASK);
        let field = number.checked_sub(1).ok_or_else(|| corrupt("a key part names no column"))?;
        parts.push(FrmKeyPart {
            field,
            length_bytes: part.u16(7)?,
            descending: part.u8(4)? & PART_REVERSED != 0,
        });
    }
    let fulltext = flags & FLAG_FULLTEXT != 0;
    let key = FrmKey {
        name: String::new(),
        unique: flags & FLAG_UNIQUE != 0 || long_hash,
        is_btree: !fulltext && flags & FLAG_SPATIAL == 0 && !long_hash,
        fulltext,
        spatial: flags & FLAG_SPATIAL != 0,
        algorithm: match algorithm {
            ALGORITHM_BTREE => Some("BTREE"),
            ALGORITHM_HASH | ALGORITHM_LONG_HASH => Some("HASH"),
            _ => None,
        },
        block_size: bytes.u16(6)?,
        comment: String::new(),
        has_parser: flags & FLAG_PARSER != 0,
        has_comment: flags & FLAG_COMMENT != 0,
        is_vector: algorithm == ALGORITHM_VECTOR,
        parts,
    };
    Ok((key, KEY_LEN + part_count * PART_LEN))
}
