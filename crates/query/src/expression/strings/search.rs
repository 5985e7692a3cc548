//! Texts looked for in texts.

use tanada_collation::Server;

use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal};
use super::{check_comparable, number_of_texts, texts};

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let mut operands = operands.to_vec();
    Ok(Some(match (name, operands.len()) {
        ("instr" | "locate", 2) | ("locate", 3) => {
            if name == "locate" {
                operands.swap(0, 1);
            }
            if !mysql {
                check_comparable(&operands, &[0, 1], name, mysql)?;
            }
            let server = if mysql { Server::MySql } else { Server::MariaDb };
            // MySQL searches by the collation of the text that is searched, whatever the other one's is.
            let searched = operands[0].kind.collating();
            number_of_texts(operands, &[0, 1], mysql, move |texts, numbers, common| {
                let from = match numbers.first() {
                    None => 0,
                    Some(from) if *from < 1 => return Ok(Datum::Int(0)),
                    Some(from) => usize::try_from(*from - 1).unwrap_or(usize::MAX),
                };
                let found = match common.binary || texts[1].is_empty() {
                    true => position(&texts[0], &texts[1], from, mysql),
                    false => {
                        let collating = if mysql { &searched } else { &common.collating };
                        collating.find(server, &texts[0], &texts[1], from)?
                    }
                };
                Ok(Datum::Int(found.map_or(0, |at| at as i64 + 1)))
            })?
        }
        ("find_in_set", 2)
            if (mysql || operands[0].is_constant())
                && matches!(&operands[1].kind, Kind::Choice(of) if of.is_set) =>
        {
            element(operands)?
        }
        ("find_in_set", 2) => {
            check_comparable(&operands, &[0, 1], name, mysql)?;
            number_of_texts(operands, &[0, 1], mysql, move |texts, _, common| {
                let (part, list) = (&texts[0], &texts[1]);
                let found = match common.binary {
                    false => common.collating.find_in_set(part, list)?,
                    true if list.is_empty() => None,
                    true => list.split(',').position(|element| element == part).map(|at| at + 1),
                };
                Ok(Datum::Int(found.map_or(0, |at| at as i64)))
            })?
        }
        ("substring_index", 3) => {
            if !mysql {
                check_comparable(&operands, &[0, 1], name, mysql)?;
            }
            texts(operands, &[0, 1], mysql, |texts, numbers| {
                Ok(Some(before(&texts[0], &texts[1], numbers[0])))
            })?
        }
        ("ascii", 1) => first_byte(operands, mysql)?,
        _ => return Ok(None),
    }))
}

/// The first position of the letters of `part` from `from` on.
fn position(text: &str, part: &str, from: usize, mysql: bool) -> Option<usize> {
    if part.is_empty() {
        let length = text.chars().count();
        // Behind the end MySQL finds nothing in one place more than MariaDB.
        let last = if mysql { length } else { length.saturating_sub(usize::from(from > 0)) };
        return (from <= last).then_some(from);
    }
    let mut starts = text.char_indices().enumerate().skip(from);
    starts.find(|(_, (start, _))| text[*start..].starts_with(part)).map(|(at, _)| at)
}

/// `FIND_IN_SET` of a constant in a SET: the position of its element.
fn element(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let Kind::Choice(choice) = &kinds[1] else { return Err(Refusal::new("what is no SET")) };
    let (elements, collating) =
        (choice.elements.clone(), choice.collating.compared(&kinds[0].collating(), "find_in_set")?);
    Ok(Typed::call(Kind::Int { unsigned: false }, operands, move |values| {
        let (Some(part), Some(list)) = (values[0].text(&kinds[0])?, values[1].text(&kinds[1])?) else {
            return Ok(Datum::Null);
        };
        for (at, element) in elements.iter().enumerate() {
            if collating.equals(element, &part)? {
                let is_in = list.split(',').any(|found| found == element);
                return Ok(Datum::Int(if is_in { at as i64 + 1 } else { 0 }));
            }
        }
        Ok(Datum::Int(0))
    }))
}

/// What is before the n-th separator, or behind the n-th from the end, counted as the separators are found from the
/// start.
fn before(text: &str, separator: &str, count: i128) -> String {
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if separator.is_empty() || wanted == 0 {
        return String::new();
    }
    let found: Vec<usize> = text.match_indices(separator).map(|(at, _)| at).collect();
    match count > 0 {
        true => found.get(wanted - 1).map_or(text, |at| &text[..*at]).to_string(),
        false => match found.len().checked_sub(wanted) {
            Some(at) => text[found[at] + separator.len()..].to_string(),
            None => text.to_string(),
        },
    }
}

/// `ASCII`: the first byte, 0 of nothing.
fn first_byte(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    super::textual(&operands[0], mysql)?;
    let kind = operands[0].kind.clone();
    Ok(Typed::call(Kind::Int { unsigned: false }, operands, move |values| {
        Ok(match super::super::conversions::bytes_of(&values[0], &kind)? {
            None => Datum::Null,
            Some(bytes) => Datum::Int(bytes.first().copied().unwrap_or(0).into()),
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::before;

    #[test]
    fn separators_are_counted_from_the_start() {
        assert_eq!(before("a.b.c", ".", 2), "a.b");
        assert_eq!(before("a.b.c", ".", -2), "b.c");
        assert_eq!(before("aaaaa", "aa", -2), "aaa");
        assert_eq!(before("aaaa", "aa", -1), "");
        assert_eq!(before("abc", ".", 5), "abc");
    }
}
