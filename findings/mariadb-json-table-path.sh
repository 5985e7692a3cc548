#!/usr/bin/env bash
# MariaDB 10.11.19: in JSON_TABLE a range of a path gives its first element alone and `last` gives no row, where
# JSON_EXTRACT of the same paths gives all elements of the range and the last one.
. "$(dirname "$0")/mariadb.inc"
shows '[2, 3]' "select json_extract('[1,2,3,4]', '\$[1 to 2]')"
shows '2' "select * from json_table('[1,2,3,4]', '\$[1 to 2]' columns (a int path '\$')) as t"
shows '4' "select json_extract('[1,2,3,4]', '\$[last]')"
shows '0' "select count(*) from json_table('[1,2,3,4]', '\$[last]' columns (a int path '\$')) as t"
