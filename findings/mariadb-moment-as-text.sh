#!/usr/bin/env bash
# MariaDB 10.11.19: the text of a moment as a number has the digits of its fraction where a query shows it, and has none
# where it is stored into a text column and the fraction is zero.
. "$(dirname "$0")/mariadb.inc"
sql "use finding; create table moments (d datetime(6))"
sql "use finding; insert into moments values ('2000-01-01 00:00:00')"
sql "use finding; create table texts (t varchar(40))"
sql "use finding; insert into texts select d + 0 from moments"
sql "use finding; insert into texts select concat(d + 0) from moments"
shows '20000101000000.000000' "select d + 0 from moments"
shows '20000101000000,20000101000000.000000' "select group_concat(t order by length(t)) from texts"
