//! `UPPER`, `LOWER`, `SOUNDEX`.

use tanada_collation::LetterCase;

use super::super::node::Typed;
use super::super::{Kind, Refusal};
use super::texts;

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let operands = operands.to_vec();
    Ok(Some(match (name, operands.len()) {
        ("upper" | "ucase" | "lower" | "lcase", 1) => {
            let upper = matches!(name, "upper" | "ucase");
            // Bytes have no case.
            if operands[0].kind.is_binary() {
                return texts(operands, &[0], mysql, |texts, _| Ok(Some(texts[0].clone()))).map(Some);
            }
            let letters = Letters::of(&operands[0].kind);
            texts(operands, &[0], mysql, move |texts, _| letters.cased(&texts[0], upper).map(Some))?
        }
        ("soundex", 1) => {
            let is_binary = operands[0].kind.is_binary();
            texts(operands, &[0], mysql, move |texts, _| soundex(&texts[0], is_binary).map(Some))?
        }
        _ => return Ok(None),
    }))
}

/// Whose tables tell the case of letters.
#[derive(Clone, Copy)]
enum Letters {
    /// Those of a character set that is no Unicode.
    Set(&'static LetterCase),
    Unicode,
    /// With a dotted and a dotless i.
    Turkish,
}

impl Letters {
    fn of(kind: &Kind) -> Letters {
        let collating = match kind {
            Kind::Text(collating) => collating,
            Kind::Choice(choice) => &choice.collating,
            _ => return Letters::Unicode,
        };
        let set = collating.charset.as_deref().and_then(LetterCase::of);
        let collation = collating.collation.as_deref().unwrap_or_default();
        match set {
            Some(set) => Letters::Set(set),
            None if collation.contains("_turkish") => Letters::Turkish,
            None => Letters::Unicode,
        }
    }

    /// A text in upper or lower case.
    fn cased(self, text: &str, upper: bool) -> Result<String, Refusal> {
        match self {
            Letters::Set(set) => Ok(set.cased(text, upper)),
            Letters::Unicode if text.is_ascii() => {
                Ok(if upper { text.to_ascii_uppercase() } else { text.to_ascii_lowercase() })
            }
            Letters::Unicode => text.chars().map(|letter| letter_cased(letter, upper)).collect(),
            Letters::Turkish => text.chars().map(|letter| turkish(letter, upper)).collect(),
        }
    }
}

fn turkish(letter: char, upper: bool) -> Result<char, Refusal> {
    match (letter, upper) {
        ('i', true) => Ok('İ'),
        ('I', false) => Ok('ı'),
        _ => letter_cased(letter, upper),
    }
}

/// Letters whose case is the same in the tables of both servers and in Unicode.
fn is_agreed(letter: char) -> bool {
    matches!(letter,
        '\u{c0}'..='\u{17f}' | '\u{181}'..='\u{199}' | '\u{19b}'..='\u{19d}' | '\u{19f}'..='\u{21f}'
        | '\u{222}'..='\u{239}' | '\u{386}'..='\u{3ce}' | '\u{3d0}'..='\u{3d6}' | '\u{3da}'..='\u{3f1}'
        | '\u{400}'..='\u{489}' | '\u{48c}'..='\u{4bf}' | '\u{4c1}'..='\u{4c4}' | '\u{4c7}' | '\u{4c8}'
        | '\u{4cb}' | '\u{4cc}' | '\u{4d0}'..='\u{4f5}' | '\u{4f8}' | '\u{4f9}' | '\u{531}'..='\u{587}'
        | '\u{1e00}'..='\u{1e9b}' | '\u{1ea0}'..='\u{1ef9}' | '\u{1f00}'..='\u{1f7d}')
}

/// A letter in upper or lower case; one that has several letters in the other case stays.
fn letter_cased(letter: char, upper: bool) -> Result<char, Refusal> {
    if letter.is_ascii() {
        return Ok(if upper { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() });
    }
    let has_case = letter.to_uppercase().ne([letter]) || letter.to_lowercase().ne([letter]);
    match (has_case, letter) {
        (false, _) => Ok(letter),
        (true, 'İ') => Ok(if upper { letter } else { 'i' }),
        // The micro sign, an angstrom and others have the case of other letters.
        (true, 'µ') => Ok(if upper { 'Μ' } else { letter }),
        (true, letter) if !is_agreed(letter) => Err(Refusal::new(format!("the case of {letter}"))),
        (true, letter) => {
            let mut cased: Vec<char> =
                if upper { letter.to_uppercase().collect() } else { letter.to_lowercase().collect() };
            Ok(match (cased.pop(), cased.is_empty()) {
                (Some(other), true) => other,
                _ => letter,
            })
        }
    }
}

/// The code of a word's sound: its first letter, and digits of those that follow, at least three.
fn soundex(text: &str, is_binary: bool) -> Result<String, Refusal> {
    let code = |letter: char| match letter.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        _ => '0',
    };
    // Letters that are not of ASCII count as vowels; bytes that are not are no letters.
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || !is_binary && letter >= '\u{c0}';
    let mut letters = text.chars().skip_while(|letter| !is_letter(*letter));
    let Some(first) = letters.next() else { return Ok(String::new()) };
    let mut result = String::from(first.to_ascii_uppercase());
    let mut last = code(first);
    for letter in letters.filter(|letter| is_letter(*letter)) {
        let next = code(letter);
        // Vowels do not part two letters of one sound.
        if next != last && next != '0' {
            result.push(next);
            last = next;
        }
    }
    while result.chars().count() < 4 {
        result.push('0');
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_sound_alike_have_one_code() {
        for (word, code) in [
            ("hello", "H400"),
            ("Quadratically", "Q36324"),
            ("1abc", "A120"),
            ("Robert Smith", "R163253"),
            ("Tymczak", "T520"),
            ("Pfister", "P236"),
            ("bacab", "B210"),
            ("", ""),
        ] {
            assert_eq!(soundex(word, false).unwrap(), code, "{word}");
        }
    }

    #[test]
    fn letters_change_their_case() {
        let cased = |text, upper| Letters::Unicode.cased(text, upper).unwrap();
        assert_eq!(cased("aßé", true), "AßÉ");
        assert_eq!(cased("ΑΣ", false), "ασ");
        assert_eq!(cased("ÿ", true), "Ÿ");
        let cased = |text, upper| Letters::Turkish.cased(text, upper).unwrap();
        assert_eq!((cased("iı", true), cased("Iİ", false)), ("İI".to_owned(), "ıi".to_owned()));
        let latin1 = Letters::Set(LetterCase::of("latin1").unwrap());
        assert_eq!(latin1.cased("ÿé", true).unwrap(), "ÿÉ");
    }
}
