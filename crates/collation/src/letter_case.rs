//! Upper and lower case of the letters of a character set, as the servers have them: `data/letter-case.zst`, made by
//! `scripts/make-letter-case`.
//!
//! Sets that are no Unicode have tables of their own, and not those of Unicode: the upper case of `ÿ` is `ÿ` where the
//! set has no `Ÿ`, and some sets leave letters as they are.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The cases of a set.
#[derive(Debug, Default)]
pub struct LetterCase {
    /// Upper and lower case of those that have another.
    letters: HashMap<char, [char; 2]>,
    /// Whether all letters of ASCII have the cases that they have in ASCII.
    is_usual: bool,
}

static SETS: LazyLock<HashMap<String, LetterCase>> = LazyLock::new(|| {
    let data = crate::unpack(include_bytes!("../data/letter-case.zst"));
    String::from_utf8_lossy(&data).lines().filter_map(set).collect()
});

fn set(line: &str) -> Option<(String, LetterCase)> {
    let mut words = line.split(' ');
    let name = words.next()?.to_owned();
    let point = |digits: &str| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    let letters: HashMap<char, [char; 2]> = words
        .filter_map(|word| {
            let (letter, cases) = word.split_once('=')?;
            let (upper, lower) = cases.split_once(',')?;
            Some((point(letter)?, [point(upper)?, point(lower)?]))
        })
        .collect();
    let mut ascii = (0..=127u8).map(char::from);
    let is_usual = ascii.all(|letter| {
        let usual = [letter.to_ascii_uppercase(), letter.to_ascii_lowercase()];
        letters.get(&letter).copied().unwrap_or([letter; 2]) == usual
    });
    Some((name, LetterCase { letters, is_usual }))
}

impl LetterCase {
    /// Of a character set; `None` for those of Unicode, and for names that are none.
    pub fn of(charset: &str) -> Option<&'static LetterCase> {
        SETS.get(charset)
    }

    /// A text in upper case, or in lower case.
    pub fn cased(&self, text: &str, upper: bool) -> String {
        if self.is_usual && text.is_ascii() {
            return if upper { text.to_ascii_uppercase() } else { text.to_ascii_lowercase() };
        }
        let cased =
            |letter: char| self.letters.get(&letter).map_or(letter, |cases| cases[usize::from(!upper)]);
        text.chars().map(cased).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_have_the_case_that_their_set_gives_them() {
        let cased = |charset: &str, text: &str, upper| LetterCase::of(charset).unwrap().cased(text, upper);
        assert_eq!(cased("latin1", "aÿé", true), "AÿÉ");
        assert_eq!(cased("cp850", "âz", true), "AZ");
        assert_eq!(cased("gbk", "éя", true), "éЯ");
        assert_eq!(cased("latin1", "ÉZ", false), "éz");
        // As the servers have it: these letters are the wrong way round in the set of the Macintosh.
        assert_eq!(cased("macce", "sT", true), "St");
        assert!(
            LetterCase::of("utf8mb4").is_none() && LetterCase::of("latin2").is_some_and(|case| case.is_usual)
        );
        assert!(SETS.len() >= 33, "{}", SETS.len());
    }
}
