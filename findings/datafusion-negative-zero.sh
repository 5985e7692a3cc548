#!/usr/bin/env bash
# DataFusion 55.0.0: -0.0 = 0.0 is true, and IN finds -0.0 in a list of three values. With a fourth value, which has
# nothing to do with it, the list becomes a hash set that compares bits, and the row is lost.
. "$(dirname "$0")/datafusion.inc"
shows 'True' 'select a = 0.0::double from (values (-0.0::double)) t(a)'
shows '1' 'select count(*) from (values (-0.0::double)) t(a) where a in (0.0::double, 5, 6)'
shows '0' 'select count(*) from (values (-0.0::double)) t(a) where a in (0.0::double, 5, 6, 7)'
