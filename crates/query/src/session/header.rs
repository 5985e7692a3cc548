//! Names of result columns: several may have the same name.
//!
//! Two columns of one name cannot be planned, so the later ones get invisible letters behind their names, which
//! [`shown`] takes away again from the result.

/// Zero-width space: what tells names apart that are written alike.
pub(super) const APART: char = '\u{200b}';

/// The name of a result column as it is shown.
pub(super) fn shown(name: &str) -> &str {
    name.trim_end_matches(APART)
}
