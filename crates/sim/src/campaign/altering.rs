//! Asking a volume to change transforms of objects, and to write their pages anew.

use tanada_volume::Attributes;

use super::teller::Teller;
use crate::oracle::Tag;

/// The transform of an object is being changed, until this is dropped.
struct Altering {
    teller: Teller,
    tag: Tag,
}

impl Drop for Altering {
    fn drop(&mut self) {
        if let Some(model) = self.teller.book.open().oracle.model(self.tag) {
            model.has_pages();
        }
        self.teller.altering.borrow_mut().remove(&self.tag);
    }
}

impl Teller {
    /// Changes how new pages of the object are stored, and nothing else.
    pub(crate) async fn alter(&self, tag: Tag, transform: &Attributes) {
        let Some(object) = self.handle(tag) else { return };
        if !self.altering.borrow_mut().insert(tag) {
            return;
        }
        let Attributes { class, pin, quota_bytes, page_bytes, .. } = object.attributes();
        let page_bytes = page_bytes.or(transform.page_bytes);
        if object.page_statistics().is_none()
            && let Some(model) = self.book.open().oracle.model(tag)
        {
            model.may_get_pages();
        }
        let altered = Altering { teller: self.clone(), tag };
        let attributes = Attributes { class, pin, quota_bytes, page_bytes, ..transform.clone() };
        self.say(|| format!("alter object {tag}: {attributes:?}"));
        let answer = object.alter(&attributes).await;
        drop(altered);
        // A class may be gone by now, as the object may be.
        self.answered("alter", &answer);
    }

    /// Writes all pages of the object anew.
    pub(crate) async fn optimize(&self, tag: Tag) {
        let Some(object) = self.handle(tag) else { return };
        if object.page_statistics().is_none() {
            return;
        }
        self.say(|| format!("optimize object {tag}"));
        match object.optimize(&|_| {}).await {
            Ok(_) => self.count("optimize"),
            Err(error) => self.refused_on(tag, "optimize", &error),
        }
    }
}
