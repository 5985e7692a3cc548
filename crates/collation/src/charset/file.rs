//! The data file of character sets: `data/charsets.zst`, made by `scripts/make-charsets`.
//!
//! For each set: length of its name, name, number of planes, planes. A plane is its kind (a byte) and its cells. Cells
//! are `u16`, each less the cell before it; first the low bytes of all, then the high bytes.
//!
//! | kind | byte sequences in order                       | cells      |
//! |------|-----------------------------------------------|------------|
//! | 0    | one byte                                      | 256        |
//! | 1    | two, the first 80 to FF                       | 128 * 256  |
//! | 2    | 8F and two of 80 to FF                        | 128 * 128  |
//! | 3    | 81 to 84, 30 to 39, 81 to FE, 30 to 39        | 4 * 12,600 |
//!
//! A cell is a character, [`ILL_FORMED`] or [`NO_CHARACTER`].

use std::sync::LazyLock;

/// A byte sequence that the servers do not take for one character.
pub(super) const ILL_FORMED: u16 = 0xd800;
/// A character of the set that has no counterpart in Unicode.
pub(super) const NO_CHARACTER: u16 = 0xd801;

const CELLS: [usize; 4] = [256, 128 * 256, 128 * 128, 4 * 12_600];

/// Name and planes of a set; a plane that the set does not have is empty.
#[derive(Debug)]
pub(super) struct Planes {
    pub(super) name: String,
    pub(super) planes: [Box<[u16]>; 4],
}

/// All sets of the data file.
pub(super) static SETS: LazyLock<Vec<Planes>> = LazyLock::new(|| {
    let data = crate::unpack(include_bytes!("../../data/charsets.zst"));
    let mut rest = data.as_slice();
    let mut sets = Vec::new();
    while let Some(set) = planes(&mut rest) {
        sets.push(set);
    }
    sets
});

fn planes(rest: &mut &[u8]) -> Option<Planes> {
    let length = take(rest, 1)?[0];
    let name = String::from_utf8(take(rest, usize::from(length))?.to_vec()).ok()?;
    let mut planes: [Box<[u16]>; 4] = Default::default();
    for _ in 0..take(rest, 1)?[0] {
        let kind = usize::from(take(rest, 1)?[0]);
        let cells = *CELLS.get(kind)?;
        let (low, high) = (take(rest, cells)?, take(rest, cells)?);
        let mut last = 0u16;
        let cell = |(low, high): (&u8, &u8)| {
            last = last.wrapping_add(u16::from_le_bytes([*low, *high]));
            last
        };
        planes[kind] = low.iter().zip(high).map(cell).collect();
    }
    Some(Planes { name, planes })
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(bytes)?;
    *rest = left;
    Some(taken)
}
