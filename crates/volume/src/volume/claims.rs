//! Names that users of a volume claim, so that no two in the process work on the same thing and do not know of each
//! other.
//!
//! A claim is exclusive, or shared with other shared ones. It says nothing to other processes: those are kept away from
//! the volume as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Error, ErrorKind, Result};

/// Claims by name: those that share it, 0 for one that does not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claims(Arc<Mutex<BTreeMap<String, usize>>>);

/// A name that was claimed. Dropped, it is free.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let shared = volume.claim("backup", false)?;
/// let other = volume.claim("backup", false)?;
/// drop((shared, other)); // now the name is free
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Claim {
    claims: Claims,
    name: String,
}

impl Claims {
    pub(super) fn claim(&self, name: &str, is_exclusive: bool) -> Result<Claim> {
        let mut held = self.0.lock();
        match held.get_mut(name) {
            None => drop(held.insert(name.to_owned(), usize::from(!is_exclusive))),
            Some(sharers) if *sharers > 0 && !is_exclusive => *sharers += 1,
            Some(sharers) => {
                let how = if *sharers > 0 { "for reading" } else { "for writing" };
                let message = format!("{name} is open {how} in this process already");
                return Err(Error::new(ErrorKind::Locked, message));
            }
        }
        Ok(Claim { claims: self.clone(), name: name.to_owned() })
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

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn claim(claims: &Claims, is_exclusive: bool) -> Result<Claim> {
        claims.claim("kv/shop", is_exclusive)
    }

    #[test]
    fn a_name_is_claimed_by_one_or_shared() {
        let claims = Claims::default();
        let writer = claim(&claims, true).unwrap();
        for is_exclusive in [true, false] {
            let error = claim(&claims, is_exclusive).unwrap_err();
            assert!(
                error.kind() == ErrorKind::Locked && error.to_string().contains("for writing"),
                "{error}"
            );
        }
        drop(claims.claim("kv/other", true).unwrap());
        drop(writer);
        let readers = [claim(&claims, false).unwrap(), claim(&claims, false).unwrap()];
        let [first, second] = readers;
        drop(first);
        let error = claim(&claims, true).unwrap_err();
        assert!(error.to_string().contains("for reading"), "{error}");
        drop(second);
        drop(claim(&claims, true).unwrap());
        assert!(claims.0.lock().is_empty());
    }
}
