//! `UPPER`, `LOWER`, `SOUNDEX`.

use super::super::Refusal;
use super::super::node::Typed;
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
            texts(operands, &[0], mysql, move |texts, _| cased(&texts[0], upper).map(Some))?
        }
        ("soundex", 1) => texts(operands, &[0], mysql, |texts, _| soundex(&texts[0]).map(Some))?,
        _ => return Ok(None),
    }))
}

/// A text in upper or lower case.
pub(super) fn cased(text: &str, upper: bool) -> Result<String, Refusal> {
    if text.is_ascii() {
        return Ok(if upper { text.to_ascii_uppercase() } else { text.to_ascii_lowercase() });
    }
    text.chars().map(|letter| letter_cased(letter, upper)).collect()
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
fn soundex(text: &str) -> Result<String, Refusal> {
    let code = |letter: char| match letter.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        _ => '0',
    };
    // Letters that are not of ASCII count as vowels.
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter >= '\u{c0}';
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
            assert_eq!(soundex(word).unwrap(), code, "{word}");
        }
    }

    #[test]
    fn letters_change_their_case() {
        assert_eq!(cased("aßé", true).unwrap(), "AßÉ");
        assert_eq!(cased("ΑΣ", false).unwrap(), "ασ");
        assert_eq!(cased("ÿ", true).unwrap(), "Ÿ");
    }
}
