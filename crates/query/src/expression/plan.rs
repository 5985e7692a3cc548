//! Names resolved, types found: an expression's syntax becomes what is evaluated.

use tanada_innodb::{Column, ColumnType};

use super::collating::Collating;
use super::datum::{Datum, Decimal};
use super::node::{Node, Typed, Width};
use super::syntax::{Syntax, parse};
use super::{
    Kind, MAX_DEPTH, Refusal, Rules, arithmetic, assign, cast, compare, conversions, dates, described,
    floating, json, numeric, padded, strings,
};

/// Most parts of an expression, with those of virtual columns in it.
const MAX_PARTS: usize = 20_000;

/// What the parts of an expression have in common.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The stored columns in it.
    pub inputs: Vec<usize>,
    count: usize,
}

/// The expression of a virtual column; what it is made of is added to `parts`.
pub(super) fn planned(
    columns: &[Column],
    column: usize,
    rules: &Rules,
    parts: &mut Parts,
    depth: usize,
) -> Result<Typed, Refusal> {
    if depth > MAX_DEPTH {
        return Err(Refusal::new("it is made of itself"));
    }
    let text = columns.get(column).and_then(|column| column.virtual_expression.as_deref());
    let text = text.ok_or_else(|| Refusal::new("it has no expression"))?;
    Planner { columns, rules, connection: None, parts, depth }.typed(&parse(text)?)
}

/// An expression of a query over `columns`, whose literals compare by `connection`; inputs are the columns' positions.
#[cfg(test)]
pub(super) fn query(
    text: &str,
    columns: &[Column],
    rules: &Rules,
    connection: Collating,
) -> Result<(Typed, Vec<usize>), Refusal> {
    let mut parts = Parts::default();
    let mut planner = Planner { columns, rules, connection: Some(connection), parts: &mut parts, depth: 0 };
    let typed = planner.typed(&parse(text)?)?;
    Ok((typed, parts.inputs))
}

struct Planner<'a> {
    columns: &'a [Column],
    rules: &'a Rules,
    /// How literals compare; `None` if the connection is not known, as that of a column's expression.
    connection: Option<Collating>,
    parts: &'a mut Parts,
    depth: usize,
}

impl Planner<'_> {
    fn typed(&mut self, syntax: &Syntax) -> Result<Typed, Refusal> {
        self.parts.count += 1;
        if self.parts.count > MAX_PARTS {
            return Err(Refusal::new("it has too many parts"));
        }
        Ok(match syntax {
            Syntax::Null => Typed { node: Node::Literal(Datum::Null), kind: Kind::Null },
            Syntax::Number(text) => number(text, self.rules)?,
            Syntax::Hex(bytes, is_number) => hex(bytes, *is_number || self.rules.mysql),
            Syntax::Truth(truth) => Typed::truth(Typed {
                node: Node::Literal(Datum::truth(*truth)),
                kind: Kind::Int { unsigned: false },
            }),
            Syntax::Text(text, None) if self.connection.is_some() => Typed {
                node: Node::Literal(Datum::Text(text.clone())),
                kind: self.connection.clone().map_or(Kind::Null, Kind::Text),
            },
            Syntax::Text(text, charset) => literal_text(text, charset.as_deref(), self.rules.mysql)?,
            Syntax::Temporal(word, text) => dates::literal(word, text, self.rules)?,
            Syntax::Column(name) => self.column(name)?,
            Syntax::Interval(..) => return Err(Refusal::new("an interval that is added to nothing")),
            Syntax::Cast(of, wanted) => {
                let of = self.typed(of)?;
                let name = format!("cast:{}", wanted.name);
                let of = padded::resolved(&name, vec![of], self.rules)?;
                let of = floating::spelled(&name, of, self.rules)?.remove(0);
                if !matches!(wanted.name.as_str(), "char" | "date" | "datetime" | "time") {
                    arithmetic::number_of_branches(&of)?;
                }
                cast::cast(of, wanted, self.rules)?
            }
            Syntax::Collate(of, name) => {
                let mut of = self.typed(of)?;
                let Kind::Text(collating) = &of.kind else { return Err(Refusal::new("COLLATE of a number")) };
                let charset = collating
                    .charset
                    .clone()
                    .or_else(|| name.split_once('_').map(|(set, _)| set.to_string()));
                of.kind = Kind::Text(Collating::collate(name, charset, self.rules.server()));
                of
            }
            Syntax::Case(operand, whens, otherwise) => {
                self.case(operand.as_deref(), whens, otherwise.as_deref())?
            }
            Syntax::Call(name, operands) => self.call(name, operands)?,
        })
    }

    fn column(&mut self, name: &str) -> Result<Typed, Refusal> {
        let found = self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        let at = found.ok_or_else(|| Refusal::new(format!("there is no column {name}")))?;
        let column_type = &self.columns[at].column_type;
        let kind = Kind::of(&self.columns[at], self.rules.server())?;
        if self.columns[at].virtual_expression.is_some() {
            if self.columns[at].display.decimals.is_some() {
                return Err(Refusal::new("a virtual column of FLOAT(M,D) or DOUBLE(M,D)"));
            }
            let inner = planned(self.columns, at, self.rules, self.parts, self.depth + 1)?;
            assign::check(&inner, column_type)?;
            let (from, column_type, rules) = (inner.clone(), column_type.clone(), *self.rules);
            let store = conversions::shared(move |values| {
                let value = values.first().cloned().unwrap_or(Datum::Null);
                if assign::is_unclear(&from, &value, &column_type) {
                    return Err(Refusal::new("the digits of a computed zero"));
                }
                assign::stored(value, &from.kind, &column_type, &rules)
            });
            return Ok(Typed { node: Node::Stored(store, Box::new(inner)), kind });
        }
        let slot = self.parts.inputs.iter().position(|input| *input == at).unwrap_or_else(|| {
            self.parts.inputs.push(at);
            self.parts.inputs.len() - 1
        });
        let width = match column_type {
            ColumnType::Integer { bytes, .. } => Width::of_bytes(*bytes),
            _ => Width::Long,
        };
        Ok(stored(slot, kind, self.rules).with_width(width))
    }

    fn case(
        &mut self,
        operand: Option<&Syntax>,
        whens: &[(Syntax, Syntax)],
        otherwise: Option<&Syntax>,
    ) -> Result<Typed, Refusal> {
        // Which of its parts would be taken as texts is not looked into.
        let plain = |of: Typed| match padded::is_among(std::slice::from_ref(&of)) {
            true => Err(Refusal::new("CASE of a column with ZEROFILL or of YEAR(2)")),
            false => Ok(of),
        };
        let mut compared = Vec::new();
        for syntax in operand.into_iter().chain(whens.iter().map(|(condition, _)| condition)) {
            compared.push(plain(self.typed(syntax)?)?);
        }
        if operand.is_some() {
            compared = compare::alike(compared, "case")?;
        }
        let mut compared = compared.into_iter();
        let operand = if operand.is_some() { compared.next() } else { None };
        let mut common = Common::none();
        let mut planned = Vec::new();
        for (condition, (_, result)) in compared.zip(whens) {
            let condition = match &operand {
                Some(operand) => compare::in_case("=", operand.clone(), condition, self.rules)?,
                None => condition,
            };
            let result = plain(self.typed(result)?)?;
            common = common.with(&result, self.rules.mysql)?;
            planned.push((condition, result));
        }
        let otherwise = otherwise.map(|otherwise| plain(self.typed(otherwise)?)).transpose()?;
        if let Some(otherwise) = &otherwise {
            common = common.with(otherwise, self.rules.mysql)?;
        }
        Ok(conditional(planned, otherwise, common.kind, self.rules))
    }

    fn call(&mut self, name: &str, operands: &[Syntax]) -> Result<Typed, Refusal> {
        if let (
            "+" | "-" | "date_add" | "adddate" | "date_sub" | "subdate",
            [date, Syntax::Interval(count, unit)],
        ) = (name, operands)
        {
            let negative = matches!(name, "-" | "date_sub" | "subdate");
            return dates::shifted(self.typed(date)?, self.typed(count)?, unit, negative, self.rules);
        }
        let is_row = |of: &Syntax| matches!(of, Syntax::Call(name, _) if name == "row");
        if name == "in" && operands.iter().all(is_row) {
            let items = operands[1..].iter().map(|item| self.call("=", &[operands[0].clone(), item.clone()]));
            let parts = items.collect::<Result<Vec<_>, _>>()?;
            let kind = Kind::Int { unsigned: false };
            return Ok(Typed::truth(Typed { node: Node::Logical(true, parts), kind }));
        }
        if let [Syntax::Call(left, lefts), Syntax::Call(right, rights)] = operands
            && left == "row"
            && right == "row"
        {
            let mut typed = |of: &[Syntax]| of.iter().map(|of| self.typed(of)).collect::<Result<Vec<_>, _>>();
            let (lefts, rights) = (typed(lefts)?, typed(rights)?);
            let (lefts, rights) =
                (padded::resolved(name, lefts, self.rules)?, padded::resolved(name, rights, self.rules)?);
            return compare::rows(name, lefts, rights, self.rules);
        }
        let typed = operands.iter().map(|operand| self.typed(operand)).collect::<Result<_, _>>()?;
        called(name, floating::spelled(name, typed, self.rules)?, self.rules)
    }
}

/// What is of a double's type is one; MariaDB shows a negative zero as 0 wherever it is computed.
fn as_double(of: Typed, mysql: bool) -> Typed {
    match (of.node, of.kind) {
        (Node::Call(compute, operands), kind @ Kind::Double { .. }) => {
            Typed::call(kind, operands, move |values| {
                Ok(match compute(values)? {
                    Datum::Double(number) if !mysql => Datum::Double(number + 0.0),
                    Datum::Int(number) => Datum::Double(number as f64),
                    Datum::UInt(number) => Datum::Double(number as f64),
                    other => other,
                })
            })
        }
        (node, kind) => Typed { node, kind },
    }
}

/// A function or operator of typed operands.
///
/// # Errors
/// If there is none of this name, or it is not computed exactly here.
pub(super) fn called(name: &str, typed: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let has_padded = padded::is_among(&typed);
    let typed = padded::resolved(name, typed, rules)?;
    if matches!(
        name,
        "negative" | "abs" | "floor" | "ceil" | "ceiling" | "sign" | "sqrt" | "pow" | "power" | "not"
    ) {
        typed.iter().try_for_each(arithmetic::number_of_branches)?;
    }
    let result = as_double(operator(name, typed, rules)?, rules.mysql);
    Ok(padded::given(name, has_padded, result, rules))
}

/// The value at a position of the row: of a FLOAT(M,D) the double that it is, of a TIMESTAMP the local time.
pub(crate) fn stored(slot: usize, kind: Kind, rules: &Rules) -> Typed {
    let input = Typed { node: Node::Input(slot, Width::Long), kind };
    let number = match &input.kind {
        Kind::Padded { of, .. } => of.as_ref(),
        kind => kind,
    };
    match number {
        Kind::Double { decimals: Some(_) } => Typed::call(input.kind.clone(), vec![input], |values| {
            Ok(match values.first() {
                Some(Datum::Float(number)) => Datum::Double(f64::from(*number)),
                Some(value) => value.clone(),
                None => Datum::Null,
            })
        }),
        _ => dates::local(input, rules),
    }
}

fn operator(name: &str, mut typed: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let mysql = rules.mysql;
    let pair = |typed: &[Typed]| (typed[0].clone(), typed[1].clone());
    match (name, typed.len()) {
        ("+" | "-" | "*" | "/" | "div" | "%", 2) | ("mod", 2) => {
            let (left, right) = pair(&typed);
            arithmetic::operation(if name == "mod" { "%" } else { name }, left, right, rules)
        }
        ("|" | "&" | "^" | "<<" | ">>", 2) | ("~", 1) => arithmetic::bits(name, typed, mysql),
        ("=" | "<>" | "<" | "<=" | ">" | ">=" | "<=>", 2) => {
            let (left, right) = pair(&typed);
            compare::comparison(name, left, right, rules)
        }
        ("case =", 2) => {
            let (left, right) = pair(&typed);
            compare::in_case("=", left, right, rules)
        }
        ("and" | "or" | "xor", 2) => {
            let (left, right) = pair(&typed);
            Ok(Typed::truth(arithmetic::logic(name, left, right)))
        }
        ("not", 1) => Ok(Typed::truth(arithmetic::not(typed.remove(0)))),
        ("negative", 1) => arithmetic::negative(typed.remove(0), mysql),
        ("is null" | "is true" | "is false" | "is unknown", 1) => {
            arithmetic::is(&name[3..], typed.remove(0)).map(Typed::truth)
        }
        ("isnull", 1) => arithmetic::is("null", typed.remove(0)).map(Typed::truth),
        ("between", 3) => compare::between(typed, rules),
        ("in", 2..) => compare::is_in(typed, rules),
        ("like", 2 | 3) => compare::like(typed, rules),
        ("greatest" | "least", 2..) => compare::extreme(name == "greatest", typed, rules),
        ("nullif", 2) => {
            let (left, right) = pair(&typed);
            compare::null_if(left, right, rules)
        }
        ("if", 3) => {
            let (otherwise, result, condition) = (typed.remove(2), typed.remove(1), typed.remove(0));
            let common = Common::none().with(&result, mysql)?.with(&otherwise, mysql)?;
            Ok(conditional(vec![(condition, result)], Some(otherwise), common.kind, rules))
        }
        ("nvl2", 3) if !mysql => {
            let (otherwise, result, of) = (typed.remove(2), typed.remove(1), typed.remove(0));
            let condition = arithmetic::not(arithmetic::is("null", of)?);
            let common = Common::none().with(&result, mysql)?.with(&otherwise, mysql)?;
            Ok(conditional(vec![(condition, result)], Some(otherwise), common.kind, rules))
        }
        ("coalesce" | "ifnull" | "nvl", 1..) => {
            let mut kind = Common::of(&typed, mysql)?.kind;
            if let (Kind::Choice(choice), true) = (&kind, mysql && typed.len() > 1) {
                kind = Kind::Text(choice.collating.clone());
            }
            if kind == Kind::Year {
                kind = Kind::Int { unsigned: true };
            }
            let operands = typed.into_iter().map(|of| conversions::branch(of, &kind, false)).collect();
            Ok(Typed { node: Node::Coalesce(operands), kind })
        }
        _ => function(name, &typed, rules),
    }
}

/// What the results of an IF, COALESCE or GREATEST become together.
#[derive(Debug, Clone)]
pub(super) struct Common {
    pub kind: Kind,
    width: Width,
}

impl Common {
    /// Of no results.
    pub(super) fn none() -> Common {
        Common { kind: Kind::Null, width: Width::Short }
    }

    /// Of all `results`.
    pub(super) fn of(results: &[Typed], mysql: bool) -> Result<Common, Refusal> {
        results.iter().try_fold(Common::none(), |common, result| common.with(result, mysql))
    }

    /// With another result. A FLOAT stays one beside an integer of up to 24 bits, and in MySQL before a BIGINT.
    pub(super) fn with(self, result: &Typed, mysql: bool) -> Result<Common, Refusal> {
        let is_whole = |kind: &Kind| matches!(kind, Kind::Int { .. } | Kind::Year);
        let (width, double) = (result.width(), Kind::Double { decimals: None });
        let kind = match (&self.kind, &result.kind) {
            (Kind::Float, kind) if is_whole(kind) => match width {
                Width::Short => Kind::Float,
                Width::Long if mysql => Kind::Float,
                _ => double,
            },
            (kind, Kind::Float) if is_whole(kind) => {
                if self.width == Width::Short {
                    Kind::Float
                } else {
                    double
                }
            }
            (kind, other) => kind.common(other, mysql)?,
        };
        let width = if result.kind == Kind::Null || width < self.width { self.width } else { width };
        Ok(Common { kind, width })
    }
}

/// A CASE whose branches become one type.
pub(super) fn conditional(
    whens: Vec<(Typed, Typed)>,
    otherwise: Option<Typed>,
    kind: Kind,
    rules: &Rules,
) -> Typed {
    // What is made of years alone is a number: the year 0 is 0. Its text in MySQL is that of the branch.
    let kind = if kind == Kind::Year && !rules.mysql { Kind::Int { unsigned: true } } else { kind };
    let branch = |of: Typed| conversions::branch(of, &kind, rules.mysql);
    let whens = whens.into_iter().map(|(condition, result)| (condition, branch(result))).collect();
    let otherwise = otherwise.map(|otherwise| Box::new(branch(otherwise)));
    Typed { node: Node::Case(whens, otherwise), kind }
}

fn function(name: &str, operands: &[Typed], rules: &Rules) -> Result<Typed, Refusal> {
    let found = match numeric::function(name, operands, rules)? {
        Some(found) => Some(found),
        None => match strings::function(name, operands, rules)? {
            Some(found) => Some(found),
            None => match dates::function(name, operands, rules)? {
                Some(found) => Some(found),
                None => json::function(name, operands, rules)?,
            },
        },
    };
    let found = match found {
        Some(found) => Some(found),
        None => described::function(name, operands, rules.mysql)?,
    };
    found.ok_or_else(|| Refusal::new(format!("{name} of {} values", operands.len())))
}

/// A literal of hexadecimal digits or bits.
fn hex(bytes: &[u8], is_number: bool) -> Typed {
    let kind = if is_number { Kind::Hex } else { Kind::Bytes };
    Typed { node: Node::Literal(Datum::Bytes(bytes.to_vec())), kind }
}

pub(super) fn number(text: &str, rules: &Rules) -> Result<Typed, Refusal> {
    if text.contains(['e', 'E']) {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| Refusal::new("a number out of range"))?;
        let number = if rules.mysql { number } else { number + 0.0 };
        return Ok(Typed {
            node: Node::Literal(Datum::Double(number)),
            kind: Kind::Double { decimals: None },
        });
    }
    let decimal = |scale: u8| {
        let number = Decimal::prefix(text).ok_or_else(Refusal::digits)?.rounded(scale)?;
        Ok(Typed { node: Node::Literal(Datum::Decimal(number)), kind: Kind::Decimal { scale } })
    };
    if text.contains('.') {
        let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
        let scale =
            u8::try_from(fraction.len()).ok().filter(|scale| *scale <= 30).ok_or_else(Refusal::digits)?;
        return decimal(scale);
    }
    let literal = |datum, unsigned| Typed { node: Node::Literal(datum), kind: Kind::Int { unsigned } };
    match (text.parse::<i64>(), text.parse::<u64>()) {
        (Ok(number), _) => Ok(literal(Datum::Int(number), false)),
        (_, Ok(number)) => Ok(literal(Datum::UInt(number), true)),
        _ => decimal(0),
    }
}

pub(super) fn literal_text(text: &str, charset: Option<&str>, mysql: bool) -> Result<Typed, Refusal> {
    // MySQL's dictionary encodes some texts twice; what may be such a one is not guessed at.
    let bytes: Option<Vec<u8>> = text.chars().map(|letter| u8::try_from(u32::from(letter)).ok()).collect();
    if mysql && !text.is_ascii() && bytes.is_some_and(|bytes| std::str::from_utf8(&bytes).is_ok()) {
        return Err(Refusal::new("a text that may be encoded twice"));
    }
    let is_text = charset.is_none_or(|charset| charset.starts_with("utf8") || text.is_ascii());
    if !is_text || charset == Some("binary") {
        return Err(Refusal::new(format!("a text in {}", charset.unwrap_or("?"))));
    }
    // A literal is in the connection's character set where none is written; MySQL always writes it.
    let collating = Collating::literal(charset.map(str::to_string));
    Ok(Typed { node: Node::Literal(Datum::Text(text.to_string())), kind: Kind::Text(collating) })
}
