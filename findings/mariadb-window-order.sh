#!/usr/bin/env bash
# MariaDB 10.11.19: ORDER BY of a grouped query is dropped where an index has the groups in that order and a window
# function sorts them otherwise. Rows come in the order of the window.
. "$(dirname "$0")/mariadb.inc"
sql "use finding; create table t (id int primary key, k varchar(9), key (k)) engine=innodb;
    insert into t values (1, 'a'), (2, 'b'), (3, 'c')"
shows $'c\t1 b\t2 a\t3' 'select k, rank() over (order by sum(id) desc) r from t group by k order by k'
shows $'a\t3 b\t2 c\t1' \
    'select k, rank() over (order by sum(id) desc) r from t ignore index (k) group by k order by k'
