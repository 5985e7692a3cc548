//! Expressions: each name is replaced by what it means, each subquery is resolved on its own.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    Ident, UnaryOperator, Value, VisitMut, VisitorMut, WindowType,
};

use super::item::Item;
use super::query::Surroundings;
use super::scope::same;
use super::{Clause, Names, constants, invalid};
use crate::{Error, Result};

/// Functions that are known before it is asked whose function is called, and that MySQL does not have.
const ONLY_MARIADB: [&str; 4] = ["nvl", "nvl2", "median", "decode_oracle"];

/// Aggregate functions of both servers.
const AGGREGATES: [&str; 18] = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "group_concat",
    "bit_and",
    "bit_or",
    "bit_xor",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "variance",
    "var_pop",
    "var_samp",
    "json_arrayagg",
    "json_objectagg",
];

/// Functions whose first argument is a word of their own.
const WITH_A_WORD: [&str; 3] = ["timestampdiff", "timestampadd", "get_format"];

/// Whether a function makes one value of many rows.
pub(super) fn is_aggregate(function: &Function) -> bool {
    let name = function.name.to_string().to_ascii_lowercase();
    function.over.is_none() && (AGGREGATES.contains(&name.as_str()))
}

/// Whether a function is called `name`.
pub(super) fn is_called(function: &Function, name: &str) -> bool {
    function.name.to_string().eq_ignore_ascii_case(name)
}

/// The arguments of a call.
pub(super) fn arguments(function: &Function) -> Vec<Expr> {
    let FunctionArguments::List(list) = &function.args else { return Vec::new() };
    let expressions = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression.clone()),
        _ => None,
    });
    expressions.collect()
}

/// The single argument of a call.
pub(super) fn only_argument(function: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(only))] => Some(only),
        _ => None,
    }
}

/// Names that an expression may use beside those of columns.
#[derive(Debug, Clone, Copy)]
pub(super) enum Aliases<'a> {
    None,
    /// Results of the select list, for what is no column.
    AfterColumns(&'a [Item]),
    /// Results of the select list and what is grouped, and nothing else but in aggregates.
    Having {
        items: &'a [Item],
        groups: &'a [Expr],
    },
}

impl Names<'_> {
    /// Resolves an expression over the columns of `around`.
    pub(super) fn expression(
        &mut self,
        expression: &mut Expr,
        around: &Surroundings<'_>,
        clause: Clause,
    ) -> Result<()> {
        self.expression_with(expression, around, clause, Aliases::None)
    }

    /// The same, with further names.
    pub(super) fn expression_with(
        &mut self,
        expression: &mut Expr,
        around: &Surroundings<'_>,
        clause: Clause,
        aliases: Aliases<'_>,
    ) -> Result<()> {
        let mut visitor =
            Resolving { names: self, around, clause, aliases, aggregates: 0, words: 0, replaced: None };
        match expression.visit(&mut visitor) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }
}

struct Resolving<'n, 'a, 'b> {
    names: &'n mut Names<'a>,
    around: &'b Surroundings<'b>,
    clause: Clause,
    aliases: Aliases<'b>,
    /// How many aggregates are around.
    aggregates: usize,
    /// How many of the next names are words of a function.
    words: usize,
    /// What takes the place of the expression that is being visited: it is not looked into again.
    replaced: Option<Expr>,
}

impl VisitorMut for Resolving<'_, '_, '_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Function(function) = expression
            && is_called(function, "group_concat")
            && let Err(error) = place_positions(function, self.names.is_mysql())
        {
            return ControlFlow::Break(error);
        }
        if let Expr::Function(function) = expression
            && self.names.is_mysql()
            && ONLY_MARIADB.iter().any(|name| is_called(function, name))
        {
            let name = function.name.to_string().to_ascii_lowercase();
            return ControlFlow::Break(invalid(format!("FUNCTION {name} does not exist")));
        }
        if let Expr::Function(function) = expression
            && self.names.is_mysql()
            && has_positions(function)
        {
            let message =
                "ORDER BY or PARTITION BY of a window has a position; MySQL takes expressions alone";
            return ControlFlow::Break(invalid(message.to_string()));
        }
        match self.replacement(expression) {
            Ok(Some(replaced)) => {
                // A leaf in its place, until it is left again.
                *expression = Expr::value(Value::Null);
                self.replaced = Some(replaced);
                ControlFlow::Continue(())
            }
            Ok(None) => {
                if let Expr::Function(function) = &*expression {
                    self.aggregates += usize::from(is_aggregate(function));
                    let name = function.name.to_string().to_ascii_lowercase();
                    self.words += usize::from(WITH_A_WORD.contains(&name.as_str()));
                }
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        if let Some(replaced) = self.replaced.take() {
            *expression = replaced;
        } else if let Expr::Function(function) = &*expression {
            self.aggregates -= usize::from(is_aggregate(function));
        }
        ControlFlow::Continue(())
    }
}

impl Resolving<'_, '_, '_> {
    fn replacement(&mut self, expression: &mut Expr) -> Result<Option<Expr>> {
        Ok(match expression {
            Expr::Identifier(name) => {
                if self.words > 0 {
                    self.words -= 1;
                    return Ok(None);
                }
                Some(self.named(std::slice::from_ref(name))?)
            }
            Expr::CompoundIdentifier(parts) => Some(self.named(parts)?),
            Expr::Subquery(query) => {
                let output = self.names.query(query, &self.around.within(self.around.scopes))?;
                if output.len() != 1 {
                    return Err(invalid("Operand should contain 1 column(s)"));
                }
                Some(expression.clone())
            }
            Expr::Exists { subquery, .. } => {
                self.names.query(subquery, &self.around.within(self.around.scopes))?;
                Some(expression.clone())
            }
            Expr::InSubquery { expr, subquery, negated } => {
                self.part(expr)?;
                let compared = self.names.quantified(
                    expr,
                    &BinaryOperator::Eq,
                    subquery,
                    super::quantified::Quantifier::Any,
                    self.around,
                )?;
                Some(if *negated { super::quantified::not(compared) } else { compared })
            }
            Expr::AnyOp { left, compare_op, right, .. } => {
                let Expr::Subquery(query) = right.as_mut() else {
                    return Err(invalid("ANY and SOME take a subquery"));
                };
                self.part(left)?;
                let any = super::quantified::Quantifier::Any;
                Some(self.names.quantified(left, compare_op, query, any, self.around)?)
            }
            Expr::AllOp { left, compare_op, right } => {
                let Expr::Subquery(query) = right.as_mut() else {
                    return Err(invalid("ALL takes a subquery"));
                };
                self.part(left)?;
                let all = super::quantified::Quantifier::All;
                Some(self.names.quantified(left, compare_op, query, all, self.around)?)
            }
            Expr::BinaryOp { left, op, right }
                if is_row(left) && matches!(right.as_ref(), Expr::Subquery(_)) =>
            {
                let Expr::Subquery(query) = right.as_mut() else { return Ok(None) };
                self.part(left)?;
                let one = super::quantified::Quantifier::Row;
                Some(self.names.quantified(left, op, query, one, self.around)?)
            }
            Expr::BinaryOp { left, op, right } if is_row(left) && is_row(right) => {
                let Some(mut parts) = super::quantified::of_rows(left, op, right) else { return Ok(None) };
                self.part(&mut parts)?;
                Some(parts)
            }
            Expr::InList { expr, list, negated } if is_row(expr) => {
                let equal = super::quantified::equal_to_any(expr, list);
                let mut equal = if *negated { super::quantified::not(equal) } else { equal };
                self.part(&mut equal)?;
                Some(equal)
            }
            Expr::Function(function) => self.function(function)?,
            _ => None,
        })
    }

    fn function(&self, function: &Function) -> Result<Option<Expr>> {
        if is_called(function, "any_value") && !self.names.is_mysql() {
            return Err(invalid("FUNCTION any_value does not exist"));
        }
        let has_default = matches!(&function.args, FunctionArguments::List(list) if list.args.len() > 2);
        if has_default
            && !self.names.is_mysql()
            && (is_called(function, "lag") || is_called(function, "lead"))
        {
            return Err(invalid("You have an error in your SQL syntax: LAG and LEAD take no default"));
        }
        if function.over.is_some() && !matches!(self.clause, Clause::Select | Clause::Order) {
            return Err(invalid(match self.names.is_mysql() {
                true => format!("You cannot use the window function '{}' in this context.'", function.name),
                false => "Window function is allowed only in SELECT list and ORDER BY clause".to_string(),
            }));
        }
        constants::value(function, &self.names.context)
    }

    /// Resolves a part of what is replaced.
    fn part(&mut self, expression: &mut Expr) -> Result<()> {
        let mut inner = Resolving {
            names: self.names,
            around: self.around,
            clause: self.clause,
            aliases: self.aliases,
            aggregates: self.aggregates,
            words: 0,
            replaced: None,
        };
        match expression.visit(&mut inner) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    fn named(&mut self, parts: &[Ident]) -> Result<Expr> {
        if let [first, ..] = parts
            && first.quote_style.is_none()
            && first.value.starts_with('@')
        {
            let name: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
            return (self.names.context.variables)(&name.join("."));
        }
        let scopes = self.around.scopes;
        match self.aliases {
            Aliases::None => self.names.column(parts, scopes, self.clause),
            Aliases::AfterColumns(items) => {
                let found = self.names.find_column(parts, scopes, self.clause)?;
                let found = found.or_else(|| by_alias(parts, items));
                found.ok_or_else(|| self.names.unknown(parts, self.clause))
            }
            Aliases::Having { .. } if self.aggregates > 0 => self.names.column(parts, scopes, self.clause),
            Aliases::Having { items, groups } => self.in_having(parts, items, groups),
        }
    }

    /// HAVING sees results, then what is grouped; a name that means two things means the group.
    fn in_having(&mut self, parts: &[Ident], items: &[Item], groups: &[Expr]) -> Result<Expr> {
        let own = super::scope::Scopes { inner: self.around.scopes.inner, outer: None };
        let column = self.names.find_column(parts, own, self.clause);
        let of_group = match &column {
            Ok(Some(column)) => groups.iter().find(|group| *group == column),
            _ => None,
        };
        let item = by_alias(parts, items).or_else(|| match &column {
            Ok(Some(column)) => items.iter().find(|item| item.expression == *column).map(|_| column.clone()),
            _ => None,
        });
        match (item, of_group) {
            (Some(item), Some(group)) if item != *group => Ok(group.clone()),
            (Some(item), _) => Ok(item),
            (None, Some(group)) => Ok(group.clone()),
            (None, None) => {
                let outer = self.around.scopes.outer.copied().unwrap_or_default();
                self.names.column(parts, outer, self.clause)
            }
        }
    }
}

/// Numbers in the ORDER BY of a GROUP_CONCAT are positions of its arguments.
fn place_positions(function: &mut Function, is_mysql: bool) -> Result<()> {
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    let of_argument = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(of)) => Some(of.clone()),
        _ => None,
    };
    let arguments: Vec<Option<Expr>> = list.args.iter().map(of_argument).collect();
    for clause in &mut list.clauses {
        let FunctionArgumentClause::OrderBy(keys) = clause else { continue };
        for key in keys {
            let number = match super::order::as_position(&key.expr) {
                Some(number) => number.to_string(),
                // MariaDB takes a negative number for a position, too.
                None => match &key.expr {
                    Expr::UnaryOp { op: UnaryOperator::Minus, expr } if !is_mysql => {
                        let Some(number) = super::order::as_position(expr) else { continue };
                        format!("-{number}")
                    }
                    _ => continue,
                },
            };
            let no = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            match no.and_then(|no| arguments.get(no)) {
                Some(Some(argument)) => key.expr = argument.clone(),
                _ => {
                    let clause = Clause::Order.text(match is_mysql {
                        true => tanada_innodb::schema::Server::MySql,
                        false => tanada_innodb::schema::Server::MariaDb,
                    });
                    return Err(invalid(format!("Unknown column '{number}' in '{clause}'")));
                }
            }
        }
    }
    Ok(())
}

/// Whether a key of the window is a whole number.
fn has_positions(function: &Function) -> bool {
    let Some(WindowType::WindowSpec(window)) = &function.over else { return false };
    let mut keys = window.partition_by.iter().chain(window.order_by.iter().map(|key| &key.expr));
    keys.any(|key| super::order::as_position(key).is_some())
}

/// The result that is called so, by its alias.
fn by_alias(parts: &[Ident], items: &[Item]) -> Option<Expr> {
    let [name] = parts else { return None };
    let named = items.iter().find(|item| same(&item.name, &name.value));
    named.map(|item| item.expression.clone())
}

fn is_row(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => is_row(inner),
        Expr::Tuple(_) => true,
        Expr::Function(function) => is_called(function, "row"),
        _ => false,
    }
}

/// Whether an expression is the comparison that IN, ANY and ALL have become: it stands in a query of its own, but means
/// what it would mean outside of it.
pub(super) fn is_comparison_with_rows(expression: &Expr) -> bool {
    let Expr::Function(function) = expression else { return false };
    is_called(function, crate::subquery::ANY_TRUE) || is_called(function, crate::subquery::SINGLE_VALUE)
}

/// Whether an expression has an aggregate of its own query.
pub(super) fn has_aggregate(expression: &Expr) -> bool {
    finds(expression, &mut |part| matches!(part, Expr::Function(function) if is_aggregate(function)))
}

/// Whether an expression has a window function of its own query.
pub(super) fn has_window(expression: &Expr) -> bool {
    finds(expression, &mut |part| matches!(part, Expr::Function(function) if function.over.is_some()))
}

/// Whether an expression has a subquery.
pub(super) fn has_subquery(expression: &Expr) -> bool {
    finds(expression, &mut |part| matches!(part, Expr::Subquery(_) | Expr::Exists { .. }))
}

/// Whether `is_it` holds for a part of the expression outside of its subqueries.
fn finds(expression: &Expr, is_it: &mut dyn FnMut(&Expr) -> bool) -> bool {
    use datafusion::sql::sqlparser::ast::{Query, Visit, Visitor};
    struct Finding<'a> {
        is_it: &'a mut dyn FnMut(&Expr) -> bool,
        queries: usize,
    }
    impl Visitor for Finding<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            self.queries = self.queries.wrapping_sub(usize::from(is_comparison_with_rows(expression)));
            match self.queries == 0 && (self.is_it)(expression) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }

        fn post_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            self.queries = self.queries.wrapping_add(usize::from(is_comparison_with_rows(expression)));
            ControlFlow::Continue(())
        }
    }
    expression.visit(&mut Finding { is_it, queries: 0 }).is_break()
}
