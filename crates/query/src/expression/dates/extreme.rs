//! GREATEST and LEAST of dates and times among texts and numbers, which are read as dates or times.
//!
//! What is none is refused: it is the zero date or NULL to MariaDB, and MySQL shows parts of its memory then.

use std::cmp::Ordering;

use super::civil::Civil;
use super::operand::{As, date, fsp, time};
use super::spelling;
use crate::expression::calendar::DAY;
use crate::expression::datum::Datum;
use crate::expression::node::Typed;
use crate::expression::{Kind, Refusal, Rules};
use crate::relation::zero_date;

/// `GREATEST` or `LEAST`, of operands of which some are dates or times.
pub(in crate::expression) fn extreme(
    greatest: bool,
    operands: Vec<Typed>,
    rules: &Rules,
) -> Result<Typed, Refusal> {
    let mut common = Kind::Null;
    for operand in operands.iter().filter(|operand| operand.kind.is_temporal()) {
        common = common.common(&operand.kind, rules.mysql)?;
    }
    let is_time = matches!(common, Kind::Time { .. });
    let mut digits = common.fsp();
    for operand in &operands {
        let is_known = match &operand.kind {
            kind if kind.is_temporal() => true,
            Kind::Text(_) | Kind::Null => true,
            Kind::Int { .. } | Kind::Decimal { .. } => !rules.mysql,
            _ => false,
        };
        if !is_known {
            return Err(Refusal::new(format!("the greatest of {common} and {}", operand.kind)));
        }
        digits = digits.max(fsp(operand, if is_time { As::Time } else { As::Date }, rules)?);
    }
    let kind = match common {
        Kind::Date => Kind::Date,
        Kind::Time { .. } => Kind::Time { fsp: digits },
        _ => Kind::DateTime { fsp: digits },
    };
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let (result, rules) = (kind.clone(), *rules);
    Ok(Typed::call(kind, operands, move |values| {
        if values.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let wanted = if greatest { Ordering::Greater } else { Ordering::Less };
        let mut best: Option<(i64, i64, i64, i64)> = None;
        for (value, kind) in values.iter().zip(&kinds) {
            let parts = match is_time {
                true => (0, 0, 0, span(value, kind, &rules)?),
                false => parts(value, kind, &rules)?,
            };
            if best.is_none_or(|best| parts.cmp(&best) == wanted) {
                best = Some(parts);
            }
        }
        let Some((year, month, day, micros)) = best else { return Ok(Datum::Null) };
        let civil = Civil { year, month, day, micros };
        let days = civil.days().unwrap_or_else(|| zero_date::days(year, month, day));
        Ok(match &result {
            Kind::Date if micros != 0 => return Err(Refusal::new("a DATE and a text with a time")),
            Kind::Date => Datum::Date(days),
            Kind::Time { .. } => Datum::Time(micros),
            _ => Datum::DateTime(days * DAY + micros),
        })
    }))
}

fn parts(value: &Datum, kind: &Kind, rules: &Rules) -> Result<(i64, i64, i64, i64), Refusal> {
    let civil = match value {
        Datum::Text(text) if rules.mysql => {
            let spelled = spelling::date(text, rules)?.filter(|spelled| spelled.whole);
            let civil = spelled.map(|spelled| spelled.civil).filter(|civil| !civil.has_zeros());
            civil.ok_or_else(|| Refusal::new(format!("'{text}' beside a date")))?
        }
        value => match date(value, kind, rules)? {
            Some((civil, _)) => civil,
            // MariaDB gives the zero date or NULL, by how the value is spelled and what stands before it.
            None => return Err(Refusal::new(format!("{kind} that is no date beside a date"))),
        },
    };
    Ok((civil.year, civil.month, civil.day, civil.micros))
}

fn span(value: &Datum, kind: &Kind, rules: &Rules) -> Result<i64, Refusal> {
    if let Datum::Text(text) = value {
        let spelled = spelling::time(text, rules)?.filter(|spelled| spelled.whole && !spelled.is_clipped);
        return match spelled {
            Some(spelled) if spelling::is_time(text) => Ok(spelled.micros),
            _ => Err(Refusal::new(format!("'{text}' beside a time"))),
        };
    }
    time(value, kind, rules)?.ok_or_else(|| Refusal::new("a number that is no time"))
}
