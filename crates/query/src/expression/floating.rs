//! FLOAT and DOUBLE as operands of functions of texts.
//!
//! MariaDB's text of a number is the one that it shows. MySQL's is as long as the type of the number is wide:
//!
//! | number | characters | digits |
//! |---|---|---|
//! | FLOAT of a column | 12 | those of a FLOAT |
//! | DOUBLE of a column | 24 | those of a DOUBLE |
//! | result of a function, also of FLOAT | 22 | those of a DOUBLE |
//!
//! IF, CASE and NULLIF give the text of the branch. Where a server keeps rows in a table of its own, a result is one of
//! a column, and the text of a DOUBLE is cut to 22 characters: a number whose text depends on that is refused.

use super::node::{Node, Typed};
use super::{Collating, Datum, Kind, Refusal, Rules, padded};
use crate::text::{double_text, double_text_within, float_text, float_text_within};

/// Characters of the types, and of the DOUBLE that MariaDB computes.
const FLOAT_CHARACTERS: usize = 12;
const DOUBLE_CHARACTERS: usize = 22;
const COMPUTED_CHARACTERS: usize = 23;
/// Characters of the text of a column of DOUBLE in MySQL.
const STORED_CHARACTERS: usize = 24;

/// More functions of texts than `padded` knows, with the operands that they take as texts (bits).
const TEXTS: [(&str, u32); 22] = [
    ("elt", !1),
    ("make_set", !1),
    ("export_set", 0b1110),
    ("json_object", 0x5555_5555),
    ("soundex", 1),
    ("sounds like", u32::MAX),
    ("from_base64", 1),
    ("unhex", 1),
    ("conv", 1),
    ("bin", 1),
    ("oct", 1),
    ("regexp_like", 0b11),
    ("regexp_instr", 0b11),
    ("regexp_substr", 0b11),
    ("regexp_replace", 0b111),
    ("aes_encrypt", 0b11),
    ("aes_decrypt", 0b11),
    ("str_to_date", 0b11),
    ("inet_aton", 1),
    ("inet6_aton", 1),
    ("natural_sort_key", 1),
    ("json_unquote", 1),
];

/// Where a number comes from, which decides how MySQL spells it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Origin {
    /// A column, as it is stored.
    Stored,
    /// A function.
    Computed,
    /// One of both.
    Unknown,
}

/// The operands of a function as it takes them: those that are texts to it are spelled as the server spells them.
pub(super) fn spelled(name: &str, operands: Vec<Typed>, rules: &Rules) -> Result<Vec<Typed>, Refusal> {
    if !operands.iter().any(|of| is_floating(&of.kind)) {
        return Ok(operands);
    }
    let is_text = texts_among(name, &operands, rules);
    let taken = operands.into_iter().enumerate();
    let taken = taken.map(|(at, of)| match is_floating(&of.kind) && is_text(at) {
        true => text(of, name == "concat of group", rules),
        false => of,
    });
    Ok(taken.collect())
}

/// Which operands a function takes as texts.
fn texts_among(name: &str, operands: &[Typed], rules: &Rules) -> impl Fn(usize) -> bool + use<> {
    let has_text = |of: &[Typed]| of.iter().any(|of| of.kind.is_string());
    let bit = |bits: u32, at: usize| bits == u32::MAX || bits.checked_shr(at as u32).unwrap_or(0) & 1 == 1;
    let short = name.match_indices(':').nth(1).map_or(name, |(end, _)| &name[..end]);
    let known = padded::texts_of(short)
        .or_else(|| TEXTS.iter().find(|(of, _)| *of == short).map(|(_, texts)| *texts));
    let count = operands.len();
    let is_case = matches!(name, "case" | "case of aggregate");
    let is_result = move |at: usize| at % 2 == 1 || at + 1 == count;
    let all = match name {
        "strcmp" => !has_text(operands),
        "if" => has_text(&operands[1..]),
        "coalesce" | "ifnull" | "nvl" => has_text(operands),
        // MariaDB compares numbers and texts as numbers.
        "greatest" | "least" => rules.mysql && has_text(operands),
        _ if is_case => operands.iter().enumerate().any(|(at, of)| is_result(at) && of.kind.is_string()),
        _ => false,
    };
    move |at| match known {
        Some(bits) if bits != u32::MAX => bit(bits, at),
        _ if is_case => all && is_result(at),
        Some(_) => true,
        None => all,
    }
}

/// Whether its text is as long as the number is.
pub(super) fn is_floating(kind: &Kind) -> bool {
    matches!(kind, Kind::Float | Kind::Double { .. })
}

/// The text of a number; `is_kept` if it is a column of a table that the server makes for the aggregate.
fn text(of: Typed, is_kept: bool, rules: &Rules) -> Typed {
    if !rules.mysql {
        return of_mariadb(of, rules);
    }
    if let (Node::Case(whens, otherwise), false) = (&of.node, is_kept) {
        let branch = |of: &Typed| of_branch(of, rules);
        let whens = whens.iter().map(|(condition, result)| (condition.clone(), branch(result)));
        let node = Node::Case(whens.collect(), otherwise.as_ref().map(|of| Box::new(branch(of))));
        return Typed { node, kind: Kind::Text(Collating::number()) };
    }
    if let Kind::Double { decimals: Some(_) } = of.kind {
        return of;
    }
    let origin = match &of.node {
        Node::Input(..) | Node::Stored(..) => Origin::Stored,
        Node::Call(..) if of.kind == Kind::Float => Origin::Unknown,
        Node::Result(_) | Node::Case(..) => Origin::Unknown,
        _ if is_kept => Origin::Unknown,
        _ => Origin::Computed,
    };
    let may_be_kept = rules.keeps_rows && !is_kept;
    Typed::call(Kind::Text(Collating::number()), vec![of], move |values| {
        Ok(match &values[0] {
            Datum::Float(number) => Datum::Text(float(*number, origin, may_be_kept)?),
            Datum::Double(number) => Datum::Text(double(*number, origin, may_be_kept)?),
            _ => Datum::Null,
        })
    })
}

/// The text of what was a branch of a CASE, before it became the common type.
fn of_branch(of: &Typed, rules: &Rules) -> Typed {
    let of = match &of.node {
        Node::Branch(_, inner) => inner.as_ref(),
        _ => of,
    };
    if of.kind == Kind::Null {
        return of.clone();
    }
    let spelled = if is_floating(&of.kind) { text(of.clone(), false, rules) } else { of.clone() };
    if matches!(spelled.kind, Kind::Text(_)) {
        return spelled;
    }
    let kind = spelled.kind.clone();
    Typed::call(Kind::Text(Collating::number()), vec![spelled], move |values| {
        Ok(values[0].text(&kind)?.map_or(Datum::Null, Datum::Text))
    })
}

/// MySQL's text of a FLOAT.
fn float(number: f32, origin: Origin, may_be_kept: bool) -> Result<String, Refusal> {
    let stored = float_text_within(number, FLOAT_CHARACTERS);
    let computed = double_text_within(number.into(), DOUBLE_CHARACTERS);
    match origin {
        Origin::Stored => Ok(stored),
        Origin::Computed if !may_be_kept => Ok(computed),
        _ if stored == computed => Ok(stored),
        _ => Err(Refusal::new("a FLOAT as text that is the result of a function")),
    }
}

/// MySQL's text of a DOUBLE.
fn double(number: f64, origin: Origin, may_be_kept: bool) -> Result<String, Refusal> {
    let stored = double_text_within(number, STORED_CHARACTERS);
    let computed = double_text_within(number, DOUBLE_CHARACTERS);
    let is_short = stored.len() <= DOUBLE_CHARACTERS;
    match origin {
        Origin::Stored if is_short || !may_be_kept => Ok(stored),
        Origin::Computed if !may_be_kept => Ok(computed),
        _ if stored == computed => Ok(stored),
        _ => Err(Refusal::new("a DOUBLE as text of more characters than its type has")),
    }
}

/// MariaDB's text of a column with ZEROFILL is that of its number, MySQL's is as wide as the type.
pub(super) fn stored_text(value: &Datum, kind: &Kind, rules: &Rules) -> Result<Option<String>, Refusal> {
    match (value, kind) {
        (Datum::Float(number), Kind::Float) if rules.mysql => float(*number, Origin::Stored, false).map(Some),
        (Datum::Double(number), Kind::Double { decimals: None }) if rules.mysql => {
            double(*number, Origin::Stored, rules.keeps_rows).map(Some)
        }
        _ => value.text(kind),
    }
}

/// The number, if its text is not cut where MariaDB keeps it.
fn of_mariadb(of: Typed, rules: &Rules) -> Typed {
    if !rules.keeps_rows || matches!(of.kind, Kind::Double { decimals: Some(_) }) {
        return of;
    }
    let characters = match (&of.kind, &of.node) {
        (Kind::Float, _) => FLOAT_CHARACTERS,
        (_, Node::Input(..) | Node::Result(_)) => DOUBLE_CHARACTERS,
        _ => COMPUTED_CHARACTERS,
    };
    Typed::call(of.kind.clone(), vec![of], move |values| {
        let length = match &values[0] {
            Datum::Float(number) => float_text(*number).len(),
            Datum::Double(number) => double_text(*number).len(),
            _ => 0,
        };
        match length <= characters {
            true => Ok(values[0].clone()),
            false => Err(Refusal::new("a number as text of more characters than its type has")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::node::Width;
    use super::*;

    const DOUBLE: Kind = Kind::Double { decimals: None };

    fn shown(name: &str, node: Node, kind: Kind, value: Datum, rules: &Rules) -> Result<String, Refusal> {
        let operand = spelled(name, vec![Typed { node, kind }], rules)?.remove(0);
        Ok(operand.value(&[value])?.text(&operand.kind)?.unwrap_or_else(|| "NULL".to_string()))
    }

    fn computed() -> Node {
        let input = Typed { node: Node::Input(0, Width::Long), kind: DOUBLE };
        Typed::call(DOUBLE, vec![input], |values| Ok(values[0].clone())).node
    }

    #[test]
    fn texts_of_mysql_are_as_long_as_their_types() {
        let rules = Rules::new(true);
        let float =
            |number| shown("concat", Node::Input(0, Width::Long), Kind::Float, Datum::Float(number), &rules);
        assert_eq!(float(-2.811_84e12).as_deref(), Ok("-2.81184e12"));
        assert_eq!(float(1e10).as_deref(), Ok("10000000000"));
        let number = -1.797_693_134_862_315_7e308;
        let stored = shown("length", Node::Input(0, Width::Long), DOUBLE, Datum::Double(number), &rules);
        assert_eq!(stored.as_deref(), Ok("-1.7976931348623157e308"));
        let of_function = shown("concat", computed(), DOUBLE, Datum::Double(number), &rules);
        assert_eq!(of_function.as_deref(), Ok("-1.797693134862316e308"));
        assert!(shown("concat", Node::Result(0), DOUBLE, Datum::Double(number), &rules).is_err());
        assert!(shown("concat", Node::Result(0), DOUBLE, Datum::Double(-1e300), &rules).is_ok());
    }

    #[test]
    fn texts_that_may_be_cut_are_refused() {
        let long = || Datum::Double(-7.819_303_642e-13);
        for mysql in [true, false] {
            let rules = Rules { keeps_rows: true, ..Rules::new(mysql) };
            let of = |value| shown("concat", Node::Input(0, Width::Long), DOUBLE, value, &rules);
            assert_eq!(of(Datum::Double(0.1)).as_deref(), Ok("0.1"));
            assert_eq!(of(long()).is_err(), !mysql);
            assert!(of(Datum::Double(-1.234_567_890_123_456_7e-111)).is_err());
        }
        let rules = Rules::new(false);
        let text = shown("concat", Node::Input(0, Width::Long), DOUBLE, long(), &rules);
        assert_eq!(text.as_deref(), Ok("-0.0000000000007819303642"));
    }

    #[test]
    fn a_branch_has_its_own_text() {
        let rules = Rules::new(true);
        let input = Typed { node: Node::Input(0, Width::Long), kind: Kind::Float };
        let branch = super::super::branch(input, &DOUBLE, true);
        let always = Typed { node: Node::Literal(Datum::Int(1)), kind: Kind::Int { unsigned: false } };
        let case = Node::Case(vec![(always, branch)], None);
        let text = shown("concat", case, DOUBLE, Datum::Float(0.1), &rules);
        assert_eq!(text.as_deref(), Ok("0.1"));
    }
}
