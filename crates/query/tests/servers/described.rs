//! DESCRIBE, SHOW FULL COLUMNS, information_schema and views, as the server prints them.

use crate::created::{OF_MARIADB, OF_MYSQL, TABLES};
use crate::informed;
use crate::rows::{mount, printed, run};
use crate::server::{Kind, Server};
use tanada_query::Session;

/// Tables with defaults of all kinds, and views.
const SETUP: &str = "
create database s character set utf8mb4; use s;
create table k(id int unsigned auto_increment primary key, t1 tinyint default 5, t2 tinyint(1) not null default 0,
  s smallint unsigned zerofill default 7, m mediumint default -3, b bigint unsigned not null default 18446744073709551615,
  d decimal(10,3) default 1.5, d2 decimal(5,0) unsigned not null default 12, f float default 1.25, f2 double default 1e10,
  f3 float(7,2) default 2.5, v varchar(20) not null default 'it''s', v2 varchar(300) default '', c char(5) default 'ab',
  bn binary(3) default 'abc', vb varbinary(10) default 'xy', tx text, bl blob not null, dt date default '2020-01-02',
  tm time default '12:30:00', tm3 time(3) default '-01:02:03.500', dtm datetime default '2021-02-03 04:05:06',
  dtm6 datetime(6) not null default current_timestamp(6) on update current_timestamp(6),
  ts timestamp not null default current_timestamp, ts2 timestamp null default null on update current_timestamp,
  y year default 2024, e enum('a','b,c','d') default 'b,c', st set('x','y','z') not null default 'x,z',
  bi bit(5) default b'101', g1 int as (t1 + 1) virtual, g2 int as (t1 * 2) stored, nn int not null comment 'note',
  unique key u1 (nn), key k1 (v, c), unique key u2 (m, t1), unique(e));
create table k2(a int not null, b int not null, c int, x varchar(5) character set latin1 collate latin1_bin default 'q',
  inv int invisible default 3, unique key (a, b), key (c));
create table k3(a int default (1 + 2), b varchar(20) default (concat('a','b')), t text default ('abc'));
insert into k2 (a, b, c) values (1, 2, 3), (2, 3, 3), (3, 3, null);
create view v1 as select c, count(*) n, sum(a) s from k2 group by c;
create view v2 (p, q) as select a, x from k2 where b > 2 order by a desc;
create view v3 as select v2.p, v1.n from v2 join v1 on v1.c = v2.p;
";

const QUESTIONS: [&str; 11] = [
    "describe k",
    "describe k2",
    "describe k3",
    "show full columns from k",
    "show full columns from k2",
    "select column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, \
     character_octet_length, numeric_precision, numeric_scale, datetime_precision, character_set_name, \
     collation_name, column_type, column_key, extra, column_comment from information_schema.columns \
     where table_name in ('k', 'k2', 'k3') and table_schema = 's' order by table_name, ordinal_position",
    "select table_name, table_type, engine, row_format, table_collation from information_schema.tables \
     where table_schema = 's' order by table_name",
    "select index_name, seq_in_index, column_name, collation, non_unique, nullable, index_type \
     from information_schema.statistics where table_schema = 's' and table_name = 'k2' order by seq_in_index, column_name",
    "select * from v1 order by c",
    "select p, q, p + 1 from v2 order by p",
    "select * from v3",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_and_views_are_described_as_the_server_describes_them() {
    let mut differences = Vec::new();
    for kind in [Kind::MariaDb, Kind::MySql] {
        if let Err(error) = kind.unpacked() {
            eprintln!("not run on {kind:?}: {error}");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(kind, folder.path());
        let made = server.run(SETUP);
        assert!(made.refusals.is_empty(), "{:?}", made.refusals);
        let created = create(&server, kind);
        let informed = informed::ask(&server, kind);
        let mut expected = Vec::new();
        for question in QUESTIONS {
            let answer = server.run(&format!("use s; {question};"));
            assert!(answer.refusals.is_empty(), "{question}: {:?}", answer.refusals);
            expected.push(answer.answers);
        }
        let session = mount(&server.stop(false), false).await;
        check_created(&session, kind, &created).await;
        differences.extend(informed::differences(&session, kind, &informed).await);
        session.use_database("s").unwrap();
        for (question, expected) in QUESTIONS.iter().zip(expected) {
            let expected = String::from_utf8(expected).unwrap();
            let rows: Vec<&str> = expected.lines().skip(1).collect();
            let found = run(&session, question).await.unwrap();
            assert_eq!(printed(&found.rows), rows, "{question}");
        }
    }
    assert!(differences.is_empty(), "{}\n{}", differences.len(), differences.join("\n"));
}

/// Creates tables of all kinds; gives their names and the server's statements, as `--batch` prints them.
fn create(server: &Server, kind: Kind) -> Vec<(String, String)> {
    let own = if kind.is_mysql() { OF_MYSQL } else { OF_MARIADB };
    let own = format!("{TABLES} {own}").replace("@far@", &server.far().to_string_lossy());
    let made = server.run(&format!("create database c character set utf8mb4; use c; {own}"));
    assert!(made.refusals.is_empty(), "{kind:?}: {:?}", made.refusals);
    let names = "select table_name from information_schema.tables where table_schema = 'c'";
    let names = String::from_utf8(server.run(names).answers).unwrap();
    let names: Vec<&str> = names.lines().skip(1).collect();
    let mut questions = "use c;".to_owned();
    for name in &names {
        questions.push_str(&format!("show create table `{}`;", name.replace('`', "``")));
    }
    let shown = server.run(&questions).answers;
    // MariaDB 10.11 sends defaults of bytes that are no text as they are, or as question marks.
    let shown = String::from_utf8_lossy(&shown).replace(char::REPLACEMENT_CHARACTER, "?");
    let statements: Vec<&str> = shown.lines().skip(1).step_by(2).collect();
    assert_eq!(statements.len(), names.len());
    names.iter().zip(statements).map(|(name, row)| ((*name).to_owned(), row.to_owned())).collect()
}

/// Checks SHOW CREATE TABLE of each table.
async fn check_created(session: &Session, kind: Kind, created: &[(String, String)]) {
    session.use_database("c").unwrap();
    let mut wrong = Vec::new();
    for (name, expected) in created {
        let question = format!("show create table `{}`", name.replace('`', "``"));
        let found = match run(session, &question).await {
            Ok(found) => printed(&found.rows).concat(),
            Err(error) => error.to_string(),
        };
        let warned = run(session, "show warnings").await.unwrap().rows.len();
        let mut expected = expected.clone();
        // MySQL has the next value in a buffer of its dictionary, which is not read: a warning says so.
        if let Some(at) = expected.find(" AUTO_INCREMENT=").filter(|_| kind.is_mysql()) {
            let len = expected[at + 1..].find(' ').unwrap() + 1;
            expected.replace_range(at..at + len, "");
            assert_eq!(warned, 1, "{name}");
        }
        if found != expected {
            wrong.push(format!("found    {found}\nexpected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{kind:?}: {} of {}\n{}", wrong.len(), created.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_created_as_mariadb_11_prints_them() {
    let kind = Kind::MariaDb11;
    if let Err(error) = kind.unpacked() {
        eprintln!("not run: {error}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(kind, folder.path());
    let made = server.run(SETUP);
    assert!(made.refusals.is_empty(), "{:?}", made.refusals);
    let created = create(&server, kind);
    let made =
        server.run("create table s.vc(id int primary key, v vector(3) not null, vector index(v), key(id));");
    assert!(made.refusals.is_empty(), "{:?}", made.refusals);
    let keys = "select index_name, non_unique, seq_in_index, column_name, collation, sub_part, index_type \
                from information_schema.statistics where table_name = 'vc' order by index_type, index_name";
    let expected = String::from_utf8(server.run(keys).answers).unwrap();
    let session = mount(&server.stop(false), false).await;
    check_created(&session, kind, &created).await;
    let found = run(&session, keys).await.unwrap();
    assert_eq!(printed(&found.rows), expected.lines().skip(1).collect::<Vec<_>>());
}
