#!/usr/bin/env bash
# MariaDB 10.11.19: a value that is no array is found as its own element 0, and by a range to the last one, but not as
# the last one.
. "$(dirname "$0")/mariadb.inc"
shows '{"a": 1}' "select json_extract('{\"a\": 1}', '\$[0]')"
shows '[{"a": 1}]' "select json_extract('{\"a\": 1}', '\$[0 to last]')"
shows 'NULL' "select json_extract('{\"a\": 1}', '\$[last]')"
