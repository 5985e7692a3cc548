//! `REGEXP` and its functions, for patterns that mean the same to the servers' libraries (PCRE2, ICU) and to ours.
//!
//! What is different is rewritten (`$` before a last line feed, words' ends, brackets in a class) or refused.

use regex::{Regex, RegexBuilder};

use super::super::conversions::{letters_of, of_letters, textual};
use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal};
use super::Texts;

/// Longest pattern that is read, in bytes.
const MAX_PATTERN_BYTES: usize = 4096;
/// Largest compiled pattern, in bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let operands = operands.to_vec();
    let job = match (name, operands.len()) {
        ("regexp" | "rlike", 2) => Job::Is,
        ("regexp_like", 2 | 3) if mysql => Job::Is,
        ("regexp_instr", 2) => Job::Position,
        ("regexp_substr", 2) => Job::Part,
        ("regexp_replace", 3) => Job::Replaced,
        ("regexp_instr" | "regexp_substr" | "regexp_replace", _) => {
            return Err(Refusal::new(format!("{name} with a position")));
        }
        _ => return Ok(None),
    };
    let texts: Vec<usize> = (0..operands.len().min(if job == Job::Replaced { 3 } else { 2 })).collect();
    let common = Texts::of(&operands, &texts, mysql)?;
    super::check_comparable(&operands, if mysql { &texts[..2] } else { &texts }, name, mysql)?;
    for operand in &operands {
        textual(operand, mysql)?;
    }
    if mysql && common.binary {
        return Err(Refusal::new("a pattern of bytes"));
    }
    let flags = match operands.get(2).filter(|_| name == "regexp_like") {
        None => String::new(),
        Some(flags) => match flags.literal() {
            Some(Datum::Text(flags)) if flags.chars().all(|flag| matches!(flag, 'c' | 'i')) => flags.clone(),
            _ => return Err(Refusal::new("this kind of match")),
        },
    };
    let folds = match flags.chars().last() {
        Some(flag) => Some(flag == 'i'),
        None if common.binary => Some(false),
        None => common.collating.folds(),
    };
    let kind = match job {
        Job::Is | Job::Position => super::SIGNED,
        Job::Part | Job::Replaced => common.kind(),
    };
    let fixed = match operands[1].literal() {
        Some(Datum::Text(text)) => Some(Pattern::new(text, folds, mysql)?),
        _ => None,
    };
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let binary = common.binary;
    let call = Typed::call(kind, operands, move |values| {
        if values.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let letters = |at: usize| letters_of(&values[at], &kinds[at], binary).map(Option::unwrap_or_default);
        let text = letters(0)?;
        let pattern = match &fixed {
            Some(pattern) => pattern.clone(),
            None => Pattern::new(&letters(1)?, folds, mysql)?,
        };
        pattern.check(&text, job, mysql)?;
        Ok(match job {
            Job::Is => Datum::truth(pattern.is_match(&text)),
            Job::Position => Datum::Int(match pattern.regex.find(&text) {
                Some(found) => text[..found.start()].chars().count() as i64 + 1,
                None => 0,
            }),
            Job::Part => match pattern.regex.find(&text) {
                Some(found) => of_letters(found.as_str().to_string(), binary),
                None if mysql => Datum::Null,
                None => of_letters(String::new(), binary),
            },
            Job::Replaced => of_letters(pattern.replaced(&text, &letters(2)?, mysql)?, binary),
        })
    });
    Ok(Some(if job == Job::Is { Typed::truth(call) } else { call }))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Job {
    Is,
    Position,
    Part,
    Replaced,
}

/// A compiled pattern.
#[derive(Debug, Clone)]
struct Pattern {
    regex: Regex,
    /// Whether `$` is in it, which matches before a last line feed, too.
    has_end: bool,
    /// Whether `.` is in it, or a class of what it does not have.
    has_any: bool,
    /// Whether it tells letters, digits and spaces apart.
    has_classes: bool,
    folds: bool,
    is_ascii: bool,
}

impl Pattern {
    fn new(text: &str, folds: Option<bool>, mysql: bool) -> Result<Pattern, Refusal> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(Refusal::new("a long pattern"));
        }
        let folds = match folds {
            Some(folds) => folds,
            None if text.chars().any(char::is_alphabetic) => {
                return Err(Refusal::new("a pattern of letters whose case may matter"));
            }
            None => false,
        };
        if mysql && text.is_empty() {
            return Err(Refusal::new("an empty pattern, which is an error of the server"));
        }
        let rewritten = rewritten(text, mysql)?;
        let regex = RegexBuilder::new(&rewritten.text)
            .case_insensitive(folds)
            .size_limit(MAX_COMPILED_BYTES)
            .build()
            .map_err(|_| Refusal::new(format!("the pattern {text}")))?;
        Ok(Pattern {
            regex,
            has_end: rewritten.has_end,
            has_any: rewritten.has_any,
            has_classes: rewritten.has_classes,
            folds,
            is_ascii: text.is_ascii(),
        })
    }

    /// Refuses texts of which the libraries may say other things.
    fn check(&self, text: &str, job: Job, mysql: bool) -> Result<(), Refusal> {
        if text.is_ascii() && self.is_ascii {
            let last_line = text.ends_with(['\n', '\r']);
            return match self.has_end && last_line && (job != Job::Is || mysql)
                || mysql && self.has_any && text.contains('\r')
            {
                true => Err(Refusal::new("a pattern at the end of a line")),
                false => Ok(()),
            };
        }
        let unclear = |letter: char| {
            letter.to_uppercase().count() > 1
                || letter.to_lowercase().count() > 1
                || matches!(letter, '\u{17f}' | '\u{212a}' | '\u{131}' | '\u{130}')
        };
        if mysql && self.folds && text.chars().any(unclear) || self.has_classes {
            return Err(Refusal::new("a pattern with letters that are not ASCII"));
        }
        let lines = |letter: char| matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}' | '\r');
        if (self.has_any || self.has_end) && text.chars().any(lines) || self.has_end && text.ends_with('\n') {
            return Err(Refusal::new("a pattern at the end of a line"));
        }
        Ok(())
    }

    fn is_match(&self, text: &str) -> bool {
        let without = text.strip_suffix('\n').filter(|_| self.has_end);
        self.regex.is_match(text) || without.is_some_and(|text| self.regex.is_match(text))
    }

    /// All matches replaced; `\1` stands for a group in MariaDB, `$1` in MySQL.
    fn replaced(&self, text: &str, replacement: &str, mysql: bool) -> Result<String, Refusal> {
        let sign = if mysql { '$' } else { '\\' };
        if mysql && replacement.contains('\\') {
            return Err(Refusal::new("a replacement with backslashes"));
        }
        let mut out = String::new();
        let mut from = 0;
        for groups in self.regex.captures_iter(text) {
            let Some(whole) = groups.get(0) else { continue };
            if whole.as_str().is_empty() {
                return Err(Refusal::new("a replacement of nothing"));
            }
            out.push_str(&text[from..whole.start()]);
            let mut letters = replacement.chars().peekable();
            while let Some(letter) = letters.next() {
                if letter != sign {
                    out.push(letter);
                    continue;
                }
                match letters.next() {
                    Some(digit @ '0'..='9') => {
                        if letters.peek().is_some_and(char::is_ascii_digit) {
                            return Err(Refusal::new("a group of two digits"));
                        }
                        let group = digit.to_digit(10).unwrap_or(0) as usize;
                        if group >= groups.len() {
                            return Err(Refusal::new("a group that the pattern does not have"));
                        }
                        out.push_str(groups.get(group).map_or("", |group| group.as_str()));
                    }
                    Some('\\') if !mysql => out.push('\\'),
                    _ => return Err(Refusal::new("this replacement")),
                }
            }
            from = whole.end();
        }
        out.push_str(&text[from..]);
        super::bounded(out.len())?;
        Ok(out)
    }
}

/// A pattern as ours are spelled.
struct Rewritten {
    text: String,
    has_end: bool,
    has_any: bool,
    has_classes: bool,
}

fn rewritten(pattern: &str, mysql: bool) -> Result<Rewritten, Refusal> {
    let odd = || Refusal::new(format!("the pattern {pattern}"));
    let mut result = Rewritten { text: String::new(), has_end: false, has_any: false, has_classes: false };
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        let mut length = letter.len_utf8();
        match letter {
            '[' if rest.starts_with("[[:<:]]") && !mysql => {
                result.text.push_str("\\b{start}");
                length = 7;
            }
            '[' if rest.starts_with("[[:>:]]") && !mysql => {
                result.text.push_str("\\b{end}");
                length = 7;
            }
            '[' => length = class(rest, &mut result, mysql).ok_or_else(odd)?,
            '\\' => {
                let next = rest[1..].chars().next().ok_or_else(odd)?;
                match next {
                    'd' | 'w' | 's' | 'D' | 'W' | 'S' | 'b' | 'B' => {}
                    'n' | 't' | 'r' => {}
                    next if next.is_ascii_punctuation() && !matches!(next, '<' | '>') => {}
                    _ => return Err(odd()),
                }
                result.text.extend(['\\', next]);
                length = 1 + next.len_utf8();
            }
            '$' => {
                result.has_end = true;
                result.text.push_str("\\z");
            }
            '.' => {
                result.has_any = true;
                result.text.push('.');
            }
            '(' if rest.starts_with("(?") => {
                // Groups of no number, and of a case of their own.
                let known = ["(?:", "(?i)", "(?-i)", "(?i:", "(?-i:"];
                let group = known.iter().find(|known| rest.starts_with(**known)).ok_or_else(odd)?;
                result.text.push_str(group);
                length = group.len();
            }
            '(' if rest.starts_with("(*") => return Err(odd()),
            '*' | '+' | '?' | '}' if rest[1..].starts_with('+') => return Err(odd()),
            letter => result.text.push(letter),
        }
        rest = &rest[length..];
    }
    Ok(result)
}

/// The length of a class in brackets, which is added to the result.
fn class(rest: &str, result: &mut Rewritten, mysql: bool) -> Option<usize> {
    let mut at = 1;
    result.text.push('[');
    if rest[at..].starts_with('^') {
        result.text.push('^');
        result.has_any = true;
        at += 1;
    }
    let mut first = true;
    loop {
        let letter = rest[at..].chars().next()?;
        match letter {
            ']' if !first => {
                result.text.push(']');
                return Some(at + 1);
            }
            ']' if !mysql => result.text.push_str("\\]"),
            '[' if rest[at..].starts_with("[:") => {
                let end = rest[at..].find(":]")?;
                let name = &rest[at + 2..at + end];
                let known = [
                    "alpha", "digit", "alnum", "upper", "lower", "space", "xdigit", "punct", "blank", "cntrl",
                ];
                if !known.contains(&name) || (mysql && name == "punct") {
                    return None;
                }
                result.has_classes = true;
                result.text.push_str(&rest[at..at + end + 2]);
                at += end + 2;
                first = false;
                continue;
            }
            '[' if !mysql => result.text.push_str("\\["),
            '\\' => {
                let next = rest[at + 1..].chars().next()?;
                match next {
                    'd' | 'w' | 's' | 'D' | 'W' | 'S' => {}
                    'n' | 't' | 'r' => {}
                    next if next.is_ascii_punctuation() => {}
                    _ => return None,
                }
                result.text.extend(['\\', next]);
                at += next.len_utf8();
            }
            '&' | '~' if !mysql => result.text.extend(['\\', letter]),
            '[' | ']' | '&' | '~' => return None,
            '-' if rest[at..].starts_with("--") => return None,
            letter => result.text.push(letter),
        }
        first = false;
        at += letter.len_utf8();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, pattern: &str) -> bool {
        Pattern::new(pattern, Some(true), false).unwrap().is_match(text)
    }

    #[test]
    fn patterns_find_parts_of_texts() {
        assert!(found("abc", "B"));
        assert!(found("abc\n", "c$"));
        assert!(found("foo bar", "[[:<:]]bar"));
        assert!(found("a]b", "[]]b"));
        assert!(found("x[", "[[]"));
        assert!(!found("ab\ncd", "^c"));
        assert!(Pattern::new("(a)\\1", Some(true), false).is_err());
        assert!(Pattern::new("(?<=f)o", Some(true), false).is_err());
        assert!(Pattern::new("a++", Some(true), false).is_err());
    }

    #[test]
    fn groups_stand_in_replacements() {
        let pattern = Pattern::new("(a)(b)", Some(true), false).unwrap();
        assert_eq!(pattern.replaced("abc", r"\2\1", false).unwrap(), "bac");
        assert_eq!(pattern.replaced("abc", "$2$1", true).unwrap(), "bac");
        assert_eq!(pattern.replaced("xyz", "-", true).unwrap(), "xyz");
    }
}
