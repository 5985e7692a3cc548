//! `ENCODE` and `DECODE` of MariaDB: each byte goes through a table that a password has shuffled, and is mixed with
//! those before it.

use super::super::Refusal;
use super::super::node::Typed;
use super::ciphers::{of_both, password_numbers};

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    match (name, operands.len()) {
        ("encode", 2) if !mysql => {
            of_both(operands.to_vec(), mysql, |text, key| Some(Shuffled::new(key).encoded(text))).map(Some)
        }
        ("decode", 2) if !mysql => {
            of_both(operands.to_vec(), mysql, |text, key| Some(Shuffled::new(key).decoded(text))).map(Some)
        }
        _ => Ok(None),
    }
}

/// The servers' pseudo-random numbers.
struct Numbers {
    first: u64,
    second: u64,
}

impl Numbers {
    const MAX: u64 = 0x3fff_ffff;

    /// The next number of 0 to 254.
    fn next(&mut self) -> u8 {
        self.first = (self.first * 3 + self.second) % Self::MAX;
        self.second = (self.first + self.second + 33) % Self::MAX;
        (self.first as f64 / Self::MAX as f64 * 255.0) as u8
    }
}

/// The tables of a password.
struct Shuffled {
    numbers: Numbers,
    decoding: [u8; 256],
    encoding: [u8; 256],
}

impl Shuffled {
    fn new(password: &[u8]) -> Shuffled {
        let [first, second] = password_numbers(password);
        let mut numbers = Numbers { first: first % Numbers::MAX, second: second % Numbers::MAX };
        let mut decoding = [0_u8; 256];
        (0..=u8::MAX).for_each(|byte| decoding[usize::from(byte)] = byte);
        for at in 0..decoding.len() {
            decoding.swap(usize::from(numbers.next()), at);
        }
        let mut encoding = [0_u8; 256];
        (0..=u8::MAX).for_each(|byte| encoding[usize::from(decoding[usize::from(byte)])] = byte);
        Shuffled { numbers, decoding, encoding }
    }

    fn encoded(mut self, text: &[u8]) -> Vec<u8> {
        let mut shift = 0;
        let encode = |byte: &u8| {
            shift ^= self.numbers.next();
            let encoded = self.encoding[usize::from(*byte)] ^ shift;
            shift ^= byte;
            encoded
        };
        text.iter().map(encode).collect()
    }

    fn decoded(mut self, text: &[u8]) -> Vec<u8> {
        let mut shift = 0;
        let decode = |byte: &u8| {
            shift ^= self.numbers.next();
            let decoded = self.decoding[usize::from(byte ^ shift)];
            shift ^= decoded;
            decoded
        };
        text.iter().map(decode).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode::spelled;
    use super::*;

    #[test]
    fn texts_are_encoded_as_by_the_server() {
        for (text, password, encoded) in
            [("a", "b", "F3"), ("hello world", "secret key", "2C401CF5535882FBB6CE08"), ("abc", "", "C45BFA")]
        {
            let bytes = Shuffled::new(password.as_bytes()).encoded(text.as_bytes());
            assert_eq!(spelled(&bytes, true), encoded);
            assert_eq!(Shuffled::new(password.as_bytes()).decoded(&bytes), text.as_bytes());
        }
    }
}
