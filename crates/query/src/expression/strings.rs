//! Functions of texts.

use super::datum::Datum;
use super::kind::Collating;
use super::node::{Node, Typed};
use super::{Kind, Refusal, Rules};

/// Longest text that a function may give, in characters.
const MAX_LENGTH: usize = 1 << 24;
const SIGNED: Kind = Kind::Int { unsigned: false };

/// A function of texts; `None` if there is none of that name.
pub(super) fn function(name: &str, operands: &[Typed], rules: &Rules) -> Result<Option<Typed>, Refusal> {
    let mysql = rules.mysql;
    let operands = operands.to_vec();
    Ok(Some(match (name, operands.len()) {
        ("concat", 1..) => concat(operands)?,
        ("concat_ws", 2..) => concat_ws(operands)?,
        ("upper" | "ucase", 1) => each(operands, |text| cased(text, true))?,
        ("lower" | "lcase", 1) => each(operands, |text| cased(text, false))?,
        ("reverse", 1) => each(operands, |text| Ok(text.chars().rev().collect()))?,
        ("ltrim", 1) => each(operands, |text| Ok(text.trim_start_matches(' ').to_string()))?,
        ("rtrim", 1) => each(operands, |text| Ok(text.trim_end_matches(' ').to_string()))?,
        ("trim both" | "trim leading" | "trim trailing", 1 | 2) => trim(name, operands)?,
        ("left" | "right", 2) => side(name == "left", operands)?,
        ("substring" | "substr" | "mid", 2 | 3) => substring(operands)?,
        ("substring_index", 3) => substring_index(operands)?,
        ("replace", 3) => replace(operands, mysql)?,
        ("repeat", 2) => texts(operands, &[0], |texts, numbers| match numbers {
            [count] if *count > 0 => {
                let length = texts[0].len().saturating_mul(usize::try_from(*count).unwrap_or(usize::MAX));
                match length <= MAX_LENGTH {
                    true => Ok(Some(texts[0].repeat(*count as usize))),
                    false => Err(Refusal::new("a text that is too long")),
                }
            }
            _ => Ok(Some(String::new())),
        })?,
        ("lpad" | "rpad", 3) => pad(name == "lpad", operands)?,
        ("char_length" | "character_length", 1) => count(operands, |_, text| Ok(text.chars().count()))?,
        ("length" | "octet_length", 1) if operands[0].kind == Kind::Bytes => {
            Typed::call(SIGNED, operands, |values| {
                Ok(match &values[0] {
                    Datum::Bytes(bytes) => Datum::Int(bytes.len() as i64),
                    _ => Datum::Null,
                })
            })
        }
        ("length" | "octet_length", 1) => {
            count(operands, |collating, text| Ok(collating.bytes(text)?.len()))?
        }
        ("bit_length", 1) => count(operands, |collating, text| Ok(8 * collating.bytes(text)?.len()))?,
        ("ascii", 1) => count(operands, |collating, text| {
            Ok(collating.bytes(text)?.first().copied().unwrap_or(0).into())
        })?,
        ("crc32", 1) => crc32(operands)?,
        ("instr" | "locate", 2) => locate(name, operands)?,
        ("hex", 1) => hex(operands)?,
        ("inet_aton", 1) => inet_aton(operands)?,
        _ => return Ok(None),
    }))
}

/// The text of a value that is no bytes; the type says how it compares.
fn kind_of_text(kind: &Kind) -> Result<Collating, Refusal> {
    match kind {
        Kind::Bytes | Kind::Bit => Err(Refusal::new(format!("{kind:?} as text"))),
        kind => Ok(kind.collating()),
    }
}

/// A function of the texts among the operands (positions `of`) and of the other operands as whole numbers; NULL if one
/// is.
fn texts(
    operands: Vec<Typed>,
    of: &[usize],
    compute: impl Fn(&[String], &[i128]) -> Result<Option<String>, Refusal> + Send + Sync + 'static,
) -> Result<Typed, Refusal> {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let mut collating = kind_of_text(&kinds[of[0]])?;
    for at in &of[1..] {
        collating = collating.merged(&kind_of_text(&kinds[*at])?);
    }
    let of = of.to_vec();
    let call = move |values: &[Datum]| {
        let (mut texts, mut numbers) = (Vec::new(), Vec::new());
        for (at, (value, kind)) in values.iter().zip(&kinds).enumerate() {
            if value.is_null() {
                return Ok(Datum::Null);
            }
            match of.contains(&at) {
                true => texts.extend(value.text(kind)?),
                false => numbers.extend(value.whole(kind)?),
            }
        }
        Ok(compute(&texts, &numbers)?.map_or(Datum::Null, Datum::Text))
    };
    Ok(Typed::call(Kind::Text(collating), operands, call))
}

fn each(
    operands: Vec<Typed>,
    compute: impl Fn(&str) -> Result<String, Refusal> + Send + Sync + 'static,
) -> Result<Typed, Refusal> {
    texts(operands, &[0], move |texts, _| compute(&texts[0]).map(Some))
}

fn count(
    operands: Vec<Typed>,
    compute: impl Fn(&Collating, &str) -> Result<usize, Refusal> + Send + Sync + 'static,
) -> Result<Typed, Refusal> {
    let kind = operands[0].kind.clone();
    let collating = kind_of_text(&kind)?;
    Ok(Typed::call(SIGNED, operands, move |values| match values[0].text(&kind)? {
        None => Ok(Datum::Null),
        Some(text) => Ok(Datum::Int(compute(&collating, &text)? as i64)),
    }))
}

fn concat(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let all: Vec<usize> = (0..operands.len()).collect();
    texts(operands, &all, |texts, _| Ok(Some(texts.concat())))
}

/// The first text between the others, NULLs left out.
fn concat_ws(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let mut collating = kind_of_text(&kinds[0])?;
    for kind in &kinds[1..] {
        collating = collating.merged(&kind_of_text(kind)?);
    }
    Ok(Typed::call(Kind::Text(collating), operands, move |values| {
        let Some(separator) = values[0].text(&kinds[0])? else { return Ok(Datum::Null) };
        let mut parts = Vec::new();
        for (value, kind) in values.iter().zip(&kinds).skip(1) {
            parts.extend(value.text(kind)?);
        }
        Ok(Datum::Text(parts.join(&separator)))
    }))
}

/// Letters in upper or lower case, of the alphabets in which both servers agree with Unicode.
fn cased(text: &str, upper: bool) -> Result<String, Refusal> {
    let case = |letter: char| -> Result<char, Refusal> {
        if letter.is_ascii() {
            return Ok(if upper { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() });
        }
        let has_case = letter.to_uppercase().ne([letter]) || letter.to_lowercase().ne([letter]);
        let is_usual =
            matches!(letter, 'À'..='Þ' | 'à'..='þ' | 'Α'..='Ρ' | 'α'..='ρ' | 'А'..='я') && letter != '×';
        match (has_case, is_usual) {
            (false, _) if matches!(letter, '\u{a0}'..='\u{bf}' | '\u{3000}'..='\u{9fff}' | '×' | '÷') => {
                Ok(letter)
            }
            (true, true) => {
                let mut cased: Vec<char> =
                    if upper { letter.to_uppercase().collect() } else { letter.to_lowercase().collect() };
                match (cased.pop(), cased.is_empty()) {
                    (Some(letter), true) => Ok(letter),
                    _ => Err(Refusal::new(format!("the case of {letter}"))),
                }
            }
            _ => Err(Refusal::new(format!("the case of {letter}"))),
        }
    };
    text.chars().map(case).collect()
}

fn trim(name: &str, operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let (start, end) = (name != "trim trailing", name != "trim leading");
    let all: Vec<usize> = (0..operands.len()).collect();
    texts(operands, &all, move |texts, _| {
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

fn side(left: bool, operands: Vec<Typed>) -> Result<Typed, Refusal> {
    texts(operands, &[0], move |texts, numbers| {
        let count = usize::try_from(numbers[0].max(0)).unwrap_or(usize::MAX);
        let length = texts[0].chars().count();
        let from = if left { 0 } else { length.saturating_sub(count) };
        Ok(Some(texts[0].chars().skip(from).take(count).collect()))
    })
}

fn substring(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    texts(operands, &[0], |texts, numbers| {
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

/// What is before the n-th separator, or behind the n-th from the end.
fn substring_index(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    texts(operands, &[0, 1], |texts, numbers| {
        let (text, separator) = (texts[0].as_str(), texts[1].as_str());
        let wanted = usize::try_from(numbers[0].unsigned_abs()).unwrap_or(usize::MAX);
        if separator.is_empty() || wanted == 0 {
            return Ok(Some(String::new()));
        }
        let found = match numbers[0] > 0 {
            true => text.match_indices(separator).nth(wanted - 1).map(|(at, _)| &text[..at]),
            false => {
                text.rmatch_indices(separator).nth(wanted - 1).map(|(at, _)| &text[at + separator.len()..])
            }
        };
        Ok(Some(found.unwrap_or(text).to_string()))
    })
}

fn replace(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let replaced = texts(operands, &[0, 1, 2], |texts, _| {
        Ok(Some(if texts[1].is_empty() { texts[0].clone() } else { texts[0].replace(&texts[1], &texts[2]) }))
    })?;
    let (Node::Call(compute, operands), kind) = (replaced.node, replaced.kind) else {
        return Err(Refusal::new("REPLACE"));
    };
    // MariaDB looks at what is put in only where it finds something.
    Ok(Typed::call(kind, operands, move |values| match values {
        [text, part, Datum::Null] if !mysql && !text.is_null() && !part.is_null() => {
            Err(Refusal::new("REPLACE with NULL"))
        }
        values => compute(values),
    }))
}

fn pad(left: bool, operands: Vec<Typed>) -> Result<Typed, Refusal> {
    texts(operands, &[0, 2], move |texts, numbers| {
        let Ok(wanted) = usize::try_from(numbers[0]) else { return Ok(None) };
        let length = texts[0].chars().count();
        if wanted <= length {
            return Ok(Some(texts[0].chars().take(wanted).collect()));
        }
        if texts[1].is_empty() || wanted > MAX_LENGTH {
            return Err(Refusal::new("padding with nothing, or to a long text"));
        }
        let padding: String = texts[1].chars().cycle().take(wanted - length).collect();
        Ok(Some(if left { padding + &texts[0] } else { texts[0].clone() + &padding }))
    })
}

fn crc32(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let kind = operands[0].kind.clone();
    Ok(Typed::call(Kind::Int { unsigned: true }, operands, move |values| {
        let bytes = match &values[0] {
            Datum::Bytes(bytes) => bytes.clone(),
            value => match value.text(&kind)? {
                None => return Ok(Datum::Null),
                Some(text) => kind.collating().bytes(&text)?,
            },
        };
        let mut crc = u32::MAX;
        for byte in bytes {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            }
        }
        Ok(Datum::UInt((!crc).into()))
    }))
}

fn locate(name: &str, mut operands: Vec<Typed>) -> Result<Typed, Refusal> {
    if name == "locate" {
        operands.reverse();
    }
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let collating = kind_of_text(&kinds[0])?.merged(&kind_of_text(&kinds[1])?);
    Ok(Typed::call(SIGNED, operands, move |values| {
        let (Some(text), Some(part)) = (values[0].text(&kinds[0])?, values[1].text(&kinds[1])?) else {
            return Ok(Datum::Null);
        };
        let position =
            |text: &str, part: &str| text.find(part).map_or(0, |at| text[..at].chars().count() as i64 + 1);
        let exact = position(&text, &part);
        let is_plain = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let folded = (is_plain(&text) && is_plain(&part))
            .then(|| position(&text.to_ascii_uppercase(), &part.to_ascii_uppercase()));
        match (collating.folds(), folded) {
            (Some(false), _) => Ok(Datum::Int(exact)),
            (Some(true), Some(folded)) => Ok(Datum::Int(folded)),
            (None, Some(folded)) if folded == exact => Ok(Datum::Int(exact)),
            _ => Err(Refusal::new("a search for letters whose order is not known")),
        }
    }))
}

fn hex(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let kind = operands[0].kind.clone();
    let spell = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    let compute = move |values: &[Datum]| {
        Ok(Datum::Text(match (&values[0], &kind) {
            (Datum::Null, _) => return Ok(Datum::Null),
            (Datum::Bytes(bytes), _) => spell(bytes),
            (Datum::Int(number), _) => format!("{number:X}"),
            (Datum::UInt(number), Kind::Int { .. } | Kind::Bit) => format!("{number:X}"),
            (Datum::Text(text), Kind::Text(collating)) => spell(&collating.bytes(text)?),
            (_, kind) => return Err(Refusal::new(format!("HEX of {kind:?}"))),
        }))
    };
    Ok(Typed::call(Kind::Text(Collating::literal(None)), operands, compute))
}

/// Of an address of four plain numbers.
fn inet_aton(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let kind = operands[0].kind.clone();
    Ok(Typed::call(Kind::Int { unsigned: true }, operands, move |values| {
        let Some(text) = values[0].text(&kind)? else { return Ok(Datum::Null) };
        match text.parse::<std::net::Ipv4Addr>() {
            Ok(address) => Ok(Datum::UInt(u32::from(address).into())),
            Err(_) => Err(Refusal::new(format!("the address {text}"))),
        }
    }))
}
