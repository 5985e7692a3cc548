//! The two superblocks: which log holds the metadata now.
//!
//! A and B are the first two blocks of 4 KiB. They are written in turn, by sequence number, so that a torn one leaves
//! the other. The valid one with the higher sequence number counts. Big-endian, offsets in bytes:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | magic `TANADAVO` |
//! | 8 | 4 | CRC-32C of everything from offset 12 to the end of the block |
//! | 12 | 4 | format version |
//! | 16 | 8 | sequence number |
//! | 24 | 16 | volume id |
//! | 40 | 8 | bytes of a chunk |
//! | 48 | 1 | 1: stopped cleanly |
//! | 56 | 8 | generation of the log |
//! | 64 | 8 | offset of the log |
//! | 72 | 8 | bytes of the log, checkpoint and journal |
//! | 80 | 8 | blocks of the log that are the checkpoint |
//! | 88 | 8 | if clean: number of the journal's next block, else 0 |
//! | 96 | 8 | bytes for the journal after a checkpoint |
//! | 104 | 4 | half-life of heat in seconds (IEEE 754) |

use tanada_base::{ReadError, Reader};

use crate::settings::BLOCK_BYTES;
use crate::{Error, ErrorKind, Result};

const MAGIC: [u8; 8] = *b"TANADAVO";

/// The format that this program writes.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// Where the log may begin.
pub(crate) const FIRST_LOG_OFFSET: u64 = 2 * BLOCK_BYTES;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Superblock {
    pub(crate) sequence: u64,
    pub(crate) volume: [u8; 16],
    pub(crate) chunk_bytes: u64,
    pub(crate) is_clean: bool,
    pub(crate) generation: u64,
    pub(crate) log_offset: u64,
    pub(crate) log_bytes: u64,
    pub(crate) checkpoint_blocks: u64,
    pub(crate) clean_seq: u64,
    pub(crate) journal_bytes: u64,
    pub(crate) heat_half_life_s: f32,
}

/// What one of the two places holds.
#[derive(Debug)]
pub(crate) enum Found {
    Valid(Box<Superblock>),
    /// Zeros: never written.
    Blank,
    /// Something else: torn or damaged.
    Damaged,
    /// Whole, but of a later format.
    Future(u32),
    /// Not of a volume.
    Foreign,
}

impl Superblock {
    /// Where this one is written.
    pub(crate) fn offset(&self) -> u64 {
        (self.sequence & 1) * BLOCK_BYTES
    }

    pub(crate) fn encode(&self, block: &mut [u8]) {
        block.fill(0);
        block[..8].copy_from_slice(&MAGIC);
        block[12..16].copy_from_slice(&FORMAT_VERSION.to_be_bytes());
        block[16..24].copy_from_slice(&self.sequence.to_be_bytes());
        block[24..40].copy_from_slice(&self.volume);
        block[40..48].copy_from_slice(&self.chunk_bytes.to_be_bytes());
        block[48] = u8::from(self.is_clean);
        let words = [
            self.generation,
            self.log_offset,
            self.log_bytes,
            self.checkpoint_blocks,
            self.clean_seq,
            self.journal_bytes,
        ];
        for (i, word) in words.into_iter().enumerate() {
            block[56 + 8 * i..64 + 8 * i].copy_from_slice(&word.to_be_bytes());
        }
        block[104..108].copy_from_slice(&self.heat_half_life_s.to_bits().to_be_bytes());
        let crc = crc32c::crc32c(&block[12..BLOCK_BYTES as usize]);
        block[8..12].copy_from_slice(&crc.to_be_bytes());
    }

    pub(crate) fn decode(block: &[u8]) -> Found {
        let Some(block) = block.get(..BLOCK_BYTES as usize) else { return Found::Damaged };
        if block.iter().all(|byte| *byte == 0) {
            return Found::Blank;
        }
        if block[..8] != MAGIC {
            return Found::Foreign;
        }
        Self::fields(block).unwrap_or(Found::Damaged)
    }

    fn fields(block: &[u8]) -> Result<Found, ReadError> {
        let mut reader = Reader::at(block, 8)?;
        if reader.u32()? != crc32c::crc32c(reader.rest()) {
            return Ok(Found::Damaged);
        }
        let version = reader.u32()?;
        if version > FORMAT_VERSION {
            return Ok(Found::Future(version));
        }
        let (sequence, volume, chunk_bytes) = (reader.u64()?, reader.array()?, reader.u64()?);
        let is_clean = reader.u8()? == 1;
        reader.seek(56)?;
        let superblock = Superblock {
            sequence,
            volume,
            chunk_bytes,
            is_clean,
            generation: reader.u64()?,
            log_offset: reader.u64()?,
            log_bytes: reader.u64()?,
            checkpoint_blocks: reader.u64()?,
            clean_seq: reader.u64()?,
            journal_bytes: reader.u64()?,
            heat_half_life_s: f32::from_bits(reader.u32()?),
        };
        let sane = superblock.chunk_bytes.is_power_of_two()
            && (BLOCK_BYTES..=64 << 20).contains(&superblock.chunk_bytes)
            && superblock.log_offset >= FIRST_LOG_OFFSET
            && superblock.log_offset.is_multiple_of(BLOCK_BYTES)
            && superblock.log_bytes.is_multiple_of(BLOCK_BYTES)
            && superblock
                .log_offset
                .checked_add(superblock.log_bytes)
                .is_some_and(|end| end <= i64::MAX as u64)
            && superblock.checkpoint_blocks <= superblock.log_bytes / BLOCK_BYTES
            && superblock.heat_half_life_s > 0.0;
        Ok(if sane { Found::Valid(Box::new(superblock)) } else { Found::Damaged })
    }

    /// The one that counts.
    pub(crate) fn choose(a: Found, b: Found, what: &str) -> Result<Superblock> {
        match (a, b) {
            (Found::Future(version), _) | (_, Found::Future(version)) => Err(Error::new(
                ErrorKind::FutureFormat,
                format!(
                    "{what} has format version {version}, this program knows {FORMAT_VERSION}: use a later version of it"
                ),
            )),
            (Found::Valid(a), Found::Valid(b)) => Ok(if a.sequence > b.sequence { *a } else { *b }),
            (Found::Valid(one), _) | (_, Found::Valid(one)) => Ok(*one),
            // Where there is one and nothing in the other place, the first of all was cut short.
            (Found::Damaged, Found::Blank) | (Found::Blank, Found::Damaged) => Err(Error::new(
                ErrorKind::NotFound,
                format!("{what} holds no volume: its making was cut short"),
            )),
            (Found::Damaged, _) | (_, Found::Damaged) => Err(Error::corrupted(format!(
                "{what}: both superblocks are damaged; put it back from a copy"
            ))),
            (Found::Blank | Found::Foreign, Found::Blank | Found::Foreign) => {
                Err(Error::new(ErrorKind::NotFound, format!("{what} holds no volume")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(sequence: u64) -> Superblock {
        Superblock {
            sequence,
            volume: [9; 16],
            chunk_bytes: 65536,
            is_clean: true,
            generation: 4,
            log_offset: 8192,
            log_bytes: 1 << 20,
            checkpoint_blocks: 3,
            clean_seq: 17,
            journal_bytes: 1 << 19,
            heat_half_life_s: 60.0,
        }
    }

    fn encoded(superblock: &Superblock) -> Vec<u8> {
        let mut block = vec![0; 4096];
        superblock.encode(&mut block);
        block
    }

    #[test]
    fn superblocks_are_read_back() {
        match Superblock::decode(&encoded(&sample(5))) {
            Found::Valid(found) => assert_eq!(*found, sample(5)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_newer_of_two_counts_and_the_older_if_it_is_torn() {
        let (older, newer) = (encoded(&sample(4)), encoded(&sample(5)));
        let choose =
            |a: &[u8], b: &[u8]| Superblock::choose(Superblock::decode(a), Superblock::decode(b), "x");
        assert_eq!(choose(&older, &newer).unwrap().sequence, 5);
        for place in [0, 9, 20, 105, 4095] {
            let mut torn = newer.clone();
            torn[place] ^= 0x40;
            assert_eq!(choose(&older, &torn).unwrap().sequence, 4);
        }
        assert_eq!(choose(&older, &[0; 4096]).unwrap().sequence, 4);
    }

    #[test]
    fn each_trouble_has_its_own_error() {
        let choose = |a: &[u8], b: &[u8]| {
            Superblock::choose(Superblock::decode(a), Superblock::decode(b), "x").unwrap_err().kind()
        };
        let mut future = encoded(&sample(6));
        future[15] = 9;
        let crc = crc32c::crc32c(&future[12..]);
        future[8..12].copy_from_slice(&crc.to_be_bytes());
        assert_eq!(choose(&encoded(&sample(5)), &future), ErrorKind::FutureFormat);
        assert_eq!(choose(&[0; 4096], &[0; 4096]), ErrorKind::NotFound);
        assert_eq!(choose(&[1; 4096], &[0; 4096]), ErrorKind::NotFound);
        let mut torn = encoded(&sample(5));
        torn[30] ^= 1;
        assert_eq!(choose(&torn, &torn), ErrorKind::Corrupted);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut random = tanada_base::SplitMix64::new(3);
        for _ in 0..2000 {
            let mut block = encoded(&sample(5));
            let place = 12 + random.below(100) as usize;
            block[place] = random.next_u64() as u8;
            let crc = crc32c::crc32c(&block[12..]);
            block[8..12].copy_from_slice(&crc.to_be_bytes());
            let _ = Superblock::decode(&block);
        }
    }
}
