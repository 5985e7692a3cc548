#!/usr/bin/env bash
# MariaDB 10.11.19 stores the text '15.6.00' into INT columns as 156, where the manual has a text become the
# number that it begins with (15.6, so 16), as CAST and comparisons do.
. "$(dirname "$0")/mariadb.inc"
sql "use finding; set sql_mode = ''; create table t (a int unsigned, b int, c decimal(10,2));
    insert into t values ('15.6.00', '15.6.00', '15.6.00')"
shows '156' 'select a from t'
shows '16' "select cast(cast('15.6.00' as double) as signed)"
shows '156 15.60' "select concat(b, ' ', c) from t"
