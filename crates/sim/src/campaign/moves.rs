//! What a teller asks for that changes where data lie, and never what they are: the oracle hears nothing of it.

use std::ops::Range;

use tanada_volume::{ClassSettings, Relocation};

use super::teller::Teller;
use crate::oracle::Tag;

impl Teller {
    pub(crate) async fn move_to(&self, tag: Tag, chunks: Range<u64>, class: &str, relocation: &Relocation) {
        let Some(object) = self.handle(tag) else { return };
        self.say(|| format!("move chunks {chunks:?} of object {tag} to {class}"));
        self.answered("move", &object.move_to(chunks, class, relocation).await);
    }

    pub(crate) async fn mirror_to(&self, tag: Tag, chunks: Range<u64>, class: &str, relocation: &Relocation) {
        let Some(object) = self.handle(tag) else { return };
        self.say(|| format!("mirror chunks {chunks:?} of object {tag} to {class}"));
        self.answered("mirror", &object.mirror_to(chunks, class, relocation).await);
    }

    pub(crate) fn drop_mirrors(&self, tag: Tag, chunks: Range<u64>) {
        let Some(object) = self.handle(tag) else { return };
        self.say(|| format!("drop mirrors of chunks {chunks:?} of object {tag}"));
        self.answered("drop mirrors", &object.drop_mirrors(chunks, &Relocation::default()));
    }

    /// Adds a class of the rig at `rank`.
    pub(crate) async fn add_class(&self, name: &str, rank: usize) {
        let Some(devices) = self.rig.class_parts(name) else { return };
        let chunk_bytes = self.volume.chunk_bytes();
        let settings =
            ClassSettings { name: name.to_owned(), segment_bytes: 8192, size_bytes: 8 * chunk_bytes };
        self.say(|| format!("add class {name}"));
        self.answered("add class", &self.volume.add_class(&settings, devices, rank).await);
    }

    pub(crate) async fn drain_class(&self, name: &str, relocation: &Relocation) {
        self.say(|| format!("drain class {name}"));
        self.answered("drain class", &self.volume.drain_class(name, relocation).await);
    }

    pub(crate) async fn fill_class(&self, name: &str) {
        self.say(|| format!("fill class {name}"));
        self.answered("fill class", &self.volume.fill_class(name).await);
    }

    pub(crate) async fn remove_class(&self, name: &str) {
        self.say(|| format!("remove class {name}"));
        self.book.open().oracle.begin_removal(name);
        self.ledger.begin_removal(name);
        self.answered("remove class", &self.volume.remove_class(name).await);
    }

    pub(crate) async fn resize_class(&self, name: &str, chunks: u64, relocation: &Relocation) {
        let size_bytes = chunks * self.volume.chunk_bytes();
        self.say(|| format!("resize class {name} to {chunks} chunks"));
        self.answered("resize class", &self.volume.resize_class(name, size_bytes, relocation).await);
    }
}

impl Teller {
    pub(crate) fn check_adopted(&self) {
        let changed = self.volume.check_adopted().len();
        self.say(|| format!("{changed} adopted files have changed"));
        self.count("check adopted");
    }
}
