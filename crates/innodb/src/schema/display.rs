//! How a column prints its numbers, beyond what its type says.
//!
//! ZEROFILL pads a number with zeros to its display width. FLOAT(M,D) and DOUBLE(M,D) have D digits after the point:
//! the server rounds a value when it stores it, and prints these digits. YEAR(2) prints the last two digits.
//! The display width of other numbers changes nothing, and is not kept.

use super::ColumnType;

/// How a column prints its numbers, beyond what its type says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Display {
    /// Width in characters: of a column with ZEROFILL, of FLOAT(M,D) and DOUBLE(M,D) (M), and of YEAR(2).
    pub width: Option<u8>,
    /// Digits after the point of FLOAT(M,D) and DOUBLE(M,D) (D).
    pub decimals: Option<u8>,
    /// Whether zeros fill the width.
    pub zerofill: bool,
}

/// The most digits after the point that FLOAT(M,D) and DOUBLE(M,D) have; a greater number means that they have none.
const MAX_DECIMALS: u64 = 30;

impl Display {
    /// The display of a column whose dictionary entry has this width in characters, digits after the point, and
    /// ZEROFILL flag.
    pub(super) fn of_entry(
        column_type: &ColumnType,
        width: u64,
        decimals: Option<u64>,
        zerofill: bool,
    ) -> Display {
        let is_float = matches!(column_type, ColumnType::Float | ColumnType::Double);
        let is_number =
            is_float || matches!(column_type, ColumnType::Integer { .. } | ColumnType::Decimal { .. });
        let decimals = decimals.filter(|decimals| is_float && *decimals <= MAX_DECIMALS);
        let zerofill = zerofill && is_number;
        let is_short_year = *column_type == ColumnType::Year && width == 2;
        let has_width = zerofill || decimals.is_some() || is_short_year;
        Display {
            width: u8::try_from(width).ok().filter(|_| has_width),
            decimals: decimals.and_then(|decimals| u8::try_from(decimals).ok()),
            zerofill,
        }
    }

    /// The display of a column that is declared with `numbers` in parentheses.
    pub(super) fn of_declaration(column_type: &ColumnType, numbers: &[u32], zerofill: bool) -> Display {
        let is_float = matches!(column_type, ColumnType::Float | ColumnType::Double);
        let decimals = numbers.get(1).copied().filter(|_| is_float).map(u64::from);
        let width = match (column_type, numbers.first()) {
            (ColumnType::Decimal { precision, scale, .. }, _) => {
                u64::from(*precision) + u64::from(*scale > 0)
            }
            // The one number of FLOAT(n) chooses between the types.
            (ColumnType::Float | ColumnType::Double, Some(width)) if decimals.is_some() => (*width).into(),
            (ColumnType::Integer { .. } | ColumnType::Year, Some(width)) => (*width).into(),
            _ => default_width(column_type),
        };
        Display::of_entry(column_type, width, decimals, zerofill)
    }
}

/// Width of an unsigned number that is declared without one.
fn default_width(column_type: &ColumnType) -> u64 {
    match column_type {
        ColumnType::Integer { bytes: 1, .. } => 3,
        ColumnType::Integer { bytes: 2, .. } => 5,
        ColumnType::Integer { bytes: 3, .. } => 8,
        ColumnType::Integer { bytes: 4, .. } => 10,
        ColumnType::Integer { .. } => 20,
        ColumnType::Float => 12,
        ColumnType::Double => 22,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_say_what_dictionaries_say() {
        let integer = |bytes| ColumnType::Integer { bytes, unsigned: true };
        let decimal = ColumnType::Decimal { precision: 8, scale: 2, unsigned: true };
        let cases = [
            (ColumnType::Float, &[5, 2][..], false, 5, Some(2)),
            (ColumnType::Float, &[7, 0], false, 7, Some(0)),
            (ColumnType::Float, &[10], false, 12, Some(31)),
            (ColumnType::Double, &[], true, 22, None),
            (integer(4), &[5], true, 5, None),
            (integer(4), &[], true, 10, None),
            (integer(4), &[3], false, 3, None),
            (decimal, &[8, 2], true, 9, Some(2)),
            (ColumnType::Year, &[2], false, 2, None),
            (ColumnType::Year, &[4], true, 4, None),
        ];
        for (column_type, numbers, zerofill, width, decimals) in cases {
            let declared = Display::of_declaration(&column_type, numbers, zerofill);
            let entry = Display::of_entry(&column_type, width, decimals, zerofill);
            assert_eq!(declared, entry, "{column_type:?} {numbers:?}");
        }
        let plain = Display::of_declaration(&integer(4), &[11], false);
        assert_eq!(plain, Display::default());
    }
}
