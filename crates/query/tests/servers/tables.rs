//! A random table, and statements that fill it.

use crate::columns::{Form, Type};
use crate::random::Random;
use crate::server::Kind;

/// The most rows of an INSERT. One table in a few gets many more, so that its trees grow.
const ROWS: u64 = 12;
const MANY_ROWS: (u64, u64) = (200, 900);
const MANY_PERCENT: u64 = 6;

/// A column, its definition as far as statements need it.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub of: Type,
    pub nullable: bool,
    /// `virtual` or `stored` if it is computed from the id.
    pub computed: Option<&'static str>,
}

/// What rows are clustered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    None,
    Id,
    IdDescending,
    UniqueId,
    /// The id after the text `k`, the text alone, a prefix of it.
    TextAndId,
    Text,
    Prefix,
}

/// How a table is partitioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partitions {
    None,
    /// By HASH or KEY of the id.
    Hash(u32),
    /// By ranges of the id: names and upper bounds, the last without one.
    Range(Vec<(String, u64)>),
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    pub kind: Kind,
    pub key: Key,
    /// All columns in order, `id` and `k` included.
    pub columns: Vec<Column>,
    /// Secondary indexes: name and column.
    pub indexes: Vec<(String, String)>,
    pub partitions: Partitions,
    pub row_format: &'static str,
    pub next_column: u32,
    pub next_index: u32,
    pub next_partition: u32,
    rows: u64,
    many: bool,
}

/// Ids are below this; consecutive rows have ids that are far apart.
const IDS: u64 = 1_000_003;
const STRIDE: u64 = 377_777;

/// A row format with options of compression. Servers take what they cannot do with these pages for another format.
pub fn row_format(kind: Kind, random: &mut Random) -> &'static str {
    let compressed = match (kind.is_mysql(), random.below(8)) {
        (_, 0) => &["compressed", "compressed key_block_size=2", "compressed key_block_size=4"],
        (false, 1) => &["dynamic page_compressed=1", "compact page_compressed=1", "redundant"],
        (true, 1) => {
            &["dynamic compression='lz4'", "compact compression='zlib'", "redundant compression='lz4'"]
        }
        _ => &["dynamic", "compact", "redundant"],
    };
    random.pick(compressed)
}

impl Table {
    /// A table with one to eight columns.
    pub fn any(name: String, kind: Kind, random: &mut Random) -> Table {
        let key = random.pick(&[
            Key::None,
            Key::None,
            Key::Id,
            Key::Id,
            Key::Id,
            Key::IdDescending,
            Key::UniqueId,
            Key::TextAndId,
            Key::Text,
            Key::Prefix,
        ]);
        let text_key = random.pick(&[
            Type::Text { form: Form::Variable, length: 40, charset: "latin1" },
            Type::Text { form: Form::Fixed, length: 30, charset: "utf8mb4" },
            Type::Text { form: Form::Fixed, length: 20, charset: "latin1" },
            Type::Bytes { form: Form::Variable, length: 300 },
            Type::Bytes { form: Form::Fixed, length: 100 },
        ]);
        let by_id = matches!(key, Key::None | Key::Id | Key::IdDescending | Key::TextAndId);
        let partitions = match random.below(100) {
            0..=9 if by_id => Partitions::Hash(random.between(1, 4) as u32),
            10..=19 if by_id => {
                let bounds = [("p0", IDS / 4), ("p1", IDS / 2), ("p2", u64::MAX)];
                Partitions::Range(bounds.map(|(name, bound)| (name.to_owned(), bound)).to_vec())
            }
            _ => Partitions::None,
        };
        let mut table = Table {
            name,
            kind,
            key,
            columns: vec![Column {
                name: "id".to_owned(),
                of: Type::Integer { bytes: 4, unsigned: false },
                nullable: false,
                computed: None,
            }],
            indexes: Vec::new(),
            partitions,
            row_format: row_format(kind, random),
            next_column: 0,
            next_index: 0,
            next_partition: 3,
            rows: 0,
            many: random.chance(MANY_PERCENT),
        };
        if matches!(key, Key::TextAndId | Key::Text | Key::Prefix) {
            let text = Column { name: "k".to_owned(), of: text_key, nullable: false, computed: None };
            table.columns.insert(random.below(2) as usize, text);
        }
        // Leading columns that are fixed and never NULL are where places do not depend on the row.
        let plain = random.chance(40);
        for _ in 0..random.below(9 - table.columns.len() as u64) {
            let mut column = table.new_column(random);
            if plain {
                column.of =
                    random.pick(&[Type::Integer { bytes: 4, unsigned: false }, Type::Date, column.of]);
                column.nullable = random.chance(10);
                column.computed = None;
            }
            table.columns.push(column);
        }
        for _ in 0..random.pick(&[0, 0, 1, 2]) {
            table.new_index(random);
        }
        table
    }

    /// A column that the table does not have yet.
    pub fn new_column(&mut self, random: &mut Random) -> Column {
        self.next_column += 1;
        let computed = random.chance(5).then(|| random.pick(&["virtual", "stored"]));
        let of = match computed {
            Some(_) => Type::Integer { bytes: 8, unsigned: false },
            None => Type::any(random, self.kind),
        };
        // The server has no value for a geometry that is not given.
        let nullable = random.chance(50) || of == Type::Geometry || computed.is_some();
        Column { name: format!("c{}", self.next_column), of, nullable, computed }
    }

    /// Adds an index over a column, if there is one that has none; returns its definition.
    pub fn new_index(&mut self, random: &mut Random) -> Option<String> {
        let free: Vec<&Column> = self
            .columns
            .iter()
            .filter(|column| !matches!(column.of, Type::Json | Type::Geometry) && column.computed.is_none())
            .filter(|column| self.indexes.iter().all(|(_, of)| *of != column.name))
            .collect();
        if free.is_empty() {
            return None;
        }
        let column = free[random.below(free.len() as u64) as usize].clone();
        self.next_index += 1;
        let name = format!("i{}", self.next_index);
        let definition = index(&name, &column);
        self.indexes.push((name, column.name));
        Some(definition)
    }

    /// `CREATE TABLE`.
    pub fn create(&self, random: &mut Random) -> String {
        let mut parts: Vec<String> =
            self.columns.iter().map(|column| self.definition(column, random)).collect();
        parts.extend(match self.key {
            Key::None => None,
            Key::Id => Some("primary key (id)".to_owned()),
            Key::IdDescending => Some("primary key (id desc)".to_owned()),
            Key::UniqueId => Some("unique key (id)".to_owned()),
            Key::TextAndId => Some("primary key (k, id)".to_owned()),
            Key::Text => Some("primary key (k)".to_owned()),
            Key::Prefix => Some("primary key (k(12))".to_owned()),
        });
        let column = |name: &String| self.columns.iter().find(|column| column.name == *name).unwrap();
        parts.extend(self.indexes.iter().map(|(name, of)| index(name, column(of))));
        let partitions = match &self.partitions {
            Partitions::None => String::new(),
            Partitions::Hash(count) => format!(" partition by hash (id) partitions {count}"),
            Partitions::Range(ranges) => format!(" partition by range (id) ({})", range_list(ranges)),
        };
        let format = self.row_format;
        format!(
            "create table {} ({}) engine=innodb row_format={format}{partitions};",
            self.name,
            parts.join(", ")
        )
    }

    /// A column's definition, with a default or without.
    pub fn definition(&self, column: &Column, random: &mut Random) -> String {
        let Column { name, of, nullable, computed } = column;
        if let Some(kept) = computed {
            return format!("{name} {} as (id + 1) {kept}", of.sql());
        }
        let null = if *nullable { " null" } else { " not null" };
        let expression = of.is_large() && self.kind.is_mysql();
        let without = matches!(name.as_str(), "id" | "k") || *of == Type::Geometry || random.chance(40);
        let default = match (without, expression) {
            // MySQL gives the first timestamp a default of its own otherwise, and large columns none but an expression.
            (true, _) => String::new(),
            (false, true) if random.chance(70) => String::new(),
            (false, true) => format!(" default ({})", of.value(random)),
            (false, false) => of.default(random).map(|value| format!(" default {value}")).unwrap_or_default(),
        };
        format!("{name} {}{null}{default}", of.sql())
    }

    /// Inserts rows, now and then without some of the columns.
    pub fn insert(&mut self, random: &mut Random) -> String {
        let count = match self.many {
            true if random.chance(30) => random.between(MANY_ROWS.0, MANY_ROWS.1),
            _ => random.between(1, ROWS),
        };
        let is_given = |column: &&Column| column.computed.is_none();
        let few = random.chance(20);
        let given: Vec<Column> = self.columns.iter().filter(is_given).cloned().collect();
        let given: Vec<Column> = given
            .into_iter()
            .filter(|column| matches!(column.name.as_str(), "id" | "k") || !few || random.chance(50))
            .collect();
        let rows: Vec<String> = (0..count)
            .map(|_| {
                self.rows += 1;
                let id = (self.rows * STRIDE) % IDS;
                let values = given.iter().map(|column| self.value_of(column, id, random));
                format!("({})", values.collect::<Vec<_>>().join(","))
            })
            .collect();
        let names: Vec<&str> = given.iter().map(|column| column.name.as_str()).collect();
        let verb = random.pick(&["insert ignore", "insert ignore", "replace"]);
        format!("{verb} into {} ({}) values {};", self.name, names.join(","), rows.join(","))
    }

    fn value_of(&self, column: &Column, id: u64, random: &mut Random) -> String {
        match column.name.as_str() {
            "id" => id.to_string(),
            "k" if self.key == Key::Prefix => format!("'{id:07}-of-k-{}'", "k".repeat((id % 9) as usize)),
            "k" => format!("'{}{id}'", "key".repeat((id % 5) as usize)),
            _ if column.nullable && random.chance(25) => "null".to_owned(),
            _ => column.of.value(random),
        }
    }

    /// Updates a share of the rows.
    pub fn update(&self, random: &mut Random) -> Option<String> {
        let columns: Vec<&Column> =
            self.columns.iter().filter(|column| column.computed.is_none() && column.name != "k").collect();
        let column = columns[random.below(columns.len() as u64) as usize];
        let modulus = random.between(2, 9);
        let value = match column.name.as_str() {
            "id" => format!("id + {}", IDS * random.between(2, 9)),
            _ if column.nullable && random.chance(25) => "null".to_owned(),
            _ => column.of.value(random),
        };
        let (table, name) = (&self.name, &column.name);
        Some(format!(
            "update ignore {table} set {name} = {value} where id % {modulus} = {};",
            random.below(modulus)
        ))
    }

    /// Deletes a share of the rows.
    pub fn delete(&self, random: &mut Random) -> String {
        let modulus = random.between(2, 12);
        format!("delete from {} where id % {modulus} = {};", self.name, random.below(modulus))
    }
}

fn index(name: &str, column: &Column) -> String {
    let prefix = match column.of {
        Type::Text { form: Form::Large(_), .. } | Type::Bytes { form: Form::Large(_), .. } => "(20)",
        Type::Text { length, .. } | Type::Bytes { length, .. } if length > 180 => "(100)",
        _ => "",
    };
    format!("key {name} ({}{prefix})", column.name)
}

/// The partitions of a table by ranges.
pub fn range_list(ranges: &[(String, u64)]) -> String {
    let part = |(name, bound): &(String, u64)| match bound {
        &u64::MAX => format!("partition {name} values less than maxvalue"),
        bound => format!("partition {name} values less than ({bound})"),
    };
    ranges.iter().map(part).collect::<Vec<_>>().join(", ")
}
