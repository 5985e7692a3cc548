//! The label at the start of every device of a class, so that a device is known again, and a stranger's is not written
//! to.
//!
//! One block of 4 KiB, big-endian: magic (8), checksum of what follows the checksum (4), format version (4), volume id
//! (16), class number (1), 0 (1), device number (2), devices (2), zeros.

use tanada_base::Reader;

use crate::settings::BLOCK_BYTES;
use crate::{Error, ErrorKind, Result};

const MAGIC: [u8; 8] = *b"TANADACL";
const VERSION: u32 = 1;

/// Which device of which class of which volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) volume: [u8; 16],
    pub(crate) class: u8,
    pub(crate) device: u16,
    pub(crate) devices: u16,
}

impl Label {
    pub(crate) fn encode(&self, block: &mut [u8]) {
        block.fill(0);
        block[..8].copy_from_slice(&MAGIC);
        block[12..16].copy_from_slice(&VERSION.to_be_bytes());
        block[16..32].copy_from_slice(&self.volume);
        block[32] = self.class;
        block[34..36].copy_from_slice(&self.device.to_be_bytes());
        block[36..38].copy_from_slice(&self.devices.to_be_bytes());
        let crc = crc32c::crc32c(&block[12..BLOCK_BYTES as usize]);
        block[8..12].copy_from_slice(&crc.to_be_bytes());
    }

    /// The label in `block`; `what` names the device. `None` if there is none.
    pub(crate) fn decode(block: &[u8], what: &str) -> Result<Option<Label>> {
        let damaged = || Error::corrupted(format!("{what}: the label in its first 4 KiB is damaged"));
        let block = block.get(..BLOCK_BYTES as usize).ok_or_else(damaged)?;
        if block[..8] != MAGIC {
            return Ok(None);
        }
        let mut reader = Reader::at(block, 8).map_err(|_| damaged())?;
        let crc = reader.u32().map_err(|_| damaged())?;
        if crc != crc32c::crc32c(reader.rest()) {
            return Err(damaged());
        }
        let mut fields = || -> Result<_, tanada_base::ReadError> {
            Ok((reader.u32()?, reader.array()?, reader.u8()?, reader.u8()?, reader.u16()?, reader.u16()?))
        };
        let (version, volume, class, _, device, devices) = fields().map_err(|_| damaged())?;
        if version > VERSION {
            return Err(Error::new(
                ErrorKind::FutureFormat,
                format!("{what}: the label has format version {version}, this program knows {VERSION}"),
            ));
        }
        Ok(Some(Label { volume, class, device, devices }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_back_and_damage_is_noticed() {
        let label = Label { volume: [7; 16], class: 3, device: 2, devices: 8 };
        let mut block = vec![1; 4096];
        label.encode(&mut block);
        assert_eq!(Label::decode(&block, "x").unwrap(), Some(label));
        for place in [9, 33, 4000] {
            let mut damaged = block.clone();
            damaged[place] ^= 1;
            assert_eq!(Label::decode(&damaged, "x").unwrap_err().kind(), ErrorKind::Corrupted);
        }
        assert_eq!(Label::decode(&[0; 4096], "x").unwrap(), None);
        assert!(Label::decode(&block[..100], "x").is_err());
    }
}
