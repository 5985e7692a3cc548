//! Keys of text: their indexes are in the order of the collations, of both servers.

use std::cmp::Ordering;
use std::sync::Arc;

use tanada_collation::{Collation, Server};
use tanada_innodb::{ColumnType, IndexNo, KeyRange, Table, Value};

use crate::fixtures::unpacked;
use crate::support::{environment, mount, run, scan};

/// Entries of indexes that are compared with the one before them: the tables have some 700 rows each.
const MIN_COMPARED: usize = 10_000;

#[test]
fn text_indexes_are_in_the_order_of_their_collations() {
    let environment = environment(true);
    for server in ["mysql-9.7", "mariadb-11.8"] {
        let within = environment.clone();
        let compared = run(&environment, move || async move {
            let catalog = mount(&unpacked("texts").join(server).join("texts"), &within).await;
            let mut compared = 0;
            for database in catalog.databases() {
                for name in catalog.tables(&database) {
                    let table = catalog.table(&database, &name).await.unwrap();
                    for index in 0..table.definition().indexes.len() {
                        compared += ordered_entries(&table, IndexNo(index)).await;
                    }
                }
            }
            compared
        });
        assert!(compared > MIN_COMPARED, "{server}: {compared}");
    }
}

/// Walks an index of one whole text part and returns the number of entries that follow another in order.
async fn ordered_entries(table: &Arc<Table>, index: IndexNo) -> usize {
    let definition = table.definition();
    let [part] = definition.indexes[index.0].parts.as_slice() else { return 0 };
    let column = &definition.columns[part.column.0];
    let (collation, is_char) = match &column.column_type {
        ColumnType::VarChar { collation, .. } => (collation, false),
        ColumnType::Char { collation, .. } => (collation, true),
        _ => return 0,
    };
    let known = Collation::lookup(definition.server, &collation.name).unwrap();
    // CHAR in sets of two bytes, and in MariaDB's collations that do not pad, is not searched.
    if is_char && (collation.min_bytes > 1 || definition.server == Server::MariaDb && !known.pads()) {
        assert!(known.is_binary() || !table.searchable(index, 0), "{} {}", definition.name, collation.name);
        return 0;
    }
    assert!(table.searchable(index, 0), "{} {}", definition.name, collation.name);
    if part.prefix_bytes.is_some() {
        return 0;
    }
    let access = table.access(index, &[part.column]).unwrap();
    let rows = scan(table, &access, &KeyRange::all()).await.unwrap();
    let texts: Vec<&str> = rows.iter().map(|row| text(&row[0])).collect();
    for pair in texts.windows(2) {
        let order = known.compare(pair[0], pair[1]);
        let order = if part.descending { order.reverse() } else { order };
        let name = &definition.indexes[index.0].name;
        assert_ne!(order, Ordering::Greater, "{} {name}: {pair:?}", definition.name);
    }
    texts.len() - 1
}

fn text<'a>(value: &'a Value<'_>) -> &'a str {
    match value {
        Value::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

/// A search for one of the strings that are shown alike would miss the others.
#[test]
fn texts_of_several_stored_forms_are_found_in_full() {
    let environment = environment(true);
    let within = environment.clone();
    run(&environment, move || async move {
        let folder = unpacked("texts").join("mysql-9.7");
        let texts = mount(&folder.join("texts"), &within).await;
        let table = texts.table("texts", "utf16_unicode_ci_pk").await.unwrap();
        let key = table.key(IndexNo(0), &[Value::Text("?".into())]).unwrap().unwrap();
        assert_eq!(key.part_count(), 0);
        let elements = mount(&folder.join("es"), &within).await;
        let table = elements.table("es", "e2").await.unwrap();
        let doubled: Vec<bool> = (1..3).map(|index| table.searchable(IndexNo(index), 0)).collect();
        assert_eq!(doubled, [false, false]);
    });
}
