//! Names that users of a volume claim, so that no two in the process work on the same thing and do not know of each other.
//!
//! A claim is exclusive, or shared with other shared ones. It says nothing to other processes: those are kept away from the volume as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Volume;
use crate::{Error, ErrorKind, Result};

/// Claims by name: those that share it, 0 for one that does not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claims(Arc<Mutex<BTreeMap<String, usize>>>);

/// A name that was claimed. Dropped, it is free.
#[derive(Debug)]
pub struct Claim {
    claims: Claims,
    name: String,
}

impl Volume {
    /// Claims a name among all who use this opening of the volume.
    ///
    /// # Errors
    /// `Locked` if somebody has it, unless both share it.
    pub fn claim(&self, name: &str, is_exclusive: bool) -> Result<Claim> {
        let claims = self.core.claims.clone();
        {
            let mut held = claims.0.lock();
            match held.get_mut(name) {
                None => drop(held.insert(name.to_owned(), usize::from(!is_exclusive))),
                Some(sharers) if *sharers > 0 && !is_exclusive => *sharers += 1,
                Some(sharers) => {
                    let how = if *sharers > 0 { "for reading" } else { "for writing" };
                    let message = format!("{name} is open {how} in this process already");
                    return Err(Error::new(ErrorKind::Locked, message));
                }
            }
        }
        Ok(Claim { claims, name: name.to_owned() })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut held = self.claims.0.lock();
        if let Some(sharers) = held.get_mut(&self.name) {
            *sharers = sharers.saturating_sub(1);
            if *sharers == 0 {
                held.remove(&self.name);
            }
        }
    }
}
