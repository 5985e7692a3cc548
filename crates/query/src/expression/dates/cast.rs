//! `CAST` to DATE, DATETIME and TIME, and literals of these types.

use super::civil::Civil;
use super::operand::{date, time};
use super::spelling;
use super::times::held;
use crate::expression::calendar::{self, DAY, MAX_TIME};
use crate::expression::conversions::to_fsp;
use crate::expression::datum::Datum;
use crate::expression::node::{Node, Typed};
use crate::expression::{Kind, Refusal, Rules};

/// `CAST` to `date`, `datetime` or `time` with `fsp` digits. MySQL rounds, MariaDB cuts.
pub(in crate::expression) fn cast(of: Typed, name: &str, fsp: u8, rules: &Rules) -> Result<Typed, Refusal> {
    let (from, rules) = (of.kind.clone(), *rules);
    match name {
        "date" => {
            if rules.mysql && matches!(from, Kind::Time { .. }) {
                return Err(Refusal::new("a TIME as a date"));
            }
            Ok(Typed::call(Kind::Date, vec![of], move |values| {
                let Some((civil, _)) = date(&values[0], &from, &rules)? else { return Ok(Datum::Null) };
                Ok(held(&civil, &rules)?.map_or(Datum::Null, |micros| Datum::Date(micros.div_euclid(DAY))))
            }))
        }
        "datetime" => Ok(Typed::call(Kind::DateTime { fsp }, vec![of], move |values| {
            let Some((civil, _)) = date(&values[0], &from, &rules)? else { return Ok(Datum::Null) };
            let micros = held(&civil, &rules)?.map(|micros| to_fsp(micros, fsp, rules.mysql));
            let micros = micros.filter(|micros| Civil::of_micros(*micros).year <= 9999);
            Ok(micros.map_or(Datum::Null, Datum::DateTime))
        })),
        _ => Ok(Typed::call(Kind::Time { fsp }, vec![of], move |values| {
            let Some(micros) = time(&values[0], &from, &rules)? else { return Ok(Datum::Null) };
            let span = to_fsp(micros.abs(), fsp, rules.mysql);
            if span > MAX_TIME && rules.mysql {
                return Err(Refusal::new("a TIME out of range"));
            }
            Ok(Datum::Time(span * micros.signum()))
        })),
    }
}

/// `DATE'2024-01-05'`, `TIME'10:11:12'`, `TIMESTAMP'2024-01-05 10:11:12'`.
pub(in crate::expression) fn literal(word: &str, text: &str, rules: &Rules) -> Result<Typed, Refusal> {
    let odd = || Refusal::new(format!("the literal {word} '{text}'"));
    let (datum, kind) = match word {
        "time" => {
            let spelled = spelling::time(text, rules)?.filter(|spelled| spelled.whole).ok_or_else(odd)?;
            if spelled.is_clipped {
                return Err(odd());
            }
            (Datum::Time(spelled.micros), Kind::Time { fsp: spelled.fsp })
        }
        _ => {
            let spelled = spelling::date(text, rules)?.filter(|spelled| spelled.whole).ok_or_else(odd)?;
            let micros =
                spelled.civil.since_epoch().filter(|_| !spelled.civil.has_zeros()).ok_or_else(odd)?;
            match (word, spelled.has_time) {
                ("date", false) => (Datum::Date(micros.div_euclid(calendar::DAY)), Kind::Date),
                ("date", true) | (_, false) => return Err(odd()),
                _ => (Datum::DateTime(micros), Kind::DateTime { fsp: spelled.fsp }),
            }
        }
    };
    Ok(Typed { node: Node::Literal(datum), kind })
}
