//! The classes of the volume, as they are when something is placed: they come, are drained and go while the database is
//! in use.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use tanada_volume::Volume;

use crate::tree::policy::{ClassChoice, MediaPolicy, OfferedClass, Placement};
use crate::{Error, ErrorKind, Result};

/// Says which class something goes to.
pub(crate) struct Classes {
    volume: Volume,
    log_class: ClassChoice,
    is_fast_full: AtomicBool,
    /// The log has values that will move to another class.
    log_comes_free: AtomicBool,
    /// The fastest of several, when that was looked at last.
    noted_fastest: RwLock<Option<String>>,
}

impl fmt::Debug for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classes").field("log_class", &self.log_class).finish_non_exhaustive()
    }
}

impl Classes {
    /// Creates the classes of a database whose log goes to `log_class`, by default to the fastest.
    pub(crate) fn new(volume: &Volume, log_class: Option<&str>) -> Arc<Classes> {
        let log_class = log_class.map_or(ClassChoice::Fastest, |name| ClassChoice::Named(name.to_owned()));
        let (is_fast_full, log_comes_free) = (AtomicBool::new(false), AtomicBool::new(false));
        let (volume, noted_fastest) = (volume.clone(), RwLock::default());
        let classes = Classes { volume, log_class, is_fast_full, log_comes_free, noted_fastest };
        classes.note_fastest();
        Arc::new(classes)
    }

    /// Caches which class is the fastest now.
    pub(crate) fn note_fastest(&self) {
        let fastest = self.fastest_of_several();
        *self.noted_fastest.write() = fastest;
    }

    /// Returns whether there is a faster class than this one, as was noted last.
    pub(crate) fn has_faster_than(&self, class: Option<&str>) -> bool {
        self.noted_fastest.read().as_deref().is_some_and(|fastest| class != Some(fastest))
    }

    /// All of them, fastest first.
    fn offered(&self) -> Vec<OfferedClass> {
        let classes = self.volume.classes().into_iter();
        let offered = classes.map(|class| OfferedClass {
            takes_objects: !class.is_draining && !class.is_failed,
            name: class.name,
        });
        offered.collect()
    }

    /// Names of those that take objects, fastest first.
    pub(crate) fn usable(&self) -> Vec<String> {
        let usable = self.offered().into_iter().filter(|class| class.takes_objects);
        usable.map(|class| class.name).collect()
    }

    /// The fastest that takes objects.
    pub(crate) fn fastest(&self) -> Option<String> {
        self.usable().into_iter().next()
    }

    /// The same, if there are others: with one class there is nothing to gain.
    pub(crate) fn fastest_of_several(&self) -> Option<String> {
        let mut usable = self.usable().into_iter();
        usable.next().filter(|_| usable.next().is_some())
    }

    /// Returns whether the fastest class is as full as the database may make it.
    pub(crate) fn is_fast_full(&self) -> bool {
        self.is_fast_full.load(Ordering::Relaxed)
    }

    pub(crate) fn set_fast_full(&self, is_full: bool) {
        self.is_fast_full.store(is_full, Ordering::Relaxed);
    }

    /// Returns whether values in the log are on their way to another class, so that the log's will have more space.
    pub(crate) fn log_comes_free(&self) -> bool {
        self.log_comes_free.load(Ordering::Relaxed)
    }

    pub(crate) fn set_log_comes_free(&self, comes_free: bool) {
        self.log_comes_free.store(comes_free, Ordering::Relaxed);
    }

    /// Returns the classes that the policy wants, regardless of space.
    ///
    /// # Errors
    /// `InvalidInput` if there is no class.
    pub(crate) fn wanted(&self, policy: &MediaPolicy) -> Result<Placement> {
        let placement = policy.resolve(&self.offered(), &self.log_class);
        placement.ok_or_else(|| Error::invalid("the volume has no class"))
    }

    /// Returns the classes that new objects go to. The limit of the fastest class is kept by skipping it, as a full
    /// class is skipped.
    ///
    /// # Errors
    /// As [`wanted`](Self::wanted).
    pub(crate) fn placement(&self, policy: &MediaPolicy) -> Result<Placement> {
        let mut placement = self.wanted(policy)?;
        if let Some((fastest, next)) = self.passed_over() {
            let classes = [&mut placement.root_keys, &mut placement.leaf_keys, &mut placement.leaf_values];
            classes.into_iter().filter(|class| **class == fastest).for_each(|class| class.clone_from(&next));
        }
        Ok(placement)
    }

    /// The class of new segments of the log, and of the manifest.
    pub(crate) fn of_log(&self) -> Option<String> {
        let class = self.log_class.resolve(&self.offered())?;
        match self.passed_over() {
            Some((fastest, next)) if class == fastest => Some(next),
            _ => Some(class),
        }
    }

    /// The class that is used instead of that one, if that is as full as it may get.
    pub(crate) fn instead_of(&self, class: &str) -> Option<String> {
        self.passed_over().and_then(|(fastest, next)| (fastest == class).then_some(next))
    }

    /// Returns whether the log is wanted on that class.
    pub(crate) fn is_log_on(&self, class: &str) -> bool {
        self.log_class.resolve(&self.offered()).is_some_and(|wanted| wanted == class)
    }

    /// The fastest class and the one that is used instead of it, if it is as full as it may get.
    fn passed_over(&self) -> Option<(String, String)> {
        if !self.is_fast_full() {
            return None;
        }
        let mut usable = self.usable().into_iter();
        usable.next().zip(usable.next())
    }

    /// Returns whether a policy can be followed.
    ///
    /// # Errors
    /// `NotFound` if it names a class that is not there; `InvalidInput` if it wants values of the root elsewhere than
    /// in the log.
    pub(crate) fn check(&self, policy: &MediaPolicy) -> Result<()> {
        self.check_names(policy.names())?;
        self.check_log(policy)
    }

    /// Returns whether values of the root are wanted where the log is.
    ///
    /// # Errors
    /// `InvalidInput` if not.
    pub(crate) fn check_log(&self, policy: &MediaPolicy) -> Result<()> {
        let offered = self.offered();
        let log = self.log_class.resolve(&offered);
        if policy.root.values == ClassChoice::Log || policy.root.values.resolve(&offered) == log {
            return Ok(());
        }
        let (wanted, log) = (String::from(policy.root.values.clone()), log.unwrap_or_default());
        Err(Error::invalid(format!(
            "root.values of a policy is {wanted:?}, but values of the root are in the log, which lies on class {log:?}: say \"log\", or set log_class of the database"
        )))
    }

    /// Returns whether the classes that a policy or a setting names are there.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn check_names<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let offered = self.offered();
        for name in names {
            if !offered.iter().any(|class| class.name == name) {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("class {name:?} is named, which the volume has not"),
                ));
            }
        }
        Ok(())
    }
}
