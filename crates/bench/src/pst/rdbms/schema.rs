//! The tables of TPC-H in the words of each system, with all indexes of DBT-3.

use tanada_sample::{LATER_KEYS, SCHEMA};

use super::Rdbms;

/// A table of the schema.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) name: String,
    /// Columns and the primary key, in MariaDB's words.
    lines: Vec<String>,
    /// Indexes: name, and the columns in parentheses.
    keys: Vec<(String, String)>,
}

/// All tables, in the order in which rows can be loaded.
pub(super) fn tables() -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for line in SCHEMA.lines() {
        if let Some(rest) = line.strip_prefix("CREATE TABLE ") {
            let name = rest.trim_end_matches(" (").trim_matches('`').to_owned();
            tables.push(Table { name, ..Table::default() });
        } else if let (Some(table), Some(inner)) = (tables.last_mut(), line.strip_prefix("  ")) {
            table.add(inner.trim_end_matches(','));
        }
    }
    for (name, key) in LATER_KEYS {
        tables.iter_mut().filter(|table| table.name == name).for_each(|table| table.add(key));
    }
    tables
}

impl Table {
    fn add(&mut self, line: &str) {
        match line.strip_prefix("KEY ").and_then(|key| key.split_once(' ')) {
            Some((name, columns)) => self.keys.push((bare(name), bare(columns))),
            None => self.lines.push(bare(line)),
        }
    }

    /// What makes the table with its primary key.
    pub(super) fn create(&self, rdbms: Rdbms) -> String {
        let lines: Vec<String> = match rdbms {
            Rdbms::MariaDb => self.lines.clone(),
            Rdbms::Postgres => self.lines.iter().map(|line| in_postgres(line)).collect(),
        };
        let options = match rdbms {
            Rdbms::MariaDb => " engine=InnoDB default charset=latin1",
            Rdbms::Postgres => "",
        };
        format!("create table {} ({}){options}", self.name, lines.join(", "))
    }

    /// What makes its indexes, when the rows are there.
    pub(super) fn index(&self, rdbms: Rdbms) -> Vec<String> {
        let of = |(name, columns): &(String, String)| match rdbms {
            Rdbms::MariaDb => format!("add key {name} {columns}"),
            Rdbms::Postgres => format!("create index {name} on {} {columns}", self.name),
        };
        let all: Vec<String> = self.keys.iter().map(of).collect();
        match rdbms {
            Rdbms::MariaDb if all.is_empty() => all,
            // One statement, so the rows are read once.
            Rdbms::MariaDb => vec![format!("alter table {} {}", self.name, all.join(", "))],
            Rdbms::Postgres => all,
        }
    }
}

fn bare(text: &str) -> String {
    text.replace('`', "")
}

/// A column in PostgreSQL's words. `char` becomes `varchar`: both servers then give the text without blanks behind it.
fn in_postgres(line: &str) -> String {
    line.replace(" int(11)", " integer").replace(" char(", " varchar(")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_all_indexes_of_dbt3() {
        let tables = tables();
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(
            names,
            ["region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem"]
        );
        assert_eq!(tables.iter().map(|table| table.keys.len()).sum::<usize>(), 15);
        assert_eq!(
            tables[1].create(Rdbms::Postgres),
            "create table nation (n_nationkey integer NOT NULL, n_name varchar(25) NOT NULL, n_regionkey integer NOT \
             NULL, n_comment varchar(152) DEFAULT NULL, PRIMARY KEY (n_nationkey))"
        );
        assert_eq!(
            tables[1].index(Rdbms::MariaDb),
            ["alter table nation add key i_n_regionkey (n_regionkey)"]
        );
        let last = tables[7].index(Rdbms::Postgres);
        assert_eq!(last[6], "create index i_l_suppkey_partkey on lineitem (l_partkey,l_suppkey)");
        assert!(tables[0].index(Rdbms::MariaDb).is_empty());
    }
}
