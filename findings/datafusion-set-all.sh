#!/usr/bin/env bash
# DataFusion 55.0.0: INTERSECT ALL keeps every copy of a row that is on both sides (the standard: as many as the smaller
# side has), and EXCEPT ALL removes every copy of a row that the right side has once (the standard: one copy).
. "$(dirname "$0")/datafusion.inc"
shows '1 1' 'select a from (values (1), (1)) t(a) intersect all select b from (values (1)) u(b)'
shows '' 'select a from (values (1), (1), (1)) t(a) except all select b from (values (1)) u(b)'
