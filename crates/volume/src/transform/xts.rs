//! AES-256 in XTS mode (IEEE 1619, NIST SP 800-38E) as a page transform. A page is one data unit; its tweak is the
//! object's number and the page's.
//!
//! Lengths stay as they are, and are multiples of 16 bytes here, so there is no ciphertext stealing. XTS hides
//! contents, not lengths, and does not authenticate: what was changed on the device decrypts to noise. Compressed pages
//! have a checksum; of others the reader's own checks tell.

use std::fmt;

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes256, Block};

use super::{PageId, PageTransform};
use crate::{Error, Result};

/// Bytes of a key: two of AES-256.
pub const KEY_BYTES: usize = 64;

const BLOCK: usize = 16;

/// Blocks that the cipher gets at once: as many as fill the pipelines of AES instructions.
const BATCH: usize = 8;

/// The cipher under one key.
pub(crate) struct Xts {
    data: Aes256,
    tweak: Aes256,
}

impl fmt::Debug for Xts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Xts").finish_non_exhaustive()
    }
}

impl Xts {
    /// The first half of the key is for the data, the second for tweaks.
    pub(crate) fn new(key: &[u8; KEY_BYTES]) -> Xts {
        let (mut data, mut tweak) = ([0; KEY_BYTES / 2], [0; KEY_BYTES / 2]);
        data.copy_from_slice(&key[..KEY_BYTES / 2]);
        tweak.copy_from_slice(&key[KEY_BYTES / 2..]);
        Xts { data: Aes256::new(&Array::from(data)), tweak: Aes256::new(&Array::from(tweak)) }
    }

    /// Encrypts or decrypts whole blocks of 16 bytes in place.
    fn crypt(&self, number: u128, bytes: &mut [u8], encrypts: bool) {
        let mut first = Block::from(number.to_le_bytes());
        self.tweak.encrypt_block(&mut first);
        let mut tweak = u128::from_le_bytes(first.into());
        for batch in bytes.chunks_mut(BATCH * BLOCK) {
            let mut tweaks = [0; BATCH];
            let mut blocks = [Block::default(); BATCH];
            let count = batch.len() / BLOCK;
            for (i, bytes) in batch.as_chunks::<BLOCK>().0.iter().enumerate() {
                tweaks[i] = tweak;
                blocks[i] = Block::from((u128::from_le_bytes(*bytes) ^ tweak).to_le_bytes());
                tweak = doubled(tweak);
            }
            if encrypts {
                self.data.encrypt_blocks(&mut blocks[..count]);
            } else {
                self.data.decrypt_blocks(&mut blocks[..count]);
            }
            for (i, bytes) in batch.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
                *bytes = (u128::from_le_bytes(blocks[i].into()) ^ tweaks[i]).to_le_bytes();
            }
        }
    }

    /// What tells this key from others, and says nothing of it.
    pub(crate) fn check_value(&self) -> [u8; 8] {
        let mut block = [0; BLOCK];
        self.crypt(u128::MAX, &mut block, true);
        let mut value = [0; 8];
        value.copy_from_slice(&block[..8]);
        value
    }
}

/// Multiplied by x in GF(2^128).
fn doubled(tweak: u128) -> u128 {
    (tweak << 1) ^ ((tweak >> 127) * 0x87)
}

fn number(page: PageId) -> u128 {
    u128::from(page.object) << 64 | u128::from(page.page)
}

fn check_len(page: PageId, len: usize) -> Result<()> {
    if len == 0 || !len.is_multiple_of(BLOCK) {
        return Err(Error::corrupted(format!("{page}: {len} bytes are not whole blocks of the cipher")));
    }
    Ok(())
}

impl PageTransform for Xts {
    fn forward(&self, page: PageId, input: &[u8], output: &mut Vec<u8>, limit: usize) -> Result<bool> {
        check_len(page, input.len())?;
        output.clear();
        output.extend_from_slice(input);
        self.crypt(number(page), output, true);
        Ok(output.len() <= limit)
    }

    fn inverse(&self, page: PageId, input: &[u8], output: &mut [u8]) -> Result<()> {
        check_len(page, input.len())?;
        if input.len() != output.len() {
            return Err(Error::corrupted(format!(
                "{page}: {} encrypted bytes for {}",
                input.len(),
                output.len()
            )));
        }
        output.copy_from_slice(input);
        self.crypt(number(page), output, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    /// IEEE 1619-2007, annex B, vector 10: AES-256, data unit 0xff, plaintext 00 01 02 ... twice.
    #[test]
    fn ciphertext_is_that_of_the_standard() {
        let key: [u8; 64] = hex("2718281828459045235360287471352662497757247093699959574966967627\
             3141592653589793238462643383279502884197169399375105820974944592")
        .try_into()
        .unwrap();
        let plain: Vec<u8> = (0..512).map(|i| i as u8).collect();
        let mut bytes = plain.clone();
        let xts = Xts::new(&key);
        xts.crypt(0xff, &mut bytes, true);
        assert_eq!(
            bytes[..64],
            hex("1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b\
             5d31e276f8fe4a8d66b317f9ac683f44680a86ac35adfc3345befecb4bb188fd")[..]
        );
        xts.crypt(0xff, &mut bytes, false);
        assert_eq!(bytes, plain);
    }

    #[test]
    fn equal_pages_differ_by_place_and_key() {
        let [one, two] = [1, 2].map(|seed| {
            let mut key = [seed; 64];
            key[40] = 9;
            Xts::new(&key)
        });
        let place = |object, page| PageId { object, page };
        let sealed = |xts: &Xts, page| {
            let mut out = Vec::new();
            assert!(xts.forward(page, &[5; 4096], &mut out, 4096).unwrap());
            out
        };
        let all = [
            sealed(&one, place(1, 0)),
            sealed(&one, place(1, 1)),
            sealed(&one, place(2, 0)),
            sealed(&two, place(1, 0)),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b));
        }
        assert_ne!(one.check_value(), two.check_value());
        let mut back = [0; 4096];
        one.inverse(place(1, 1), &all[1], &mut back).unwrap();
        assert_eq!(back, [5; 4096]);
        assert!(one.inverse(place(1, 1), &all[1][..4095], &mut back).is_err());
    }
}
