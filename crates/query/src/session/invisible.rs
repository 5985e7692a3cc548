//! Invisible columns: `SELECT *` leaves them out, a column that is named is shown.
//!
//! 1. The tables of a `SELECT` are its table factors; those that lie in files may have invisible columns.
//! 2. A `*` over one table, and any `t.*`, becomes `* EXCEPT (...)`.
//! 3. A `*` over several becomes `a.*, b.*`, each with its own exceptions.
//! 4. `USING` and `NATURAL` merge columns, so a `*` over them cannot be taken apart: it is refused and the columns have to be named.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, Ident, JoinConstraint, JoinOperator, ObjectName, Select, SelectItem,
    SelectItemQualifiedWildcardKind, TableFactor, TableWithJoins, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};

use crate::{Error, ErrorKind, Result};

/// Invisible columns by table name (lower case).
pub(super) type Invisible = HashMap<String, Vec<String>>;

/// Leaves invisible columns out of every `*`.
///
/// # Errors
/// `Unsupported` for a `*` over tables that are joined with `USING` or `NATURAL`.
pub(super) fn leave_out(mut statement: Statement, invisible: &Invisible) -> Result<Statement> {
    if invisible.is_empty() {
        return Ok(statement);
    }
    let mut inner = &mut statement;
    while let Statement::Explain(explain) = inner {
        inner = explain.statement.as_mut();
    }
    if let Statement::Statement(sql) = inner
        && let ControlFlow::Break(error) = VisitMut::visit(sql.as_mut(), &mut Hide { invisible })
    {
        return Err(error);
    }
    Ok(statement)
}

struct Hide<'a> {
    invisible: &'a Invisible,
}

impl VisitorMut for Hide<'_> {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        match self.expand(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// A table of a `FROM`: what its columns are qualified with, and which of them are invisible.
struct Factor<'a> {
    name: ObjectName,
    hidden: &'a [String],
}

impl Hide<'_> {
    fn expand(&self, select: &mut Select) -> Result<()> {
        let has_star = select.projection.iter().any(|item| {
            matches!(item, SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) if is_plain(options))
        });
        if !has_star {
            return Ok(());
        }
        let factors: Option<Vec<Factor<'_>>> =
            relations(&select.from).map(|factor| self.factor(factor)).collect();
        let merged = select.from.iter().flat_map(|from| &from.joins).any(|join| merges(&join.join_operator));
        let unknown = factors.is_none();
        let factors = factors.unwrap_or_default();
        if !unknown && factors.iter().all(|factor| factor.hidden.is_empty()) {
            return Ok(());
        }
        let mut projection = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            match item {
                SelectItem::Wildcard(options) if is_plain(&options) => match factors.as_slice() {
                    [only] if !unknown => projection.push(SelectItem::Wildcard(except(options, only.hidden))),
                    _ if unknown || merged => return Err(unclear()),
                    several => projection.extend(several.iter().map(all_of)),
                },
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                    if is_plain(&options) =>
                {
                    let of_name = factors.iter().find(|factor| same_table(&factor.name, &name));
                    let options = except(options, of_name.map_or(&[], |factor| factor.hidden));
                    let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
                    projection.push(SelectItem::QualifiedWildcard(kind, options));
                }
                other => projection.push(other),
            }
        }
        select.projection = projection;
        Ok(())
    }

    /// `None` for what has no name of its own, such as a join in parentheses.
    fn factor<'a>(&'a self, factor: &TableFactor) -> Option<Factor<'a>> {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                let last = name.0.last()?.as_ident()?;
                let hidden = self.invisible.get(&last.value.to_lowercase());
                let name = alias.as_ref().map_or(name.clone(), |alias| alias.name.clone().into());
                Some(Factor { name, hidden: hidden.map_or(&[], Vec::as_slice) })
            }
            TableFactor::Derived { alias, .. } => {
                Some(Factor { name: alias.as_ref()?.name.clone().into(), hidden: &[] })
            }
            _ => None,
        }
    }
}

fn relations(from: &[TableWithJoins]) -> impl Iterator<Item = &TableFactor> {
    from.iter().flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|j| &j.relation)))
}

fn merges(operator: &JoinOperator) -> bool {
    let constraint = match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => constraint,
        _ => return false,
    };
    matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
}

fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    options.opt_except.is_none() && options.opt_exclude.is_none()
}

/// Whether `t.*` means the factor: names are compared from their ends, as `t` means `db.t` too.
fn same_table(factor: &ObjectName, name: &ObjectName) -> bool {
    let mut parts = factor.0.iter().rev().zip(name.0.iter().rev());
    parts.all(|(a, b)| a.to_string().eq_ignore_ascii_case(&b.to_string()))
}

fn all_of(factor: &Factor<'_>) -> SelectItem {
    let kind = SelectItemQualifiedWildcardKind::ObjectName(factor.name.clone());
    SelectItem::QualifiedWildcard(kind, except(WildcardAdditionalOptions::default(), factor.hidden))
}

fn except(mut options: WildcardAdditionalOptions, hidden: &[String]) -> WildcardAdditionalOptions {
    let mut names = hidden.iter().map(|name| Ident::with_quote('`', name.clone()));
    options.opt_except = names
        .next()
        .map(|first_element| ExceptSelectItem { first_element, additional_elements: names.collect() });
    options
}

fn unclear() -> Error {
    let message = "SELECT * over a join with USING, NATURAL or parentheses and a table with invisible columns is not run; name the columns";
    Error::new(ErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;
    use datafusion::sql::sqlparser::dialect::MySqlDialect;

    use super::*;

    fn without(sql: &str) -> Result<String> {
        let mut statements = DFParser::parse_sql_with_dialect(sql, &MySqlDialect {}).unwrap();
        let invisible = Invisible::from([("t".to_string(), vec!["h".to_string(), "i".to_string()])]);
        leave_out(statements.pop_front().unwrap(), &invisible).map(|statement| statement.to_string())
    }

    #[test]
    fn a_star_leaves_invisible_columns_out() {
        assert_eq!(without("select * from t").unwrap(), "SELECT * EXCEPT (`h`, `i`) FROM t");
        assert_eq!(
            without("select h, x.* from d.T as x").unwrap(),
            "SELECT h, x.* EXCEPT (`h`, `i`) FROM d.T AS x"
        );
        assert_eq!(
            without("select * from t join u on t.a = u.a").unwrap(),
            "SELECT t.* EXCEPT (`h`, `i`), u.* FROM t JOIN u ON t.a = u.a"
        );
        assert_eq!(
            without("select * from (select * from t) as d").unwrap(),
            "SELECT * FROM (SELECT * EXCEPT (`h`, `i`) FROM t) AS d"
        );
    }

    #[test]
    fn what_has_no_invisible_columns_stays_as_it_is() {
        assert_eq!(without("select * from u").unwrap(), "SELECT * FROM u");
        assert_eq!(without("select count(*), h from t").unwrap(), "SELECT count(*), h FROM t");
    }

    #[test]
    fn merged_columns_cannot_be_taken_apart() {
        assert!(
            without("select * from t join u using (a)").unwrap_err().to_string().contains("name the columns")
        );
    }
}
