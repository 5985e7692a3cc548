//! [`ComparedKey`]: many texts compared with one, without keys of their own.

use std::cmp::Ordering;

use crate::Collation;
use crate::collation::Rule;
use crate::weights::{END, SPACE, SPACE_BEFORE_LESSER};

/// The sort key of a text that others are compared with.
///
/// Characters with codes of one byte are compared one by one, up to the first difference. Where others come before it,
/// the beginning of the other text's key is made.
///
/// ```
/// use tanada_collation::{Collation, ComparedKey, Server};
/// let general = Collation::lookup(Server::MariaDb, "utf8mb4_general_ci").ok_or("unknown")?;
/// let mut key = Vec::new();
/// general.sort_key("Köln", &mut key);
/// let compared = ComparedKey::new(general, &key);
/// let mut memory = Vec::new();
/// assert!(compared.order_of("KOLN", &mut memory).is_eq());
/// assert!(compared.order_of("aachen", &mut memory).is_lt());
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone)]
pub struct ComparedKey {
    collation: Collation,
    key: Box<[u8]>,
    /// As [`Collation::codes_of_bytes`].
    codes: [u8; 256],
    /// Whether a text's bytes are its key.
    is_plain: bool,
    /// Whether the first level is the only one.
    is_one_level: bool,
    /// Whether the first level is padded.
    pads: bool,
    /// Whether ASCII characters may weigh otherwise before others.
    contracts: bool,
}

impl ComparedKey {
    /// Of `key`, a sort key of `collation`.
    pub fn new(collation: &Collation, key: &[u8]) -> ComparedKey {
        let (is_one_level, pads, contracts) = match collation.rule {
            Rule::Unicode(family, levels) => {
                let pads = levels.first().is_some_and(|first| collation.pads_at(family, *first));
                (levels.len() == 1, pads, family.has_contractions_of_ascii())
            }
            _ => (true, collation.pads, false),
        };
        ComparedKey {
            collation: *collation,
            key: key.into(),
            codes: collation.codes_of_bytes(),
            is_plain: matches!(collation.rule, Rule::CodePoints) && !pads,
            is_one_level,
            pads,
            contracts,
        }
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The order of `text` and the text of the key, as [`Collation::compare`] gives it. `memory` is used for what has
    /// to be written down, and kept from call to call by the caller.
    #[inline]
    pub fn order_of(&self, text: &str, memory: &mut Vec<u8>) -> Ordering {
        if self.is_plain {
            return text.as_bytes().cmp(&self.key);
        }
        self.order_of_bytes(text.as_bytes()).unwrap_or_else(|| self.order_by_key(text, memory))
    }

    /// The order, unless it takes more than codes of one byte to find it.
    #[inline]
    fn order_of_bytes(&self, text: &[u8]) -> Option<Ordering> {
        let mut at = 0;
        loop {
            let code = match text.get(at) {
                Some(byte) => match self.codes[usize::from(*byte)] {
                    0 => return None,
                    code => code,
                },
                None => return self.order_of_end(at),
            };
            match self.key.get(at) {
                Some(own) if *own == code => {}
                // A space, whatever follows it in the text.
                Some(&SPACE_BEFORE_LESSER) if self.pads && code == SPACE => {}
                Some(&END) if self.pads && code == SPACE => return self.order_of_rest(&text[at..]),
                Some(own) => {
                    let contracts = self.contracts && text.get(at + 1).is_some_and(|next| !next.is_ascii());
                    return (!contracts).then(|| code.cmp(own));
                }
                None if self.is_one_level && !self.pads => return Some(Ordering::Greater),
                None => return None,
            }
            at += 1;
        }
    }

    /// The order of a text that ends after `at` codes that are in the key.
    fn order_of_end(&self, at: usize) -> Option<Ordering> {
        let order = match (self.pads, self.key.get(at)) {
            (true, Some(own)) => END.cmp(own),
            (true, None) => return None,
            (false, None) => Ordering::Equal,
            // The end of the level, which no weight of several levels begins with.
            (false, Some(0)) if !self.is_one_level => Ordering::Equal,
            (false, Some(_)) => Ordering::Less,
        };
        (order.is_ne() || self.is_one_level).then_some(order)
    }

    /// The order of what follows in a text where the padding of the key begins.
    fn order_of_rest(&self, rest: &[u8]) -> Option<Ordering> {
        let other = rest.iter().map(|byte| self.codes[usize::from(*byte)]).find(|code| *code != SPACE);
        match other {
            Some(0) => None,
            Some(_) => Some(Ordering::Greater),
            None => self.is_one_level.then_some(Ordering::Equal),
        }
    }

    #[inline(never)]
    fn order_by_key(&self, text: &str, memory: &mut Vec<u8>) -> Ordering {
        memory.clear();
        self.collation.write_key(text, self.key.len() + 1, memory);
        memory.as_slice().cmp(&self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;

    #[test]
    fn a_text_is_less_than_one_that_goes_on_with_a_zero() {
        for name in ["sjis_nopad_bin", "latin1_nopad_bin", "utf8mb4_nopad_bin", "binary"] {
            let Some(collation) = Collation::lookup(Server::MariaDb, name) else { continue };
            let mut key = Vec::new();
            collation.sort_key("a\0", &mut key);
            let compared = ComparedKey::new(collation, &key);
            assert_eq!(compared.order_of("a", &mut Vec::new()), Ordering::Less, "{name}");
            assert_eq!(compared.order_of("a\0", &mut Vec::new()), Ordering::Equal, "{name}");
        }
    }
}
