//! Keys: where they come from, and that they are never shown.
//!
//! A key has an identifier from 1 to 65535 and 64 bytes: 32 for the data and 32 for tweaks. They come as lines
//! `IDENTIFIER;HEX` with 128 hexadecimal digits, from a file or from the environment. A page names the identifier of
//! its key, so several keys are in use while an object's pages are rewritten from one to the next. Of each key the
//! volume keeps a check value, so that another key under the same identifier is refused instead of making noise of
//! pages.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

use super::xts::{KEY_BYTES, Xts};
use crate::{Error, ErrorKind, Result};

/// The variable of the environment that names a file of keys.
pub const KEY_FILE_VARIABLE: &str = "TANADA_KEY_FILE";

/// The variable of the environment that has keys itself.
pub const KEYS_VARIABLE: &str = "TANADA_KEYS";

/// A file of keys is not longer than this.
const LARGEST_FILE_BYTES: u64 = 16 << 20;

/// The keys that are at hand, by identifier. Cheap to clone; shown, it names identifiers only.
///
/// ```
/// use tanada_volume::KeyRing;
///
/// let key: String = (0..64).map(|byte| format!("{byte:02x}")).collect();
/// let keys = KeyRing::parse(&format!("7;{key}"), "an example")?;
/// assert_eq!(keys.identifiers(), [7]);
/// # Ok::<(), tanada_volume::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct KeyRing {
    keys: Arc<BTreeMap<NonZeroU16, Arc<Xts>>>,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys.keys()).finish()
    }
}

impl KeyRing {
    /// The keys of `text`: a line `IDENTIFIER;HEX` for each. Empty lines, and lines that begin with `#`, are passed
    /// over. `origin` is what messages call it.
    ///
    /// # Errors
    /// `InvalidInput` with the number of the line, never with what it says.
    pub fn parse(text: &str, origin: &str) -> Result<KeyRing> {
        let mut keys = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |why: &str| Error::invalid(format!("{origin}, line {}: {why}", index + 1));
            let (id, hex) = line.split_once(';').ok_or_else(|| bad("a line IDENTIFIER;HEX is needed"))?;
            let id = id.trim().parse::<NonZeroU16>();
            let id = id.map_err(|_| bad("the identifier of a key is a number from 1 to 65535"))?;
            let key = key(hex.trim().as_bytes()).map_err(bad)?;
            if keys.insert(id, Arc::new(Xts::new(&key))).is_some() {
                return Err(bad("a key with this identifier is there already"));
            }
        }
        Ok(KeyRing { keys: Arc::new(keys) })
    }

    /// The keys in a file.
    ///
    /// # Errors
    /// If it cannot be read, and as [`parse`](Self::parse).
    pub fn from_file(path: &Path) -> Result<KeyRing> {
        let failed = |error: std::io::Error| {
            let kind = match error.kind() {
                std::io::ErrorKind::NotFound => ErrorKind::NotFound,
                _ => ErrorKind::InvalidInput,
            };
            Error::new(kind, format!("the keys in {} cannot be read: {error}", path.display()))
        };
        if std::fs::metadata(path).map_err(failed)?.len() > LARGEST_FILE_BYTES {
            return Err(Error::invalid(format!("{} is too large for a file of keys", path.display())));
        }
        let text = Zeroizing::new(std::fs::read_to_string(path).map_err(failed)?);
        KeyRing::parse(&text, &path.display().to_string())
    }

    /// The keys that the environment has: those in the file that [`KEY_FILE_VARIABLE`] names, and those in
    /// [`KEYS_VARIABLE`] itself, in lines or divided by commas. `variable` gives the value of one.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file) and [`parse`](Self::parse).
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Result<KeyRing> {
        let mut keys = KeyRing::default();
        if let Some(path) = variable(KEY_FILE_VARIABLE) {
            keys = KeyRing::from_file(Path::new(&path))?;
        }
        if let Some(text) = variable(KEYS_VARIABLE) {
            let lines = Zeroizing::new(text.to_string_lossy().replace(',', "\n"));
            keys = keys.with(&KeyRing::parse(&lines, KEYS_VARIABLE)?);
        }
        Ok(keys)
    }

    /// The keys of both; those of `other` come on top.
    #[must_use]
    pub fn with(&self, other: &KeyRing) -> KeyRing {
        let mut keys = (*self.keys).clone();
        keys.extend(other.keys.iter().map(|(id, key)| (*id, key.clone())));
        KeyRing { keys: Arc::new(keys) }
    }

    /// The identifiers of the keys at hand.
    pub fn identifiers(&self) -> Vec<u16> {
        self.keys.keys().map(|id| id.get()).collect()
    }

    /// Eight bytes that tell the key of this identifier from others, and say nothing of it.
    pub fn check_value(&self, id: NonZeroU16) -> Option<[u8; 8]> {
        self.keys.get(&id).map(|key| key.check_value())
    }

    /// The cipher under the key of this identifier.
    pub(crate) fn cipher(&self, id: NonZeroU16) -> Result<&Arc<Xts>> {
        self.keys.get(&id).ok_or_else(|| {
            let message = format!(
                "key {id} is not at hand: {KEY_FILE_VARIABLE} names a file of keys, {KEYS_VARIABLE} has some"
            );
            Error::new(ErrorKind::MissingKey, message)
        })
    }
}

fn key(hex: &[u8]) -> Result<Zeroizing<[u8; KEY_BYTES]>, &'static str> {
    const SHAPE: &str = "a key for aes-256-xts has 128 hexadecimal digits";
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if hex.len() != 2 * KEY_BYTES {
        return Err(SHAPE);
    }
    for (byte, digits) in key.iter_mut().zip(hex.chunks(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let (Some(high), Some(low)) = (digit(digits[0]), digit(digits[1])) else { return Err(SHAPE) };
        *byte = (high * 16 + low) as u8;
    }
    if key[..KEY_BYTES / 2] == key[KEY_BYTES / 2..] {
        key.zeroize();
        return Err("the two halves of the key are the same");
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
                       202122232425262728292a2b2c2d2e2f303132333435363738393A3B3C3D3E3F";

    #[test]
    fn keys_are_read_from_lines() {
        let text = format!("# two keys\n\n 1;{KEY}\n65535 ; {}\n", KEY.replace("00", "ff"));
        let keys = KeyRing::parse(&text, "x").unwrap();
        assert_eq!(keys.identifiers(), [1, 65535]);
        let [one, last] = [1, 65535].map(|id| keys.check_value(NonZeroU16::new(id).unwrap()).unwrap());
        assert_ne!(one, last);
        let missing = keys.cipher(NonZeroU16::new(2).unwrap()).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::MissingKey);
        let more = KeyRing::parse(&format!("2;{KEY}"), "y").unwrap();
        assert_eq!(keys.with(&more).identifiers(), [1, 2, 65535]);
    }

    #[test]
    fn no_message_shows_a_key() {
        let half = &KEY[..64];
        for (text, why) in [
            (format!("1;{half}"), "line 1: a key for aes-256-xts has 128"),
            (format!("1;{}zz", &KEY[..126]), "hexadecimal"),
            (format!("1;{half}{half}"), "halves"),
            (format!("0;{KEY}"), "1 to 65535"),
            (format!("1;{KEY}\n1;{KEY}"), "line 2: a key with this identifier"),
            (KEY.to_owned(), "IDENTIFIER;HEX"),
        ] {
            let error = KeyRing::parse(&text, "the file").unwrap_err().to_string();
            assert!(error.starts_with("the file, line") && error.contains(why), "{error}");
            assert!(!error.contains("0102") && !error.contains("1718"), "{error}");
        }
        let keys = KeyRing::parse(&format!("7;{KEY}"), "x").unwrap();
        assert_eq!(format!("{keys:?}"), "{7}");
        let shown = format!("{:?}", keys.cipher(NonZeroU16::new(7).unwrap()).unwrap());
        assert_eq!(shown, "Xts { .. }");
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        assert_eq!(KeyRing::from_file(&path).unwrap_err().kind(), ErrorKind::NotFound);
        std::fs::write(&path, format!("3;{KEY}\n")).unwrap();
        assert_eq!(KeyRing::from_file(&path).unwrap().identifiers(), [3]);
        let environment = |name: &str| match name {
            KEY_FILE_VARIABLE => Some(path.clone().into_os_string()),
            KEYS_VARIABLE => Some(format!("4;{KEY},5;{KEY}").into()),
            _ => None,
        };
        assert_eq!(KeyRing::from_environment(environment).unwrap().identifiers(), [3, 4, 5]);
        assert!(KeyRing::from_environment(|_| None).unwrap().identifiers().is_empty());
    }
}
