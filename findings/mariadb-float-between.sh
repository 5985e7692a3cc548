#!/usr/bin/env bash
# MariaDB 10.11.19: on a FLOAT(M,D) column comparison operators take numbers for equal that differ by less than half of
# the last digit; BETWEEN and IN with several values do not, so that they find fewer rows.
. "$(dirname "$0")/mariadb.inc"
sql "use finding; create table t (id int primary key, f float(5,2)); insert into t values (1, 1.1), (2, 1), (3, 2.35)"
shows '1 2' 'select id from t where f >= 1 and f <= 1.1 order by id'
shows '2' 'select id from t where f between 1 and 1.1 order by id'
shows '1' 'select id from t where f in (1.1)'
shows '' 'select id from t where f in (1.1, 2.35)'
