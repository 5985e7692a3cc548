//! Comparisons: which of the ways of comparing a pair of types takes, and `IN`, `BETWEEN`, `LIKE`, `GREATEST`, `LEAST`.

use std::cmp::Ordering;

use super::conversions::converted;
use super::datum::{Datum, Number};
use super::kind::Collating;
use super::node::{Node, Typed};
use super::{Kind, Refusal, Rules, dates};

/// How two types are compared.
#[derive(Debug, Clone, PartialEq)]
enum Way {
    Numbers { as_doubles: bool },
    Texts(Collating),
    Bytes,
    Dates(dates::DateWay),
}

/// The way of comparing values of these types; `None` if one of them is NULL.
fn way(left: &Typed, right: &Typed, rules: &Rules) -> Result<Option<Way>, Refusal> {
    let (left, right) = match (&left.kind, &right.kind) {
        (Kind::Null, _) | (_, Kind::Null) => return Ok(None),
        (of, other) => match dates::date_way(left, right, rules)? {
            Some(way) => return Ok(Some(Way::Dates(way))),
            None => (of, other),
        },
    };
    let is_text = |kind: &Kind| matches!(kind, Kind::Text(_) | Kind::Choice(_));
    Ok(Some(match (left, right) {
        (Kind::Bytes, Kind::Bytes) => Way::Bytes,
        (left, right) if is_text(left) && is_text(right) => {
            Way::Texts(left.collating().merged(&right.collating()))
        }
        (Kind::Year, Kind::Int { .. }) | (Kind::Int { .. }, Kind::Year) | (Kind::Year, Kind::Year) => {
            Way::Numbers { as_doubles: false }
        }
        (Kind::Year, _) | (_, Kind::Year) => return Err(uncomparable(left, right)),
        (left, right) if left.is_number() && right.is_number() => {
            Way::Numbers { as_doubles: left.scale().is_none() || right.scale().is_none() }
        }
        (left, right) if left.is_number() && matches!(right, Kind::Text(_)) => {
            Way::Numbers { as_doubles: true }
        }
        (left, right) if matches!(left, Kind::Text(_)) && right.is_number() => {
            Way::Numbers { as_doubles: true }
        }
        _ => return Err(uncomparable(left, right)),
    }))
}

fn uncomparable(left: &Kind, right: &Kind) -> Refusal {
    Refusal::new(format!("a comparison of {left:?} with {right:?}"))
}

/// Whether all operands compare in the same way, so that pairs may be compared one by one.
fn same_way(operands: &[Typed], rules: &Rules) -> Result<(), Refusal> {
    let mut ways = Vec::new();
    for operand in &operands[1..] {
        ways.extend(way(&operands[0], operand, rules)?);
    }
    match ways.windows(2).all(|pair| pair[0] == pair[1] || matches!(pair, [Way::Texts(_), Way::Texts(_)])) {
        true => Ok(()),
        false => Err(Refusal::new("a comparison with values of several types")),
    }
}

/// Compares two values that are not NULL.
fn order(
    way: &Way,
    left: (&Datum, &Kind),
    right: (&Datum, &Kind),
    rules: &Rules,
) -> Result<Option<Ordering>, Refusal> {
    let number = |(value, kind): (&Datum, &Kind), other: &Kind| match value.number(kind)? {
        Some(Number::Whole(0..=99)) if *other == Kind::Year && *kind != Kind::Year => {
            Err(Refusal::new("a year of two digits"))
        }
        number => Ok(number),
    };
    Ok(Some(match way {
        Way::Numbers { as_doubles } => {
            let (Some(a), Some(b)) = (number(left, right.1)?, number(right, left.1)?) else {
                return Ok(None);
            };
            match (as_doubles, a.to_decimal(), b.to_decimal()) {
                (false, Some(a), Some(b)) => {
                    let (a, b) = a.aligned(b)?;
                    a.unscaled.cmp(&b.unscaled)
                }
                _ => match a.to_f64().partial_cmp(&b.to_f64()) {
                    Some(order) => order,
                    None => return Ok(None),
                },
            }
        }
        Way::Texts(collating) => match (left.0.text(left.1)?, right.0.text(right.1)?) {
            (Some(a), Some(b)) => collating.compare(&a, &b)?,
            _ => return Ok(None),
        },
        Way::Bytes => match (left.0, right.0) {
            (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
            _ => return Ok(None),
        },
        Way::Dates(way) => return dates::date_order(*way, left, right, rules),
    }))
}

/// `=`, `<>`, `<`, `<=`, `>`, `>=`, `<=>`.
pub(super) fn comparison(operator: &str, left: Typed, right: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let kinds = (left.kind.clone(), right.kind.clone());
    let (way, rules) = (way(&left, &right, rules)?, *rules);
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
                Ok(order.map_or(Datum::Null, |order| Datum::truth(holds(order))))
            }
            (left, right, _) if null_safe => Ok(Datum::truth(left && right)),
            _ => Ok(Datum::Null),
        }
    };
    Ok(Typed::call(Kind::Int { unsigned: false }, vec![left, right], compute))
}

/// `a BETWEEN b AND c`.
pub(super) fn between(mut operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    same_way(&operands, rules)?;
    let (Some(high), Some(low), Some(value)) = (operands.pop(), operands.pop(), operands.pop()) else {
        return Err(Refusal::new("BETWEEN takes three values"));
    };
    let parts = vec![comparison(">=", value.clone(), low, rules)?, comparison("<=", value, high, rules)?];
    Ok(Typed { node: Node::Logical(false, parts), kind: Kind::Int { unsigned: false } })
}

/// `a IN (b, ...)`.
pub(super) fn is_in(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    same_way(&operands, rules)?;
    let Some((value, list)) = operands.split_first() else { return Err(Refusal::new("IN takes a list")) };
    let parts = list.iter().map(|item| comparison("=", value.clone(), item.clone(), rules));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    Ok(Typed { node: Node::Logical(true, parts), kind: Kind::Int { unsigned: false } })
}

/// `GREATEST` and `LEAST`: NULL if one of the operands is.
pub(super) fn extreme(greatest: bool, operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let rules = *rules;
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let mut common = kinds.first().cloned().unwrap_or(Kind::Null);
    for kind in &kinds[1..] {
        let has_text = |kind: &Kind| matches!(kind, Kind::Text(_) | Kind::Choice(_));
        if has_text(&common) != has_text(kind) && common != Kind::Null && *kind != Kind::Null {
            return Err(Refusal::new("the greatest of texts and numbers"));
        }
        common = common.common(kind)?;
    }
    let result = common.clone();
    let of_common = Typed { node: Node::Input(0), kind: common.clone() };
    let way = way(&of_common, &of_common, &rules)?;
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
                    order == Some(if greatest { Ordering::Greater } else { Ordering::Less })
                }
            };
            if better {
                best = Some(value);
            }
        }
        Ok(best.unwrap_or(Datum::Null))
    };
    Ok(Typed::call(result, operands, compute))
}

/// `NULLIF`: the first, or NULL if both are equal.
pub(super) fn null_if(left: Typed, right: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let kind = left.kind.clone();
    let equal = comparison("=", left.clone(), right, rules)?;
    let null = Typed { node: Node::Literal(Datum::Null), kind: Kind::Null };
    Ok(Typed { node: Node::Case(vec![(equal, null)], Some(Box::new(left))), kind })
}

/// `text LIKE pattern`, with the default escape or another.
pub(super) fn like(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let escape = match operands.get(2).map(Typed::literal) {
        None => '\\',
        Some(Some(Datum::Text(text))) if text.chars().count() == 1 => text.chars().next().unwrap_or('\\'),
        _ => return Err(Refusal::new("this ESCAPE")),
    };
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let collating = kinds[0].collating().merged(&kinds[1].collating());
    let compute = move |values: &[Datum]| {
        let (Some(text), Some(pattern)) = (values[0].text(&kinds[0])?, values[1].text(&kinds[1])?) else {
            return Ok(Datum::Null);
        };
        let is_plain = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let exact = matches(&text, &pattern, escape);
        let both_plain = is_plain(&text) && is_plain(&pattern);
        let folded = both_plain.then(|| {
            matches(&text.to_ascii_uppercase(), &pattern.to_ascii_uppercase(), escape.to_ascii_uppercase())
        });
        match (collating.folds(), folded) {
            (Some(false), _) => Ok(Datum::truth(exact)),
            (Some(true), Some(folded)) => Ok(Datum::truth(folded)),
            (None, Some(folded)) if folded == exact => Ok(Datum::truth(exact)),
            _ => Err(Refusal::new("LIKE with letters whose order is not known")),
        }
    };
    Ok(Typed::call(Kind::Int { unsigned: false }, operands, compute))
}

/// Whether a text matches a pattern with `%` and `_`.
fn matches(text: &str, pattern: &str, escape: char) -> bool {
    enum Part {
        Letter(char),
        One,
        Any,
    }
    let mut parts = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        parts.push(match letter {
            letter if letter == escape => Part::Letter(letters.next().unwrap_or(escape)),
            '%' => Part::Any,
            '_' => Part::One,
            letter => Part::Letter(letter),
        });
    }
    let text: Vec<char> = text.chars().collect();
    // Positions in the text that the pattern so far may end at.
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    for part in parts {
        let mut next = vec![false; text.len() + 1];
        let mut any = false;
        for at in 0..=text.len() {
            match part {
                Part::Any => {
                    any |= ends[at];
                    next[at] = any;
                }
                Part::One => next[at] = at > 0 && ends[at - 1],
                Part::Letter(letter) => next[at] = at > 0 && ends[at - 1] && text[at - 1] == letter,
            }
        }
        ends = next;
    }
    ends[text.len()]
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_whole_texts() {
        assert!(matches("abc", "a%", '\\'));
        assert!(matches("abc", "%b%", '\\'));
        assert!(matches("a%c", r"a\%c", '\\'));
        assert!(!matches("abc", r"a\%c", '\\'));
        assert!(matches("", "%", '\\'));
        assert!(!matches("abc", "a_", '\\'));
    }
}
