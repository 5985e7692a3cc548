#!/usr/bin/env bash
# DataFusion 55.0.0: simplification loses NULL. `a IN (1) AND a IN (2)` becomes false and `a ^ a` becomes 0, also where a
# is NULL and both are NULL by the standard.
. "$(dirname "$0")/datafusion.inc"
shows 'False' 'select a in (1) and a in (2) from (values (cast(null as int))) t(a)'
shows '0' 'select a ^ a from (values (cast(null as int))) t(a)'
