//! What follows a key in a page: a version, or the page below.
//!
//! ```text
//! flags     bits 0-1 content (0 deleted, 1 inline, 2 pointer, 3 page below), bit 2 expires,
//!           bits 3-4 codec, bit 5 first home (pointers alone), the others 0
//! sequence  varint
//! expiry    u32, if it expires
//! content   inline: the rest. Pointer: segment varint, offset varint, stored length varint,
//!           length varint if compressed, checksum u32.
//!           Page below: page number varint, units varint
//! home      segment varint, offset varint, if there is one: where the log wrote the value
//! ```

use bytes::Bytes;

use super::page::PageAddress;
use crate::entry::{Codec, Content, FirstHome, Pointer, SequenceNo, Version};
use crate::wire::{Decoder, Malformed, put_varint};

const DELETED: u8 = 0;
const INLINE: u8 = 1;
const POINTER: u8 = 2;
const PAGE: u8 = 3;
const EXPIRES: u8 = 1 << 2;
const CODEC_SHIFT: u8 = 3;
const CODEC: u8 = 0b0001_1000;
const FIRST_HOME: u8 = 1 << 5;
const UNUSED: u8 = 0b1100_0000;

/// Appends a version.
pub(super) fn put_version(out: &mut Vec<u8>, version: &Version) {
    let content = match &version.content {
        Content::Deleted => DELETED,
        Content::Inline(_) => INLINE,
        Content::At(pointer) => POINTER | (pointer.codec as u8) << CODEC_SHIFT,
    };
    let mirror = version.mirror.filter(|_| matches!(version.content, Content::At(_)));
    let expires = if version.expires_s.is_some() { EXPIRES } else { 0 };
    out.push(content | expires | if mirror.is_some() { FIRST_HOME } else { 0 });
    put_varint(out, version.sequence);
    if let Some(expires_s) = version.expires_s {
        out.extend_from_slice(&expires_s.to_be_bytes());
    }
    match &version.content {
        Content::Deleted => {}
        Content::Inline(value) => out.extend_from_slice(value),
        Content::At(pointer) => {
            put_varint(out, pointer.segment);
            put_varint(out, pointer.offset);
            put_varint(out, u64::from(pointer.stored_len));
            if pointer.codec != Codec::None {
                put_varint(out, u64::from(pointer.len));
            }
            out.extend_from_slice(&pointer.checksum.to_be_bytes());
        }
    }
    if let Some(home) = mirror {
        put_varint(out, home.segment);
        put_varint(out, home.offset);
    }
}

/// The version in the payload at `payload_at..end` of `page`; an inline value shares the page's memory.
pub(super) fn version(page: &Bytes, payload_at: usize, end: usize) -> Result<Version, Malformed> {
    let bytes = page.get(..end).ok_or(Malformed::new(payload_at, "an entry ends behind its page"))?;
    let mut decoder = Decoder::at(bytes, payload_at);
    let flags = decoder.u8()?;
    let sequence = decoder.varint()?;
    let expires_s = if flags & EXPIRES == 0 { None } else { Some(decoder.u32()?) };
    let content = match flags & 3 {
        DELETED => Content::Deleted,
        INLINE => {
            let value = page.slice(decoder.position()..end);
            decoder.take(value.len())?;
            Content::Inline(value)
        }
        POINTER => Content::At(pointer(flags, &mut decoder)?),
        _ => return Err(decoder.malformed("a page below where a version should be")),
    };
    let is_apart = matches!(content, Content::At(_));
    if flags & UNUSED != 0 || (!is_apart && flags & (CODEC | FIRST_HOME) != 0) {
        return Err(Malformed::new(payload_at, "unknown flags of a version"));
    }
    let mirror = match flags & FIRST_HOME {
        0 => None,
        _ => Some(FirstHome { segment: decoder.varint()?, offset: decoder.varint()? }),
    };
    decoder.finish()?;
    Ok(Version { sequence, expires_s, content, mirror })
}

fn pointer(flags: u8, decoder: &mut Decoder<'_>) -> Result<Pointer, Malformed> {
    let codec = Codec::from_byte(flags >> CODEC_SHIFT & 3);
    let codec = codec.ok_or_else(|| decoder.malformed("an unknown codec"))?;
    let (segment, offset) = (decoder.varint()?, decoder.varint()?);
    let stored_len = decoder.varint_u32()?;
    let len = if codec == Codec::None { stored_len } else { decoder.varint_u32()? };
    Ok(Pointer { segment, offset, stored_len, len, codec, checksum: decoder.u32()? })
}

/// Appends the page below, whose entries begin at or before the entry's key with `sequence`.
pub(super) fn put_page(out: &mut Vec<u8>, sequence: SequenceNo, address: PageAddress) {
    out.push(PAGE);
    put_varint(out, sequence);
    put_varint(out, u64::from(address.no));
    put_varint(out, u64::from(address.units));
}

/// The page below.
pub(super) fn page(payload: &[u8]) -> Result<PageAddress, Malformed> {
    let mut decoder = Decoder::new(payload);
    if decoder.u8()? != PAGE {
        return Err(Malformed::new(0, "a version where a page below should be"));
    }
    decoder.varint()?;
    let no = decoder.varint_u32()?;
    let units = u16::try_from(decoder.varint()?).map_err(|_| decoder.malformed("a page is too long"))?;
    decoder.finish()?;
    if units == 0 {
        return Err(decoder.malformed("a page without a length"));
    }
    Ok(PageAddress { no, units })
}
