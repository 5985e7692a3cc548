//! A policy as users write it: `lru:fifo,skip-sequential=1MiB`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;

use tanada_base::ByteSize;

use crate::{Error, Result};

/// Of I/Os, ways or hint sets in an option, at most: as many as a replay has blocks.
pub const MOST_COUNTED: u32 = 1 << 27;

/// The options behind a policy's name, each taken once by who knows it.
#[derive(Debug)]
pub struct Options {
    policy: String,
    left: BTreeMap<String, Option<String>>,
    known: Vec<&'static str>,
}

impl Options {
    /// Name and options of `text`.
    ///
    /// # Errors
    /// If an option is given twice.
    pub fn parse(text: &str) -> Result<(String, Options)> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim().to_owned();
        let mut left = BTreeMap::new();
        for option in rest.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            let (key, value) = match option.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim().to_owned())),
                None => (option, None),
            };
            if left.insert(key.to_owned(), value).is_some() {
                return Err(Error::invalid(format!("{text:?}: {key} is given twice")));
            }
        }
        Ok((name.clone(), Options { policy: name, left, known: Vec::new() }))
    }

    /// Whether the word is there.
    ///
    /// # Errors
    /// If it has a value other than on or off.
    pub fn switch(&mut self, key: &'static str) -> Result<bool> {
        self.known.push(key);
        match self.left.remove(key) {
            None => Ok(false),
            Some(None) => Ok(true),
            Some(Some(value)) if value == "on" => Ok(true),
            Some(Some(value)) if value == "off" => Ok(false),
            Some(Some(value)) => Err(self.wrong(key, &value, "on or off")),
        }
    }

    /// A value, or `default`.
    ///
    /// # Errors
    /// If the value is not what is `expected`.
    pub fn value<T: FromStr>(&mut self, key: &'static str, default: T, expected: &str) -> Result<T> {
        self.known.push(key);
        match self.left.remove(key) {
            None => Ok(default),
            Some(value) => {
                let value = value.unwrap_or_default();
                value.parse().map_err(|_| self.wrong(key, &value, expected))
            }
        }
    }

    /// A size of 512 bytes to 1 GiB, or `default`; also as a word without a value if that is asked for.
    ///
    /// # Errors
    /// If the value is another.
    pub fn size(&mut self, key: &'static str, default: u64) -> Result<u64> {
        let size: ByteSize = self.value(key, ByteSize::new(default), "a size like 16KiB")?;
        let bytes = size.bytes();
        if bytes != default && !(512..=1 << 30).contains(&bytes) {
            return Err(self.wrong(key, &size.to_string(), "512 bytes to 1 GiB"));
        }
        Ok(bytes)
    }

    /// A size as above, given as `word=size`, or `default` for the word alone; 0 if it is not there.
    ///
    /// # Errors
    /// If the value is another.
    pub fn size_or_off(&mut self, key: &'static str, default: u64) -> Result<u64> {
        match self.left.get(key) {
            None => {
                self.known.push(key);
                Ok(0)
            }
            Some(None) => self.switch(key).map(|_| default),
            Some(Some(_)) => self.size(key, default),
        }
    }

    /// A number in `allowed`, or `default`.
    ///
    /// # Errors
    /// If the value is another.
    pub fn count(&mut self, key: &'static str, default: u32, allowed: RangeInclusive<u32>) -> Result<u32> {
        let expected = format!("a number from {} to {}", allowed.start(), allowed.end());
        let count = self.value(key, default, &expected)?;
        if !allowed.contains(&count) {
            return Err(self.wrong(key, &count.to_string(), &expected));
        }
        Ok(count)
    }

    /// Complains about what nobody took.
    ///
    /// # Errors
    /// If there is such an option.
    pub fn finish(self) -> Result<()> {
        let Some(key) = self.left.keys().next() else { return Ok(()) };
        let has = if self.known.is_empty() {
            "has no options".to_owned()
        } else {
            format!("has {}", self.known.join(", "))
        };
        Err(Error::invalid(format!("the policy {} does not know {key:?}; it {has}", self.policy)))
    }

    /// The error of a value that is not what is `expected`.
    pub fn wrong(&self, key: &str, value: &str, expected: &str) -> Error {
        Error::invalid(format!("{}: {key}={value}: {key} is {expected}", self.policy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_taken_once_and_the_rest_is_refused() {
        let (name, mut options) = Options::parse("lru: fifo , ways=64,block=4KiB").unwrap();
        assert_eq!(name, "lru");
        assert!(options.switch("fifo").unwrap());
        assert_eq!(options.count("ways", 512, 1..=1024).unwrap(), 64);
        assert_eq!(options.size("block", 16384).unwrap(), 4096);
        assert_eq!(options.size_or_off("skip", 5).unwrap(), 0);
        options.finish().unwrap();
        let (_, mut options) = Options::parse("lru:ways=none,what").unwrap();
        assert_eq!(
            options.count("ways", 512, 1..=1024).unwrap_err().to_string(),
            "lru: ways=none: ways is a number from 1 to 1024"
        );
        let message = options.finish().unwrap_err().to_string();
        assert_eq!(message, "the policy lru does not know \"what\"; it has ways");
        let message = crate::policy("history:what", 0).unwrap_err().to_string();
        assert!(message.starts_with("the policy history does not know \"what\"; it has "), "{message}");
        assert!(Options::parse("lru:a,a").unwrap_err().to_string().contains("given twice"));
    }
}
