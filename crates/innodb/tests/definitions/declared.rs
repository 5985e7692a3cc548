//! What definitions say beside what reading rows needs, against the lines of the statement that a server prints.

use tanada_innodb::{Column, ColumnType, DefaultValue, TableDefinition};

/// Compares each column with its line, and takes away what the statement's definition does not have.
pub fn compare(definition: &mut TableDefinition, statement: &str) {
    for column in &mut definition.columns {
        let begin = format!("`{}` ", column.name);
        let line = statement.lines().map(str::trim).find_map(|line| line.strip_prefix(&begin));
        if let Some(line) = line {
            check(column, line);
        }
        column.declaration = tanada_innodb::Declaration::default();
    }
}

fn check(column: &Column, line: &str) {
    let declaration = &column.declaration;
    assert!(line.starts_with(&declaration.type_text), "{}: {line}", declaration.type_text);
    assert_eq!(declaration.auto_increment, line.contains(" AUTO_INCREMENT"), "{line}");
    assert_eq!(declaration.stored_expression.is_some(), line.contains(") STORED"), "{line}");
    let update = |value: &String| line.contains(&format!("ON UPDATE {value}"));
    assert!(declaration.on_update.as_ref().map_or(!line.contains("ON UPDATE"), update), "{line}");
    let is_said = match &declaration.default {
        DefaultValue::Unknown => true,
        DefaultValue::None => !line.contains(" DEFAULT "),
        DefaultValue::Null => line.contains("DEFAULT NULL") || is_large(&column.column_type),
        DefaultValue::Value(value) => {
            let quoted = format!("DEFAULT '{}'", value.replace('\'', "''"));
            line.contains(&quoted) || line.contains(&format!("DEFAULT {value}"))
        }
        DefaultValue::Bytes(bytes) => line.contains(&format!("DEFAULT '{}'", String::from_utf8_lossy(bytes))),
        DefaultValue::Expression(text) => {
            let is_bare = line.contains(&format!("DEFAULT {text}"));
            is_bare || line.contains(&format!("DEFAULT ({text})"))
        }
    };
    assert!(is_said, "{:?}: {line}", declaration.default);
}

/// Whether the server leaves DEFAULT NULL out.
fn is_large(column_type: &ColumnType) -> bool {
    matches!(
        column_type,
        ColumnType::Text { .. }
            | ColumnType::Blob { .. }
            | ColumnType::Json
            | ColumnType::Geometry
            | ColumnType::Vector { .. }
    )
}
