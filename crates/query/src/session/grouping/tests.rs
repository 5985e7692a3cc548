//! Columns that are neither grouped nor aggregated, on both servers.

use datafusion::sql::parser::DFParser;
use datafusion::sql::sqlparser::dialect::MySqlDialect;
use tanada_innodb::schema::Server;

use super::{Shape, Shapes, complete};
use crate::ErrorKind;

fn shapes() -> Shapes {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let shape = |columns: &[&str]| Shape {
        columns: texts(columns),
        primary: texts(&["id"]),
        keys: vec![texts(&["id"])],
    };
    Shapes::from([("t".to_owned(), shape(&["id", "a", "b"])), ("u".to_owned(), shape(&["id", "t_id", "c"]))])
}

fn completed(sql: &str, server: Server) -> crate::Result<String> {
    let mut statements = DFParser::parse_sql_with_dialect(sql, &MySqlDialect {}).unwrap();
    complete(statements.pop_front().unwrap(), &shapes(), server).map(|statement| statement.to_string())
}

#[test]
fn columns_of_a_row_of_the_group_are_made_explicit() {
    let of = |sql: &str| completed(sql, Server::MariaDb).unwrap();
    assert_eq!(
        of("select a, b, count(*) from t group by a order by b, count(*)"),
        "SELECT a, first_value(b ORDER BY `t`.`id`) AS `b`, count(*) FROM t GROUP BY a \
         ORDER BY b, count(*)"
    );
    assert_eq!(
        of("select t.a + u.c as x from t join u on t.id = u.t_id group by t.a having c > 1 and x > 2"),
        "SELECT t.a + first_value(u.c) AS x FROM t JOIN u ON t.id = u.t_id GROUP BY t.a \
         HAVING first_value(c) > 1 AND x > 2"
    );
    assert_eq!(
        of("select max(id), a from t"),
        "SELECT max(id), first_value(a ORDER BY `t`.`id`) AS `a` FROM t"
    );
    assert_eq!(
        of("select * from t group by a"),
        "SELECT first_value(`t`.`id` ORDER BY `t`.`id`) AS `id`, `t`.`a`, \
         first_value(`t`.`b` ORDER BY `t`.`id`) AS `b` FROM t GROUP BY a"
    );
}

#[test]
fn grouped_aggregated_and_other_queries_columns_stay() {
    for sql in [
        "SELECT a, sum(b) FROM t GROUP BY a",
        "SELECT a + 1 FROM t GROUP BY a + 1",
        "SELECT a AS x, count(*) FROM t GROUP BY x",
        "SELECT a, count(*) FROM t GROUP BY 1",
        "SELECT t.a, max(t.b) FROM t GROUP BY a ORDER BY t.a",
        "SELECT a, sum(b) OVER (PARTITION BY a) FROM t",
        "SELECT a, (SELECT max(c) FROM u WHERE u.t_id = a) FROM t GROUP BY a",
        "SELECT a FROM t",
    ] {
        assert_eq!(completed(sql, Server::MariaDb).unwrap(), sql);
    }
}

#[test]
fn mysql_wants_columns_that_the_groups_determine() {
    for sql in [
        "select id, a, b from t group by id",
        "select t.id, t.a, u.c from t join u on u.id = t.a group by t.id",
        "select t.id, a, count(u.id) from t left join u on u.t_id = t.id group by t.id",
        "select a, count(*) from t where a = 3 group by b",
        "select u.t_id, t.a from u join t on t.id = u.t_id group by u.t_id",
    ] {
        assert!(completed(sql, Server::MySql).is_ok(), "{sql}");
    }
    for sql in ["select a, b from t group by a", "select count(*), a from t", "select * from t group by a"] {
        let error = completed(sql, Server::MySql).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{sql}: {error}");
        assert!(error.to_string().contains("ONLY_FULL_GROUP_BY"), "{error}");
    }
}
