#!/usr/bin/env bash
# PyArrow 26.0.1 and DataFusion 55.0.0: the bounds that a Parquet file keeps of a column of doubles leave NaN out, as
# the format wants it, and both readers believe them where a NaN would pass the filter. The same rows in memory are
# found.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

missing() { echo "cannot be shown: $*" >&2; exit 2; }
python3 -m venv "$folder/env" >"$folder/log" 2>&1 || missing "python3 has no venv"
"$folder/env/bin/pip" install -q datafusion==55.0.0 pyarrow==26.0.1 >"$folder/log" 2>&1 || {
    tail -n 3 "$folder/log" >&2
    missing "datafusion 55.0.0 and pyarrow 26.0.1 cannot be installed"
}
cat >"$folder/show.py" <<'PYTHON'
import sys
import datafusion
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as dataset
import pyarrow.parquet as parquet

nan = float("nan")
path = sys.argv[1] + "/rows.parquet"
rows = pa.table({"x": pa.array([1.0, nan, 1.0, 1.0, 2.0, 3.0, nan, 4.0])})
parquet.write_table(rows, path, row_group_size=4)
context = datafusion.SessionContext()
context.register_parquet("file", path)
context.register_record_batches("memory", [rows.to_batches()])


def counted(table, condition):
    return context.sql(f"select count(*) as n from {table} where {condition}").to_pydict()["n"][0]


seen = [("DataFusion, " + condition, counted("memory", condition), counted("file", condition))
        for condition in ("x <> 1", "x > 100", "not (x <= 4)")]
file = dataset.dataset(path)
for shown, condition in (("x != 1", pc.field("x") != 1), ("~(x <= 4)", ~(pc.field("x") <= 4))):
    seen.append(("PyArrow, " + shown, rows.filter(condition).num_rows, file.to_table(filter=condition).num_rows))
for shown, in_memory, in_file in seen:
    print(f"{shown}: {in_memory} rows in memory, {in_file} in the file")
expected = [(5, 4), (2, 0), (2, 0), (5, 4), (2, 0)]
if [counts[1:] for counts in seen] != expected:
    print(f"was: {expected}", file=sys.stderr)
    sys.exit(1)
PYTHON
"$folder/env/bin/python" "$folder/show.py" "$folder"
