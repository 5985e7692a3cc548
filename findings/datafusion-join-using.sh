#!/usr/bin/env bash
# DataFusion 55.0.0: the merged column of a RIGHT JOIN with USING is the left table's, so it is NULL for rows that only
# the right table has. The standard: COALESCE of both columns.
. "$(dirname "$0")/datafusion.inc"
shows '1,a None,b' "select id, y from (values (1, 'l')) l(id, x) right join (values (1, 'a'), (2, 'b')) r(id, y)
    using (id) order by y"
