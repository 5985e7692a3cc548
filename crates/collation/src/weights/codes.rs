//! Weights as bytes whose order is that of the weights: the alphabet of sort keys.
//!
//! | first byte     | bytes | weights                                                            |
//! |----------------|-------|--------------------------------------------------------------------|
//! | 0              |       | none: the end of a level that is not the last                      |
//! | 1              | 3     | less than the weight of the space                                  |
//! | 2              | 1     | the space, in a run of spaces that a lesser weight follows         |
//! | 3              |       | none: the end of a text that is padded with spaces                 |
//! | 4              | 1     | any other space                                                    |
//! | 5 ..           | 1     | greater than the space, of a character that has a byte of its own  |
//! | between these  | 2     | those between two such weights, 256 for each first byte            |
//! | 255            | 3     | those that are left                                                |
//!
//! The code of a weight follows from the collation alone, never from the text. So the key of a text is as long as the
//! text where all its characters have bytes of their own, and keys of other texts are in order with it.

/// First byte of weights that are less than that of the space.
pub(crate) const LESSER: u8 = 1;
/// A space before a lesser weight.
pub(crate) const SPACE_BEFORE_LESSER: u8 = 2;
/// The end of a padded text.
pub(crate) const END: u8 = 3;
/// A space.
pub(crate) const SPACE: u8 = 4;
/// First byte of the greatest weights.
const GREATEST: u8 = 255;
/// Weights that share a first byte.
const PER_LEAD: u32 = 256;

/// The codes of the weights of a level.
#[derive(Debug)]
pub(crate) struct Codes {
    /// The code of each byte of a text (an ASCII character, or a byte of a single-byte set) whose only weight has a
    /// code of one byte: the space's, or a greater one. 0 for any other.
    bytes: [u8; 256],
    /// By weight: how many bytes, and they.
    weights: Box<[[u8; 4]]>,
}

impl Codes {
    /// Codes of all weights of 16 bits. `single` has the only weight of a byte of a text, 0 where there is none or
    /// more; `space` is the weight of the space.
    pub(crate) fn wide(single: impl Fn(u8) -> u16, space: u16) -> Codes {
        let mut own: Vec<u16> = (0..=u8::MAX).map(&single).filter(|weight| *weight > space).collect();
        own.sort_unstable();
        own.dedup();
        let codes = |own: &[u16], most_leads| Codes::of_weights(own, space, most_leads);
        // If there are too many different ones, none has a byte of its own.
        let weights = codes(&own, u32::MAX).or_else(|| codes(&own, 1)).or_else(|| codes(&[], 1));
        Codes::with_bytes(weights.unwrap_or_default(), single)
    }

    /// Codes of weights of 8 bits: one of the space, the weight itself for most greater ones.
    pub(crate) fn narrow(single: impl Fn(u8) -> u16, space: u8) -> Codes {
        const ESCAPE: u8 = SPACE + 1;
        let code = |weight: u8| match weight {
            _ if weight < space => [3, LESSER, 0, weight],
            _ if weight == space => [1, SPACE, 0, 0],
            // These bytes have another meaning.
            0..=ESCAPE => [2, ESCAPE, weight, 0],
            _ => [1, weight, 0, 0],
        };
        Codes::with_bytes((0..=u8::MAX).map(code).collect(), single)
    }

    fn with_bytes(weights: Box<[[u8; 4]]>, single: impl Fn(u8) -> u16) -> Codes {
        let code = |byte: usize| match weights.get(usize::from(single(byte as u8))) {
            Some([1, code, ..]) if single(byte as u8) != 0 => *code,
            _ => 0,
        };
        let bytes = std::array::from_fn(code);
        Codes { bytes, weights }
    }

    /// Codes with a byte for each of `own`, which ascend from above `space`, and up to `most_leads` first bytes for the
    /// weights between two of them. `None` if there are not as many bytes.
    fn of_weights(own: &[u16], space: u16, most_leads: u32) -> Option<Box<[[u8; 4]]>> {
        let mut weights = vec![[0; 4]; 1 << 16];
        let (lower, greater) = weights.split_at_mut(usize::from(space));
        for (weight, code) in lower.iter_mut().enumerate() {
            *code = [3, LESSER, (weight >> 8) as u8, weight as u8];
        }
        let (at, mut greater) = greater.split_first_mut()?;
        *at = [1, SPACE, 0, 0];
        let mut lead = u32::from(SPACE) + 1;
        let mut from = u32::from(space) + 1;
        for weight in own {
            let (between, rest) = greater.split_at_mut((u32::from(*weight) - from) as usize);
            let leads = (between.len() as u32).div_ceil(PER_LEAD);
            match leads <= most_leads {
                true => between.iter_mut().zip(0u32..).for_each(|(code, no)| *code = pair(lead, no)),
                false => {
                    between.iter_mut().zip(from..).for_each(|(code, weight)| *code = triple(lead, weight))
                }
            }
            lead += leads.min(most_leads);
            if lead >= u32::from(GREATEST) {
                return None;
            }
            let (at, rest) = rest.split_first_mut()?;
            *at = [1, lead as u8, 0, 0];
            (greater, lead, from) = (rest, lead + 1, u32::from(*weight) + 1);
        }
        for (no, code) in (0u32..).zip(greater) {
            *code = match lead + no / PER_LEAD < u32::from(GREATEST) {
                true => pair(lead, no),
                false => triple(u32::from(GREATEST), from + no),
            };
        }
        Some(weights.into())
    }

    /// The codes of bytes of texts.
    #[inline]
    pub(crate) fn of_bytes(&self) -> &[u8; 256] {
        &self.bytes
    }

    /// The length of the code of `weight`, and its bytes.
    #[inline]
    pub(crate) fn of_weight(&self, weight: u16) -> [u8; 4] {
        self.weights.get(usize::from(weight)).copied().unwrap_or_default()
    }
}

/// The code of the weight `no` after the first of those that begin with `lead`.
fn pair(lead: u32, no: u32) -> [u8; 4] {
    [2, (lead + no / PER_LEAD) as u8, (no % PER_LEAD) as u8, 0]
}

fn triple(lead: u32, weight: u32) -> [u8; 4] {
    [3, lead as u8, (weight >> 8) as u8, weight as u8]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(codes: &Codes, weights: std::ops::RangeInclusive<u16>, what: &str) {
        let mut last: Option<Vec<u8>> = None;
        for weight in weights {
            let [length, code @ ..] = codes.of_weight(weight);
            let code = code[..usize::from(length)].to_vec();
            assert!(
                !code.is_empty() && code[0] != 0 && !matches!(code[0], SPACE_BEFORE_LESSER | END),
                "{what}"
            );
            if let Some(last) = last {
                assert!(last < code, "{what}: {weight:#x}");
                assert!(!code.starts_with(&last), "{what}: {weight:#x}");
            }
            last = Some(code);
        }
    }

    #[test]
    fn codes_are_in_the_order_of_their_weights() {
        let ascii = |byte: u8| if byte.is_ascii() { u16::from(byte) * 3 } else { 0 };
        let crowded = |byte: u8| 0x100 + u16::from(byte) * 5;
        for space in [0, 1, 4, 0x60, 0x209, 0xffff] {
            check(&Codes::wide(ascii, space), 0..=u16::MAX, "of ASCII");
            check(&Codes::wide(crowded, space), 0..=u16::MAX, "of all bytes");
            check(&Codes::wide(|_| 0, space), 0..=u16::MAX, "of none");
        }
        for space in [0, 1, 3, 4, 5, 6, 0x20, 0x40, 0xff] {
            check(&Codes::narrow(u16::from, space), 0..=0xff, "of bytes");
        }
    }

    #[test]
    fn bytes_have_codes_where_they_are_no_less_than_the_space() {
        let codes = Codes::narrow(u16::from, b' ');
        assert_eq!(codes.of_bytes()[usize::from(b' ')], SPACE);
        assert_eq!(codes.of_bytes()[usize::from(b'a')], b'a');
        assert_eq!(codes.of_bytes()[usize::from(b'\t')], 0);
        let ascii = |byte: u8| if byte.is_ascii() { u16::from(byte) << 6 } else { 0 };
        let codes = Codes::wide(ascii, 0x20 << 6);
        let (a, b) = (codes.of_bytes()[usize::from(b'a')], codes.of_bytes()[usize::from(b'b')]);
        assert!(SPACE < a && a < b);
    }
}
