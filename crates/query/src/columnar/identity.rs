//! What a mirror is of: a column of a table in one state of its files. The name of its file says all of that.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use tanada_innodb::{Table, TableDefinition};

use crate::Result;
use crate::relation::InnodbRelation;

/// Version of the form of mirrors. Another one of what decodes values is another one of this.
const FORMAT: u32 = 1;
/// What names of mirrors end with. Their content is Parquet, but they are no tables.
pub(super) const ENDING: &str = ".mirror";
/// Letters of each name that is shown in the name of a file.
const SHOWN_LETTERS: usize = 24;

/// A table in one state of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MirrorKey {
    /// Database and table, as messages name them.
    pub(super) label: String,
    /// The hash of the table's name and files, whatever is in them.
    table: String,
    /// The hash of all that its rows follow from.
    pub(super) state: String,
    /// When any of its files was last touched, in nanoseconds since 1970.
    pub(super) newest_ns: i128,
}

impl MirrorKey {
    /// The table with its files as they are now.
    ///
    /// # Errors
    /// With the reason if that cannot be told.
    pub(crate) fn of(relation: &InnodbRelation) -> Result<MirrorKey> {
        MirrorKey::of_table(relation.table(), relation.definition_digest())
    }

    /// The same of a table whose definition has this [`definition_digest`].
    ///
    /// # Errors
    /// With the reason if the state of its files cannot be told.
    pub(super) fn of_table(table: &Table, definition_digest: &str) -> Result<MirrorKey> {
        let state = table.state()?;
        let definition = table.definition();
        let version = env!("CARGO_PKG_VERSION");
        let (database, name) = (&definition.database, &definition.name);
        let files: Vec<_> = definition.partitions.iter().map(|partition| &partition.path).collect();
        Ok(MirrorKey {
            label: format!("{database}.{name}"),
            table: hash(&format!("{database}\0{name}\0{files:?}"), 16),
            state: hash(
                &format!("format {FORMAT}, version {version}\n{}\n{definition_digest}", state.text),
                64,
            ),
            newest_ns: state.newest_ns,
        })
    }

    /// The name of the file with a column.
    pub(super) fn name(&self, column: usize) -> String {
        format!("{}{column}{ENDING}", self.prefix())
    }

    /// What the names of its columns' files begin with.
    pub(super) fn prefix(&self) -> String {
        let shown = shown(&self.label);
        // Half of a hash is enough to tell states apart; the file has all of it.
        format!("{shown}.{}.{}.", self.table, &self.state[..32])
    }

    /// Whether the file called `name` is of this table in another state.
    pub(super) fn makes_stale(&self, name: &str) -> bool {
        let of_table = format!("{}.{}.", shown(&self.label), self.table);
        name.starts_with(&of_table) && name.ends_with(ENDING) && !name.starts_with(&self.prefix())
    }
}

/// A hash of all that a definition says.
pub(crate) fn definition_digest(definition: &TableDefinition) -> String {
    hash(&format!("{definition:?}"), 64)
}

fn shown(label: &str) -> String {
    let parts = label.split('.').map(|part| {
        let letters = part.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
        letters.take(SHOWN_LETTERS).collect::<String>()
    });
    parts.collect::<Vec<_>>().join(".")
}

fn hash(text: &str, letters: usize) -> String {
    let mut shown = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a text does not fail.
        let _ = write!(shown, "{byte:02x}");
    }
    shown.truncate(letters);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(label: &str, state: &str) -> MirrorKey {
        MirrorKey { label: label.to_string(), table: hash(label, 16), state: hash(state, 64), newest_ns: 0 }
    }

    #[test]
    fn names_tell_tables_and_states_apart() {
        let (now, then, other) = (key("d.t", "2"), key("d.t", "1"), key("d.u", "1"));
        assert!(now.name(3).starts_with("d.t.") && now.name(3).ends_with(".3.mirror"));
        assert!(now.makes_stale(&then.name(3)) && !now.makes_stale(&now.name(3)));
        assert!(!now.makes_stale(&other.name(3)));
        assert_eq!(shown("a/b.ü\0"), "a_b.__");
        assert!(key(&"x".repeat(300), "1").name(1016).len() < 200);
    }
}
