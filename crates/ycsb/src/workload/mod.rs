//! YCSB's core workloads A to F: which operations in which proportion, on which records.
//!
//! | | operations | records | the application it stands for |
//! |---|---|---|---|
//! | A | 50 % reads, 50 % updates | zipfian | session store |
//! | B | 95 % reads, 5 % updates | zipfian | tagging of photos |
//! | C | reads | zipfian | cache of profiles |
//! | D | 95 % reads, 5 % inserts | latest | status of users |
//! | E | 95 % scans of 1 to 100 records, 5 % inserts | zipfian | threads of messages |
//! | F | 50 % reads, 50 % read-modify-writes | zipfian | database of users |

mod draws;
mod record;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use draws::{Drawn, Draws};
pub use record::{Field, Records};

use crate::{Error, Result};

/// A core workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Update heavy.
    A,
    /// Read mostly.
    B,
    /// Read only.
    C,
    /// Read latest.
    D,
    /// Short ranges.
    E,
    /// Read-modify-write.
    F,
}

/// What a client does to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// All fields of one record.
    Read,
    /// Overwrites a record.
    Update,
    /// Adds a record.
    Insert,
    /// Reads up to so many records from a key on, in the order of keys.
    Scan,
    /// Reads a record and writes it changed.
    ReadModifyWrite,
}

/// How records are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Popular records anywhere (scrambled Zipfian).
    Zipfian,
    /// Newest records most.
    Latest,
    /// All alike.
    Uniform,
    /// 80 % of the operations on 20 % of the records.
    Hotspot,
    /// One after the other.
    Sequential,
}

/// Most records of a scan.
pub const LONGEST_SCAN: u64 = 100;

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 5] =
        [Operation::Read, Operation::Update, Operation::Insert, Operation::Scan, Operation::ReadModifyWrite];

    /// What reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Update => "update",
            Operation::Insert => "insert",
            Operation::Scan => "scan",
            Operation::ReadModifyWrite => "read_modify_write",
        }
    }
}

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 6] =
        [Workload::A, Workload::B, Workload::C, Workload::D, Workload::E, Workload::F];

    /// Operations and their proportions, which add up to 1.
    pub fn proportions(self) -> &'static [(Operation, f64)] {
        use Operation::{Insert, Read, ReadModifyWrite, Scan, Update};
        match self {
            Workload::A => &[(Read, 0.5), (Update, 0.5)],
            Workload::B => &[(Read, 0.95), (Update, 0.05)],
            Workload::C => &[(Read, 1.0)],
            Workload::D => &[(Read, 0.95), (Insert, 0.05)],
            Workload::E => &[(Scan, 0.95), (Insert, 0.05)],
            Workload::F => &[(Read, 0.5), (ReadModifyWrite, 0.5)],
        }
    }

    /// The part of the operations that add a record.
    pub fn insert_proportion(self) -> f64 {
        let inserts = self.proportions().iter().filter(|(operation, _)| *operation == Operation::Insert);
        inserts.map(|(_, proportion)| proportion).sum()
    }

    /// How its records are chosen.
    pub fn distribution(self) -> Distribution {
        if self == Workload::D { Distribution::Latest } else { Distribution::Zipfian }
    }

    /// `a` to `f`.
    pub fn letter(self) -> char {
        match self {
            Workload::A => 'a',
            Workload::B => 'b',
            Workload::C => 'c',
            Workload::D => 'd',
            Workload::E => 'e',
            Workload::F => 'f',
        }
    }
}

impl FromStr for Distribution {
    type Err = Error;

    fn from_str(text: &str) -> Result<Distribution> {
        Ok(match text {
            "zipfian" => Distribution::Zipfian,
            "latest" => Distribution::Latest,
            "uniform" => Distribution::Uniform,
            "hotspot" => Distribution::Hotspot,
            "sequential" => Distribution::Sequential,
            other => {
                let message = format!("{other:?} is none of zipfian, latest, uniform, hotspot, sequential");
                return Err(Error::invalid(message));
            }
        })
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

impl FromStr for Workload {
    type Err = Error;

    fn from_str(text: &str) -> Result<Workload> {
        let is_meant = |workload: &Workload| text.eq_ignore_ascii_case(&workload.to_string());
        let found = Workload::ALL.into_iter().find(is_meant);
        found.ok_or_else(|| Error::invalid(format!("{text:?} is no workload: there are a, b, c, d, e, f")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proportions_add_up() {
        for workload in Workload::ALL {
            let sum: f64 = workload.proportions().iter().map(|(_, proportion)| proportion).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{workload}");
        }
        assert_eq!((Workload::D.insert_proportion(), Workload::A.insert_proportion()), (0.05, 0.0));
    }

    #[test]
    fn distributions_are_read_as_settings_have_them() {
        for name in ["zipfian", "latest", "uniform", "hotspot", "sequential"] {
            let read = name.parse::<Distribution>().unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), format!("\"{name}\""));
        }
        assert!("even".parse::<Distribution>().is_err());
    }

    #[test]
    fn letters_are_read_as_written() {
        for workload in Workload::ALL {
            assert_eq!(workload.to_string().parse::<Workload>().unwrap(), workload);
            let json = serde_json::to_string(&workload).unwrap();
            assert_eq!(json, format!("\"{workload}\""));
        }
        assert!("g".parse::<Workload>().unwrap_err().to_string().contains("there are a, b"));
    }
}
