//! Databases, tables and partitions.

use tanada_innodb::schema::description::{DATA_DIRECTORY, TableDescription};
use tanada_innodb::schema::{RowFormat, Server};
use tanada_innodb::{DatabaseDescription, TableDefinition, ViewDescription};

use super::Described;
use super::rows::Row;

/// Options of MySQL's tables in the order of its CREATE_OPTIONS, each as it is spelled there.
const MYSQL_OPTIONS: [(&str, &str); 12] = [
    ("MAX_ROWS", "max_rows"),
    ("MIN_ROWS", "min_rows"),
    ("AVG_ROW_LENGTH", "avg_row_length"),
    ("ROW_FORMAT", "row_format"),
    ("STATS_SAMPLE_PAGES", "stats_sample_pages"),
    ("STATS_AUTO_RECALC", "stats_auto_recalc"),
    ("KEY_BLOCK_SIZE", "KEY_BLOCK_SIZE"),
    ("COMPRESSION", "COMPRESSION"),
    ("STATS_PERSISTENT", "stats_persistent"),
    ("PACK_KEYS", "pack_keys"),
    ("CHECKSUM", "checksum"),
    ("DELAY_KEY_WRITE", "delay_key_write"),
];

/// The row of SCHEMATA.
pub(super) fn of_database(name: &str, described: &DatabaseDescription) -> Row {
    let collation = described.collation.as_ref();
    Row::default()
        .with("CATALOG_NAME", "def")
        .with("SCHEMA_NAME", name)
        .maybe("DEFAULT_CHARACTER_SET_NAME", collation.map(|of| &of.charset))
        .maybe("DEFAULT_COLLATION_NAME", collation.map(|of| &of.name))
        .with("SCHEMA_COMMENT", &described.comment)
        .maybe("DEFAULT_ENCRYPTION", described.is_encrypted.map(|yes| if yes { "YES" } else { "NO" }))
}

/// The row of a table in TABLES.
pub(super) fn of_table(described: &Described<'_>) -> Row {
    let (definition, description) = (described.definition, described.description);
    let is_sequence = description.is_some_and(|of| of.is_sequence);
    let kind = match (definition.server, definition.row_end) {
        _ if is_sequence => "SEQUENCE",
        (Server::MariaDb, Some(_)) => "SYSTEM VERSIONED",
        _ => "BASE TABLE",
    };
    let row_format = match definition.row_format {
        _ if is_sequence => "Fixed",
        RowFormat::Redundant => "Redundant",
        RowFormat::Compact => "Compact",
        RowFormat::Dynamic => "Dynamic",
        RowFormat::Compressed => "Compressed",
    };
    let version = description.map(|of| of.version.unwrap_or(MYSQL_VERSION));
    place(definition)
        .with("TABLE_TYPE", kind)
        .with("ENGINE", "InnoDB")
        .maybe("VERSION", version)
        .with("ROW_FORMAT", row_format)
        .with("MAX_DATA_LENGTH", 0)
        .maybe("AUTO_INCREMENT", description.and_then(|of| auto_increment(definition, of)))
        .maybe("CREATE_TIME", description.and_then(|of| of.created).map(time))
        .maybe("TABLE_COLLATION", definition.collation.as_ref().map(|of| &of.name))
        .maybe("CREATE_OPTIONS", description.map(|of| options(definition.server, of)))
        .maybe("TABLE_COMMENT", description.map(|of| &of.comment))
        .with("MAX_INDEX_LENGTH", 0)
        .with("TEMPORARY", "N")
}

/// What MySQL says for every table of its own.
const MYSQL_VERSION: u8 = 10;

/// The row of a table of which nothing but the name is known.
pub(super) fn unknown(database: &str, name: &str) -> Row {
    named(database, name).with("TABLE_TYPE", "BASE TABLE").with("ENGINE", "InnoDB")
}

/// The row of a view in TABLES.
pub(super) fn of_view(database: &str, name: &str, view: &ViewDescription) -> Row {
    named(database, name)
        .with("TABLE_TYPE", "VIEW")
        .with("TABLE_COMMENT", "VIEW")
        .maybe("CREATE_TIME", view.created_seconds.and_then(moment))
}

/// The row of a view in PARTITIONS of MySQL.
pub(super) fn view_partition(database: &str, name: &str, view: &ViewDescription) -> Row {
    named(database, name)
        .maybe("CREATE_TIME", view.created_seconds.and_then(moment))
        .with("MAX_DATA_LENGTH", 0)
        .with("PARTITION_COMMENT", "")
        .with("NODEGROUP", "")
}

/// Catalog, database and name of a table.
pub(super) fn named(database: &str, name: &str) -> Row {
    Row::default().with("TABLE_CATALOG", "def").with("TABLE_SCHEMA", database).with("TABLE_NAME", name)
}

pub(super) fn place(definition: &TableDefinition) -> Row {
    named(&definition.database, &definition.name)
}

/// The next value of AUTO_INCREMENT, where the files tell it.
fn auto_increment(definition: &TableDefinition, description: &TableDescription) -> Option<u64> {
    let counts = definition.columns.iter().any(|column| column.declaration.auto_increment);
    let is_told = !description.omitted.iter().any(|what| what.contains("AUTO_INCREMENT"));
    (counts && is_told).then(|| description.auto_increment.unwrap_or(1))
}

/// CREATE_OPTIONS.
fn options(server: Server, description: &TableDescription) -> String {
    let value = |name: &str| description.options.iter().find(|(own, _)| own == name).map(|(_, value)| value);
    // MySQL does not say it of PARTITION BY KEY () without columns.
    let by = description.partitioned_by.as_ref();
    let by = by.filter(|by| server == Server::MariaDb || by.expression.is_some());
    let partitioned = by.map(|_| "partitioned".to_owned());
    let mut words = Vec::new();
    if server == Server::MySql {
        for (name, shown) in MYSQL_OPTIONS {
            words.extend(value(name).map(|value| format!("{shown}={}", value.replace('\'', "\""))));
        }
        words.extend(partitioned);
        return words.join(" ");
    }
    let is_late = |name: &str| matches!(name, "TRANSACTIONAL" | DATA_DIRECTORY) || name.starts_with('`');
    for (name, value) in description.options.iter().filter(|(name, _)| !is_late(name)) {
        // The connect string is not shown.
        words.extend((name != "CONNECTION").then(|| format!("{}={value}", name.to_ascii_lowercase())));
    }
    words.extend(partitioned);
    words.extend(value("TRANSACTIONAL").map(|value| format!("transactional={value}")));
    let of_engine = description.options.iter().filter(|(name, _)| name.starts_with('`'));
    words.extend(of_engine.map(|(name, value)| match value.starts_with('\'') {
        true => format!("{name}={value}"),
        false => format!("{name}='{value}'"),
    }));
    words.extend(value(DATA_DIRECTORY).map(|value| format!("{DATA_DIRECTORY}={value}")));
    words.join(" ")
}

/// The rows of a table in PARTITIONS.
pub(super) fn partitions(described: &Described<'_>) -> Vec<Row> {
    let definition = described.definition;
    let is_mysql = definition.server == Server::MySql;
    let created = described.description.and_then(|of| of.created).map(time);
    let own = || {
        let row = place(definition).maybe("CREATE_TIME", created.as_ref());
        if is_mysql { row.with("MAX_DATA_LENGTH", 0) } else { row }
    };
    let by = described.description.and_then(|of| Some((of, of.partitioned_by.as_ref()?)));
    let Some((description, by)) = by else {
        return vec![own().with("PARTITION_COMMENT", "").with("NODEGROUP", "")];
    };
    let mut rows = Vec::new();
    for (no, partition) in description.partitions.iter().enumerate() {
        let row = || {
            own()
                .with("PARTITION_NAME", &partition.name)
                .with("PARTITION_ORDINAL_POSITION", no + 1)
                .with("SECONDARY_LOAD", 0)
                .with("PARTITION_METHOD", &by.method)
                .maybe("PARTITION_EXPRESSION", by.expression.as_ref())
                .maybe("PARTITION_DESCRIPTION", partition.description.as_ref())
                .maybe("SUBPARTITION_METHOD", by.sub_method.as_ref())
                .maybe("SUBPARTITION_EXPRESSION", by.sub_expression.as_ref())
                .with("NODEGROUP", "default")
        };
        if partition.subpartitions.is_empty() {
            let row = row().with("PARTITION_COMMENT", &partition.comment);
            rows.push(row.maybe("TABLESPACE_NAME", partition.tablespace.as_ref()));
        }
        rows.extend(partition.subpartitions.iter().enumerate().map(|(no, sub)| {
            row()
                .with("SUBPARTITION_NAME", &sub.name)
                .with("SUBPARTITION_ORDINAL_POSITION", no + 1)
                .with("PARTITION_COMMENT", &sub.comment)
                .maybe("TABLESPACE_NAME", sub.tablespace.as_ref())
        }));
    }
    rows
}

/// A time that is written as the number YYYYMMDDhhmmss.
fn time(digits: u64) -> String {
    let part = |divisor: u64, modulus: u64| digits / divisor % modulus;
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        part(10_000_000_000, 10_000),
        part(100_000_000, 100),
        part(1_000_000, 100),
        part(10_000, 100),
        part(100, 100),
        part(1, 100)
    )
}

/// A time of seconds since 1970.
fn moment(seconds: i64) -> Option<String> {
    let time = chrono::DateTime::from_timestamp(seconds, 0)?;
    Some(time.format("%Y-%m-%d %H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spelled_as_the_servers_do() {
        assert_eq!(time(20_261_130_102_834), "2026-11-30 10:28:34");
        assert_eq!(moment(1_796_034_514).as_deref(), Some("2026-11-30 10:28:34"));
    }
}
