//! The oracle: a model of all objects of a volume that knows what must be there, what may be, and what cannot.
//!
//! Each object has a content ([`ObjectModel`]) and names. A name is like a byte: the one of the last sync is certain,
//! those since are possible, and "no name" (not created yet, or deleted) is one of them. What is said about an object
//! (class, pin, quota) is like a name. After a power cut each object that was found must be one of those known, each
//! known one at most once, and none that must exist may be missing.

mod object;
mod pattern;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub(crate) use object::{CHUNK_BYTES, Change, ChangeNo, ObjectModel, ReadNote, SyncNote};
pub(crate) use pattern::pattern;

use tanada_volume::Attributes;

use crate::disk::{DiskImage, SECTOR_BYTES};

/// Names an object for ever, whatever the volume calls it.
pub(crate) type Tag = u16;

/// In the patterns of files that are adopted: more than any tag.
pub(crate) const FIRST_FILE: u16 = 0xf000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begun,
    Done,
}

#[derive(Debug, Clone)]
struct Naming {
    no: u64,
    stage: Stage,
    name: Option<String>,
}

#[derive(Debug, Clone)]
struct Known {
    model: ObjectModel,
    certain: Option<String>,
    namings: Vec<Naming>,
    /// What is said about it: certain, and since.
    attributes: Attributes,
    settings: Vec<(u64, Attributes)>,
    writes: u16,
    /// A file that stays where it is, and cannot be written.
    is_adopted: bool,
}

impl Known {
    /// The name it has for those who use the volume now.
    fn name(&self) -> Option<&String> {
        let done = self.namings.iter().rev().find(|naming| naming.stage == Stage::Done);
        done.map_or(self.certain.as_ref(), |naming| naming.name.as_ref())
    }

    fn is_settled(&self) -> bool {
        self.namings.iter().all(|naming| naming.stage == Stage::Done)
    }

    /// Whether it may be found with these attributes. Nobody may have a class that is gone.
    fn may_have(&self, found: &Attributes, removed: &BTreeSet<String>) -> bool {
        let is_class = |found: &Option<String>, said: &Option<String>| {
            found == said || (found.is_none() && said.as_ref().is_some_and(|class| removed.contains(class)))
        };
        let mut said = self.settings.iter().map(|(_, said)| said).chain([&self.attributes]);
        said.any(|said| {
            is_class(&found.class, &said.class)
                && is_class(&found.pin, &said.pin)
                && found.quota_bytes == said.quota_bytes
        })
    }

    fn may_be_called(&self, name: Option<&str>) -> bool {
        self.certain.as_deref() == name || self.namings.iter().any(|naming| naming.name.as_deref() == name)
    }
}

/// An object that a recovery found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) attributes: Attributes,
    pub(crate) image: DiskImage,
}

impl fmt::Display for Found {
    /// What lies where.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.image.size_bytes();
        write!(f, "{:?}, {size} bytes:", self.name)?;
        let mut last = String::new();
        for offset in (0..size).step_by(SECTOR_BYTES as usize) {
            let mut bytes = vec![0; (size - offset).min(SECTOR_BYTES) as usize];
            self.image.read(offset, &mut bytes);
            let text = pattern::describe(&bytes);
            let text = text.split(" for offset").next().unwrap_or_default().to_owned();
            if text != last {
                write!(f, " {offset}: {text};")?;
                last = text;
            }
        }
        Ok(())
    }
}

/// Names a naming that was begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamingNo(Tag, u64);

/// Namings, and what was said about objects, that a sync of the names covers.
#[derive(Debug, Clone)]
pub(crate) struct NameSync {
    namings: Vec<(Tag, u64)>,
    /// All that was said up to this number.
    said: u64,
    only: Option<Tag>,
}

/// All objects of a volume. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Oracle {
    known: BTreeMap<Tag, Known>,
    next_tag: Tag,
    next_no: u64,
    /// Classes that were removed, or may have been.
    removed: BTreeSet<String>,
}

impl Oracle {
    /// An object that is about to be created.
    pub(crate) fn begin_create(&mut self, name: &str, attributes: &Attributes) -> (Tag, NamingNo) {
        self.next_tag += 1;
        let tag = self.next_tag;
        let known = Known {
            model: ObjectModel::default(),
            certain: None,
            namings: Vec::new(),
            attributes: attributes.clone(),
            settings: Vec::new(),
            writes: 0,
            is_adopted: false,
        };
        self.known.insert(tag, known);
        (tag, self.begin_naming(tag, Some(name.to_owned())))
    }

    /// A file that is about to be adopted.
    pub(crate) fn begin_adopt(&mut self, name: &str, image: DiskImage) -> (Tag, NamingNo) {
        let (tag, naming) = self.begin_create(name, &Attributes::default());
        self.set_file(tag, image);
        (tag, naming)
    }

    /// The adopted file holds this from now on.
    pub(crate) fn set_file(&mut self, tag: Tag, image: DiskImage) {
        if let Some(known) = self.known.get_mut(&tag) {
            known.model = ObjectModel::certain(image);
            known.is_adopted = true;
        }
    }

    pub(crate) fn is_adopted(&self, tag: Tag) -> bool {
        self.known.get(&tag).is_some_and(|known| known.is_adopted)
    }

    /// A rename, or with `None` a deletion, that is about to be asked for.
    pub(crate) fn begin_naming(&mut self, tag: Tag, name: Option<String>) -> NamingNo {
        self.next_no += 1;
        let no = self.next_no;
        if let Some(known) = self.known.get_mut(&tag) {
            known.namings.push(Naming { no, stage: Stage::Begun, name });
        }
        NamingNo(tag, no)
    }

    /// Something is said about the object, in one go.
    pub(crate) fn set_attributes(&mut self, tag: Tag, attributes: &Attributes) {
        self.next_no += 1;
        if let Some(known) = self.known.get_mut(&tag) {
            known.settings.push((self.next_no, attributes.clone()));
        }
    }

    /// Judges what the volume says of the object now.
    pub(crate) fn check_attributes(&self, tag: Tag, found: &Attributes) -> Result<(), String> {
        let Some(known) = self.known.get(&tag) else { return Ok(()) };
        let now = known.settings.last().map_or(&known.attributes, |(_, said)| said);
        let only = Known { settings: Vec::new(), attributes: now.clone(), ..known.clone() };
        match only.may_have(found, &self.removed) {
            true => Ok(()),
            false => Err(format!("object {tag} has {found:?} instead of {now:?}")),
        }
    }

    /// A class is about to be removed; who has it among the attributes loses it, if it comes to that.
    pub(crate) fn begin_removal(&mut self, class: &str) {
        self.removed.insert(class.to_owned());
    }

    /// The volume says that it is done.
    pub(crate) fn named(&mut self, naming: NamingNo) {
        let namings = self.known.get_mut(&naming.0).map(|known| &mut known.namings);
        if let Some(entry) = namings.into_iter().flatten().find(|entry| entry.no == naming.1) {
            entry.stage = Stage::Done;
        }
    }

    /// The volume refused it and did nothing.
    pub(crate) fn not_named(&mut self, naming: NamingNo) {
        if let Some(known) = self.known.get_mut(&naming.0) {
            known.namings.retain(|entry| entry.no != naming.1);
        }
    }

    /// Begins a sync that covers names: those of one object, or of all.
    pub(crate) fn begin_name_sync(&self, only: Option<Tag>) -> NameSync {
        let chosen = self.known.iter().filter(|(tag, _)| only.is_none_or(|only| only == **tag));
        let done = chosen.flat_map(|(tag, known)| {
            let done = known.namings.iter().filter(|naming| naming.stage == Stage::Done);
            done.map(|naming| (*tag, naming.no))
        });
        NameSync { namings: done.collect(), said: self.next_no, only }
    }

    /// That sync is done: what it covers is certain.
    pub(crate) fn names_synced(&mut self, sync: &NameSync) {
        for (tag, known) in &mut self.known {
            if sync.only.is_none_or(|only| only == *tag)
                && let Some(last) = known.settings.iter().rposition(|(no, _)| *no <= sync.said)
                && let Some((_, said)) = known.settings.drain(..=last).next_back()
            {
                known.attributes = said;
            }
        }
        for (tag, no) in &sync.namings {
            let Some(known) = self.known.get_mut(tag) else { continue };
            let Some(at) = known.namings.iter().position(|naming| naming.no == *no) else { continue };
            // What came before it is overtaken.
            if let Some(last) = known.namings.drain(..=at).next_back() {
                known.certain = last.name;
            }
            if known.certain.is_none() && known.namings.is_empty() {
                self.known.remove(tag);
            }
        }
    }

    /// Objects that exist now, by tag and name; those whose name is being changed are left out.
    pub(crate) fn objects(&self) -> Vec<(Tag, String)> {
        let settled = self.known.iter().filter(|(_, known)| known.is_settled());
        settled.filter_map(|(tag, known)| Some((*tag, known.name()?.clone()))).collect()
    }

    pub(crate) fn name(&self, tag: Tag) -> Option<String> {
        self.known.get(&tag)?.name().cloned()
    }

    /// Whether any object may have this name now, or is about to.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        let takes = |known: &Known| {
            let begun = known.namings.iter().filter(|naming| naming.stage == Stage::Begun);
            known.name().is_some_and(|taken| taken == name)
                || begun.filter_map(|naming| naming.name.as_ref()).any(|begun| begun == name)
        };
        self.known.values().any(takes)
    }

    pub(crate) fn model(&mut self, tag: Tag) -> Option<&mut ObjectModel> {
        self.known.get_mut(&tag).map(|known| &mut known.model)
    }

    /// A number for the object's next write, for its pattern.
    pub(crate) fn next_write(&mut self, tag: Tag) -> u16 {
        let known = self.known.get_mut(&tag);
        known.map_or(0, |known| {
            known.writes += 1;
            known.writes
        })
    }

    /// Judges what a recovery found; the oracle of what is certain from now on.
    pub(crate) fn check_recovered(&self, found: &[Found]) -> Result<Oracle, String> {
        let mut chosen = Vec::new();
        let mut reason = None;
        if !self.assign(found, &mut chosen, &mut reason) {
            return Err(
                reason.unwrap_or_else(|| "the objects found cannot be those that were there".to_owned())
            );
        }
        let mut next = Oracle { known: BTreeMap::new(), removed: self.removed.clone(), ..*self };
        for (found, tag) in found.iter().zip(chosen) {
            let old = self.known.get(&tag);
            let known = Known {
                model: ObjectModel::certain(found.image.clone()),
                certain: Some(found.name.clone()),
                namings: Vec::new(),
                attributes: found.attributes.clone(),
                settings: Vec::new(),
                writes: old.map_or(0, |known| known.writes),
                is_adopted: old.is_some_and(|known| known.is_adopted),
            };
            next.known.insert(tag, known);
        }
        Ok(next)
    }

    /// Judges objects that were found, while others may be missing. Nothing may have been named anew since the last
    /// sync.
    pub(crate) fn check_found(&self, found: &[Found]) -> Result<(), String> {
        for object in found {
            let known = self.known.iter().find(|(_, known)| known.may_be_called(Some(&object.name)));
            let (tag, known) = known.ok_or_else(|| format!("nobody created {:?}", object.name))?;
            let judged = self.check_one(known, object);
            judged.map_err(|why| format!("{:?} (object {tag}): {why}", object.name))?;
        }
        Ok(())
    }

    /// Judges content and attributes of an object that is `known`.
    fn check_one(&self, known: &Known, found: &Found) -> Result<(), String> {
        if !known.may_have(&found.attributes, &self.removed) {
            let said: Vec<&Attributes> =
                [&known.attributes].into_iter().chain(known.settings.iter().map(|(_, said)| said)).collect();
            return Err(format!("it has {:?}; possible are {said:?}", found.attributes));
        }
        known.model.check_recovered(&found.image)?;
        let page_bytes = found.attributes.page_bytes;
        page_bytes.map_or(Ok(()), |bytes| known.model.check_pages(&found.image, u64::from(bytes)))
    }

    /// Finds for each of `found` a known object that it can be; `reason` is the first thing that did not fit.
    fn assign(&self, found: &[Found], chosen: &mut Vec<Tag>, reason: &mut Option<String>) -> bool {
        let Some(next) = found.get(chosen.len()) else {
            let missing =
                self.known.iter().find(|(tag, known)| !chosen.contains(tag) && !known.may_be_called(None));
            if let Some((tag, known)) = missing {
                reason.get_or_insert_with(|| format!("object {tag} ({:?}) is lost", known.name()));
            }
            return missing.is_none();
        };
        let mut was_known = false;
        for (tag, known) in &self.known {
            if chosen.contains(tag) || !known.may_be_called(Some(&next.name)) {
                continue;
            }
            was_known = true;
            match self.check_one(known, next) {
                Ok(()) => {
                    chosen.push(*tag);
                    if self.assign(found, chosen, reason) {
                        return true;
                    }
                    chosen.pop();
                }
                Err(why) => {
                    reason.get_or_insert_with(|| format!("{:?} (object {tag}): {why}", next.name));
                }
            }
        }
        if !was_known {
            reason.get_or_insert_with(|| format!("nobody created {:?}", next.name));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, value: u8) -> Found {
        let bytes = if value == 0 { vec![] } else { vec![value; 512] };
        let attributes = Attributes::default();
        Found { name: name.to_owned(), attributes, image: DiskImage::from_bytes(&bytes) }
    }

    fn write(oracle: &mut Oracle, tag: Tag, value: u8) {
        let model = oracle.model(tag).expect("known");
        let change = model.begin(Change::Write { offset: 0, bytes: vec![value; 512] });
        model.done(change);
        let sync = model.begin_sync();
        model.synced(&sync);
    }

    fn created(oracle: &mut Oracle, name: &str, value: u8) -> Tag {
        let (tag, naming) = oracle.begin_create(name, &Attributes::default());
        oracle.named(naming);
        write(oracle, tag, value);
        let sync = oracle.begin_name_sync(None);
        oracle.names_synced(&sync);
        tag
    }

    #[test]
    fn objects_are_found_under_a_name_they_had() {
        let mut oracle = Oracle::default();
        let a = created(&mut oracle, "a", 1);
        assert!(oracle.check_recovered(&[found("a", 1)]).is_ok());
        assert!(oracle.check_recovered(&[]).unwrap_err().contains("lost"));
        assert!(oracle.check_recovered(&[found("b", 1)]).unwrap_err().contains("nobody created"));
        let naming = oracle.begin_naming(a, Some("b".to_owned()));
        for name in ["a", "b"] {
            assert!(oracle.check_recovered(&[found(name, 1)]).is_ok());
        }
        assert!(oracle.check_recovered(&[found("a", 1), found("b", 1)]).is_err());
        oracle.named(naming);
        let sync = oracle.begin_name_sync(Some(a));
        oracle.names_synced(&sync);
        assert!(oracle.check_recovered(&[found("a", 1)]).is_err());
        let deletion = oracle.begin_naming(a, None);
        oracle.named(deletion);
        assert!(oracle.objects().is_empty());
        assert!(oracle.check_recovered(&[]).is_ok());
        assert!(oracle.check_recovered(&[found("b", 1)]).is_ok());
    }

    #[test]
    fn reused_object_names_follow_their_content() {
        let mut oracle = Oracle::default();
        let first = created(&mut oracle, "a", 1);
        let deletion = oracle.begin_naming(first, None);
        oracle.named(deletion);
        let (second, naming) = oracle.begin_create("a", &Attributes::default());
        oracle.named(naming);
        write(&mut oracle, second, 2);
        for value in [1, 2] {
            assert!(oracle.check_recovered(&[found("a", value)]).is_ok());
        }
        assert!(oracle.check_recovered(&[found("a", 3)]).is_err());
        assert!(oracle.check_recovered(&[]).is_ok());
        let after = oracle.check_recovered(&[found("a", 2)]).expect("possible");
        assert_eq!(after.objects(), [(second, "a".to_owned())]);
        assert!(after.check_recovered(&[found("a", 1)]).is_err());
    }

    #[test]
    fn attributes_are_certain_when_synced_and_possible_before() {
        let mut oracle = Oracle::default();
        let tag = created(&mut oracle, "a", 1);
        let pinned = Attributes { pin: Some("slow".to_owned()), ..Attributes::default() };
        let with = |attributes: &Attributes| Found { attributes: attributes.clone(), ..found("a", 1) };
        let is_possible = |oracle: &Oracle, attributes| oracle.check_recovered(&[with(attributes)]).is_ok();
        let plain = Attributes::default();
        assert!(is_possible(&oracle, &plain) && !is_possible(&oracle, &pinned));
        oracle.set_attributes(tag, &pinned);
        assert!(is_possible(&oracle, &plain) && is_possible(&oracle, &pinned));
        assert!(oracle.check_attributes(tag, &pinned).is_ok());
        assert!(oracle.check_attributes(tag, &plain).is_err());
        let sync = oracle.begin_name_sync(None);
        oracle.names_synced(&sync);
        assert!(!is_possible(&oracle, &plain) && is_possible(&oracle, &pinned));
        oracle.begin_removal("slow");
        assert!(is_possible(&oracle, &plain) && is_possible(&oracle, &pinned));
    }
}
