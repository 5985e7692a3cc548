//! Comparison of strings as they are stored, in the bytes of their character set.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::Collation;
use crate::collation::Rule;

impl Collation {
    /// Compares the stored strings `a` and `b`.
    pub fn compare_stored(&self, a: &[u8], b: &[u8]) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        match self.rule {
            Rule::SingleByte(weights) => self.by_table(weights, a, b),
            Rule::Bytes => self.compare_bytes(a, b),
            Rule::CodePoints if self.charset().is_utf8() => self.compare_bytes(a, b),
            _ => self.compare(&self.text(a), &self.text(b)),
        }
    }

    /// Appends the sort key of the stored string `bytes`, as [`sort_key`](Collation::sort_key) does that of a text.
    pub fn sort_key_of_stored(&self, bytes: &[u8], out: &mut Vec<u8>) {
        match self.rule {
            Rule::SingleByte(weights) => self.write_single_bytes(weights, bytes, out),
            Rule::Bytes => self.write_bytes(bytes, out),
            _ => self.sort_key(&self.text(bytes), out),
        }
    }

    fn compare_bytes(&self, a: &[u8], b: &[u8]) -> Ordering {
        if !self.pads() {
            return a.cmp(b);
        }
        let common = a.len().min(b.len());
        a[..common].cmp(&b[..common]).then_with(|| {
            let rest =
                |bytes: &[u8]| bytes[common..].iter().map(|byte| byte.cmp(&b' ')).find(|order| order.is_ne());
            rest(a).or_else(|| rest(b).map(Ordering::reverse)).unwrap_or(Ordering::Equal)
        })
    }

    fn text<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        self.charset().decode(bytes).unwrap_or_else(|| String::from_utf8_lossy(bytes))
    }
}
