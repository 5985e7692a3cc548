//! Ranges of keys against a model: the rows that a plain comparison of values keeps.

use std::cmp::Ordering;
use std::ops::Bound;

use tanada_base::SplitMix64;
use tanada_innodb::{IndexNo, Key, KeyRange, Table, Value};

use crate::fixtures::unpacked;
use crate::support::{
    Values, environment, mount, owned, run, scan, scan_bookmarks, secondary_indexes, stored_columns,
};

const TRIES: usize = 10;

fn compare(a: &Value<'_>, b: &Value<'_>) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (Value::Decimal(a), Value::Decimal(b)) => (a.high, a.low).cmp(&(b.high, b.low)),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::DateTime(a) | Value::Time(a), Value::DateTime(b) | Value::Time(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.trim_end_matches(' ').cmp(b.trim_end_matches(' ')),
        // The zero date is stored as zeros.
        (Value::ZeroDate(_), Value::ZeroDate(_)) => Ordering::Equal,
        (Value::ZeroDate(_), _) => Ordering::Less,
        (_, Value::ZeroDate(_)) => Ordering::Greater,
        other => panic!("{other:?}"),
    }
}

/// The parts of an index's key that can be bounded, as places in the stored columns.
struct Parts {
    places: Vec<usize>,
    descending: Vec<bool>,
}

impl Parts {
    fn new(table: &Table, index: IndexNo) -> Parts {
        let columns = stored_columns(table);
        let declared = &table.definition().indexes[index.0].parts;
        let usable = declared.iter().enumerate().take_while(|(no, part)| {
            table.searchable(index, *no) && part.prefix_bytes.is_none() && columns.contains(&part.column)
        });
        let (places, descending) = usable
            .filter_map(|(_, part)| {
                Some((columns.iter().position(|column| *column == part.column)?, part.descending))
            })
            .unzip();
        Parts { places, descending }
    }

    fn compare(&self, row: &Values, bound: &[Value<'_>]) -> Ordering {
        for ((place, descending), bound) in self.places.iter().zip(&self.descending).zip(bound) {
            let order = compare(&row[*place], bound);
            if order.is_ne() {
                return if *descending { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }
}

/// A bound taken from some row, as a key and as values.
fn bound(
    table: &Table,
    index: IndexNo,
    parts: &Parts,
    all: &[Values],
    random: &mut SplitMix64,
) -> (Bound<Key>, Values) {
    let row = &all[random.below(all.len() as u64) as usize];
    let count = 1 + random.below(parts.places.len() as u64) as usize;
    let values: Values = parts.places[..count].iter().map(|place| owned(row[*place].clone())).collect();
    let zero = values.iter().any(|value| matches!(value, Value::ZeroDate(_)));
    let key = if zero { None } else { table.key(index, &values).unwrap() };
    match (key, random.below(5)) {
        (None, _) | (_, 0) => (Bound::Unbounded, values),
        (Some(key), 1 | 2) => (Bound::Included(key), values),
        (Some(key), _) => (Bound::Excluded(key), values),
    }
}

async fn check_index(table: &Table, index: IndexNo, all: &[Values], random: &mut SplitMix64, label: &str) {
    let parts = Parts::new(table, index);
    if parts.places.is_empty() || all.is_empty() {
        return;
    }
    let access = table.access(index, &stored_columns(table)).unwrap();
    for _ in 0..TRIES {
        let (lower, low) = bound(table, index, &parts, all, random);
        let (upper, high) = bound(table, index, &parts, all, random);
        let within = |row: &&Values| {
            let (above, below) = (parts.compare(row, &low), parts.compare(row, &high));
            let above = match lower {
                Bound::Unbounded => true,
                Bound::Included(_) => above.is_ge(),
                Bound::Excluded(_) => above.is_gt(),
            };
            let below = match upper {
                Bound::Unbounded => true,
                Bound::Included(_) => below.is_le(),
                Bound::Excluded(_) => below.is_lt(),
            };
            above && below
        };
        let expected: Vec<&Values> = all.iter().filter(within).collect();
        let range = KeyRange { lower: lower.clone(), upper: upper.clone() };
        let found = if access.covering() {
            scan(table, &access, &range).await.unwrap()
        } else {
            scan_bookmarks(table, &access, &range).await.unwrap()
        };
        let sorted = |rows: Vec<&Values>| {
            let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
            rows.sort();
            rows
        };
        let (found, expected) = (sorted(found.iter().collect()), sorted(expected));
        assert!(
            found == expected,
            "{label} index {} {low:?} {high:?}: {} {}",
            index.0,
            found.len(),
            expected.len()
        );
    }
}

#[test]
fn ranges_hold_what_a_comparison_keeps() {
    let environment = environment(true);
    for folder in ["mysql-9.7/c_dynamic", "mariadb-10.11/c_pc_lz4"] {
        let folder = unpacked("cases").join(folder);
        let within = environment.clone();
        run(&environment, move || async move {
            let catalog = mount(&folder, &within).await;
            let mut random = SplitMix64::new(1);
            for name in catalog.tables(&catalog.databases()[0]) {
                let table = catalog.table(&catalog.databases()[0], &name).await.unwrap();
                let access = table.access(IndexNo(0), &stored_columns(&table)).unwrap();
                let all = scan(&table, &access, &KeyRange::all()).await.unwrap();
                let label = format!("{}/{name}", folder.display());
                for index in std::iter::once(IndexNo(0)).chain(secondary_indexes(&table)) {
                    check_index(&table, index, &all, &mut random, &label).await;
                }
            }
        });
    }
}
