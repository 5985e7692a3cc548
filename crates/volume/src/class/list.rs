//! The classes of a volume: by number for who follows a mapping, by rank for who chooses.

use std::sync::Arc;

use super::Class;
use crate::settings::MOST_CLASSES;
use crate::{Error, ErrorKind, Result};

/// All classes, fastest first. Replaced as a whole when it changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClassList {
    ranked: Vec<Arc<Class>>,
    by_id: Vec<Option<Arc<Class>>>,
}

impl ClassList {
    pub(crate) fn ranked(&self) -> &[Arc<Class>] {
        &self.ranked
    }

    pub(crate) fn by_id(&self, id: u8) -> Option<&Arc<Class>> {
        self.by_id.get(id as usize)?.as_ref()
    }

    pub(crate) fn by_name(&self, name: &str) -> Result<&Arc<Class>> {
        self.ranked.iter().find(|class| class.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.ranked.iter().map(|class| class.name.as_str()).collect();
            Error::new(
                ErrorKind::NotFound,
                format!("there is no class {name:?}; there are: {}", names.join(", ")),
            )
        })
    }

    /// 0 for the fastest.
    pub(crate) fn rank(&self, id: u8) -> Option<usize> {
        self.ranked.iter().position(|class| class.id == id)
    }

    /// Adds a class at `rank`; later ones are slower.
    pub(crate) fn insert(&mut self, rank: usize, class: Arc<Class>) {
        let id = class.id as usize;
        if id >= self.by_id.len() {
            self.by_id.resize(id + 1, None);
        }
        self.by_id[id] = Some(class.clone());
        self.ranked.insert(rank.min(self.ranked.len()), class);
    }

    pub(crate) fn remove(&mut self, id: u8) {
        self.ranked.retain(|class| class.id != id);
        if let Some(place) = self.by_id.get_mut(id as usize) {
            *place = None;
        }
    }

    /// A number that no class has; those of removed classes may be used again, because nothing refers to them any more.
    pub(crate) fn free_id(&self) -> Option<u8> {
        (0..MOST_CLASSES as u8).find(|id| self.by_id(*id).is_none())
    }

    /// Where a new chunk may go, in order: the wanted class, then ever slower ones, then ever faster ones.
    pub(crate) fn candidates(&self, wanted: usize) -> impl Iterator<Item = &Arc<Class>> {
        let wanted = wanted.min(self.ranked.len());
        self.ranked[wanted..].iter().chain(self.ranked[..wanted].iter().rev())
    }
}
