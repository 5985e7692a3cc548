//! Any bytes as a stored page, for the fuzz target `stored_page` and for tests.

use std::num::NonZeroU16;

use super::header::Header;
use super::{Algorithm, Chain, Compression, Form, KeyRing, PageId, open};
use crate::{ErrorKind, Result};

const VOLUME: [u8; 16] = *b"a fuzzed volume!";
const KEY: &str = "1;000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
                   202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";

fn choice<T: Copy>(choices: &[T], byte: u8) -> T {
    choices[byte as usize % choices.len()]
}

/// Opens `bytes` as what is stored of a page, as they are and with their checksum made right; then has a page of them
/// make the whole way.
///
/// # Panics
/// If a page comes back as another one, or an error is not one of damage.
pub fn stored_page(input: &[u8]) {
    let Ok(keys) = KeyRing::parse(KEY, "the key") else { return };
    let Some(([codec, key, size], bytes)) = input.split_first_chunk::<3>() else { return };
    let id = PageId { object: 1, page: 2 };
    let key = NonZeroU16::new(u16::from(key % 2));
    let algorithm = choice(&[Algorithm::None, Algorithm::Lz4, Algorithm::Zstd, Algorithm::Zlib], *codec);
    let page_bytes = choice(&[4096, 8192, 16384, 65536], *size);
    let form = Form { algorithm, key };
    let is_damage = |opened: Result<()>| {
        let kind = opened.map_err(|error| error.kind());
        assert!(matches!(kind, Ok(()) | Err(ErrorKind::Corrupted | ErrorKind::FutureFormat)), "{kind:?}");
    };
    let mut page = vec![0; page_bytes];
    is_damage(open(VOLUME, &keys, id, form, bytes, &mut page));
    let mut whole = bytes.to_vec();
    whole.resize(bytes.len().max(32).next_multiple_of(4096), 0);
    let payload_bytes = (bytes.len().saturating_sub(32).max(1)).min(page_bytes - 1).min(whole.len() - 32);
    let header = Header {
        form,
        page_bytes: page_bytes as u32,
        payload_bytes: (payload_bytes / 16 * 16).max(1) as u32,
    };
    header.encode(VOLUME, id, &mut whole);
    is_damage(open(VOLUME, &keys, id, form, &whole, &mut page));
    let compression =
        choice(&[Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::Zlib(1)], *codec);
    let page: Vec<u8> = bytes.iter().copied().chain(std::iter::repeat(0)).take(page_bytes).collect();
    let sealed = Chain::new(VOLUME, compression, key, &keys).and_then(|chain| chain.seal(id, &page));
    let Ok(sealed) = sealed else { panic!("a page cannot be sealed") };
    assert!(sealed.bytes.len() <= page_bytes && sealed.bytes.len().is_multiple_of(4096));
    let mut back = vec![0xee; page_bytes];
    let opened = open(VOLUME, &keys, id, sealed.form, &sealed.bytes, &mut back);
    assert!(opened.is_ok() && back == page, "{opened:?}");
}
