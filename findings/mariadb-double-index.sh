#!/usr/bin/env bash
# MariaDB 10.11.19: an equality on a DOUBLE(M,D) column finds a row if an index is used and does not find it without. The
# index is searched with the literal rounded to D digits, the comparison is with the literal itself.
. "$(dirname "$0")/mariadb.inc"
sql "use finding; create table t (id int primary key, d double(8,3), key (d));
    insert into t values (1, 2.346), (2, 5), (3, 7.1), (4, 8)"
shows '1' 'select id from t force index (d) where d = 2.3456'
shows '' 'select id from t ignore index (d) where d = 2.3456'
