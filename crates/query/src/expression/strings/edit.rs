//! Texts put together, cut, filled and replaced in.

use super::super::conversions::{letters_of, of_letters};
use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal};
use super::{Texts, bounded, check_comparable, texts};

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let mut operands = operands.to_vec();
    if matches!((name, operands.len()), ("lpad" | "rpad", 2)) && !mysql {
        let kind = Kind::Text(super::Collating::literal(None));
        operands.push(Typed { node: super::super::node::Node::Literal(Datum::Text(" ".to_string())), kind });
    }
    if name == "concat of group" && !mysql {
        // Sorted or distinct, MariaDB reads a BIT from the table of the group, as a number.
        for operand in operands.iter_mut().filter(|of| matches!(of.kind, Kind::Bit { .. })) {
            operand.kind = Kind::Int { unsigned: true };
        }
    }
    let all: Vec<usize> = (0..operands.len()).collect();
    Ok(Some(match (name, operands.len()) {
        ("concat" | "concat of group", 1..) => texts(operands, &all, mysql, |texts, _| {
            bounded(texts.iter().map(String::len).sum())?;
            Ok(Some(texts.concat()))
        })?,
        ("concat_ws", 2..) => concat_ws(operands, mysql)?,
        ("reverse", 1) => {
            texts(operands, &[0], mysql, |texts, _| Ok(Some(texts[0].chars().rev().collect())))?
        }
        ("ltrim", 1) => {
            texts(operands, &[0], mysql, |texts, _| Ok(Some(texts[0].trim_start_matches(' ').to_string())))?
        }
        ("rtrim", 1) => {
            texts(operands, &[0], mysql, |texts, _| Ok(Some(texts[0].trim_end_matches(' ').to_string())))?
        }
        ("trim both" | "trim leading" | "trim trailing", 1 | 2) => trim(name, operands, mysql)?,
        ("left" | "right", 2) => side(name == "left", operands, mysql)?,
        ("substring" | "substr" | "mid", 2 | 3) => substring(operands, mysql)?,
        ("replace", 3) => replace(operands, mysql)?,
        ("insert", 4) => {
            let mixed = super::mixed_with_number(&operands, &[0, 3], mysql);
            texts(operands, &[0, 3], mysql, move |texts, numbers| inserted(texts, numbers, mixed))?
        }
        ("repeat", 2) => texts(operands, &[0], mysql, |texts, numbers| {
            if numbers[0] <= 0 || texts[0].is_empty() {
                return Ok(Some(String::new()));
            }
            let count = usize::try_from(numbers[0]).unwrap_or(usize::MAX);
            bounded(texts[0].len().saturating_mul(count))?;
            Ok(Some(texts[0].repeat(count)))
        })?,
        ("space", 1) => {
            let kind = operands[0].kind.clone();
            Typed::call(Kind::Text(super::Collating::literal(None)), operands, move |values| {
                let Some(count) = values[0].whole(&kind)? else { return Ok(Datum::Null) };
                let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
                bounded(count)?;
                Ok(Datum::Text(" ".repeat(count)))
            })
        }
        ("lpad" | "rpad", 3) => pad(name == "lpad", operands, mysql)?,
        _ => return Ok(None),
    }))
}

/// `INSERT`: a part of the first text replaced by the second; the whole text if the part begins outside of it.
fn inserted(texts: &[String], numbers: &[i128], mixed: bool) -> Result<Option<String>, Refusal> {
    let (text, new) = (&texts[0], &texts[1]);
    if mixed && !(text.is_ascii() && new.is_ascii()) {
        return Err(Refusal::new("letters that are not ASCII inserted into a number"));
    }
    let length = text.chars().count() as i128;
    if numbers[0] < 1 || numbers[0] > length {
        return Ok(Some(text.clone()));
    }
    let from = (numbers[0] - 1) as usize;
    let rest = length - numbers[0] + 1;
    let count = if numbers[1] < 0 || numbers[1] > rest { rest } else { numbers[1] };
    let start = text.chars().take(from);
    Ok(Some(start.chain(new.chars()).chain(text.chars().skip(from + count as usize)).collect()))
}

/// The first text between the others, NULLs left out.
fn concat_ws(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let all: Vec<usize> = (0..operands.len()).collect();
    let common = Texts::of(&operands, &all, mysql)?;
    let (result, binary) = (common.kind(), common.binary);
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    Ok(Typed::call(result, operands, move |values| {
        let Some(separator) = letters_of(&values[0], &kinds[0], binary)? else { return Ok(Datum::Null) };
        let mut parts = Vec::new();
        for (value, kind) in values.iter().zip(&kinds).skip(1) {
            parts.extend(letters_of(value, kind, binary)?);
        }
        Ok(of_letters(parts.join(&separator), binary))
    }))
}

/// `REPLACE`. MariaDB does not look at what is put in where it looks for nothing.
fn replace(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let mut common = Texts::of(&operands, &[0, 1, 2], mysql)?;
    if !mysql {
        common = common.comparable("replace")?;
    }
    let (result, binary) = (common.kind(), common.binary);
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    Ok(Typed::call(result, operands, move |values| {
        let letters = |at: usize| letters_of(&values[at], &kinds[at], binary);
        let (Some(text), Some(part)) = (letters(0)?, letters(1)?) else { return Ok(Datum::Null) };
        let new = letters(2)?;
        let count = if part.is_empty() { 0 } else { text.matches(part.as_str()).count() };
        match new {
            None if mysql || !part.is_empty() => Ok(Datum::Null),
            Some(new) if count > 0 => {
                bounded(text.len().saturating_add(count.saturating_mul(new.len())))?;
                Ok(of_letters(text.replace(&part, &new), binary))
            }
            _ => Ok(of_letters(text, binary)),
        }
    }))
}

fn trim(name: &str, operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let (start, end) = (name != "trim trailing", name != "trim leading");
    let all: Vec<usize> = (0..operands.len()).collect();
    if !mysql {
        check_comparable(&operands, &all, "trim", mysql)?;
    }
    texts(operands, &all, mysql, move |texts, _| {
        let what = texts.get(1).map_or(" ", String::as_str);
        let mut text = texts[0].as_str();
        while start && !what.is_empty() && text.starts_with(what) {
            text = &text[what.len()..];
        }
        while end && !what.is_empty() && text.ends_with(what) {
            text = &text[..text.len() - what.len()];
        }
        Ok(Some(text.to_string()))
    })
}

fn side(left: bool, operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    texts(operands, &[0], mysql, move |texts, numbers| {
        let count = usize::try_from(numbers[0].max(0)).unwrap_or(usize::MAX);
        let length = texts[0].chars().count();
        let from = if left { 0 } else { length.saturating_sub(count) };
        Ok(Some(texts[0].chars().skip(from).take(count).collect()))
    })
}

fn substring(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    texts(operands, &[0], mysql, |texts, numbers| {
        let length = texts[0].chars().count() as i128;
        let from = match numbers[0] {
            0 => return Ok(Some(String::new())),
            from if from > 0 => from - 1,
            from => length + from,
        };
        let count = numbers.get(1).copied().unwrap_or(length);
        if from < 0 || from >= length || count <= 0 {
            return Ok(Some(String::new()));
        }
        let count = usize::try_from(count.min(length)).unwrap_or(usize::MAX);
        Ok(Some(texts[0].chars().skip(from as usize).take(count).collect()))
    })
}

fn pad(left: bool, operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    texts(operands, &[0, 2], mysql, move |texts, numbers| {
        let Ok(wanted) = usize::try_from(numbers[0]) else { return Ok(None) };
        let length = texts[0].chars().count();
        if wanted <= length {
            return Ok(Some(texts[0].chars().take(wanted).collect()));
        }
        if texts[1].is_empty() {
            // With nothing to fill with MariaDB gives NULL, MySQL the text as it is.
            return Ok(mysql.then(|| texts[0].clone()));
        }
        bounded(wanted)?;
        let padding: String = texts[1].chars().cycle().take(wanted - length).collect();
        Ok(Some(if left { padding + &texts[0] } else { texts[0].clone() + &padding }))
    })
}
