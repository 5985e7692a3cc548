//! Comparisons: which of the ways of comparing a pair of types takes, and `IN`, `BETWEEN`, `GREATEST`, `LEAST`.

mod pattern;
mod way;

pub(super) use pattern::{like, matches};

use std::cmp::Ordering;

use super::collating::Collating;
use super::conversions::{self, converted};
use super::datum::Datum;
use super::kind::Choice;
use super::node::{Node, Typed};
use super::{Kind, Refusal, Rules, dates};
use way::{Way, order};

const TRUTH: Kind = Kind::Int { unsigned: false };

/// `=`, `<>`, `<`, `<=`, `>`, `>=`, `<=>`.
pub(super) fn comparison(operator: &str, left: Typed, right: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let way = way::of(&left, &right, operator, rules)?;
    let way = way.map(|way| way.within_digits(&left.kind, &right.kind));
    Ok(compared(operator, left, right, way, rules))
}

/// A comparison by all digits of a double, as those of BETWEEN and of several items of a list.
pub(super) fn strict(operator: &str, left: Typed, right: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let way = way::of(&left, &right, operator, rules)?;
    Ok(compared(operator, left, right, way, rules))
}

/// A comparison of CASE and of MySQL's lists, where a year of two digits has no century.
pub(super) fn in_case(operator: &str, left: Typed, right: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    // MySQL compares a document with a number as a number here, and with a text as the text that it is printed as.
    if rules.mysql && (left.kind == Kind::Json) != (right.kind == Kind::Json) {
        return Err(Refusal::new("CASE of a document and another value"));
    }
    let way = match way::of(&left, &right, operator, rules)? {
        Some(Way::Years) => Some(way::of_numbers(&left.kind, &right.kind)),
        way => way,
    };
    Ok(compared(operator, left, right, way, rules))
}

fn compared(operator: &str, left: Typed, right: Typed, way: Option<Way>, rules: &Rules) -> Typed {
    let (kinds, rules) = ((left.kind.clone(), right.kind.clone()), *rules);
    let holds: fn(Ordering) -> bool = match operator {
        "=" | "<=>" => Ordering::is_eq,
        "<>" => Ordering::is_ne,
        "<" => Ordering::is_lt,
        "<=" => Ordering::is_le,
        ">" => Ordering::is_gt,
        _ => Ordering::is_ge,
    };
    let null_safe = operator == "<=>";
    let (by_equality, negated) = (matches!(operator, "=" | "<=>" | "<>"), operator == "<>");
    let compute = move |values: &[Datum]| {
        let (left, right) = (&values[0], &values[1]);
        match (left.is_null(), right.is_null(), &way) {
            (false, false, Some(Way::Texts(collating))) if by_equality => {
                match (left.text(&kinds.0)?, right.text(&kinds.1)?) {
                    (Some(left), Some(right)) => {
                        Ok(Datum::truth(collating.equals(&left, &right)? != negated))
                    }
                    _ => Ok(Datum::Null),
                }
            }
            (false, false, Some(way)) => {
                let order = order(way, (left, &kinds.0), (right, &kinds.1), &rules)?;
                Ok(match order {
                    Some(order) => Datum::truth(holds(order)),
                    None if null_safe => Datum::truth(false),
                    None => Datum::Null,
                })
            }
            (left, right, _) if null_safe => Ok(Datum::truth(left && right)),
            _ => Ok(Datum::Null),
        }
    };
    Typed::truth(Typed::call(TRUTH, vec![left, right], compute))
}

/// Rows: `(a, b) = (c, d)` and the other operators.
pub(super) fn rows(
    operator: &str,
    left: Vec<Typed>,
    right: Vec<Typed>,
    rules: &Rules,
) -> Result<Typed, Refusal> {
    if left.len() != right.len() || left.is_empty() {
        return Err(Refusal::new("rows of different lengths"));
    }
    let all = |until: bool, parts: Vec<Typed>| {
        Typed::truth(Typed { node: Node::Logical(until, parts), kind: TRUTH })
    };
    let pairs = || left.iter().cloned().zip(right.iter().cloned());
    match operator {
        "=" | "<=>" | "<>" => {
            let parts = pairs().map(|(left, right)| comparison(operator, left, right, rules));
            Ok(all(operator == "<>", parts.collect::<Result<_, _>>()?))
        }
        _ => {
            // The first pair that differs decides; the last pair decides whether equal rows are included.
            let strict = &operator[..1];
            let mut result = None;
            for (left, right) in pairs().rev() {
                result = Some(match result {
                    None => comparison(operator, left, right, rules)?,
                    Some(rest) => {
                        let less = comparison(strict, left.clone(), right.clone(), rules)?;
                        let equal = comparison("=", left, right, rules)?;
                        all(true, vec![less, all(false, vec![equal, rest])])
                    }
                });
            }
            result.ok_or_else(|| Refusal::new("a row of nothing"))
        }
    }
}

/// Operands that are compared with each other: if they are texts, by the collation of them all.
pub(super) fn alike(operands: Vec<Typed>, operation: &str) -> Result<Vec<Typed>, Refusal> {
    let is_text = |of: &Typed| matches!(of.kind, Kind::Text(_) | Kind::Choice(_));
    if !operands.iter().all(|of| is_text(of) || of.kind == Kind::Null) {
        return Ok(operands);
    }
    let mut all: Option<Collating> = None;
    for operand in operands.iter().filter(|of| is_text(of)) {
        let own = operand.kind.collating();
        all = Some(match all {
            None => own,
            Some(all) => all.compared(&own, operation)?,
        });
    }
    let Some(all) = all else { return Ok(operands) };
    let with_all = |operand: Typed| {
        let kind = match operand.kind {
            Kind::Text(_) => Kind::Text(all.clone()),
            Kind::Choice(choice) => Kind::Choice(Choice { collating: all.clone(), ..choice }),
            other => other,
        };
        Typed { kind, ..operand }
    };
    Ok(operands.into_iter().map(with_all).collect())
}

/// `a BETWEEN b AND c`.
pub(super) fn between(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let mut operands = alike(operands, "between")?;
    let is_text = |of: &Typed| of.kind.is_string();
    let is_number = |of: &Typed| of.kind.is_number();
    // One number makes numbers of all.
    let as_numbers = operands.iter().any(is_number)
        && operands.iter().any(is_text)
        && operands.iter().all(|of| is_number(of) || is_text(of) || of.kind == Kind::Null)
        && !matches!(operands[0].kind, Kind::Year);
    if rules.mysql && operands.iter().any(|of| of.kind == Kind::Json) {
        return Err(Refusal::new("a document in BETWEEN"));
    }
    let (Some(high), Some(low), Some(value)) = (operands.pop(), operands.pop(), operands.pop()) else {
        return Err(Refusal::new("BETWEEN takes three values"));
    };
    let value_is_year = value.kind == Kind::Year;
    let pair = |operator: &str, left: Typed, right: Typed| match as_numbers {
        true if left.kind != Kind::Null && right.kind != Kind::Null => {
            Ok(compared(operator, left, right, Some(Way::Numbers { as_doubles: true }), rules))
        }
        _ if value_is_year => strict(operator, left, right, rules),
        // A year of two digits is one beside a value that is a year alone.
        _ => in_case(operator, left, right, rules),
    };
    let parts = vec![pair(">=", value.clone(), low)?, pair("<=", value, high)?];
    Ok(Typed::truth(Typed { node: Node::Logical(false, parts), kind: TRUTH }))
}

/// `a IN (b, ...)`: each item is compared in its own way.
pub(super) fn is_in(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let operands = alike(operands, "in")?;
    let Some((value, list)) = operands.split_first() else { return Err(Refusal::new("IN takes a list")) };
    let is_list_of_years = rules.mysql && value.kind == Kind::Year && list.len() > 1;
    if is_list_of_years && list.iter().any(|item| !item.kind.is_number()) {
        return Err(Refusal::new("a list of years"));
    }
    let is_zero = |item: &Typed| matches!(item.literal(), Some(Datum::Int(0)));
    if rules.mysql && value.kind.is_temporal() && list.iter().any(is_zero) {
        return Err(Refusal::new("a list of dates with 0"));
    }
    let has_document = value.kind == Kind::Json || list.iter().any(|item| item.kind == Kind::Json);
    if rules.mysql && has_document && list.len() > 1 {
        return Err(Refusal::new("a list of documents"));
    }
    let compare = match list.len() {
        1 => comparison,
        _ if is_list_of_years || value.kind != Kind::Year => in_case,
        _ => strict,
    };
    let parts = list.iter().map(|item| compare("=", value.clone(), item.clone(), rules));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    Ok(Typed::truth(Typed { node: Node::Logical(true, parts), kind: TRUTH }))
}

/// `GREATEST` and `LEAST`: NULL if one of the operands is.
pub(super) fn extreme(greatest: bool, operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let mut common = kinds.first().cloned().unwrap_or(Kind::Null);
    let has_text = kinds.iter().any(Kind::is_string);
    let has_number = kinds.iter().any(Kind::is_number);
    let has_time = kinds.iter().any(Kind::is_temporal);
    if has_time && (has_text || has_number) && !kinds.contains(&Kind::Json) {
        return dates::extreme(greatest, operands, rules);
    }
    if kinds.contains(&Kind::Json) {
        return Err(Refusal::new("the greatest of values of several types"));
    }
    match rules.mysql {
        true => common = super::plan::Common::of(&operands, true)?.kind,
        false => {
            for kind in &kinds[1..] {
                common = common.common(kind, false)?;
            }
        }
    }
    // MariaDB compares numbers and texts as numbers, MySQL as texts.
    if has_text && has_number && !rules.mysql {
        let decimals = |kind: &Kind| match kind {
            Kind::Choice(_) => Some(0),
            kind => kind.decimals(),
        };
        let most = kinds.iter().try_fold(0, |most: u8, kind| decimals(kind).map(|own| most.max(own)));
        common = Kind::Double { decimals: most };
    }
    let shown = Typed { node: Node::Literal(Datum::Null), kind: common.clone() };
    let way = match &common {
        // Texts without a common collation are ordered by the bytes of their character set.
        Kind::Text(collating) => Some(Way::Texts(collating.clone())),
        _ => way::of(&shown, &shown, "greatest", rules)?,
    };
    if kinds.iter().all(|kind| matches!(kind, Kind::Year | Kind::Null)) && common == Kind::Year {
        common = Kind::Int { unsigned: true };
    }
    let takes_last = greatest && rules.mysql && matches!(way, Some(Way::Texts(_)));
    let (result, rules) = (common.clone(), *rules);
    let compute = move |values: &[Datum]| {
        if values.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let Some(way) = &way else { return Ok(Datum::Null) };
        let mut best: Option<Datum> = None;
        for (value, kind) in values.iter().zip(&kinds) {
            let value = converted(value.clone(), kind, &common)?;
            let better = match &best {
                None => true,
                Some(best) => {
                    let order = order(way, (&value, &common), (best, &common), &rules)?;
                    // Of equal texts MySQL's GREATEST takes the last.
                    let is_last = takes_last && order == Some(Ordering::Equal);
                    is_last || order == Some(if greatest { Ordering::Greater } else { Ordering::Less })
                }
            };
            if better {
                best = Some(value);
            }
        }
        Ok(match best {
            // Of two zeros MySQL gives the one without a sign.
            Some(Datum::Double(number)) if rules.mysql => Datum::Double(number + 0.0),
            best => best.unwrap_or(Datum::Null),
        })
    };
    Ok(Typed::call(result, operands, compute))
}

/// `NULLIF`: the first, or NULL if both are equal.
pub(super) fn null_if(left: Typed, right: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let kind = match &left.kind {
        // MariaDB's ENUM out of it is a text.
        Kind::Choice(choice) if !rules.mysql => Kind::Text(choice.collating.clone()),
        // The year 0 is shown as 0, and a BIT of MariaDB as a number.
        Kind::Year => Kind::Int { unsigned: true },
        Kind::Bit { .. } if !rules.mysql => Kind::Int { unsigned: true },
        kind => kind.clone(),
    };
    let equal = comparison("=", left.clone(), right, rules)?;
    let null = Typed { node: Node::Literal(Datum::Null), kind: Kind::Null };
    Ok(Typed { node: Node::Case(vec![(equal, null)], Some(Box::new(left))), kind })
}

/// `INTERVAL(n, a, b, ...)`: how many of the others, which ascend, are not greater than the first.
pub(super) fn interval(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let exact = kinds.iter().all(|kind| super::arithmetic::exact_scale(kind, rules.mysql).is_some());
    let rules = *rules;
    Ok(Typed::call(TRUTH, operands, move |values| {
        if values[0].is_null() {
            return Ok(Datum::Int(-1));
        }
        let way = Way::Numbers { as_doubles: !exact };
        let mut count = 0;
        for (value, kind) in values.iter().zip(&kinds).skip(1) {
            if !value.is_null() {
                let order = order(&way, (value, kind), (&values[0], &kinds[0]), &rules)?;
                if order == Some(Ordering::Greater) {
                    break;
                }
            }
            count += 1;
        }
        Ok(Datum::Int(count))
    }))
}

/// `STRCMP`: -1, 0 or 1.
pub(super) fn strcmp(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let way = match kinds.iter().any(Kind::is_binary) {
        true => Way::Bytes,
        false => Way::Texts(kinds[0].collating().compared(&kinds[1].collating(), "strcmp")?),
    };
    for operand in &operands {
        conversions::textual(operand, rules.mysql)?;
    }
    let is_other = |kind: &Kind| kind.is_number() || kind.is_temporal();
    if rules.mysql && kinds.contains(&Kind::Year) {
        return Err(Refusal::new("STRCMP of a YEAR"));
    }
    if rules.mysql && kinds.iter().any(is_other) && kinds.iter().any(Kind::is_string) {
        return Err(Refusal::new("STRCMP of a number or a date and a text"));
    }
    let rules = *rules;
    Ok(Typed::call(TRUTH, operands, move |values| {
        if values.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let order = order(&way, (&values[0], &kinds[0]), (&values[1], &kinds[1]), &rules)?;
        Ok(order.map_or(Datum::Null, |order| Datum::Int(order as i64)))
    }))
}

/// `FIELD`: the position of the first among the others, 0 if it is none of them.
pub(super) fn field(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let is_text = |kind: &Kind| kind.is_string() || kind.is_temporal() || *kind == Kind::Null;
    let texts = kinds.iter().all(is_text);
    let exact = kinds.iter().all(|kind| super::arithmetic::exact_scale(kind, rules.mysql).is_some());
    // Texts of several collations are not compared beside bytes either.
    let mut collating: Option<Collating> = None;
    for kind in kinds.iter().filter(|kind| texts && !kind.is_binary()) {
        let own = kind.collating();
        collating = Some(match collating {
            None => own,
            Some(whole) => whole.compared(&own, "field")?,
        });
    }
    let way = match (texts, kinds.iter().any(Kind::is_binary)) {
        (true, true) => Way::Bytes,
        (true, false) => Way::Texts(collating.unwrap_or_else(Collating::number)),
        _ => Way::Numbers { as_doubles: !exact },
    };
    let rules = *rules;
    Ok(Typed::call(TRUTH, operands, move |values| {
        if values[0].is_null() {
            return Ok(Datum::Int(0));
        }
        for (at, (value, kind)) in values.iter().zip(&kinds).enumerate().skip(1) {
            let same = match &way {
                _ if value.is_null() => false,
                Way::Texts(collating) => match (values[0].text(&kinds[0])?, value.text(kind)?) {
                    (Some(left), Some(right)) => collating.equals(&left, &right)?,
                    _ => false,
                },
                way => order(way, (&values[0], &kinds[0]), (value, kind), &rules)? == Some(Ordering::Equal),
            };
            if same {
                return Ok(Datum::Int(at as i64));
            }
        }
        Ok(Datum::Int(0))
    }))
}
