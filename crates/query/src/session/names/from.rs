//! FROM: tables get aliases, USING and NATURAL become conditions, views and derived tables are resolved on their own.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, TableAlias,
    TableFactor, TableWithJoins,
};

use super::query::{Output, Surroundings};
use super::scope::{Relation, Scope, ScopeColumn, Scopes, same};
use super::{Clause, Names, invalid, quoted, table_key, unsupported};
use crate::Result;
use crate::catalog::restricted;

/// Which side of a join may be missing in its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Inner,
    Left,
    Right,
}

impl Names<'_> {
    /// Rewrites a FROM clause and tells what names mean behind it.
    pub(super) fn from(
        &mut self,
        from: &mut [TableWithJoins],
        surroundings: &Surroundings<'_>,
    ) -> Result<Scope> {
        let mut whole = Scope::default();
        for tables in from {
            let outer = Scopes { inner: Some(&whole), outer: Some(&surroundings.scopes) };
            let scope = self.joined(tables, surroundings, outer)?;
            self.check_names(&whole, &scope)?;
            whole.relations.extend(scope.relations);
            whole.row.extend(scope.row);
            whole.equalities.extend(scope.equalities);
        }
        Ok(whole)
    }

    /// `before` is what a LATERAL derived table sees.
    fn joined(
        &mut self,
        tables: &mut TableWithJoins,
        surroundings: &Surroundings<'_>,
        before: Scopes<'_>,
    ) -> Result<Scope> {
        let mut left = self.factor(&mut tables.relation, surroundings, before)?;
        for join in &mut tables.joins {
            let lateral = Scopes { inner: Some(&left), outer: Some(&before) };
            let right = self.factor(&mut join.relation, surroundings, lateral)?;
            self.check_names(&left, &right)?;
            let (kind, constraint) = operator(&join.join_operator)?;
            if kind == Kind::Right && matches!(join.relation, TableFactor::Derived { lateral: true, .. }) {
                return Err(unsupported("a LATERAL table on the right side of a RIGHT JOIN is not run"));
            }
            let (scope, condition) = self.join(left, right, kind, constraint, surroundings)?;
            left = scope;
            join.join_operator = match (kind, condition) {
                (Kind::Inner, None) => JoinOperator::CrossJoin(JoinConstraint::None),
                (_, None) => return Err(unsupported("an outer join without a condition is not run")),
                (Kind::Inner, Some(on)) => JoinOperator::Inner(JoinConstraint::On(on)),
                (Kind::Left, Some(on)) => JoinOperator::LeftOuter(JoinConstraint::On(on)),
                (Kind::Right, Some(on)) => JoinOperator::RightOuter(JoinConstraint::On(on)),
            };
        }
        Ok(left)
    }

    /// The scope of a join, and its condition.
    fn join(
        &mut self,
        left: Scope,
        right: Scope,
        kind: Kind,
        constraint: JoinConstraint,
        surroundings: &Surroundings<'_>,
    ) -> Result<(Scope, Option<Expr>)> {
        let names: Vec<String> = match &constraint {
            JoinConstraint::Using(names) => names.iter().map(last_name).collect(),
            // The columns of the first table that the other has, too, in its order.
            JoinConstraint::Natural => {
                let shared = |column: &&ScopeColumn| {
                    !column.invisible && right.row.iter().any(|other| same(&other.name, &column.name))
                };
                left.row.iter().filter(shared).map(|column| column.name.clone()).collect()
            }
            JoinConstraint::On(_) | JoinConstraint::None => Vec::new(),
        };
        let mut relations = left.relations.clone();
        relations.extend(right.relations.iter().cloned());
        let mut scope = Scope { relations, ..Scope::default() };
        scope.equalities.extend(left.equalities.iter().cloned());
        scope.equalities.extend(right.equalities.iter().cloned());
        if let JoinConstraint::On(mut on) = constraint {
            scope.row = [left.row, right.row].concat();
            let scopes = Scopes { inner: Some(&scope), outer: Some(&surroundings.scopes) };
            self.expression(&mut on, &surroundings.within(scopes), Clause::On)?;
            if kind == Kind::Inner {
                scope.note_equalities(&on);
            }
            return Ok((scope, Some(on)));
        }
        let mut condition: Option<Expr> = None;
        // Of a right join the second table's columns are the ones that are always there.
        let (first, second) = if kind == Kind::Right { (&right, &left) } else { (&left, &right) };
        let mut merged = Vec::new();
        for name in &names {
            let [one, other] = [first, second].map(|side| self.using(side, name));
            let (one, other) = (one?, other?);
            let equal = Expr::BinaryOp {
                left: Box::new(one.expression.clone()),
                op: BinaryOperator::Eq,
                right: Box::new(other.expression.clone()),
            };
            if kind == Kind::Inner {
                scope.equalities.push((one.expression.clone(), other.expression.clone()));
            }
            merged.push(ScopeColumn { name: one.name.clone(), ..one });
            condition = Some(match condition {
                Some(all) => {
                    Expr::BinaryOp { left: Box::new(all), op: BinaryOperator::And, right: Box::new(equal) }
                }
                None => equal,
            });
        }
        let is_merged = |column: &&ScopeColumn| names.iter().any(|name| same(name, &column.name));
        let rest = |side: &Scope| -> Vec<ScopeColumn> {
            side.row.iter().filter(|column| !is_merged(column)).cloned().collect()
        };
        scope.row = [merged, rest(first), rest(second)].concat();
        if condition.is_none() && kind != Kind::Inner {
            // NATURAL without a common column.
            condition = Some(Expr::value(datafusion::sql::sqlparser::ast::Value::Boolean(true)));
        }
        Ok((scope, condition))
    }

    fn using(&self, side: &Scope, name: &str) -> Result<ScopeColumn> {
        match side.unqualified(name).as_slice() {
            [only] => Ok((*only).clone()),
            [] => Err(self.unknown(&[quoted(name)], Clause::From)),
            _ => {
                let clause = Clause::From.text(self.context.server);
                Err(invalid(format!("Column '{name}' in {clause} is ambiguous")))
            }
        }
    }

    fn check_names(&self, one: &Scope, other: &Scope) -> Result<()> {
        for relation in &other.relations {
            let is_same = |before: &&Relation| {
                before.name == relation.name
                    && (before.database.is_none()
                        || relation.database.is_none()
                        || before.database == relation.database)
            };
            if !relation.name.is_empty() && one.relations.iter().any(|before| is_same(&before)) {
                return Err(invalid(format!("Not unique table/alias: '{}'", relation.name)));
            }
        }
        Ok(())
    }

    fn factor(
        &mut self,
        factor: &mut TableFactor,
        surroundings: &Surroundings<'_>,
        before: Scopes<'_>,
    ) -> Result<Scope> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias } => {
                if alias.is_some() {
                    return Err(invalid("a join in parentheses has no alias"));
                }
                self.joined(table_with_joins, surroundings, before)
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let Some(given) = alias.take() else {
                    return Err(invalid("Every derived table must have its own alias"));
                };
                // A derived table sees nothing of the query that it stands in; those around only at MySQL.
                let mut around = surroundings.beside(columns_of(&given));
                match (*lateral, self.is_mysql()) {
                    (true, true) => around.scopes = before,
                    (true, false) => return Err(unsupported("LATERAL is MySQL's")),
                    (false, true) => {}
                    (false, false) => around.scopes = Scopes::default(),
                }
                let output = self.query(subquery, &around)?;
                let (relation, emitted) = self.derived(&given.name.value, &output, None)?;
                *alias = Some(emitted);
                Ok(Scope::of(relation))
            }
            TableFactor::Table { .. } => self.table(factor, surroundings),
            TableFactor::JsonTable { .. } => self.json_table(factor, surroundings, before),
            _ => Err(unsupported("this kind of table in FROM is not run")),
        }
    }

    /// A relation over the results of a query.
    pub(super) fn derived(
        &mut self,
        name: &str,
        output: &[Output],
        database: Option<String>,
    ) -> Result<(Relation, TableAlias)> {
        for (no, column) in output.iter().enumerate() {
            if output[..no].iter().any(|before| same(&before.name, &column.name)) {
                return Err(invalid(format!("Duplicate column name '{}'", column.name)));
            }
        }
        let alias = self.alias(name);
        let columns = output.iter().map(|column| ScopeColumn {
            name: column.name.clone(),
            expression: Expr::CompoundIdentifier(vec![alias.clone(), quoted(&column.emitted)]),
            invisible: false,
            is_derived: true,
        });
        let relation = Relation {
            database,
            name: name.to_string(),
            alias: alias.clone(),
            columns: columns.collect(),
            keys: Vec::new(),
            indexes: Vec::new(),
        };
        Ok((relation, table_alias(alias)))
    }

    fn table(&mut self, factor: &mut TableFactor, surroundings: &Surroundings<'_>) -> Result<Scope> {
        let TableFactor::Table { name, alias, args, partitions, index_hints, with_hints, .. } = &mut *factor
        else {
            return Err(unsupported("this kind of table in FROM is not run"));
        };
        if args.is_some() {
            return Err(unsupported(format!("table function {name} is not run")));
        }
        with_hints.clear();
        let given = alias.take().map(|alias| alias.name.value);
        if let [only] = name.0.as_slice()
            && let Some(only) = only.as_ident()
            && let Some(cte) = surroundings.cte(&only.value)
        {
            let shown = given.unwrap_or_else(|| only.value.clone());
            let (relation, emitted) = self.derived(&shown, &cte.output, None)?;
            *name = ObjectName(vec![ObjectNamePart::Identifier(quoted(&cte.emitted))]);
            *alias = Some(emitted);
            return Ok(Scope::of(relation));
        }
        let Some(table) = self.context.tables.get(&table_key(name)).cloned() else {
            return Err(invalid(format!("Table '{name}' doesn't exist")));
        };
        let written = name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone());
        let written = written.unwrap_or_default();
        for hint in index_hints.drain(..) {
            let unknown = hint.index_names.iter().find(|hinted| {
                !table.indexes.is_empty()
                    && !table.indexes.iter().any(|index| same(index, &hinted.value))
                    && !hinted.value.eq_ignore_ascii_case("PRIMARY")
            });
            if let Some(unknown) = unknown {
                return Err(invalid(format!("Key '{}' doesn't exist in table '{written}'", unknown.value)));
            }
        }
        let mut found_as = table.name.clone();
        if !partitions.is_empty() {
            check_partitions(&table.partitions, partitions, &written)?;
            let named: Vec<&str> = partitions.iter().map(|partition| partition.value.as_str()).collect();
            found_as = restricted(&table.name, &named);
            partitions.clear();
        }
        let database = given.is_none().then(|| table.database.clone());
        let shown = given.unwrap_or(written);
        if let Some(view) = &table.view {
            let mut query = view.clone();
            let names = (!table.view_columns.is_empty()).then(|| table.view_columns.clone());
            let around = Surroundings { names, ..Surroundings::default() };
            let output = self.query(&mut query, &around)?;
            let (relation, emitted) = self.derived(&shown, &output, database)?;
            *factor =
                TableFactor::Derived { lateral: false, subquery: query, alias: Some(emitted), sample: None };
            return Ok(Scope::of(relation));
        }
        let unique = self.alias(&shown);
        let columns = table.columns.iter().map(|column| ScopeColumn {
            name: column.name.clone(),
            expression: Expr::CompoundIdentifier(vec![unique.clone(), quoted(&column.name)]),
            invisible: column.invisible,
            is_derived: table.is_view,
        });
        let relation = Relation {
            database,
            name: shown,
            alias: unique.clone(),
            columns: columns.collect(),
            keys: table.keys.clone(),
            indexes: table.index_columns.clone(),
        };
        *name = ObjectName(
            [table.schema.unwrap_or(&table.database), &found_as]
                .map(|part| ObjectNamePart::Identifier(quoted(part)))
                .into(),
        );
        *alias = Some(table_alias(unique));
        Ok(Scope::of(relation))
    }
}

impl Scope {
    /// Notes the columns that a condition makes equal.
    pub(super) fn note_equalities(&mut self, condition: &Expr) {
        match condition {
            Expr::Nested(inner) => self.note_equalities(inner),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.note_equalities(left);
                self.note_equalities(right);
            }
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                self.equalities.push((left.as_ref().clone(), right.as_ref().clone()));
            }
            _ => {}
        }
    }
}

/// Checks that a table has the partitions, or subpartitions, that are named.
fn check_partitions(known: &[String], named: &[Ident], table: &str) -> Result<()> {
    if known.is_empty() {
        return Err(invalid("PARTITION () clause on non partitioned table"));
    }
    let is_known = |name: &Ident| {
        let name = name.value.to_lowercase();
        known.iter().any(|partition| partition.split('/').any(|part| part.to_lowercase() == name))
    };
    match named.iter().find(|name| !is_known(name)) {
        Some(name) => Err(invalid(format!("Unknown partition '{}' in table '{table}'", name.value))),
        None => Ok(()),
    }
}

fn operator(operator: &JoinOperator) -> Result<(Kind, JoinConstraint)> {
    Ok(match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::CrossJoin(constraint)
        | JoinOperator::StraightJoin(constraint) => (Kind::Inner, constraint.clone()),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            (Kind::Left, constraint.clone())
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            (Kind::Right, constraint.clone())
        }
        _ => return Err(unsupported("neither MySQL nor MariaDB has this kind of join")),
    })
}

fn last_name(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map_or_else(String::new, |ident| ident.value.clone())
}

fn columns_of(alias: &TableAlias) -> Option<Vec<String>> {
    let names: Vec<String> = alias.columns.iter().map(|column| column.name.value.clone()).collect();
    (!names.is_empty()).then_some(names)
}

pub(super) fn table_alias(name: Ident) -> TableAlias {
    TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}
