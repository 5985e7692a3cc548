//! Placement on volumes from the outside, one file per behaviour.

#![allow(clippy::unwrap_used)]

mod imports;
mod pins;
mod returns;
mod volumes;

/// Bit by bit, so that the tests do not lean on what they test.
fn crc32c_of(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 },
        )
    })
}
