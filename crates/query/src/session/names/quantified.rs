//! `IN`, `ANY`, `ALL` and comparisons of rows with a subquery.
//!
//! `x IN (SELECT v ...)` is true if `x = v` is for a row, else NULL if it is for one, else false. So it becomes
//! `(SELECT ANY_TRUE(x = q.v) FROM (SELECT v ...) q)`: the comparison is then one like every other, with the types
//! and collations of both sides. ALL is the same of the contrary: `x > ALL (...)` is `NOT ANY_TRUE(NOT x > q.v)`.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    GroupByExpr, Ident, ObjectName, Query, Select, SelectFlavor, SelectItem, SetExpr, TableFactor,
    TableWithJoins, UnaryOperator, Values, helpers::attached_token::AttachedToken,
};

use super::expression::is_called;
use super::query::Surroundings;
use super::{Names, invalid, quoted};
use crate::Result;
use crate::subquery::{ANY_TRUE, SINGLE_VALUE};

/// Of which rows a comparison is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantifier {
    Any,
    All,
    /// The only one.
    Row,
}

impl Names<'_> {
    /// The comparison of `left`, which is resolved, with the rows of a subquery, which is not.
    pub(super) fn quantified(
        &mut self,
        left: &Expr,
        operator: &BinaryOperator,
        query: &mut Box<Query>,
        quantifier: Quantifier,
        around: &Surroundings<'_>,
    ) -> Result<Expr> {
        let output = self.query(query, &around.within(around.scopes))?;
        let parts = row(left);
        if parts.len() != output.len() {
            return Err(invalid(format!("Operand should contain {} column(s)", parts.len())));
        }
        if parts.len() > 1
            && quantifier != Quantifier::Row
            && !matches!(operator, BinaryOperator::Eq | BinaryOperator::NotEq)
        {
            return Err(invalid("Operand should contain 1 column(s)"));
        }
        let alias = self.alias("subquery");
        let columns: Vec<Expr> = output
            .iter()
            .map(|column| Expr::CompoundIdentifier(vec![alias.clone(), quoted(&column.emitted)]))
            .collect();
        let compared = match parts.as_slice() {
            [_] => {
                comparison(left.clone(), operator.clone(), columns.into_iter().next().unwrap_or(left.clone()))
            }
            _ => by_parts(&parts, operator, &columns)
                .unwrap_or_else(|| comparison(Expr::Tuple(parts), operator.clone(), Expr::Tuple(columns))),
        };
        let compared = Expr::Nested(Box::new(compared));
        let aggregated = match quantifier {
            Quantifier::Any => call(ANY_TRUE, compared),
            Quantifier::All => call(ANY_TRUE, not(compared)),
            Quantifier::Row => call(SINGLE_VALUE, compared),
        };
        let scalar = Expr::Subquery(Box::new(over(
            aggregated,
            std::mem::replace(
                query,
                Box::new(query_of(SetExpr::Values(Values {
                    explicit_row: false,
                    value_keyword: false,
                    rows: Vec::new(),
                }))),
            ),
            alias,
        )));
        Ok(match quantifier {
            Quantifier::All => not(scalar),
            Quantifier::Any | Quantifier::Row => scalar,
        })
    }
}

fn comparison(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// `(a, b) = (c, d)` as `a = c AND b = d`, and `<>` as the contrary; `None` for other operators and lengths.
pub(super) fn by_parts(left: &[Expr], operator: &BinaryOperator, right: &[Expr]) -> Option<Expr> {
    if left.len() != right.len() {
        return None;
    }
    let link = match operator {
        BinaryOperator::Eq | BinaryOperator::Spaceship => BinaryOperator::And,
        BinaryOperator::NotEq => BinaryOperator::Or,
        _ => return None,
    };
    let part = |(left, right): (&Expr, &Expr)| {
        let (one, other) = (row(left), row(right));
        let whole = match one.len() {
            1 => None,
            _ => by_parts(&one, operator, &other),
        };
        Expr::Nested(Box::new(
            whole.unwrap_or_else(|| comparison(left.clone(), operator.clone(), right.clone())),
        ))
    };
    let parts = left.iter().zip(right).map(part);
    parts.reduce(|all, part| comparison(all, link.clone(), part)).map(|all| Expr::Nested(Box::new(all)))
}

/// The comparison of two rows part by part, if it is one.
pub(super) fn of_rows(left: &Expr, operator: &BinaryOperator, right: &Expr) -> Option<Expr> {
    let (left, right) = (row(left), row(right));
    if left.len() < 2 { None } else { by_parts(&left, operator, &right) }
}

/// `row = (1, 2) OR row = (3, 4)`, which `row IN ((1, 2), (3, 4))` is.
pub(super) fn equal_to_any(row: &Expr, list: &[Expr]) -> Expr {
    let equal = |item: &Expr| Expr::BinaryOp {
        left: Box::new(row.clone()),
        op: BinaryOperator::Eq,
        right: Box::new(item.clone()),
    };
    let either = |one: Expr, other: Expr| Expr::BinaryOp {
        left: Box::new(one),
        op: BinaryOperator::Or,
        right: Box::new(other),
    };
    let any = list.iter().map(equal).reduce(either);
    Expr::Nested(Box::new(any.unwrap_or(Expr::value(datafusion::sql::sqlparser::ast::Value::Boolean(false)))))
}

pub(super) fn not(expression: Expr) -> Expr {
    let expr = match expression {
        nested @ (Expr::Nested(_) | Expr::Subquery(_)) => nested,
        other => Expr::Nested(Box::new(other)),
    };
    Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) }))
}

/// The parts of a row, or the expression alone.
fn row(expression: &Expr) -> Vec<Expr> {
    match expression {
        Expr::Nested(inner) if !matches!(inner.as_ref(), Expr::BinaryOp { .. }) => row(inner),
        Expr::Tuple(parts) => parts.clone(),
        Expr::Function(function) if is_called(function, "row") => match &function.args {
            FunctionArguments::List(list) => list
                .args
                .iter()
                .filter_map(|argument| match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(part)) => Some(part.clone()),
                    _ => None,
                })
                .collect(),
            _ => vec![expression.clone()],
        },
        other => vec![other.clone()],
    }
}

/// `name(argument)`
pub(super) fn call(name: &str, argument: Expr) -> Expr {
    call_of(name, vec![argument])
}

/// `name(arguments)`
pub(super) fn call_of(name: &str, arguments: Vec<Expr>) -> Expr {
    let arguments =
        arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// `SELECT value FROM (query) AS alias`
fn over(value: Expr, query: Box<Query>, alias: Ident) -> Query {
    let item = SelectItem::ExprWithAlias { expr: value, alias: quoted("value") };
    let mut select = select_of(vec![item]);
    select.from = vec![derived(query, alias)];
    query_of(SetExpr::Select(Box::new(select)))
}

/// A derived table.
pub(super) fn derived(query: Box<Query>, alias: Ident) -> TableWithJoins {
    TableWithJoins {
        relation: TableFactor::Derived {
            lateral: false,
            subquery: query,
            alias: Some(super::from::table_alias(alias)),
            sample: None,
        },
        joins: Vec::new(),
    }
}

/// `SELECT items`
pub(super) fn select_of(projection: Vec<SelectItem>) -> Select {
    Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection,
        exclude: None,
        into: None,
        from: Vec::new(),
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }
}

/// A query of a body alone.
pub(super) fn query_of(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}
