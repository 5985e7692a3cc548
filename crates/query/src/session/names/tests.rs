//! Statements before and after their names are resolved.

use datafusion::sql::parser::DFParser;
use datafusion::sql::sqlparser::dialect::MySqlDialect;

use super::*;
use crate::session::command::tokens;

fn table(name: &str, columns: &[&str], key: &[usize]) -> (String, NamedTable) {
    let columns =
        columns.iter().map(|name| TableColumn { name: name.to_string(), invisible: *name == "hidden" });
    let keys = if key.is_empty() { Vec::new() } else { vec![key.to_vec()] };
    let table = NamedTable {
        database: "d".to_string(),
        name: name.to_string(),
        columns: columns.collect(),
        keys,
        ..NamedTable::default()
    };
    (name.to_string(), table)
}

fn resolved_by(sql: &str, server: Server) -> Result<(String, Vec<String>)> {
    let tables =
        [table("t", &["id", "a", "camelCase", "hidden"], &[0]), table("u", &["a", "b", "t"], &[])].into();
    let mut statements = DFParser::parse_sql_with_dialect(sql, &MySqlDialect {}).unwrap();
    let context = Context {
        tables,
        server,
        found_rows: Some(0),
        only_full_group_by: server == Server::MySql,
        tokens: &tokens(sql)?,
        variables: &|_| Ok(Expr::value(datafusion::sql::sqlparser::ast::Value::Null)),
    };
    let named = resolve(statements.pop_front().unwrap(), context)?;
    let shown = named.statement.to_string().replace('`', "");
    Ok((shown, named.header.unwrap_or_default()))
}

fn resolved(sql: &str) -> String {
    resolved_by(sql, Server::MariaDb).unwrap().0
}

fn refused(sql: &str) -> String {
    resolved_by(sql, Server::MariaDb).unwrap_err().to_string()
}

use datafusion::sql::sqlparser::ast::Expr;

#[test]
fn columns_are_qualified_and_spelled_as_in_their_table() {
    assert_eq!(
        resolved("select ID, CAMELCASE from t"),
        "SELECT t_2.id AS ID, t_2.camelCase AS CAMELCASE FROM d.t AS t_2"
    );
    assert_eq!(resolved("select x.b from u x where B = 1"), "SELECT x.b FROM d.u AS x WHERE x.b = 1");
    assert_eq!(refused("select nothing from t"), "Unknown column 'nothing' in 'SELECT'");
    assert_eq!(refused("select a from t, u"), "Column 'a' in SELECT is ambiguous");
    assert_eq!(refused("select X.b from u x"), "Unknown column 'X.b' in 'SELECT'");
}

#[test]
fn a_star_shows_the_visible_columns_and_merged_ones_once() {
    assert_eq!(
        resolved("select * from t x join u y using (a)"),
        "SELECT x.a, x.id, x.camelCase, y.b, y.t FROM d.t AS x INNER JOIN d.u AS y ON x.a = y.a"
    );
    assert_eq!(
        resolved("select a from t x right join u y using (a)"),
        "SELECT y.a FROM d.t AS x RIGHT OUTER JOIN d.u AS y ON y.a = x.a"
    );
}

#[test]
fn groups_become_a_derived_table() {
    assert_eq!(
        resolved("select a, camelCase c, count(*) n from t x group by a having n > 1 order by c"),
        "SELECT grouped.group_1 AS a, grouped.value_1 AS c, grouped.value_2 AS n FROM (SELECT x.a AS group_1, \
         first_value(x.camelCase) AS value_1, count(*) AS value_2 FROM d.t AS x GROUP BY x.a) AS grouped \
         WHERE grouped.value_2 > 1 ORDER BY 2"
    );
    assert_eq!(
        resolved("select b + 1 b, count(*) from u x group by b"),
        "SELECT grouped.group_1 + 1 AS b, grouped.value_1 AS count(*) FROM (SELECT x.b AS group_1, count(*) AS \
         value_1 FROM d.u AS x GROUP BY x.b) AS grouped"
    );
}

#[test]
fn full_group_by_takes_what_depends_on_the_groups() {
    let mysql = |sql| resolved_by(sql, Server::MySql);
    assert!(mysql("select id, a from t group by id").is_ok());
    assert!(mysql("select t.id, u.b from t join u on u.a = t.a group by t.id, u.b").is_ok());
    let error = mysql("select a, camelCase from t group by a").unwrap_err().to_string();
    assert!(error.starts_with("Expression #2 of SELECT list is not in GROUP BY clause"), "{error}");
    assert!(error.contains("'d.t.camelCase'"), "{error}");
}

#[test]
fn in_becomes_a_comparison_with_each_row() {
    assert_eq!(
        resolved("select 1 from t x where a not in (select b from u y)"),
        "SELECT 1 AS 1 FROM d.t AS x WHERE (NOT (SELECT tanada_any_true((x.a = subquery.b)) AS value FROM (SELECT y.b \
         FROM d.u AS y) AS subquery))"
    );
    assert_eq!(
        refused("select 1 from t where (a, id) in (select b from u)"),
        "Operand should contain 2 column(s)"
    );
}

#[test]
fn headers_are_the_texts_as_written() {
    let header = |sql| resolved_by(sql, Server::MariaDb).unwrap().1;
    assert_eq!(header("select A, Count( * ) , 'x' from t /* c */ where a>1"), ["A", "Count( * )", "x"]);
    assert_eq!(header("(select a+1 from t) union select 2"), ["a+1"]);
    assert_eq!(header("with c as (select 1 as z) select z, z from c"), ["z", "z"]);
}

#[test]
fn having_sees_results_and_groups_alone() {
    assert_eq!(
        resolved("select a + 1 g from t x having g > 2"),
        "SELECT x.a + 1 AS g FROM d.t AS x WHERE x.a + 1 > 2"
    );
    assert_eq!(refused("select a from t having id > 2"), "Unknown column 'id' in 'HAVING'");
}
