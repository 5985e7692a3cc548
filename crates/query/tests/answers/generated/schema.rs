//! Random databases: tables of all types and collations, small, with values that meet each other in joins and
//! comparisons.

use crate::random::Random;

/// What an expression of a type is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Number,
    Text,
    /// DATE, DATETIME and TIMESTAMP.
    Temporal,
    Time,
    Json,
    Condition,
}

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub class: Class,
    kind: &'static str,
    collation: &'static str,
}

/// A table. Its first column is the primary key, an integer.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    ddl: String,
    rows: Vec<Vec<String>>,
}

/// A database.
#[derive(Debug, Clone)]
pub struct Database {
    pub name: String,
    pub tables: Vec<Table>,
}

const COLLATIONS: [&str; 8] = [
    "utf8mb4_general_ci",
    "utf8mb4_unicode_ci",
    "utf8mb4_uca1400_ai_ci",
    "utf8mb4_unicode_520_ci",
    "latin1_swedish_ci",
    "utf8mb4_bin",
    "utf8mb4_general_nopad_ci",
    "latin1_bin",
];

const NUMBERS: [&str; 16] = [
    "int",
    "int",
    "int",
    "bigint",
    "bigint unsigned",
    "int unsigned",
    "smallint",
    "tinyint",
    "mediumint",
    "decimal(10,2)",
    "decimal(12,4)",
    "decimal(30,10)",
    "double",
    "float",
    "year",
    "bit(6)",
];
const TEXTS: [&str; 8] =
    ["varchar(20)", "varchar(20)", "varchar(8)", "char(6)", "text", "enum", "set", "varbinary(8)"];
const TEMPORALS: [&str; 5] = ["date", "date", "datetime", "datetime(3)", "timestamp"];

/// Spellings that differ in case, accents, blanks at the end, and what number they begin with.
const WORDS: [&str; 26] = [
    "a",
    "A",
    "b",
    "B",
    "ab",
    "AB",
    "Ab ",
    "e",
    "é",
    "E",
    "ä",
    "ß",
    "ss",
    "",
    " ",
    "10",
    "9",
    "010",
    "1e1",
    "3.5x",
    "x%y",
    "a_b",
    "2024-01-05",
    "zz",
    "o''k",
    "-7",
];
const ELEMENTS: [&str; 5] = ["b", "a", "C", "d", "10"];
const DATES: [&str; 9] = [
    "2024-01-05",
    "2024-02-29",
    "2023-12-31",
    "2024-01-01",
    "1999-12-31",
    "2024-01-05",
    "2000-06-15",
    "1970-01-02",
    "2030-11-30",
];
const CLOCKS: [&str; 6] = ["00:00:00", "12:34:56", "23:59:59", "01:02:03", "10:00:00", "00:00:01"];
const FRACTIONS: [&str; 3] = ["", ".5", ".123"];
const DOCUMENTS: [&str; 6] = [
    r#"{"a": 1, "b": [1, 2, 3]}"#,
    r#"{"a": "x", "c": null}"#,
    "[1, 2.5, true]",
    r#""text""#,
    "17",
    r#"{"a": {"b": "deep"}}"#,
];

impl Column {
    fn random(name: String, random: &mut Random, collations: &[&'static str]) -> Column {
        let (class, kind) = match random.below(10) {
            0..=3 => (Class::Number, random.pick(&NUMBERS)),
            4..=6 => (Class::Text, random.pick(&TEXTS)),
            7 | 8 => (Class::Temporal, random.pick(&TEMPORALS)),
            _ if random.chance(60) => (Class::Time, random.pick(&["time", "time(3)"])),
            _ => (Class::Json, "json"),
        };
        Column { name, class, kind, collation: random.pick(collations) }
    }

    fn ddl(&self) -> String {
        let charset = self.collation.split('_').next().unwrap();
        let text = format!("character set {charset} collate {}", self.collation);
        let elements = ELEMENTS.map(|element| format!("'{element}'")).join(",");
        match self.kind {
            "enum" | "set" => format!("{} {}({elements}) {text}", self.name, self.kind),
            "json" | "varbinary(8)" => format!("{} {}", self.name, self.kind),
            kind if self.class == Class::Text => format!("{} {kind} {text}", self.name),
            // NULL is no value of it otherwise.
            "timestamp" => format!("{} timestamp null", self.name),
            kind => format!("{} {kind}", self.name),
        }
    }

    /// Whether it can be a part of an index without a prefix length.
    fn is_indexable(&self) -> bool {
        !matches!(self.kind, "text" | "json")
    }

    fn value(&self, random: &mut Random) -> String {
        if random.chance(15) {
            return "null".to_owned();
        }
        literal_of(self.kind, random)
    }
}

/// A literal that a column of the type takes.
fn literal_of(kind: &str, random: &mut Random) -> String {
    let quoted = |text: &str| format!("'{text}'");
    match kind {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" => {
            if random.chance(4) {
                return random.pick(&["127", "-128", "100"]).to_owned();
            }
            (random.below(14) as i64 - 3).to_string()
        }
        "bigint unsigned" if random.chance(5) => "18446744073709551615".to_owned(),
        "int unsigned" | "bigint unsigned" => random.below(12).to_string(),
        "bit(6)" => random.below(64).to_string(),
        "year" => random.pick(&["2024", "2023", "1999", "2000"]).to_owned(),
        "double" | "float" => {
            random.pick(&["0", "1", "-1.5", "2.25", "10", "0.5", "3", "1024", "-0.125"]).to_owned()
        }
        "decimal(10,2)" | "decimal(12,4)" | "decimal(30,10)" => {
            random.pick(&["0", "1", "-1.50", "2.25", "10", "0.05", "3.14", "999.99", "-7", "12.5"]).to_owned()
        }
        "date" => quoted(random.pick(&DATES)),
        "datetime" | "timestamp" => format!("'{} {}'", random.pick(&DATES), random.pick(&CLOCKS)),
        "datetime(3)" => {
            format!("'{} {}{}'", random.pick(&DATES), random.pick(&CLOCKS), random.pick(&FRACTIONS))
        }
        "time" => format!("'{}{}'", random.pick(&["", "", "-", "8"]), random.pick(&CLOCKS)),
        "time(3)" => format!("'{}{}'", random.pick(&CLOCKS), random.pick(&FRACTIONS)),
        "json" => quoted(random.pick(&DOCUMENTS)),
        "enum" => quoted(random.pick(&ELEMENTS)),
        "set" => {
            let chosen: Vec<&str> = ELEMENTS.into_iter().filter(|_| random.chance(30)).collect();
            quoted(&chosen.join(","))
        }
        _ => quoted(&random.pick(&WORDS).chars().take(6).collect::<String>()),
    }
}

/// A literal of the class.
pub fn literal(class: Class, random: &mut Random) -> String {
    match class {
        Class::Number => random
            .pick(&[
                "0", "1", "2", "-1", "3", "10", "7", "1.5", "2.50", "0.001", "1e0", "100", "12", "4", "5",
                "255",
            ])
            .to_owned(),
        Class::Text => literal_of("varchar(20)", random),
        Class::Temporal if random.chance(50) => literal_of("date", random),
        Class::Temporal => literal_of("datetime", random),
        Class::Time => literal_of("time", random),
        Class::Json => literal_of("json", random),
        Class::Condition => random.pick(&["true", "false", "null"]).to_owned(),
    }
}

impl Table {
    fn random(name: String, random: &mut Random, collations: &[&'static str]) -> Table {
        let count = random.between(3, 7);
        let columns: Vec<Column> = std::iter::once(Column {
            name: "id".to_owned(),
            class: Class::Number,
            kind: "int",
            collation: collations[0],
        })
        .chain((0..count).map(|no| Column::random(format!("c{no}"), random, collations)))
        .collect();
        let mut parts: Vec<String> = columns.iter().map(Column::ddl).collect();
        parts[0] = "id int not null primary key".to_owned();
        for column in columns.iter().skip(1).filter(|column| column.is_indexable()) {
            if random.chance(35) {
                parts.push(format!("key({})", column.name));
            }
        }
        let count = random.pick(&[0, 1, 6, 12, 12, 25, 25, 30, 40, 40]);
        let rows = (0..count).map(|no: u64| {
            let mut row: Vec<String> = columns.iter().map(|column| column.value(random)).collect();
            row[0] = (no + 1).to_string();
            row
        });
        let rows = rows.collect();
        let ddl = format!("create table {name}({}) engine=innodb;\n", parts.join(", "));
        Table { name, columns, ddl, rows }
    }

    /// Rows.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Statements that make it with the rows that `keep` chooses.
    pub fn sql(&self, keep: impl Fn(usize) -> bool) -> String {
        let rows = self.rows.iter().enumerate().filter(|(no, _)| keep(*no));
        let rows: Vec<String> = rows.map(|(_, row)| format!("({})", row.join(", "))).collect();
        if rows.is_empty() {
            return self.ddl.clone();
        }
        format!("{}insert into {} values\n  {};\n", self.ddl, self.name, rows.join(",\n  "))
    }
}

impl Database {
    /// The database of a seed.
    pub fn random(seed: u64) -> Database {
        let mut random = Random::new(seed);
        let collations: Vec<&'static str> = (0..2).map(|_| random.pick(&COLLATIONS)).collect();
        let tables = (0..4).map(|no| Table::random(format!("t{no}"), &mut random, &collations)).collect();
        Database { name: format!("g{seed}"), tables }
    }

    /// Statements that make it.
    pub fn sql(&self) -> String {
        let tables: String = self.tables.iter().map(|table| table.sql(|_| true)).collect();
        format!("create database {0}; use {0};\n{tables}", self.name)
    }
}
