#!/usr/bin/env bash
# MariaDB 10.11.19: an index on a CHAR column of a NOPAD collation changes which rows `b > 'a'` finds. Without it a value
# is compared without its padding, so 'a' followed by a tab is greater than 'a'; the index has it with its padding, where
# the tab is less than the space.
. "$(dirname "$0")/mariadb.inc"
values="('a'), (concat('a', char(9))), (concat('a', char(9), 'b')), ('a!'), ('ab')"
sql "use finding; create table without (b char(5) character set utf8mb4 collate utf8mb4_nopad_bin)"
sql "use finding; create table indexed (b char(5) character set utf8mb4 collate utf8mb4_nopad_bin, key (b))"
for table in without indexed; do sql "use finding; insert into $table values $values"; done
shows '4' "select count(*) from without where b > 'a'"
shows '2' "select count(*) from indexed where b > 'a'"
shows '4' "select count(*) from indexed ignore index (b) where b > 'a'"
