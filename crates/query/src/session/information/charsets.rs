//! Character sets, collations and engines: what a server has as it is installed.

use tanada_innodb::schema::Server;

use super::rows::Row;

/// Name, character set, number, `Yes` if it is the character set's default, length of sorted strings, padding. A
/// collation of the character set `*` is one of several character sets, which it has a number from a base for.
const COLLATIONS_OF_MARIADB: &str = include_str!("mariadb-collations.tsv");
const COLLATIONS_OF_MYSQL: &str = include_str!("mysql-collations.tsv");
/// Name, default collation, description, bytes of the longest character.
const CHARSETS_OF_MARIADB: &str = include_str!("mariadb-charsets.tsv");
const CHARSETS_OF_MYSQL: &str = include_str!("mysql-charsets.tsv");
const ENGINES_OF_MARIADB: &str = include_str!("mariadb-engines.tsv");
const ENGINES_OF_MYSQL: &str = include_str!("mysql-engines.tsv");

/// The character sets of collations without one of their own, with the number of the first, in the server's order.
const BASES: [(&str, u32); 5] =
    [("utf8mb3", 2048), ("ucs2", 2560), ("utf8mb4", 2304), ("utf16", 2816), ("utf32", 3072)];

/// The rows of a table, if it is one of these.
pub(super) fn rows(table: &str, server: Server) -> Option<Vec<Row>> {
    let is_mysql = server == Server::MySql;
    let collations = if is_mysql { COLLATIONS_OF_MYSQL } else { COLLATIONS_OF_MARIADB };
    match table {
        "CHARACTER_SETS" => {
            let text = if is_mysql { CHARSETS_OF_MYSQL } else { CHARSETS_OF_MARIADB };
            let columns = ["CHARACTER_SET_NAME", "DEFAULT_COLLATE_NAME", "DESCRIPTION", "MAXLEN"];
            Some(of_lines(text, &columns))
        }
        "ENGINES" => {
            let text = if is_mysql { ENGINES_OF_MYSQL } else { ENGINES_OF_MARIADB };
            Some(of_lines(text, &["ENGINE", "SUPPORT", "COMMENT", "TRANSACTIONS", "XA", "SAVEPOINTS"]))
        }
        "COLLATIONS" => Some(lines(collations).map(|line| collation(&line)).collect()),
        "COLLATION_CHARACTER_SET_APPLICABILITY" => Some(applicabilities(collations)),
        _ => None,
    }
}

fn lines(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().map(|line| line.split('\t').collect())
}

fn of_lines(text: &'static str, columns: &[&'static str]) -> Vec<Row> {
    let row = |line: Vec<&'static str>| {
        let values = columns.iter().zip(line).filter(|(_, value)| *value != "NULL");
        values.fold(Row::default(), |row, (column, value)| row.with(column, value))
    };
    lines(text).map(row).collect()
}

fn collation(line: &[&'static str]) -> Row {
    let field = |at: usize| line.get(at).copied();
    let own = |at: usize| field(at).filter(|_| field(1) != Some("*"));
    Row::default()
        .maybe("COLLATION_NAME", field(0))
        .maybe("CHARACTER_SET_NAME", own(1))
        .maybe("ID", own(2))
        .maybe("IS_DEFAULT", own(3))
        .with("IS_COMPILED", "Yes")
        .maybe("SORTLEN", field(4))
        .maybe("PAD_ATTRIBUTE", field(5))
}

/// A row for each collation of each character set.
fn applicabilities(collations: &'static str) -> Vec<Row> {
    let row = |name: &str, charset: &str, full: String, id: String, is_default: &str| {
        Row::default()
            .with("COLLATION_NAME", name)
            .with("CHARACTER_SET_NAME", charset)
            .with("FULL_COLLATION_NAME", full)
            .with("ID", id)
            .with("IS_DEFAULT", is_default)
    };
    let mut rows = Vec::new();
    for line in lines(collations) {
        let [name, charset, id, is_default, ..] = line.as_slice() else { continue };
        if *charset != "*" {
            rows.push(row(name, charset, (*name).to_owned(), (*id).to_owned(), is_default));
            continue;
        }
        let offset: u32 = id.parse().unwrap_or_default();
        rows.extend(BASES.iter().map(|(charset, base)| {
            row(name, charset, format!("{charset}_{name}"), (base + offset).to_string(), "")
        }));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collations_of_several_character_sets_have_a_row_for_each() {
        let rows = rows("COLLATION_CHARACTER_SET_APPLICABILITY", Server::MariaDb).unwrap();
        assert_eq!(rows.len(), 1242);
        let numbers: Vec<_> = rows
            .iter()
            .filter(|row| row.value("COLLATION_NAME") == Some("uca1400_croatian_nopad_as_ci"))
            .map(|row| (row.value("CHARACTER_SET_NAME").unwrap(), row.value("ID").unwrap()))
            .collect();
        let expected = [
            ("utf8mb3", "2246"),
            ("ucs2", "2758"),
            ("utf8mb4", "2502"),
            ("utf16", "3014"),
            ("utf32", "3270"),
        ];
        assert_eq!(numbers, expected);
    }
}
