//! Page compression of both servers, from the writer's side.

use crate::seal::Seal;

/// Bytes of the pages.
pub const PAGE: usize = 16384;
const SPACE: u32 = 7;

/// Page 0 of a file with `flags`, sealed.
pub fn first_page(flags: u32, version: u32, seal: Seal) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    page[8..12].copy_from_slice(&version.to_be_bytes());
    page[25] = 8;
    page[34..38].copy_from_slice(&SPACE.to_be_bytes());
    page[38..42].copy_from_slice(&SPACE.to_be_bytes());
    page[49] = 2;
    page[54..58].copy_from_slice(&flags.to_be_bytes());
    seal.put(&mut page);
    page
}

/// Page 1 with `content` behind its header, sealed.
pub fn plain_page(content: &[u8], seal: Seal) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    page[7] = 1;
    page[19] = 5;
    page[24..26].copy_from_slice(&17855u16.to_be_bytes());
    page[34..38].copy_from_slice(&SPACE.to_be_bytes());
    let room = PAGE - 38 - 8;
    page[38..38 + content.len().min(room)].copy_from_slice(&content[..content.len().min(room)]);
    seal.put(&mut page);
    page
}

/// `bytes` as a stream of MariaDB's algorithm `number`, where there is an encoder; LZO and LZMA have none here.
pub fn compress(number: u8, bytes: &[u8]) -> Option<Vec<u8>> {
    use std::io::Write;
    match number {
        1 => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).ok()?;
            encoder.finish().ok()
        }
        2 => Some(lz4_flex::block::compress(bytes)),
        5 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(bytes).ok()?;
            encoder.finish().ok()
        }
        6 => snap::raw::Encoder::new().compress_vec(bytes).ok(),
        _ => None,
    }
}

/// MySQL's image of page 1 with `stream`, whose header is that of `page`.
pub fn mysql_image(page: &[u8], number: u8, stream: &[u8]) -> Vec<u8> {
    let mut image = vec![0; PAGE];
    image[..38].copy_from_slice(&page[..38]);
    image[24..26].copy_from_slice(&14u16.to_be_bytes());
    image[26..28].copy_from_slice(&[2, number]);
    image[28..30].copy_from_slice(&page[24..26]);
    image[30..32].copy_from_slice(&((PAGE - 38) as u16).to_be_bytes());
    let stream = &stream[..stream.len().min(PAGE - 38)];
    image[32..34].copy_from_slice(&(stream.len() as u16).to_be_bytes());
    image[38..38 + stream.len()].copy_from_slice(stream);
    image
}

/// MariaDB's image of page 1 with `stream`, in a file without full_crc32.
pub fn mariadb_image(page: &[u8], number: u8, stream: &[u8]) -> Vec<u8> {
    let mut image = vec![0; PAGE];
    image[..38].copy_from_slice(&page[..38]);
    image[24..26].copy_from_slice(&34354u16.to_be_bytes());
    image[26..34].copy_from_slice(&u64::from(number).to_be_bytes());
    let stream = &stream[..stream.len().min(PAGE - 40)];
    image[38..40].copy_from_slice(&(stream.len() as u16).to_be_bytes());
    image[40..40 + stream.len()].copy_from_slice(stream);
    image
}

/// MariaDB's image of page 1 with `stream`, in a file with full_crc32.
pub fn full_crc32_image(page: &[u8], stream: &[u8]) -> Vec<u8> {
    let stream = &stream[..stream.len().min(PAGE - 256 - 31)];
    let with_trailer = 26 + stream.len() + 5;
    let stored = with_trailer.next_multiple_of(256);
    let mut image = vec![0; PAGE];
    image[4..24].copy_from_slice(&page[4..24]);
    image[24..26].copy_from_slice(&(0x8000 | (stored >> 8) as u16).to_be_bytes());
    image[26..26 + stream.len()].copy_from_slice(stream);
    image[stored - 5] = with_trailer as u8;
    seal_stored(&mut image);
    image
}

/// Puts the checksum on an image of [`full_crc32_image`].
pub fn seal_stored(image: &mut [u8]) {
    let stored = (usize::from(image[24] & 0x7f) << 8 | usize::from(image[25])) << 8;
    if (32..=image.len()).contains(&stored) {
        let crc = crc32c::crc32c(&image[..stored - 4]).to_be_bytes();
        image[stored - 4..stored].copy_from_slice(&crc);
    }
}
