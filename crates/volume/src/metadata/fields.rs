//! Fields that several kinds of records have.

use tanada_base::{ReadError, Reader};

/// Classes and so on, by number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AttributeRecord {
    pub(crate) class: Option<u8>,
    pub(crate) pin: Option<u8>,
    pub(crate) quota_bytes: Option<u64>,
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn put_id(out: &mut Vec<u8>, tag: u8, id: u64) {
    out.push(tag);
    out.extend_from_slice(&id.to_be_bytes());
}

pub(super) fn text(reader: &mut Reader<'_>, most: usize) -> Result<Result<String, String>, ReadError> {
    let len = reader.u16()? as usize;
    let bytes = reader.take(len)?;
    if len > most {
        return Ok(Err(format!("a name of {len} bytes")));
    }
    Ok(String::from_utf8(bytes.to_vec()).map_err(|_| "a name is not UTF-8".to_owned()))
}

pub(super) fn class(id: u8) -> Option<u8> {
    (id != u8::MAX).then_some(id)
}
