//! What is known of an index's records before one is seen: widths, nullability, and which fields a record of some age
//! has.

use super::Span;
use crate::ColumnType;

/// Fixed columns longer than this are stored as variable ones (`DICT_MAX_FIXED_COL_LEN`).
const MAX_FIXED_BYTES: usize = 768;

/// How one field is stored in a COMPACT record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldShape {
    /// Bytes if they are always the same, else 0: the record says.
    pub(crate) fixed: u16,
    /// Whether the NULL bitmap has a bit for it.
    pub(crate) nullable: bool,
    /// Whether its length may take two bytes (and its value may lie outside of the page).
    pub(crate) big: bool,
}

impl FieldShape {
    /// A field of `column_type`, of which an index may hold but `prefix_bytes`.
    pub(crate) fn new(column_type: &ColumnType, nullable: bool, prefix_bytes: Option<u32>) -> FieldShape {
        let fixed = column_type.fixed_bytes().unwrap_or(0);
        let prefix = prefix_bytes.map_or(fixed, |prefix| prefix as usize);
        let fixed = if fixed > MAX_FIXED_BYTES { 0 } else { fixed.min(prefix) as u16 };
        let large = matches!(
            column_type,
            ColumnType::Text { .. }
                | ColumnType::Blob { .. }
                | ColumnType::Json
                | ColumnType::Geometry
                | ColumnType::Vector { is_blob: true, .. }
        );
        FieldShape { fixed, nullable, big: large || longest_bytes(column_type) > 255 }
    }

    /// A system column of `bytes`.
    pub(crate) fn system(bytes: u16) -> FieldShape {
        FieldShape { fixed: bytes, nullable: false, big: false }
    }
}

/// The most bytes that a value takes.
pub(crate) fn longest_bytes(column_type: &ColumnType) -> u64 {
    match column_type {
        ColumnType::Char { length, collation } | ColumnType::VarChar { length, collation } => {
            u64::from(*length) * u64::from(collation.max_bytes)
        }
        ColumnType::VarBinary { length } => u64::from(*length),
        ColumnType::Text { length_bytes, .. } | ColumnType::Blob { length_bytes } => {
            (1 << (8 * u32::from(*length_bytes).clamp(1, 4))) - 1
        }
        ColumnType::Vector { dimensions, .. } => u64::from(*dimensions) * 4,
        ColumnType::Json | ColumnType::Geometry => u64::from(u32::MAX),
        fixed => fixed.fixed_bytes().unwrap_or(0) as u64,
    }
}

/// The places of a record's leading fields that are the same in all records of a kind: those that are fixed and never
/// NULL, and those that the records do not have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Leading {
    /// Where each field begins, counted from the origin, or that it is absent.
    spans: Box<[Span]>,
    /// Bytes from the origin to the end of each field.
    ends: Box<[u32]>,
}

impl Leading {
    /// The leading ones of `fields`, each with whether records have it.
    fn new(fields: impl Iterator<Item = (FieldShape, bool)>) -> Leading {
        let (mut spans, mut ends, mut end) = (Vec::new(), Vec::new(), 0u32);
        for (field, there) in fields {
            if there && (field.fixed == 0 || field.nullable) {
                break;
            }
            spans.push(match there {
                true => Span::new(end as usize, usize::from(field.fixed), false),
                false => Span::ABSENT,
            });
            end += if there { u32::from(field.fixed) } else { 0 };
            ends.push(end);
        }
        Leading { spans: spans.into(), ends: ends.into() }
    }

    /// The fields that have the same places in `other`.
    fn shared(&self, other: &Leading) -> Leading {
        let count = self.spans.iter().zip(&other.spans).take_while(|(own, other)| own == other).count();
        Leading { spans: self.spans[..count].into(), ends: self.ends[..count].into() }
    }

    /// Number of fields.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Bytes from the origin to the end of the first `count` fields, of which there must be as many.
    #[inline]
    pub(crate) fn bytes(&self, count: usize) -> usize {
        count.checked_sub(1).map_or(0, |last| self.ends[last] as usize)
    }

    /// The spans of the first `count` fields of the record at `origin`.
    #[inline]
    pub(crate) fn spans(&self, count: usize, origin: usize) -> impl Iterator<Item = Span> + '_ {
        self.spans[..count].iter().map(move |span| span.moved(origin))
    }
}

/// Which fields a COMPACT record has, and how wide its NULL bitmap is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    /// Fields up to here may be there; those behind are absent.
    pub(crate) count: usize,
    /// Fields before `count` that are not there, one flag a field; empty if all are.
    pub(crate) missing: Box<[bool]>,
    /// Bytes of the NULL bitmap.
    pub(crate) null_bytes: usize,
    /// Leading fields whose places need no look at the record.
    pub(crate) leading: Leading,
}

impl Variant {
    fn new(fields: &[FieldShape], count: usize, missing: Vec<bool>) -> Variant {
        let there = |at: &usize| !missing.get(*at).copied().unwrap_or(false);
        let nullable = (0..count).filter(there).filter(|at| fields[*at].nullable).count();
        let leading =
            Leading::new(fields.iter().enumerate().map(|(at, field)| (*field, at < count && there(&at))));
        let missing = if missing.contains(&true) { missing.into() } else { Box::default() };
        Variant { count, missing, null_bytes: nullable.div_ceil(8), leading }
    }
}

/// How a record tells which fields it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Presence {
    /// All records have all fields.
    All(Variant),
    /// MySQL since 8.0.29: variant `v` for records of version `v`; those without a version may come from before.
    Versions(Vec<Variant>, Option<Counts>),
    /// MySQL before 8.0.29: records say how many fields they have, or have those of the core.
    Counted(Counts),
    /// MariaDB: records of status 4 have those of the core, one more, and an added count; others have those of the
    /// core.
    Added(Counts),
}

/// Records that have but the first so many fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counts {
    /// What records have that do not say.
    pub(crate) core: Variant,
    /// What records have that say how many.
    pub(crate) by_count: Vec<Variant>,
}

impl Counts {
    fn new(fields: &[FieldShape], core: usize) -> Counts {
        let variant = |count| Variant::new(fields, count, Vec::new());
        Counts { core: variant(core.min(fields.len())), by_count: (0..=fields.len()).map(variant).collect() }
    }
}

/// The records of one index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    /// All fields of a leaf record in stored order.
    pub(crate) fields: Box<[FieldShape]>,
    /// Leading fields that a node pointer has.
    pub(crate) node_fields: usize,
    /// Bytes of a node pointer's NULL bitmap.
    pub(crate) node_null_bytes: usize,
    /// Which fields leaf records have.
    pub(crate) presence: Presence,
    /// Leading fields that have the same places in all leaf records, of whatever variant they are.
    pub(crate) leading: Leading,
    /// Leading fields that have the same places in all node pointers.
    pub(crate) node_leading: Leading,
}

impl Shape {
    /// An index all of whose records have all of `fields`.
    pub(crate) fn new(fields: Vec<FieldShape>, node_fields: usize) -> Shape {
        let all = Variant::new(&fields, fields.len(), Vec::new());
        let node_leading = Leading::new(fields.iter().take(node_fields).map(|field| (*field, true)));
        Shape {
            node_null_bytes: all.null_bytes,
            fields: fields.into(),
            node_fields,
            leading: all.leading.clone(),
            node_leading,
            presence: Presence::All(all),
        }
    }

    /// The shape with what all variants of its records share.
    fn with_shared_leading(mut self) -> Shape {
        let (versions, counts) = match &self.presence {
            Presence::All(variant) => (std::slice::from_ref(variant), None),
            Presence::Versions(variants, counts) => (variants.as_slice(), counts.as_ref()),
            Presence::Counted(counts) | Presence::Added(counts) => (&[][..], Some(counts)),
        };
        // A count below the core's is of no record.
        let counted = counts.into_iter().flat_map(|counts| {
            let possible = counts.by_count.iter().skip(counts.core.count);
            std::iter::once(&counts.core).chain(possible)
        });
        let mut variants = versions.iter().chain(counted).map(|variant| &variant.leading);
        let first = variants.next().cloned().unwrap_or_default();
        self.leading = variants.fold(first, |shared, leading| shared.shared(leading));
        self
    }

    /// The same fields with MySQL row versions: `fields[i]` is there in the versions `added..dropped` of `spans[i]`
    /// (0 = not dropped).
    pub(crate) fn with_versions(mut self, spans: &[(u32, u32)]) -> Shape {
        let newest = spans.iter().map(|(added, dropped)| *added.max(dropped)).max().unwrap_or(0).min(255);
        let variant = |version: u32| {
            let missing =
                |(added, dropped): &(u32, u32)| *added > version || (*dropped != 0 && *dropped <= version);
            Variant::new(&self.fields, self.fields.len(), spans.iter().map(missing).collect())
        };
        let variants: Vec<Variant> = (0..=newest).map(variant).collect();
        self.node_null_bytes = variants.first().map_or(0, |variant| variant.null_bytes);
        self.presence = Presence::Versions(variants, None);
        self.with_shared_leading()
    }

    /// The same fields where MySQL's records may have fewer, but at least `core`.
    pub(crate) fn with_counts(mut self, core: usize) -> Shape {
        let counts = Counts::new(&self.fields, core);
        // Node pointers keep the bitmap of before the first instant ADD.
        self.node_null_bytes = counts.core.null_bytes;
        self.presence = match self.presence {
            Presence::Versions(variants, _) => Presence::Versions(variants, Some(counts)),
            _ => Presence::Counted(counts),
        };
        self.with_shared_leading()
    }

    /// The same fields where MariaDB's records may have fewer, but at least `core`.
    pub(crate) fn with_added(mut self, core: usize) -> Shape {
        let counts = Counts::new(&self.fields, core);
        self.node_null_bytes = counts.core.null_bytes;
        self.presence = Presence::Added(counts);
        self.with_shared_leading()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collation;

    fn collation(charset: &str, min_bytes: u8, max_bytes: u8) -> Collation {
        Collation { id: 0, name: format!("{charset}_bin"), charset: charset.into(), max_bytes, min_bytes }
    }

    #[test]
    fn widths_follow_the_character_set() {
        let char_of =
            |length, collation| FieldShape::new(&ColumnType::Char { length, collation }, false, None);
        assert_eq!(char_of(10, collation("latin1", 1, 1)).fixed, 10);
        assert_eq!(char_of(10, collation("utf8mb4", 1, 4)).fixed, 0);
        assert_eq!(char_of(255, collation("utf32", 4, 4)).fixed, 0);
        assert!(char_of(255, collation("utf8mb4", 1, 4)).big);
        assert!(FieldShape::new(&ColumnType::Blob { length_bytes: 1 }, false, None).big);
        let binary = ColumnType::Binary { length: 16 };
        assert_eq!(FieldShape::new(&binary, false, Some(4)).fixed, 4);
    }

    #[test]
    fn versions_choose_their_fields() {
        let nullable = FieldShape { fixed: 4, nullable: true, big: false };
        let shape = Shape::new(vec![FieldShape::system(4), nullable, nullable], 1).with_versions(&[
            (0, 0),
            (0, 2),
            (1, 0),
        ]);
        let Presence::Versions(variants, _) = shape.presence else { panic!() };
        assert_eq!(variants.len(), 3);
        assert_eq!(*variants[0].missing, [false, false, true]);
        assert!(variants[1].missing.is_empty());
        assert_eq!(*variants[2].missing, [false, true, false]);
        assert_eq!(variants[1].null_bytes, 1);
    }
}
