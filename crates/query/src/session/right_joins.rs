//! RIGHT JOIN with USING or NATURAL as the LEFT JOIN that it is.
//!
//! Its merged column has the value of the right table, and `*` shows the right table's columns first. DataFusion
//! takes the left table's, which are NULL in rows of the right one alone. `A RIGHT JOIN B USING (k)` becomes `B LEFT
//! JOIN A USING (k)`, where `A` is all that stands on the left.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, Select, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};

/// Turns them around in all queries of a statement.
pub(super) fn turned(mut statement: Statement) -> Statement {
    let mut inner = &mut statement;
    while let Statement::Explain(explain) = inner {
        inner = explain.statement.as_mut();
    }
    if let Statement::Statement(sql) = inner {
        let _: ControlFlow<()> = VisitMut::visit(sql.as_mut(), &mut Turn);
    }
    statement
}

struct Turn;

impl VisitorMut for Turn {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.from.iter_mut().for_each(turn);
        ControlFlow::Continue(())
    }
}

fn turn(table: &mut TableWithJoins) {
    nested(&mut table.relation);
    for join in &mut table.joins {
        nested(&mut join.relation);
    }
    let Some(last) = table.joins.iter().rposition(|join| merges(&join.join_operator)) else { return };
    let behind = table.joins.split_off(last + 1);
    let Some(right) = table.joins.pop() else { return };
    turn(table);
    let left = TableWithJoins { relation: table.relation.clone(), joins: std::mem::take(&mut table.joins) };
    let left = match left.joins.is_empty() {
        true => left.relation,
        false => TableFactor::NestedJoin { table_with_joins: Box::new(left), alias: None },
    };
    let (JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint)) = right.join_operator else {
        return;
    };
    table.relation = right.relation;
    let join_operator = JoinOperator::Left(constraint);
    table.joins = vec![Join { relation: left, global: right.global, join_operator }];
    table.joins.extend(behind);
}

fn nested(factor: &mut TableFactor) {
    if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
        turn(table_with_joins);
    }
}

fn merges(operator: &JoinOperator) -> bool {
    match operator {
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;
    use datafusion::sql::sqlparser::dialect::MySqlDialect;

    use super::turned;

    fn of(sql: &str) -> String {
        let mut statements = DFParser::parse_sql_with_dialect(sql, &MySqlDialect {}).unwrap();
        turned(statements.pop_front().unwrap()).to_string()
    }

    #[test]
    fn right_joins_that_merge_columns_become_left_joins() {
        assert_eq!(of("select k from a right join b using (k)"), "SELECT k FROM b LEFT JOIN a USING(k)");
        assert_eq!(
            of("select k from a join c on a.x = c.x natural right join b left join d on d.k = b.k"),
            "SELECT k FROM b NATURAL LEFT JOIN (a JOIN c ON a.x = c.x) LEFT JOIN d ON d.k = b.k"
        );
        assert_eq!(
            of("select k from a right join b using (k) right join c using (k)"),
            "SELECT k FROM c LEFT JOIN (b LEFT JOIN a USING(k)) USING(k)"
        );
    }

    #[test]
    fn other_joins_stay() {
        for sql in [
            "SELECT k FROM a RIGHT JOIN b ON a.k = b.k",
            "SELECT k FROM a LEFT JOIN b USING(k)",
            "SELECT k FROM a NATURAL JOIN b",
        ] {
            assert_eq!(of(sql), sql);
        }
    }
}
