//! Tables of all kinds, for SHOW CREATE TABLE.

/// Tables of both servers.
pub const TABLES: &str = r#"
create table k(id int unsigned auto_increment primary key, t1 tinyint default 5, t2 tinyint(1) not null default 0,
  s smallint unsigned zerofill default 7, m mediumint default -3,
  b bigint unsigned not null default 18446744073709551615,
  d decimal(10,3) default 1.5, d2 decimal(5,0) unsigned not null default 12, f float default 1.25,
  f2 double default 1e10,
  f3 float(7,2) default 2.5, v varchar(20) not null default 'it''s', v2 varchar(300) default '',
  c char(5) default 'ab',
  bn binary(3) default 'abc', vb varbinary(10) default 'xy', tx text, bl blob not null, dt date default '2020-01-02',
  tm time default '12:30:00', tm3 time(3) default '-01:02:03.500', dtm datetime default '2021-02-03 04:05:06',
  dtm6 datetime(6) not null default current_timestamp(6) on update current_timestamp(6),
  ts timestamp not null default current_timestamp, ts2 timestamp null default null on update current_timestamp,
  y year default 2024, e enum('a','b,c','d''q') default 'b,c', st set('x','y','z') not null default 'x,z',
  bi bit(5) default b'101', g1 int as (t1 + 1) virtual, g2 int as (t1 * 2) stored,
  nn int not null comment 'note ''q'' \\ x',
  unique key u1 (nn), key k1 (v, c), unique key u2 (m, t1), unique(e));
create table ord1(a int comment 'n' invisible default 1, b varchar(3) character set utf8mb4 comment 'x',
  c int default 2 comment 'z');
create table ai1(id int not null auto_increment, a int, primary key(id)) auto_increment=100;
create table ai2(id bigint not null auto_increment, a int, primary key(id));
insert into ai2(a) values (1),(2),(3);
create table ai3(a int, id bigint not null auto_increment, key(id));
insert into ai3(a) values (1),(2);
create table k2(a int not null, b int not null, c int,
  x varchar(5) character set latin1 collate latin1_bin default 'q',
  inv int invisible default 3, unique key (a, b), key (c));
create table k3(a int default (1 + 2), b varchar(20) default (concat('a','b')), t text default ('abc'));
create table cs1(a varchar(10), b varchar(10) collate utf8mb4_bin, c text character set latin1,
  d char(3) character set ascii, e enum('x') character set latin1,
  f varchar(3) character set utf8mb3) default charset utf8mb4 collate utf8mb4_general_ci;
create table cs2(a varchar(10), b varchar(10) collate latin1_german1_ci,
  c text character set utf8mb4) default charset latin1;
create table cs3(a varchar(10) character set binary, b varchar(10) collate utf8mb4_unicode_ci, c tinytext,
  d longtext, e mediumtext) collate utf8mb4_unicode_ci;
create table idx1(a varchar(100), b text, c int, d varchar(50) not null, key p1(a(10)), key p2(b(20), c),
  unique u(d(5)), fulltext ft(a,b), key cm(c) comment 'an ''index''') ;
create table idx2(a int, b int, g point not null, key dsc(a desc, b), spatial index sp(g), key hs(b) using btree);
create table idx3(a int, b int, primary key (b, a), key ign(a));
create table fk0(id int primary key, a int, b int, unique(a,b));
create table fk1(id int primary key, p int, foreign key (p) references fk0(id));
create table fk2(id int primary key, p int, q int, constraint fkn foreign key (p,
  q) references fk0(a,b) on delete cascade on update set null,
  constraint aaa foreign key (p) references fk0(id) on delete set null on update no action,
  foreign key (id) references fk1(id) on delete restrict);
create table fk3(id int primary key, p int, foreign key (p) references fk3(id) on update cascade);
create table ck1(a int check (a > 0), b int, c varchar(10), check (a < b),
  constraint nm check (c <> 'it''s' and b in (1,2,3)));
create table opt1(a int) comment 'a ''table'' c';
create table opt2(a int) row_format=compact;
create table opt3(a int primary key) row_format=compressed key_block_size=8;
create table opt4(a int) row_format=dynamic;
create table opt5(a int) row_format=redundant stats_persistent=0 stats_auto_recalc=1 stats_sample_pages=20;
create table opt6(a int) min_rows=5 max_rows=1000 avg_row_length=50 checksum=1 delay_key_write=1 pack_keys=1;
create table gen1(a int, b int generated always as (a+1) virtual comment 'cc', c varchar(20) as (concat(a,
  'x''y')) stored, d int as (a*2) virtual invisible, key(b), e varchar(10) as (upper('q')) virtual);
create table inv1(a int, b int not null invisible default 4,
  c timestamp invisible default current_timestamp on update current_timestamp);
create table ty1(a json, b geometry, c point, d linestring not null, e polygon, f multipoint,
  g geometrycollection, h tinyblob, i mediumblob, j longblob, k year, l bit, m boolean, n real, o numeric(8),
  p serial);
create table ty2(a double(8,3), b float unsigned, c int(5) zerofill, d decimal(5,2) zerofill, e bigint(20),
  f date, g time(6), h datetime(2) default '2020-01-01 01:02:03.45', i timestamp(3) null, j char(0),
  k varchar(0), l varchar(2000), m binary, n varbinary(3) not null);
create table `we``ird na.me`(`a``b` int default 0, `sel ect` int, key `k``1`(`a``b`));
create table pt1(a int, b int) partition by range(a) (partition p0 values less than (10),
  partition p1 values less than (20) comment 'c', partition p2 values less than maxvalue);
create table pt2(a int, b int) partition by hash(a+b) partitions 4;
create table pt3(a int primary key, b int) partition by key() partitions 3;
create table pt4(a int, b int) partition by list(a) (partition p0 values in (1,2,null), partition p1 values in (3));
create table pt5(a int, b varchar(10)) partition by range columns(a,b) (partition p0 values less than (10,'x'),
  partition p1 values less than (maxvalue,maxvalue));
create table pt6(a int, b varchar(10)) partition by list columns(b) (partition p0 values in ('a','b'),
  partition p1 values in ('c'));
create table pt7(a int,
  d date) partition by range(year(d)) subpartition by hash(to_days(d)) subpartitions 2
  (partition p0 values less than (1990),
  partition p1 values less than maxvalue);
create table pt8(a int, b int) partition by linear hash(a) partitions 2;
create table pt9(a int, b int) partition by linear key algorithm=2 (a,b) (partition x, partition y);
create table nn1(a varchar(5) not null default '', b int not null, c int null, d varchar(9) default null,
  e bigint default '-5', f decimal(4,2) default '-1.50');
create table bins(a binary(3) default 'ab', b varbinary(4) default 'zz', c bit(9) default b'1', d bit(1) not null);
create table dd1(a int) data directory='@far@' comment 'x' row_format=dynamic;
create table dd2(a int) partition by hash(a) (partition p0 data directory='@far@', partition p1);
create table words(a int, `date` int) partition by key (a, `date`) (partition `data` comment 'x', partition s3,
  partition count, partition _x, partition `12`, partition `$x`);
create table multi(a int, b int, c int, key z(a), unique y(b), key x(c), unique w(a,c), primary key(b,c));
"#;

/// Tables of MariaDB.
pub const OF_MARIADB: &str = r#"
create table m1(a int, b varchar(5)) page_compressed=1 page_compression_level=3;
create table m2(a int, b varchar(5) compressed, t text compressed) ;
create table m3(a int, b uuid, c inet6, d inet4, key ii(a) ignored);
create table m4(a int) with system versioning;
create table m5(a int, s timestamp(6) generated always as row start, e timestamp(6) generated always as row end,
  period for system_time(s,e)) with system versioning;
create table m7(a int without system versioning, b int) with system versioning;
create table m8(a int) encrypted=no;
create table m9(a text, b int, unique(a), unique hh(a,b));
create table m10(a int) engine=innodb transactional=0 connection='xx';
create table m11(a int, key(a) using hash);
create table m13(j json, c char(3) check (c <> ''), check (json_valid(j)));
create table m15(u varchar(40) default uuid(), ts timestamp default now() on update now(), dd datetime default now());
create table m17(a binary(3) default 'aaa', b varbinary(5) default 'b\'c', c binary(4) default x'00ff', d varbinary(3)
  default '', e varbinary(9) not null default x'e4', f varbinary(9) default 'ä', g blob default 'xyz');
create table m18(a varchar(20) compressed default 'x', b varchar(20) compressed character set latin1 not null,
  c inet4 not null default '1.2.3.4', d inet6 default '::1', e uuid default '123e4567-e89b-12d3-a456-426655440000');
create table m19(id int primary key, a int not null default 5 invisible comment 'x', b timestamp(3) invisible default
  current_timestamp(3) on update current_timestamp(3), c int as (id + 1) virtual invisible, d int invisible default 3
  check (d > 1), e varchar(3) default 'x' invisible, f int not null auto_increment invisible, key(f) ignored);
create table m20(a int default 1 invisible comment 'x', b int not null invisible without system versioning default 2,
  n int not null auto_increment invisible without system versioning, key(n),
  s timestamp(6) generated always as row start invisible comment 'y', e timestamp(6) generated always as row end,
  period for system_time(s, e), primary key (b)) with system versioning;
create table m21(id int primary key, a int, b varchar(300), c text, unique(a), key(a, id), unique(b), unique(c),
  fulltext key(c)) with system versioning;
create table m22(id int auto_increment primary key, v int) with system versioning partition by system_time limit 10
  (partition p0 history, partition pn current);
create table m23(id int primary key, a int, foreign key (a) references fk0(id)) with system versioning;
create table m24(a int) data directory='@far@' comment 'c' connection 'xx' page_compressed=1 row_format=dynamic
  with system versioning;
create table m16(a int default 1 comment 'c', b int without system versioning comment 'd',
  c int comment 'e' check (c > 1)) with system versioning comment 'tc' min_rows=3;
"#;

/// Tables of MySQL.
pub const OF_MYSQL: &str = r#"
create table y3(a int, key i(a) invisible, b int, key j(b) comment 'ww' invisible);
create table y4(a int check (a>1) not enforced, constraint e check (a<9) not enforced);
create table y5(g point not null srid 4326, spatial key(g));
create table y6(a int, v vector(4));
create table y7(a text, fulltext key f(a) with parser ngram);
create table y9(a int) stats_persistent=1 autoextend_size=4194304;
create table y11(a int column_format fixed, b int storage disk);
create table y14(my_row_id bigint unsigned not null auto_increment invisible primary key, a int);
create table y15(a int, d datetime default (now() + interval 1 day), u char(36) default (uuid()),
  b blob default (0x6162));
create table y16(a int key comment 'x', b int unique key) key_block_size=4;
create table y18(a int, key kk(a) key_block_size=1024);
create table y2(a int, j json, c varchar(20), key fi((a+1)), key fj((upper(c)) desc), key fk(a, (a*2)),
  unique mv((cast(j->'$[*]' as unsigned array))));
create table y8(a int) partition by range columns(a) (partition `we ird` values less than (1),
  partition `range` values less than (5));
create table y19(a int primary key) tablespace innodb_file_per_table;
create table y20(a int) partition by list(a) (partition p0 values in (1), partition p1 values in (2)
  tablespace innodb_file_per_table);
create table y21(a int) partition by range(a) subpartition by hash(a) (partition p0 values less than (5) tablespace
  innodb_file_per_table (subpartition s0, subpartition s1), partition p1 values less than (10) (subpartition s2
  data directory='@far@', subpartition s4));
create table y22(a int) partition by range(a) subpartition by hash(a) subpartitions 2 (partition p0 values less than (5)
  tablespace innodb_file_per_table, partition p1 values less than (10) data directory='@far@/');
create table y23(a int) max_rows=7 partition by range(a) (partition p0 values less than (5) max_rows=5
  data directory='@far@/' comment='x''y', partition p1 values less than maxvalue min_rows=2);
set global innodb_file_per_table=0;
create table y24(a int, b int) partition by list(a) (partition a values in (1,2) comment 'q', partition b values in (3));
create table y25(a int primary key) partition by hash(a) partitions 2;
alter table y25 add column c int not null default 3 first, algorithm=instant;
create table y26(a int primary key);
create table s.y26(x int, y int primary key);
set global innodb_file_per_table=1;
alter table y24 add partition (partition c values in (4));
create table y10(a int, `key` int, b int) partition by list columns(a, `key`) (partition p values in ((1,2),(3,4)));
"#;
