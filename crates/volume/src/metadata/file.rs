//! Records of what a file system keeps: attributes of files, and folders.
//!
//! A folder is a name of its own, so that an empty one exists and has an owner and a mode; what lies in it follows from
//! the names of objects. The folder with the empty name is the root.

use std::num::NonZeroU16;

use tanada_base::{ReadError, Reader};

use super::fields::{AttributeRecord, class, put_id, put_text, text};
use crate::page::PageSettings;
use crate::settings::LONGEST_NAME;
use crate::transform::{Algorithm, Compression};

/// Tags of the records, from the first to the last.
pub(crate) const TAGS: std::ops::RangeInclusive<u8> = 26..=29;

/// What a file system keeps of a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileAttributes {
    /// Permissions, as `chmod` takes them.
    pub mode: u32,
    /// Number of the user that owns it.
    pub uid: u32,
    /// Number of the group that owns it.
    pub gid: u32,
    /// When its data last changed, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// When anything of it last changed, in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// A folder as recorded: its own attributes, and those that new files in it get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FolderRecord {
    pub(crate) file: FileAttributes,
    pub(crate) attributes: AttributeRecord,
    pub(crate) settings: PageSettings,
    /// The binary logarithm of the bytes of a page.
    pub(crate) page_shift: Option<u8>,
}

/// A change of files and folders.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FileRecord {
    /// Of an object.
    Attributes { id: u64, file: FileAttributes },
    /// A folder is there, with this.
    Folder { name: String, folder: FolderRecord },
    /// A folder is not there any more.
    FolderRemoved { name: String },
    /// A folder with all objects and folders below it has another name.
    FolderRenamed { name: String, new_name: String },
}

fn put_file(out: &mut Vec<u8>, file: &FileAttributes) {
    for word in [file.mode, file.uid, file.gid] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    out.extend_from_slice(&file.modified_ns.to_be_bytes());
    out.extend_from_slice(&file.changed_ns.to_be_bytes());
}

fn file(reader: &mut Reader<'_>) -> Result<FileAttributes, ReadError> {
    let (mode, uid, gid) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let modified_ns = i64::from_be_bytes(reader.array()?);
    let changed_ns = i64::from_be_bytes(reader.array()?);
    Ok(FileAttributes { mode, uid, gid, modified_ns, changed_ns })
}

fn put_folder(out: &mut Vec<u8>, folder: &FolderRecord) {
    put_file(out, &folder.file);
    // 255 is no class.
    out.push(folder.attributes.class.unwrap_or(u8::MAX));
    out.push(folder.attributes.pin.unwrap_or(u8::MAX));
    out.extend_from_slice(&folder.attributes.quota_bytes.unwrap_or(u64::MAX).to_be_bytes());
    let compression = folder.settings.compression;
    out.extend_from_slice(&[compression.algorithm() as u8, compression.level()]);
    out.extend_from_slice(&folder.settings.key.map_or(0, NonZeroU16::get).to_be_bytes());
    out.push(folder.page_shift.unwrap_or(0));
}

fn folder(reader: &mut Reader<'_>) -> Result<Result<FolderRecord, String>, ReadError> {
    let file = file(reader)?;
    let (preferred, pin, quota) = (reader.u8()?, reader.u8()?, reader.u64()?);
    let quota_bytes = (quota != u64::MAX).then_some(quota);
    let attributes = AttributeRecord { class: class(preferred), pin: class(pin), quota_bytes };
    let (algorithm, level, key, shift) = (reader.u8()?, reader.u8()?, reader.u16()?, reader.u8()?);
    let compression = Algorithm::from_number(algorithm).and_then(|known| Compression::new(known, level));
    let Some(compression) = compression else {
        return Ok(Err(format!("a compression of number {algorithm} and level {level}")));
    };
    if shift != 0 && !(12..=16).contains(&shift) {
        return Ok(Err(format!("pages of 2^{shift} bytes")));
    }
    let settings = PageSettings { compression, key: NonZeroU16::new(key) };
    let page_shift = (shift != 0).then_some(shift);
    Ok(Ok(FolderRecord { file, attributes, settings, page_shift }))
}

impl FileRecord {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            FileRecord::Attributes { id, file } => {
                put_id(out, 26, *id);
                put_file(out, file);
            }
            FileRecord::Folder { name, folder } => {
                out.push(27);
                put_text(out, name);
                put_folder(out, folder);
            }
            FileRecord::FolderRemoved { name } => {
                out.push(28);
                put_text(out, name);
            }
            FileRecord::FolderRenamed { name, new_name } => {
                out.push(29);
                put_text(out, name);
                put_text(out, new_name);
            }
        }
    }

    /// The record behind a tag of [`TAGS`].
    pub(crate) fn decode(tag: u8, reader: &mut Reader<'_>) -> Result<Result<FileRecord, String>, ReadError> {
        if tag == 26 {
            return Ok(Ok(FileRecord::Attributes { id: reader.u64()?, file: file(reader)? }));
        }
        let name = match text(reader, LONGEST_NAME)? {
            Ok(name) => name,
            Err(why) => return Ok(Err(why)),
        };
        Ok(match tag {
            27 => folder(reader)?.map(|folder| FileRecord::Folder { name, folder }),
            28 => Ok(FileRecord::FolderRemoved { name }),
            _ => text(reader, LONGEST_NAME)?.map(|new_name| FileRecord::FolderRenamed { name, new_name }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Record;
    use super::*;

    #[test]
    fn records_of_files_come_back_as_written() {
        let file = FileAttributes { mode: 0o640, uid: 1, gid: 2, modified_ns: -3, changed_ns: 4 };
        let settings = PageSettings { compression: Compression::Zstd(9), key: NonZeroU16::new(7) };
        let attributes = AttributeRecord { class: Some(0), pin: None, quota_bytes: Some(5) };
        let folder = FolderRecord { file, attributes, settings, page_shift: Some(14) };
        let samples = [
            FileRecord::Attributes { id: 3, file },
            FileRecord::Folder { name: String::new(), folder: FolderRecord::default() },
            FileRecord::Folder { name: "水/b".to_owned(), folder },
            FileRecord::FolderRemoved { name: "a".to_owned() },
            FileRecord::FolderRenamed { name: "a".to_owned(), new_name: "b/c".to_owned() },
        ];
        let mut bytes = Vec::new();
        samples.iter().for_each(|record| record.encode(&mut bytes));
        let mut reader = Reader::new(&bytes);
        for record in samples {
            assert_eq!(Record::decode(&mut reader), Ok(Record::File(record)));
        }
        assert!(reader.is_empty());
    }

    #[test]
    fn folders_with_an_unknown_compression_or_page_size_are_damage() {
        let mut bytes = Vec::new();
        FileRecord::Folder { name: "a".to_owned(), folder: FolderRecord::default() }.encode(&mut bytes);
        let end = bytes.len();
        for (place, value) in [(end - 5, 99), (end - 4, 1), (end - 1, 11), (end - 1, 17)] {
            let mut damaged = bytes.clone();
            damaged[place] = value;
            assert!(Record::decode(&mut Reader::new(&damaged)).is_err(), "{place}: {value}");
        }
    }
}
