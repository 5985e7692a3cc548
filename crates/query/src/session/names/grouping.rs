//! A SELECT with groups as two queries.
//!
//! ```sql
//! SELECT a, b, sum(c) + 1 FROM t GROUP BY a HAVING max(d) > 2 ORDER BY a
//! -- becomes
//! SELECT g.group_1, g.any_1, g.aggregate_1 + 1
//! FROM (SELECT a AS group_1, first_value(b) AS any_1, sum(c) AS aggregate_1, max(d) AS aggregate_2
//!       FROM t GROUP BY a) g
//! WHERE g.aggregate_2 > 2 ORDER BY g.group_1
//! ```
//!
//! So HAVING, ORDER BY, window functions and subqueries see plain columns. A column that is not grouped has the value
//! of any row of its group: the servers' rule, unless ONLY_FULL_GROUP_BY is set, when MySQL takes only columns that
//! depend on the groups.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, GroupByExpr, Ident, OrderBy, OrderByExpr, OrderByOptions, Query, Select,
    SelectItem, SetExpr, Value, VisitMut, VisitorMut,
};

use super::expression::{
    arguments, has_window, is_aggregate, is_called, is_comparison_with_rows, only_argument,
};
use super::item::Item;
use super::order::Key;
use super::quantified::{call, call_of, derived, query_of, select_of};
use super::query::Output;
use super::scope::Scope;
use super::select::{Clauses, Groups, both, finish};
use super::{Names, invalid, quoted, unsupported};
use crate::session::aggregates::parts_of_average;
use crate::{Error, Result};

/// Begin of the names of columns below WITH ROLLUP.
const COLUMN: &str = "column_";

/// The average of a sum and a count, with all digits that the server carries on.
const AVERAGE: &str = "average of";

/// The aggregate that takes a row's value.
const ANY_ROW: &str = "first_value";

impl Names<'_> {
    /// Writes a SELECT with groups; `select` has its FROM and WHERE.
    pub(super) fn grouped(
        &mut self,
        select: &mut Select,
        order_by: &mut Option<OrderBy>,
        clauses: Clauses,
        scope: &Scope,
    ) -> Result<Vec<Output>> {
        let Clauses { mut items, outputs, groups, mut having, mut keys } = clauses;
        let rounds_averages = self.rounds_averages(select, &items, &keys, &groups, scope);
        if groups.has_rollup && !keys.is_empty() && !self.is_mysql() {
            return Err(invalid("Incorrect usage of CUBE/ROLLUP and ORDER BY"));
        }
        let alias = self.alias("grouped");
        let rolled = self.alias("rolled");
        let mut grouping = Grouping::new(self, groups, [alias.clone(), rolled], scope);
        grouping.rounds_averages = rounds_averages;
        for (no, item) in items.iter_mut().enumerate() {
            grouping.place = Place::Item(no + 1);
            grouping.rewrite(&mut item.expression)?;
        }
        if let Some(having) = &mut having {
            grouping.place = Place::Having;
            grouping.rewrite(having)?;
        }
        for (no, (key, _)) in keys.iter_mut().enumerate() {
            if let Key::Expression(expression) = key {
                grouping.place = Place::Order(no + 1);
                grouping.rewrite(expression)?;
            }
        }
        if grouping.groups.has_rollup && keys.is_empty() && select.distinct.is_none() {
            keys = grouping.order_of_rollup();
        }
        let is_empty_without_rows = match grouping.groups.has_rollup {
            true => !grouping.is_mysql,
            false => grouping.groups.is_given && grouping.groups.expressions.is_empty(),
        };
        if is_empty_without_rows {
            // Groups of constants alone, and MariaDB's sums of all: one group, but none of no rows.
            let counted = grouping.slot(call("count", Expr::value(Value::Number("1".to_string(), false))));
            let some = Expr::BinaryOp {
                left: Box::new(counted),
                op: BinaryOperator::Gt,
                right: Box::new(Expr::value(Value::Number("0".to_string(), false))),
            };
            having = Some(both(Some(some), having.unwrap_or(Expr::value(Value::Boolean(true)))));
        }
        let inner = grouping.query(select)?;
        select.from = vec![derived(Box::new(inner), alias)];
        select.selection = having;
        finish(self, select, order_by, items, outputs, keys)
    }
}

impl Names<'_> {
    /// Whether the server computes with averages of the digits that they show: in the table of rows that it makes of
    /// groups in the order of an index, to sort them or for windows, and MySQL for all windows.
    fn rounds_averages(
        &self,
        select: &Select,
        items: &[Item],
        keys: &[(Key, OrderByExpr)],
        groups: &Groups,
        scope: &Scope,
    ) -> bool {
        let has_window = items.iter().any(|item| has_window(&item.expression));
        if has_window && self.is_mysql() {
            return true;
        }
        let forms: Vec<Expr> = groups.expressions.iter().map(comparable).collect();
        let sorts = keys.iter().any(|(key, _)| match key {
            Key::Expression(expression) => !forms.contains(&comparable(expression)),
            Key::Result(no) => {
                items.get(*no).is_none_or(|item| !forms.contains(&comparable(&item.expression)))
            }
        });
        let [relation] = scope.relations.as_slice() else { return false };
        let column = |of: &Expr| relation.columns.iter().position(|column| column.expression == *of);
        let grouped: Option<Vec<usize>> = groups.expressions.iter().map(column).collect();
        let Some(grouped) = grouped.filter(|grouped| !grouped.is_empty()) else { return false };
        let is_leading = |index: &Vec<usize>| {
            index.get(..grouped.len()).is_some_and(|leading| grouped.iter().all(|no| leading.contains(no)))
        };
        (sorts || has_window) && select.distinct.is_none() && relation.indexes.iter().any(is_leading)
    }
}

fn operation(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// Where an expression stands, for messages.
#[derive(Debug, Clone, Copy)]
enum Place {
    Item(usize),
    Order(usize),
    Having,
}

/// The inner query, as it comes together.
struct Grouping<'s> {
    scope: &'s Scope,
    alias: Ident,
    /// What the rows below WITH ROLLUP are called.
    rolled: Ident,
    groups: Groups,
    /// The groups in the form in which expressions are compared.
    compared: Vec<Expr>,
    /// Columns of the inner query behind the groups, and what they are called.
    slots: Vec<(Expr, Ident)>,
    /// Subqueries around.
    queries: usize,
    place: Place,
    /// Columns that the groups decide, if others are refused.
    determined: Option<Vec<Expr>>,
    /// Whether the digits of averages that are not shown are lost, too.
    rounds_averages: bool,
    is_mysql: bool,
    has_group_by: bool,
}

impl<'s> Grouping<'s> {
    fn new(
        names: &Names<'_>,
        mut groups: Groups,
        [alias, rolled]: [Ident; 2],
        scope: &'s Scope,
    ) -> Grouping<'s> {
        if !groups.has_rollup {
            groups.expressions.retain(|group| !is_constant(group));
        }
        let strict = names.context.only_full_group_by;
        let determined = strict.then(|| determined(&groups.expressions, scope));
        Grouping {
            scope,
            alias,
            rolled,
            compared: groups.expressions.iter().map(comparable).collect(),
            has_group_by: groups.is_given,
            groups,
            slots: Vec::new(),
            queries: 0,
            place: Place::Having,
            determined,
            rounds_averages: false,
            is_mysql: names.is_mysql(),
        }
    }

    fn rewrite(&mut self, expression: &mut Expr) -> Result<()> {
        match expression.visit(self) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    fn column(&self, name: Ident) -> Expr {
        Expr::CompoundIdentifier(vec![self.alias.clone(), name])
    }

    /// A column of the inner query that is `expression`.
    fn slot(&mut self, expression: Expr) -> Expr {
        let known = self.slots.iter().find(|(slot, _)| *slot == expression).map(|(_, name)| name.clone());
        let name = known.unwrap_or_else(|| {
            let name = quoted(&format!("value_{}", self.slots.len() + 1));
            self.slots.push((expression, name.clone()));
            name
        });
        self.column(name)
    }

    fn group_name(no: usize) -> Ident {
        quoted(&format!("group_{}", no + 1))
    }

    /// What takes the place of a part of an expression.
    fn replacement(&mut self, expression: &Expr) -> Result<Option<Expr>> {
        let form = comparable(expression);
        if let Some(no) = self.compared.iter().position(|group| *group == form) {
            return Ok(Some(self.column(Self::group_name(no))));
        }
        match expression {
            Expr::Function(function)
                if self.queries == 0
                    && is_called(function, "avg")
                    && !self.rounds_averages
                    && is_aggregate(function) =>
            {
                let [sum, count] = parts_of_average(function).map(|part| self.slot(Expr::Function(part)));
                Ok(Some(call_of(AVERAGE, vec![sum, count])))
            }
            Expr::Function(function) if self.queries == 0 && is_aggregate(function) => {
                Ok(Some(self.slot(expression.clone())))
            }
            Expr::Function(function) if self.queries == 0 && is_called(function, "grouping") => {
                if !self.is_mysql {
                    return Err(invalid("FUNCTION grouping does not exist"));
                }
                self.grouping(function).map(Some)
            }
            Expr::Function(function) if self.is_mysql && is_called(function, "any_value") => {
                Ok(only_argument(function).map(|of| self.slot(call(ANY_ROW, of.clone()))))
            }
            column if self.scope.has(column) => {
                self.check(column)?;
                Ok(Some(self.slot(call(ANY_ROW, column.clone()))))
            }
            _ => Ok(None),
        }
    }

    /// GROUPING of several groups has a bit of each, that of the last being the lowest.
    fn grouping(&mut self, function: &Function) -> Result<Expr> {
        let mut bits: Option<Expr> = None;
        for (no, of) in arguments(function).into_iter().enumerate() {
            if !self.groups.has_rollup || !self.compared.contains(&comparable(&of)) {
                let message = format!("Argument #{no} of GROUPING function is not in GROUP BY", no = no + 1);
                return Err(invalid(message));
            }
            let bit = self.slot(call("grouping", of));
            bits = Some(match bits {
                None => bit,
                Some(bits) => {
                    let two = Expr::value(Value::Number("2".to_string(), false));
                    let shifted = operation(bits, BinaryOperator::Multiply, two);
                    Expr::Nested(Box::new(operation(shifted, BinaryOperator::Plus, bit)))
                }
            });
        }
        bits.ok_or_else(|| invalid("Incorrect parameter count in the call to native function 'GROUPING'"))
    }

    /// MySQL's ONLY_FULL_GROUP_BY.
    fn check(&self, column: &Expr) -> Result<()> {
        let Some(determined) = &self.determined else { return Ok(()) };
        if determined.contains(column) {
            return Ok(());
        }
        let name = self.scope.shown(column);
        let (number, list) = match self.place {
            Place::Item(no) => (no, "SELECT list"),
            Place::Order(no) => (no, "ORDER BY clause"),
            Place::Having => (1, "HAVING clause"),
        };
        Err(invalid(match self.has_group_by {
            true => format!(
                "Expression #{number} of {list} is not in GROUP BY clause and contains nonaggregated column \
                 '{name}' which is not functionally dependent on columns in GROUP BY clause; this is incompatible \
                 with sql_mode=only_full_group_by"
            ),
            false => format!(
                "In aggregated query without GROUP BY, expression #{number} of {list} contains nonaggregated \
                 column '{name}'; this is incompatible with sql_mode=only_full_group_by"
            ),
        }))
    }

    /// The servers sort what they roll up: each sum behind its parts.
    fn order_of_rollup(&mut self) -> Vec<(Key, OrderByExpr)> {
        let mut keys = Vec::new();
        for (no, group) in self.groups.expressions.clone().into_iter().enumerate() {
            let is_sum = self.slot(call("grouping", group));
            for expression in [is_sum, self.column(Self::group_name(no))] {
                let options = OrderByOptions { asc: None, nulls_first: None };
                let by = OrderByExpr { expr: expression.clone(), options, with_fill: None };
                keys.push((Key::Expression(Box::new(expression)), by));
            }
        }
        keys
    }

    /// The inner query; takes FROM and WHERE from `select`.
    fn query(self, select: &mut Select) -> Result<Query> {
        let mut from = std::mem::take(&mut select.from);
        let mut selection = select.selection.take();
        let (mut groups, mut slots) = (self.groups.expressions, self.slots);
        if self.groups.has_rollup {
            let forms: Vec<Expr> = groups.iter().map(comparable).collect();
            if forms.iter().enumerate().any(|(no, form)| forms[..no].contains(form)) {
                return Err(unsupported("WITH ROLLUP of the same expression twice is not run"));
            }
            // Groups become columns of their own first: sums and parts are told apart by them.
            let mut rolled = Rolled { scope: self.scope, alias: self.rolled.clone(), columns: Vec::new() };
            for (no, group) in groups.iter_mut().enumerate() {
                let name = Self::group_name(no);
                rolled.columns.push((group.clone(), name.clone()));
                *group = Expr::CompoundIdentifier(vec![self.rolled.clone(), name]);
            }
            for (slot, _) in &mut slots {
                rolled.take(slot, &forms, &groups);
            }
            let named = |(expr, alias)| SelectItem::ExprWithAlias { expr, alias };
            let mut rows = select_of(rolled.columns.into_iter().map(named).collect());
            rows.from = std::mem::take(&mut from);
            rows.selection = selection.take();
            from = vec![derived(Box::new(query_of(SetExpr::Select(Box::new(rows)))), self.rolled)];
        }
        let named = |(no, expr): (usize, &Expr)| SelectItem::ExprWithAlias {
            expr: expr.clone(),
            alias: Self::group_name(no),
        };
        let mut projection: Vec<SelectItem> = groups.iter().enumerate().map(named).collect();
        projection.extend(slots.into_iter().map(|(expr, alias)| SelectItem::ExprWithAlias { expr, alias }));
        if projection.is_empty() {
            let counted = call("count", Expr::value(Value::Number("1".to_string(), false)));
            projection.push(SelectItem::ExprWithAlias { expr: counted, alias: quoted("value_1") });
        }
        let mut inner = select_of(projection);
        inner.from = from;
        inner.selection = selection;
        let by = match self.groups.has_rollup {
            true => vec![Expr::Rollup(groups.into_iter().map(|group| vec![group]).collect())],
            false => groups,
        };
        inner.group_by = GroupByExpr::Expressions(by, Vec::new());
        Ok(query_of(SetExpr::Select(Box::new(inner))))
    }
}

/// The rows below WITH ROLLUP: the groups, and each column that is aggregated.
struct Rolled<'s> {
    scope: &'s Scope,
    alias: Ident,
    columns: Vec<(Expr, Ident)>,
}

impl Rolled<'_> {
    /// Has `slot` read these rows; `groups` are its columns of what was `compared`.
    fn take(&mut self, slot: &mut Expr, compared: &[Expr], groups: &[Expr]) {
        if let Expr::Function(function) = &*slot
            && is_called(function, "grouping")
            && let Some(of) = only_argument(function)
            && let Some(no) = compared.iter().position(|group| *group == comparable(of))
            && let Some(group) = groups.get(no)
        {
            *slot = call("grouping", group.clone());
            return;
        }
        let _: ControlFlow<()> = slot.visit(self);
    }
}

impl VisitorMut for Rolled<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if self.scope.has(expression) {
            let known = self
                .columns
                .iter()
                .find(|(column, name)| column == expression && name.value.starts_with(COLUMN));
            let name = known.map(|(_, name)| name.clone()).unwrap_or_else(|| {
                let name = quoted(&format!("{COLUMN}{}", self.columns.len()));
                self.columns.push((expression.clone(), name.clone()));
                name
            });
            *expression = Expr::CompoundIdentifier(vec![self.alias.clone(), name]);
        }
        ControlFlow::Continue(())
    }
}

impl VisitorMut for Grouping<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        self.queries = self.queries.wrapping_add(usize::from(is_comparison_with_rows(expression)));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        self.queries = self.queries.wrapping_sub(usize::from(is_comparison_with_rows(expression)));
        match self.replacement(expression) {
            Ok(None) => ControlFlow::Continue(()),
            // The columns of the inner query are none of the scope's, so they are not replaced again.
            Ok(Some(replaced)) => {
                *expression = replaced;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// Names of functions in lower case: they are the same in any.
fn comparable(expression: &Expr) -> Expr {
    struct Lower;
    impl VisitorMut for Lower {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
            if let Expr::Function(function) = expression {
                for part in &mut function.name.0 {
                    if let datafusion::sql::sqlparser::ast::ObjectNamePart::Identifier(name) = part {
                        name.value = name.value.to_ascii_lowercase();
                    }
                }
            }
            ControlFlow::Continue(())
        }
    }
    let mut form = expression.clone();
    let _: ControlFlow<()> = form.visit(&mut Lower);
    form
}

fn is_constant(expression: &Expr) -> bool {
    match expression {
        Expr::Value(_) => true,
        Expr::Nested(inner) => is_constant(inner),
        Expr::UnaryOp { expr, .. } => is_constant(expr),
        _ => false,
    }
}

/// The columns that have one value in each group: by the groups, by constants, by keys and by equalities.
fn determined(groups: &[Expr], scope: &Scope) -> Vec<Expr> {
    let mut known: Vec<Expr> = groups.iter().filter(|group| scope.has(group)).cloned().collect();
    for (one, other) in &scope.equalities {
        for (column, value) in [(one, other), (other, one)] {
            if scope.has(column) && is_constant(value) {
                known.push(column.clone());
            }
        }
    }
    loop {
        let before = known.len();
        for (one, other) in &scope.equalities {
            for (from, to) in [(one, other), (other, one)] {
                if known.contains(from) && scope.has(to) && !known.contains(to) {
                    known.push(to.clone());
                }
            }
        }
        for relation in &scope.relations {
            let column = |no: &usize| relation.columns.get(*no).map(|column| &column.expression);
            let is_known = |key: &Vec<usize>| {
                key.iter().all(|no| column(no).is_some_and(|column| known.contains(column)))
            };
            if relation.keys.iter().any(is_known) {
                let rest = relation.columns.iter().map(|column| &column.expression);
                let rest: Vec<Expr> = rest.filter(|column| !known.contains(column)).cloned().collect();
                known.extend(rest);
            }
        }
        if known.len() == before {
            return known;
        }
    }
}

impl Scope {
    /// A column as messages name it.
    fn shown(&self, column: &Expr) -> String {
        for relation in &self.relations {
            if let Some(found) = relation.columns.iter().find(|known| known.expression == *column) {
                let database = relation.database.iter().map(String::as_str);
                let parts = database.chain([relation.name.as_str(), found.name.as_str()]);
                return parts.collect::<Vec<_>>().join(".");
            }
        }
        column.to_string()
    }
}
