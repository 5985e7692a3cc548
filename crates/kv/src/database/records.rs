//! Names of databases and stores, and the records of the manifest about these.

use crate::log::frame::StoreNo;
use crate::manifest::Record;
use crate::settings::LONGEST_NAME;
use crate::{Error, Result};

/// A name of a database or a store.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) || name.starts_with('.') {
        return Err(Error::invalid(format!(
            "{name:?} is no name: from 1 to {LONGEST_NAME} bytes of letters, digits, spaces, _ - and . (not at the beginning) are one"
        )));
    }
    Ok(())
}

/// Makes a record of a new store.
pub(crate) fn store_records(no: StoreNo, name: &str, settings: &crate::StoreSettings) -> Vec<Record> {
    vec![
        Record::Store { no, name: name.to_owned() },
        Record::StoreSettings { no, settings: Box::new(settings.clone()) },
    ]
}
