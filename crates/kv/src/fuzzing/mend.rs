//! Makes the checksums of hostile bytes right.

use crate::log::frame::{FRAME_HEADER, OPERATION_HEADER};
use crate::log::group::GROUP_HEADER;
use crate::manifest::frame;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// The number at `at`; 0 behind the end.
fn number(bytes: &[u8], at: usize) -> usize {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |found| u32::from_be_bytes(*found) as usize)
}

fn begins(bytes: &[u8], at: usize, magic: &[u8; 4]) -> bool {
    bytes.get(at..at + 4) == Some(magic)
}

/// The groups and frames of a log segment.
pub(super) fn log(bytes: &mut [u8], segment: u64, database: u64) {
    for at in (0..bytes.len()).step_by(4096) {
        if !begins(bytes, at, b"TKgr") {
            continue;
        }
        put(bytes, at + 24, &segment.to_be_bytes());
        put(bytes, at + 32, &database.to_be_bytes());
        let checksum = crc32c::crc32c(&bytes[at + 8..at + GROUP_HEADER]);
        put(bytes, at + 4, &checksum.to_be_bytes());
        let mut frame = at + GROUP_HEADER;
        while begins(bytes, frame, b"TKfr") && frame + FRAME_HEADER <= bytes.len() {
            frame = one_frame(bytes, frame);
        }
    }
}

/// The frame at `at`; where it ends.
fn one_frame(bytes: &mut [u8], at: usize) -> usize {
    let begin = at + FRAME_HEADER;
    let end = begin.saturating_add(number(bytes, at + 24)).min(bytes.len());
    let (mut operation, mut checksum) = (begin, 0);
    while operation + OPERATION_HEADER <= end {
        let value_at = (operation + OPERATION_HEADER).saturating_add(number(bytes, operation + 6)).min(end);
        let value_end = value_at.saturating_add(number(bytes, operation + 10)).min(end);
        let of_value = crc32c::crc32c(&bytes[value_at..value_end]);
        put(bytes, operation + 22, &of_value.to_be_bytes());
        checksum = crc32c::crc32c_append(checksum, &bytes[operation..value_at]);
        operation = value_end;
    }
    put(bytes, at + 28, &checksum.to_be_bytes());
    let checksum = crc32c::crc32c(&bytes[at + 8..begin]);
    put(bytes, at + 4, &checksum.to_be_bytes());
    end
}

/// The frames of a manifest.
pub(super) fn manifest(bytes: &mut [u8], no: u64) {
    for at in (0..bytes.len()).step_by(4096) {
        if !begins(bytes, at, b"TKmf") {
            continue;
        }
        put(bytes, at + 8, &no.to_be_bytes());
        let end = (at + frame::FRAME_HEADER).saturating_add(number(bytes, at + 24)).min(bytes.len());
        let checksum = crc32c::crc32c(&bytes[at + 8..end]);
        put(bytes, at + 4, &checksum.to_be_bytes());
    }
}
