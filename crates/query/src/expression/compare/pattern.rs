//! `LIKE`.

use super::super::conversions::{letters_of, textual};
use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal, Rules};

/// `text LIKE pattern`, with the default escape or another.
pub(in super::super) fn like(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let mysql = rules.mysql;
    let escape = match operands.get(2).map(Typed::literal) {
        None => Some('\\'),
        Some(Some(Datum::Text(text))) if text.is_empty() => (!mysql).then_some('\\'),
        Some(Some(Datum::Text(text))) if text.chars().count() == 1 => text.chars().next(),
        _ => return Err(Refusal::new("this ESCAPE")),
    };
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    for operand in &operands[..2] {
        textual(operand, mysql)?;
    }
    let binary = kinds[..2].iter().any(Kind::is_binary);
    let collating = kinds[0].collating().compared(&kinds[1].collating(), "like")?;
    let compute = move |values: &[Datum]| {
        let text = letters_of(&values[0], &kinds[0], binary)?;
        let pattern = letters_of(&values[1], &kinds[1], binary)?;
        let (Some(text), Some(pattern)) = (text, pattern) else { return Ok(Datum::Null) };
        let found = match binary {
            true => matches(&text, &pattern, escape),
            false => collating.like(&text, &pattern, escape)?,
        };
        Ok(Datum::truth(found))
    };
    Ok(Typed::truth(Typed::call(Kind::Int { unsigned: false }, operands, compute)))
}

/// Whether letters, or bytes as letters, match a pattern with `%` and `_`.
pub(in super::super) fn matches(text: &str, pattern: &str, escape: Option<char>) -> bool {
    enum Part {
        Letter(char),
        One,
        Any,
    }
    let mut parts = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        parts.push(match letter {
            letter if Some(letter) == escape => Part::Letter(letters.next().unwrap_or(letter)),
            '%' => Part::Any,
            '_' => Part::One,
            letter => Part::Letter(letter),
        });
    }
    let text: Vec<char> = text.chars().collect();
    // The last `%` and the position in the text that it is tried to reach to.
    let (mut at, mut part, mut back) = (0, 0, None);
    while at < text.len() {
        let fits = match parts.get(part) {
            Some(Part::Any) => {
                back = Some((part + 1, at));
                part += 1;
                continue;
            }
            Some(Part::One) => true,
            Some(Part::Letter(letter)) => text[at] == *letter,
            None => false,
        };
        match (fits, back) {
            (true, _) => (at, part) = (at + 1, part + 1),
            (false, Some((after, reached))) => {
                back = Some((after, reached + 1));
                (at, part) = (reached + 1, after);
            }
            (false, None) => return false,
        }
    }
    parts[part.min(parts.len())..].iter().all(|part| matches!(part, Part::Any))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, pattern: &str) -> bool {
        matches(text, pattern, Some('\\'))
    }

    #[test]
    fn patterns_match_whole_texts() {
        assert!(found("abc", "a%"));
        assert!(found("abc", "%b%"));
        assert!(found("abcbd", "%b_"));
        assert!(found("a%c", r"a\%c"));
        assert!(!found("abc", r"a\%c"));
        assert!(found("", "%"));
        assert!(!found("abc", "a_"));
        assert!(!found("abc", ""));
    }
}
