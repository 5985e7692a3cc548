//! `ELT`, `MAKE_SET`, `EXPORT_SET`.

use super::super::arithmetic::bits_of;
use super::super::conversions::{letters_of, of_letters};
use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal};
use super::Texts;

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let operands = operands.to_vec();
    Ok(Some(match (name, operands.len()) {
        ("elt", 2..) => elt(operands, mysql)?,
        ("make_set", 2..) => make_set(operands, mysql)?,
        ("export_set", 3..=5) => export_set(operands, mysql)?,
        _ => return Ok(None),
    }))
}

fn elt(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let rest: Vec<usize> = (1..operands.len()).collect();
    let common = Texts::of(&operands, &rest, mysql)?;
    let (result, binary) = (common.kind(), common.binary);
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    Ok(Typed::call(result, operands, move |values| {
        let Some(at) = values[0].whole(&kinds[0])? else { return Ok(Datum::Null) };
        let Ok(at) = usize::try_from(at) else { return Ok(Datum::Null) };
        if at == 0 || at >= values.len() {
            return Ok(Datum::Null);
        }
        let text = letters_of(&values[at], &kinds[at], binary)?;
        Ok(text.map_or(Datum::Null, |text| of_letters(text, binary)))
    }))
}

/// The texts of the bits that are set, between commas, NULLs left out.
fn make_set(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let rest: Vec<usize> = (1..operands.len()).collect();
    let common = Texts::of(&operands, &rest, mysql)?;
    let mixed = super::mixed_with_number(&operands, &rest, mysql);
    let (result, binary) = (common.kind(), common.binary);
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    Ok(Typed::call(result, operands, move |values| {
        let Some(number) = values[0].whole(&kinds[0])? else { return Ok(Datum::Null) };
        let bits = number as u64;
        let mut parts = Vec::new();
        for (at, (value, kind)) in values.iter().zip(&kinds).enumerate().skip(1) {
            if at <= 64 && bits >> (at - 1) & 1 == 1 {
                parts.extend(letters_of(value, kind, binary)?);
            }
        }
        if mixed && !parts.iter().all(|part| part.is_ascii()) {
            return Err(Refusal::new("numbers and letters that are not ASCII in a set"));
        }
        Ok(of_letters(parts.join(","), binary))
    }))
}

/// A text for each bit that is set and another for each that is not, from the lowest on.
fn export_set(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let of: Vec<usize> = (1..operands.len().min(4)).collect();
    let common = Texts::of(&operands, &of, mysql)?;
    let (result, binary) = (common.kind(), common.binary);
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    Ok(Typed::call(result, operands, move |values| {
        if values.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let bits = match &kinds[0] {
            Kind::Text(_) | Kind::Bytes => values[0].whole(&kinds[0])?.map(|number| number as u64),
            kind => bits_of(&values[0], kind, mysql)?,
        };
        let Some(bits) = bits else { return Ok(Datum::Null) };
        let text = |at: usize| letters_of(&values[at], &kinds[at], binary).map(Option::unwrap_or_default);
        let (on, off) = (text(1)?, text(2)?);
        let separator = if values.len() > 3 { text(3)? } else { ",".to_string() };
        let count = match values.get(4) {
            None => 64,
            Some(count) => match count.whole(&kinds[4])?.unwrap_or(0) {
                count @ 0..=64 => count as usize,
                _ => 64,
            },
        };
        let parts: Vec<&str> =
            (0..count).map(|at| if bits >> at & 1 == 1 { on.as_str() } else { off.as_str() }).collect();
        super::bounded(parts.iter().map(|part| part.len() + separator.len()).sum())?;
        Ok(of_letters(parts.join(&separator), binary))
    }))
}
