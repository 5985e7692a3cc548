//! Functions of dates and times, and `INTERVAL`.
//!
//! 1. [`spelling`] reads texts, [`operand`] values of any type, as dates and times.
//! 2. [`fields`], [`weeks`] and [`format`] give their parts as numbers and texts.
//! 3. [`times`], [`interval`], [`scan`], [`cast`] and [`clock`] make dates and times.

mod cast;
mod civil;
mod clock;
mod compare;
mod extreme;
mod fields;
mod format;
mod interval;
mod operand;
mod scan;
mod spelling;
#[cfg(test)]
mod tests;
mod times;
mod to_char;
mod weeks;

use super::datum::Datum;
use super::node::Typed;
use super::{Refusal, Rules};

pub(super) use cast::{cast, literal};
pub(crate) use clock::local;
pub(super) use compare::{Way as DateWay, order as date_order, way as date_way};
pub(super) use extreme::extreme;
pub(super) use interval::shifted;
pub(super) use operand::{moment_to_store, time_to_store};

/// A function of dates; `None` if there is none of that name.
pub(super) fn function(name: &str, operands: &[Typed], rules: &Rules) -> Result<Option<Typed>, Refusal> {
    if let Some(found) = clock::current(name, operands, rules)? {
        return Ok(Some(found));
    }
    let all = || operands.to_vec();
    if let [of] = operands {
        if let Some(found) = fields::function(name, of, rules)? {
            return Ok(Some(found));
        }
        if let Some(found) = times::function(name, of, rules)? {
            return Ok(Some(found));
        }
    }
    Ok(Some(match (name, operands) {
        ("week" | "yearweek", [_] | [_, _]) => fields::weeks(name, all(), rules)?,
        ("extract", [unit, of]) => fields::extract(&word(unit)?, of.clone(), rules)?,
        ("dayname" | "monthname", [of]) => format::name(name == "monthname", of.clone(), rules)?,
        ("to_char", [_] | [_, _]) if !rules.mysql => to_char::to_char(all(), rules)?,
        ("date_format" | "time_format", [_, _]) => format::formatted(name == "time_format", all(), rules)?,
        ("get_format", [kind, place]) => format::known_format(&word(kind)?, place.clone())?,
        ("timestampdiff", [unit, from, to]) => {
            interval::difference(&word(unit)?, vec![from.clone(), to.clone()], rules)?
        }
        ("timestampadd", [unit, count, of]) => {
            interval::shifted(of.clone(), count.clone(), &word(unit)?, false, rules)?
        }
        ("add_months", [of, count]) if !rules.mysql => {
            interval::shifted(of.clone(), count.clone(), "month", false, rules)?
        }
        ("adddate" | "subdate", [of, count]) => {
            interval::shifted(of.clone(), count.clone(), "day", name == "subdate", rules)?
        }
        ("addtime", [_, _]) => times::added(1, all(), rules)?,
        ("subtime", [_, _]) => times::added(-1, all(), rules)?,
        ("timediff", [_, _]) => times::difference(all(), rules)?,
        ("timestamp", [_, _]) => times::timestamp(all(), rules)?,
        ("datediff", [_, _]) => times::days_between(all(), rules)?,
        ("makedate", [_, _]) => times::of_day(all()),
        ("maketime", [_, _, _]) => times::of_parts(all(), rules)?,
        ("period_add", [_, _]) => times::period(true, all()),
        ("period_diff", [_, _]) => times::period(false, all()),
        ("str_to_date", [_, _]) => scan::read(all(), rules)?,
        ("unix_timestamp", [] | [_]) => clock::unix_timestamp(operands, rules)?,
        ("from_unixtime", [of]) => clock::from_unixtime(of.clone(), rules)?,
        ("from_unixtime", [of, format]) => {
            let moment = clock::from_unixtime(of.clone(), rules)?;
            format::formatted(false, vec![moment, format.clone()], rules)?
        }
        ("convert_tz", [_, _, _]) => clock::convert_tz(all(), rules)?,
        _ => return Ok(None),
    }))
}

/// A word that is written without quotes: a unit, a type.
fn word(of: &Typed) -> Result<String, Refusal> {
    match of.literal() {
        Some(Datum::Text(word)) => Ok(word.to_ascii_lowercase()),
        _ => Err(Refusal::new("a unit that varies")),
    }
}
