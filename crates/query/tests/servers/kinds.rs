//! Tables of kinds that random statements do not make, as the server prints them.

use crate::rows::{mount, printed, run};
use crate::server::{Kind, Server};

/// On both servers: numbers stored in virtual columns.
const OF_BOTH: &str = "
create database s character set utf8mb4; use s;
create table kept(id int primary key, f double, g float, de decimal(10,2), y year as (f), b bit(20) as (f),
  y2 year as (g), b2 bit(20) as (g), y3 year as (de), b3 bit(20) as (de), y4 year as (f + g), b4 bit(20) as (f * g),
  e enum('a','b','c') as (f), st set('a','b','c') as (f), i int as (f), e2 enum('a','b','c') as (de));
create table numbered(id int primary key, e enum('x','y'), s set('p','q','r'), i int as (e), j tinyint as (s),
  d decimal(6,2) as (e), f double as (s), k bigint as (e + s));
insert into numbered(id, e, s) values (1,'y','p,r'),(2,'x',''),(3,null,null);
insert ignore into kept(id, f, g, de) values(1,2.6,2.6,2.6),(2,1.5,1.5,1.5),(3,2.5,2.5,2.5),(4,1999.7,1999.7,1999.7),
  (5,-1.5,-1.5,-1.5),(6,0.5,0.5,0.5),(7,69.6,70.4,99.5),(8,99.6,1900.6,1900.5),(9,-0.5,-0.5,-0.5),(10,3.9,3.9,3.9);
";

/// Partitions in the system tablespace, some of them beside others that have files.
const OF_MARIADB: &str = "
set global innodb_file_per_table = 0;
create table hashed(id int primary key, v varchar(20), key(v)) partition by hash(id) partitions 3;
insert into hashed values (1,'a'),(2,'b'),(3,'c'),(4,'a');
create table ranges(id int, d date, v int, key(v)) partition by range(year(d)) subpartition by hash(id) subpartitions 2
  (partition old values less than (2000), partition `new` values less than maxvalue);
insert into ranges values (1,'1999-01-01',1),(2,'2001-01-01',2),(3,'2002-01-01',3),(4,'1998-01-01',4);
create table mixed(id int primary key, v int) partition by range(id)
  (partition p0 values less than (10), partition p1 values less than (20));
insert into mixed values (1,1),(11,2);
set global innodb_file_per_table = 1;
alter table mixed add partition (partition p2 values less than (30));
insert into mixed values (21,3);
";

/// Documents with decimals of the most digits.
const OF_MYSQL: &str = "
create table documents(id int primary key, j json);
insert into documents values (1, json_array(cast(-99999999999999999999999999999999999.999999999999999999999999999999
  as decimal(65,30)))), (2, json_array(cast(1234567890.5 as decimal(12,1)), '[1]', null)),
  (3, json_object('k', cast(99999999999999999999999999999999999999999999999999999999999999999 as decimal(65,0))));
";

const QUESTIONS: [&str; 2] = [
    "select * from numbered order by id",
    "select id, y, b + 0, y2, b2 + 0, y3, b3 + 0, y4, b4 + 0, e, st, i, e2 from kept order by id",
];
const OF_MARIADB_ALONE: [&str; 6] = [
    "select * from hashed order by id",
    "select id from hashed where v = 'a' order by id",
    "select * from ranges order by id",
    "select id from ranges where v = 3",
    "select * from mixed order by id",
    "select v from mixed where id = 11",
];
const OF_MYSQL_ALONE: [&str; 1] = ["select * from documents order by id"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rare_kinds_of_tables_are_read_as_the_server_reads_them() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        if let Err(error) = kind.unpacked() {
            eprintln!("not run on {kind:?}: {error}");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(kind, folder.path());
        let (more, alone): (&str, &[&str]) = match kind {
            Kind::MySql => (OF_MYSQL, &OF_MYSQL_ALONE),
            _ => (OF_MARIADB, &OF_MARIADB_ALONE),
        };
        let made = server.run(&format!("{OF_BOTH}{more}"));
        assert!(made.refusals.is_empty(), "{:?}", made.refusals);
        let questions: Vec<&str> = QUESTIONS.iter().chain(alone).copied().collect();
        let mut expected = Vec::new();
        for question in &questions {
            let answer = server.run(&format!("use s; {question};"));
            assert!(answer.refusals.is_empty(), "{question}: {:?}", answer.refusals);
            expected.push(String::from_utf8(answer.answers).unwrap());
        }
        let session = mount(&server.stop(false), false).await;
        session.use_database("s").unwrap();
        for (question, expected) in questions.iter().zip(expected) {
            let rows: Vec<&str> = expected.lines().skip(1).collect();
            let found = run(&session, question).await.unwrap_or_else(|error| panic!("{question}: {error}"));
            assert_eq!(printed(&found.rows), rows, "{question}");
        }
    }
}
