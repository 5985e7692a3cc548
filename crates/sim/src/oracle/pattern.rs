//! Contents that tell where they belong: each aligned word of eight bytes names its object, its write and its offset.
//!
//! So a wrong sector says whose it is. Words are mixed by a bijection, so that no two differ in few bytes only, and
//! none is zero.

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// The inverse of `FACTOR` modulo 2^64.
const INVERSE: u64 = 0xf1de_83e1_9937_733d;

/// Every fourth write repeats its words over so many, so that it can be compressed.
const REPEATED_WORDS: u64 = 32;

/// The bytes that write `write` of object `object` puts at `offset`.
pub(crate) fn pattern(object: u16, write: u16, offset: u64, bytes: &mut [u8]) {
    let mut at = 0;
    while at < bytes.len() {
        let place = offset + at as u64;
        let word = word(object, write, place / 8).to_le_bytes();
        let from = (place % 8) as usize;
        let run = (8 - from).min(bytes.len() - at);
        bytes[at..at + run].copy_from_slice(&word[from..from + run]);
        at += run;
    }
}

fn word(object: u16, write: u16, index: u64) -> u64 {
    let index = if write % 4 == 1 { index / REPEATED_WORDS * REPEATED_WORDS } else { index };
    let plain = (u64::from(object) << 48) | (u64::from(write) << 32) | (index & 0xffff_ffff);
    plain.wrapping_add(1).wrapping_mul(FACTOR)
}

/// Says what `bytes` (of an aligned offset) are.
pub(crate) fn describe(bytes: &[u8]) -> String {
    let Some(first) = bytes.first_chunk::<8>() else { return format!("{bytes:02x?}") };
    if bytes.iter().all(|byte| *byte == 0) {
        return "zeros".to_owned();
    }
    let plain = u64::from_le_bytes(*first).wrapping_mul(INVERSE).wrapping_sub(1);
    let (object, write, offset) = (plain >> 48, (plain >> 32) & 0xffff, (plain & 0xffff_ffff) * 8);
    let mut expected = vec![0; bytes.len()];
    pattern(object as u16, write as u16, offset, &mut expected);
    let same = bytes.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
    if same >= 16 {
        return format!("write {write} of object {object} for offset {offset} ({same} bytes of it)");
    }
    format!("bytes that nobody wrote, {:02x?}...", &bytes[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_function_of_the_place_and_names_itself() {
        let (mut whole, mut part) = ([0; 64], [0; 21]);
        pattern(3, 7, 4096, &mut whole);
        pattern(3, 7, 4096 + 5, &mut part);
        assert_eq!(whole[5..26], part);
        assert_eq!(describe(&whole), "write 7 of object 3 for offset 4096 (64 bytes of it)");
        assert_eq!(describe(&[0; 9]), "zeros");
        assert!(describe(&[1; 32]).starts_with("bytes that nobody wrote"));
    }
}
