//! `information_schema` and SHOW of what was created, as the server has them.

use tanada_query::Session;

use crate::rows::{printed, run};
use crate::server::{Kind, Server};

/// Tables of `information_schema` whose rows are about databases, the column with the database's name, and columns that
/// files do not tell. Behind a bar are those that MariaDB's files alone do not tell.
const INFORMATION: [(&str, &str, &str); 10] = [
    ("schemata", "schema_name", ""),
    (
        "tables",
        "table_schema",
        "table_rows avg_row_length data_length index_length data_free update_time auto_increment | create_time",
    ),
    ("columns", "table_schema", ""),
    ("statistics", "table_schema", "cardinality"),
    ("key_column_usage", "constraint_schema", ""),
    ("table_constraints", "constraint_schema", ""),
    ("referential_constraints", "constraint_schema", ""),
    (
        "partitions",
        "table_schema",
        "table_rows avg_row_length data_length index_length data_free update_time | create_time",
    ),
    ("check_constraints", "constraint_schema", ""),
    ("views", "table_schema", ""),
];

/// Tables whose rows are those of the server.
const OF_SERVER: [&str; 4] =
    ["character_sets", "collations", "collation_character_set_applicability", "engines"];

/// SHOW statements and queries of partitions, in the database `c`.
const SHOWN: [&str; 18] = [
    "show create view v1",
    "show create view v2",
    "show create view v4",
    "show create table v5",
    "show create view v6",
    "show create view s.v3",
    "show create database c",
    "show create schema if not exists s",
    "show character set like 'utf8%'",
    "show collation where charset = 'latin1' and id > 10",
    "show engines",
    "show tables where tables_in_c like 'k%' and tables_in_c <> 'k2'",
    "show columns from k where `key` = 'UNI' or field = 'v'",
    "describe quotes",
    "select * from sp1 partition (p0)",
    "select * from sp1 partition (s1, `S 3`)",
    "select count(*), max(a) from c.sp1 partition (p1, s0) x where x.b > 0",
    "select x.a, y.a from sp1 partition (p0) x left join sp1 partition (p1) y using (b)",
];

/// Views, foreign keys and partitions of both servers.
const OBJECTS: &str = r#"
create table s.fkp(id int primary key);
use c;
create algorithm=merge sql security invoker view v4 as select a, x from k2 where b > 2 with local check option;
create view v5 as select a, x, 'it''s' t from k2 where b > 2 with cascaded check option;
create algorithm=temptable view v6 as select 1.50 z, now() y, cast(a as char(3)) x from k2;
create view v1 as select c.a, k.id from k2 c join k on c.a = k.id where exists (select 1 from s.k2);
create definer=ab@'%' view v2 (`p``q`, r) as select a, c.k2.c from k2 order by a desc;
create table fkx(id int primary key, p int, constraint zz foreign key (p) references s.fkp(id) on delete cascade);
create table fkp(a int, b int, id int primary key, key k1(a), unique u1(a,b), key k3(b));
create table sp1(a int, b int) partition by range(a) subpartition by hash(b) (partition p0 values less than (10)
  comment 'x''y' (subpartition s0, subpartition s1 comment 'sc'), partition p1 values less than maxvalue
  (subpartition s2, subpartition `s 3`));
insert into sp1 values (1,1),(2,2),(3,null),(11,1),(12,2),(null,4);
create table ka(a int, b int) partition by key algorithm=1 (a) partitions 2;
create table lc(a int, b varchar(5)) partition by list columns(a,b) (partition p values in ((1,'a'),(3,'b,c')));
create table many(a int) min_rows=5 max_rows=1000 avg_row_length=50 checksum=1 delay_key_write=1 pack_keys=1
  row_format=dynamic stats_persistent=0 stats_auto_recalc=1 stats_sample_pages=20
  partition by hash(a) partitions 2;
create table quotes(a varchar(20) default 'a\'b\\c', b int generated always as (length('q\\''')),
  c varchar(20) default (concat('a\'b','\\')), check (a <> 'z\\\''));
"#;

const OF_MARIADB: &str = "
create table fkc(a int, b int, foreign key(a) references fkp(a), foreign key (a,b) references fkp(a,b),
  foreign key (b,a) references fkp(b,id));
create table st1(a int) with system versioning partition by system_time limit 100 (partition p0 history,
  partition pc current);
create table ld(a int, b varchar(5)) partition by list columns(a,b) (partition p values in ((1,'a')),
  partition q default);
create sequence sq;
";

/// A question and the rows that the server has for it.
pub type Asked = (String, Vec<String>);

/// Creates what the questions are about and asks the server.
pub fn ask(server: &Server, kind: Kind) -> Vec<Asked> {
    let own = if kind.is_mysql() { "" } else { OF_MARIADB };
    let made = server.run(&format!("{OBJECTS} {own}"));
    assert!(made.refusals.is_empty(), "{kind:?}: {:?}", made.refusals);
    let of_server = OF_SERVER.iter().map(|table| format!("select * from information_schema.{table}"));
    let mut questions: Vec<String> = of_server.chain(SHOWN.map(str::to_owned)).collect();
    for (table, database, untold) in INFORMATION {
        let (of_both, of_mariadb) = untold.split_once('|').unwrap_or((untold, ""));
        let untold = if kind.is_mysql() { of_both.to_owned() } else { format!("{of_both} {of_mariadb}") };
        let names = server.run(&format!(
            "select column_name from information_schema.columns where table_schema = 'information_schema' and \
             table_name = '{}' order by ordinal_position",
            table.to_uppercase()
        ));
        let names = String::from_utf8(names.answers).unwrap().to_lowercase();
        let columns = names.lines().skip(1).filter(|name| !untold.split(' ').any(|of| of == *name));
        let columns = columns.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        // Columns of views are left out, and what they show is not.
        let views = "(select table_name from information_schema.views where table_schema in ('c', 's'))";
        let condition =
            if table == "columns" { format!("and table_name not in {views}") } else { String::new() };
        questions.push(format!(
            "select {columns} from information_schema.{table} where {database} in ('c', 's') {condition}"
        ));
    }
    let asked = |question: String| {
        let answer = server.run(&format!("use c; {question};"));
        assert!(answer.refusals.is_empty(), "{question}: {:?}", answer.refusals);
        let text = String::from_utf8(answer.answers).unwrap();
        (question, text.lines().skip(1).map(str::to_owned).collect())
    };
    questions.into_iter().map(asked).collect()
}

/// Compares the rows of questions regardless of their order; gives the differences.
pub async fn differences(session: &Session, kind: Kind, asked: &[Asked]) -> Vec<String> {
    session.use_database("c").unwrap();
    let mut wrong = Vec::new();
    for (question, expected) in asked {
        let mut found = match run(session, question).await {
            Ok(found) => printed(&found.rows),
            Err(error) => vec![error.to_string()],
        };
        let mut expected = expected.clone();
        found.sort_unstable();
        expected.sort_unstable();
        if found != expected {
            let missing: Vec<_> = expected.iter().filter(|row| !found.contains(row)).collect();
            let added: Vec<_> = found.iter().filter(|row| !expected.contains(row)).collect();
            wrong.push(format!("{kind:?}: {question}\nmissing {missing:#?}\nadded {added:#?}"));
        }
    }
    wrong
}
