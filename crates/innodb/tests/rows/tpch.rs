//! The TPC-H tables of both servers: counts, sums that two of the queries ask for, statistics.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use tanada_innodb::{Catalog, Environment, IndexNo, KeyRange, MountOptions, Table, Value};

use crate::fixtures::unpacked;
use crate::support::{Values, context, environment, lookup, run, scan, stored_columns};

const SERVERS: [&str; 2] = ["mysql-9.7", "mariadb-10.11"];

fn data_directory(server: &str) -> std::path::PathBuf {
    unpacked(&format!("tpch-sf0.02-{server}")).join(server)
}

fn golden(query: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../fixtures/tpch-sf0.02-golden/tsv/{query}.tsv"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

async fn catalog(server: &str, environment: &Arc<Environment>) -> Catalog {
    Catalog::open(&data_directory(server), &MountOptions::default(), environment).await.unwrap()
}

async fn rows(table: &Table) -> Vec<Values> {
    let access = table.access(IndexNo(0), &stored_columns(table)).unwrap();
    scan(table, &access, &KeyRange::all()).await.unwrap()
}

fn unscaled(value: &Value<'_>) -> i128 {
    match value {
        Value::Decimal(decimal) => decimal.to_i128().unwrap(),
        other => panic!("{other:?} is no decimal"),
    }
}

#[test]
fn both_servers_hold_the_same_rows() {
    let environment = environment(true);
    let sums = SERVERS.map(|server| {
        let within = environment.clone();
        run(&environment, move || async move {
            let catalog = catalog(server, &within).await;
            let mut sums = BTreeMap::new();
            for (database, name) in [("tpch", None), ("tpch_pc", Some("orders"))] {
                for table in catalog.tables(database) {
                    if name.is_some_and(|name| name != table) {
                        continue;
                    }
                    let rows = rows(&catalog.table(database, &table).await.unwrap()).await;
                    let hash = |row: &Values| {
                        let mut hasher = DefaultHasher::new();
                        format!("{row:?}").hash(&mut hasher);
                        hasher.finish()
                    };
                    let sum = rows.iter().map(hash).fold(0, u64::wrapping_add);
                    sums.insert(format!("{database}.{table}"), (rows.len(), sum));
                }
            }
            sums
        })
    });
    assert_eq!(sums[0], sums[1]);
    let count = |table: &str| sums[0][table].0;
    assert_eq!(sums[0]["tpch.orders"], sums[0]["tpch_pc.orders"]);
    assert_eq!([count("tpch.region"), count("tpch.nation"), count("tpch.supplier")], [5, 25, 200]);
    assert_eq!([count("tpch.customer"), count("tpch.part"), count("tpch.partsupp")], [3000, 4000, 16000]);
    assert_eq!(count("tpch.orders"), 30000);
}

#[test]
fn sums_over_line_items_are_the_servers() {
    let environment = environment(true);
    for server in SERVERS {
        let within = environment.clone();
        let rows = run(&environment, move || async move {
            let catalog = catalog(server, &within).await;
            rows(&catalog.table("tpch", "lineitem").await.unwrap()).await
        });
        // Columns: 4 quantity, 5 extended price, 6 discount, 7 tax, 8 return flag, 9 line status, 10 ship date.
        let shipped = |row: &Values| match row[10] {
            Value::Date(days) => days,
            ref other => panic!("{other:?} is no date"),
        };
        let mut groups: BTreeMap<(String, String), [i128; 4]> = BTreeMap::new();
        // 1998-12-01 less 90 days.
        for row in rows.iter().filter(|row| shipped(row) <= 10_471) {
            let (Value::Text(flag), Value::Text(status)) = (&row[8], &row[9]) else { panic!("{row:?}") };
            let sums = groups.entry((flag.to_string(), status.to_string())).or_default();
            let (price, discount) = (unscaled(&row[5]), unscaled(&row[6]));
            for (sum, add) in sums.iter_mut().zip([unscaled(&row[4]), price, price * (100 - discount), 1]) {
                *sum += add;
            }
        }
        let found: Vec<Vec<i128>> = groups.values().map(|sums| sums.to_vec()).collect();
        let digits = |text: &String| text.replace('.', "").parse::<i128>().unwrap();
        let expected: Vec<Vec<i128>> =
            golden("q1").iter().map(|row| [2, 3, 4, 9].map(|at| digits(&row[at])).to_vec()).collect();
        assert_eq!(found, expected, "{server}");
        // Query 6: 1994, discount 0.05 to 0.07, quantity below 24.
        let revenue: i128 = rows
            .iter()
            .filter(|row| (8766..9131).contains(&shipped(row)) && unscaled(&row[4]) < 2400)
            .filter(|row| (5..=7).contains(&unscaled(&row[6])))
            .map(|row| unscaled(&row[5]) * unscaled(&row[6]))
            .sum();
        assert_eq!(revenue, digits(&golden("q6")[0][0]), "{server}");
    }
}

#[test]
fn statistics_are_near_the_truth() {
    let environment = environment(true);
    for server in SERVERS {
        let within = environment.clone();
        run(&environment, move || async move {
            let catalog = catalog(server, &within).await;
            for name in catalog.tables("tpch") {
                let table = catalog.table("tpch", &name).await.unwrap();
                let rows = rows(&table).await.len() as f64;
                let statistics = table.statistics(&context()).await.unwrap();
                let near = |estimate: u64, truth: f64| {
                    estimate as f64 > truth * 0.8 && (estimate as f64) < truth * 1.25 + 1.0
                };
                assert!(near(statistics.rows, rows), "{server} {name}: {statistics:?}");
                assert!(
                    !statistics.exact || statistics.rows as f64 == rows,
                    "{server} {name}: {statistics:?}"
                );
                assert!(
                    statistics.row_bytes > 20.0 && statistics.row_bytes < 300.0,
                    "{server} {name}: {statistics:?}"
                );
                for (no, index) in statistics.indexes.iter().enumerate() {
                    let leaves = table.leaves(IndexNo(no), &KeyRange::all(), &context()).await.unwrap();
                    let pages: usize = leaves.iter().map(|run| run.offsets.len()).sum();
                    assert_eq!(index.leaf_pages, pages as u64, "{server} {name} {no}");
                    assert!((0.0..=1.0).contains(&index.contiguity));
                    assert!(
                        index.distinct.is_sorted() && index.height >= 1,
                        "{server} {name}: {statistics:?}"
                    );
                }
                if name == "lineitem" {
                    // Orders have one to seven items.
                    let orders = statistics.indexes[0].distinct[0];
                    assert!(near(orders, 30000.0), "{server}: {statistics:?}");
                }
            }
        });
    }
}

#[test]
fn samples_are_rows() {
    let environment = environment(true);
    let within = environment.clone();
    run(&environment, move || async move {
        let catalog = catalog("mysql-9.7", &within).await;
        for (name, most) in [("region", 5), ("orders", 1000)] {
            let table = catalog.table("tpch", name).await.unwrap();
            let access = table.access(IndexNo(0), &stored_columns(&table)).unwrap();
            let mut sampled = 0;
            let mut count = |_: &tanada_innodb::Row<'_>| {
                sampled += 1;
                Ok(std::ops::ControlFlow::Continue(()))
            };
            table.sample(&access, 4, &context(), &mut count).await.unwrap();
            assert!(sampled > 0 && sampled <= most, "{name}: {sampled}");
        }
    });
}

#[test]
fn the_orders_of_a_customer_are_fetched_at_once() {
    let environment = environment(true);
    for server in SERVERS {
        let within = environment.clone();
        run(&environment, move || async move {
            let catalog = catalog(server, &within).await;
            let orders = catalog.table("tpch", "orders").await.unwrap();
            let all = rows(&orders).await;
            let definition = orders.definition().clone();
            let by_customer =
                definition.indexes.iter().position(|index| index.name == "i_o_custkey").unwrap();
            let access = orders.access(IndexNo(by_customer), &stored_columns(&orders)).unwrap();
            within.cache.clear();
            let context = context();
            for customer in [1, 2, 3, 4, 3000, 3001] {
                let key = orders.key(access.index(), &[Value::Int(customer)]).unwrap().unwrap();
                let found = lookup(&orders, &access, &key, &context).await.unwrap();
                let expected: Vec<&Values> =
                    all.iter().filter(|row| row[1] == Value::Int(customer)).collect();
                assert_eq!(found.len(), expected.len(), "{server} {customer}");
                assert!(found.iter().all(|row| expected.contains(&row)));
            }
            // Rows of one key lie on many pages: their reads overlap.
            assert!(context.counters().snapshot().depth_max > 4, "{:?}", context.counters().snapshot());
        });
    }
}
