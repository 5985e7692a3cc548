//! Extended attributes: what is said about an object, as programs read and set it.
//!
//! | name | value |
//! |---|---|
//! | `user.tanada.compression` | `none`, `lz4`, `zstd:LEVEL`, `zlib:LEVEL` |
//! | `user.tanada.page_size` | bytes of a page |
//! | `user.tanada.encryption` | the identifier of a key |
//! | `user.tanada.class` | the class where new chunks go |
//! | `user.tanada.pin` | the class where chunks have to lie |
//!
//! Set on a folder they hold for files and folders that are made in it afterwards.

use tanada_volume::{Attributes, Compression};

use crate::{Errno, Result};

const PREFIX: &str = "user.tanada.";

/// The names of those that are set.
pub(crate) fn names(attributes: &Attributes) -> Vec<String> {
    let known = ["compression", "page_size", "encryption", "class", "pin"];
    let is_set = |name: &&str| matches!(value(attributes, name), Ok(Some(_)));
    known.into_iter().filter(is_set).map(|name| format!("{PREFIX}{name}")).collect()
}

/// The part of a name behind the prefix.
fn part(name: &str) -> Result<&str> {
    name.strip_prefix(PREFIX).ok_or(Errno::new(libc::EOPNOTSUPP))
}

fn value(attributes: &Attributes, part: &str) -> Result<Option<String>> {
    Ok(match part {
        "compression" => {
            let compression = attributes.compression;
            (compression != Compression::None).then(|| compression.to_string())
        }
        "page_size" => attributes.page_bytes.map(|bytes| bytes.to_string()),
        "encryption" => attributes.encryption.map(|key| key.to_string()),
        "class" => attributes.class.clone(),
        "pin" => attributes.pin.clone(),
        _ => return Err(Errno::new(libc::ENODATA)),
    })
}

/// The value of the attribute `name`.
pub(crate) fn get(attributes: &Attributes, name: &str) -> Result<String> {
    let part = name.strip_prefix(PREFIX).ok_or(Errno::new(libc::ENODATA))?;
    value(attributes, part)?.ok_or(Errno::new(libc::ENODATA))
}

/// The attributes when that of `name` has another value, or none.
pub(crate) fn with(attributes: &Attributes, name: &str, value: Option<&[u8]>) -> Result<Attributes> {
    let part = part(name)?;
    let invalid = || Errno::new(libc::EINVAL);
    let text = value.map(|bytes| std::str::from_utf8(bytes).map_err(|_| invalid())).transpose()?;
    let mut changed = attributes.clone();
    match part {
        "compression" => changed.compression = text.unwrap_or("none").parse()?,
        "page_size" => {
            changed.page_bytes = text.map(|text| text.parse().map_err(|_| invalid())).transpose()?
        }
        "encryption" => {
            changed.encryption = text.map(|text| text.parse().map_err(|_| invalid())).transpose()?
        }
        "class" => changed.class = text.map(str::to_owned),
        "pin" => changed.pin = text.map(str::to_owned),
        _ => return Err(invalid()),
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_set_and_removed_by_name() {
        let none = Attributes::default();
        assert!(names(&none).is_empty());
        let set = with(&none, "user.tanada.compression", Some(b"zstd")).unwrap();
        let set = with(&set, "user.tanada.class", Some(b"fast")).unwrap();
        assert_eq!(names(&set), ["user.tanada.compression", "user.tanada.class"]);
        assert_eq!(get(&set, "user.tanada.compression").unwrap(), "zstd:3");
        let removed = with(&set, "user.tanada.compression", None).unwrap();
        assert_eq!(get(&removed, "user.tanada.compression").unwrap_err().number(), libc::ENODATA);
        let error = |name: &str, value: &[u8]| with(&none, name, Some(value)).unwrap_err().number();
        assert_eq!(error("user.tanada.compression", b"rot13"), libc::EINVAL);
        assert_eq!(error("user.tanada.colour", b"red"), libc::EINVAL);
        assert_eq!(error("user.tanada.page_size", b"\xff"), libc::EINVAL);
        assert_eq!(error("security.capability", b""), libc::EOPNOTSUPP);
    }
}
