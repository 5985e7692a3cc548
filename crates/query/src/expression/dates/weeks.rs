//! Numbers of weeks, by the eight modes of `WEEK`.

use super::civil::Civil;
use crate::expression::calendar;

/// How weeks are counted, the bits of `WEEK`'s mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mode {
    monday_first: bool,
    /// Weeks are of the year in which they are numbered, 1 to 53, not 0 to 53.
    in_year: bool,
    /// The first week is the first that begins in the year, not the first with four days of it.
    whole_first: bool,
}

impl Mode {
    /// Of the number that `WEEK` takes, of which only three bits count.
    pub(super) fn of(number: i64) -> Mode {
        let monday_first = number & 1 != 0;
        Mode { monday_first, in_year: number & 2 != 0, whole_first: (number & 4 != 0) == monday_first }
    }

    /// The mode whose weeks belong to a year, as `YEARWEEK` counts.
    pub(super) fn of_year(self) -> Mode {
        Mode { in_year: true, ..self }
    }
}

/// The week of a day, and the year that it belongs to.
pub(super) fn week(civil: &Civil, days: i64, mode: Mode) -> (i64, i64) {
    let first_day = |year: i64| calendar::days(year, 1, 1).unwrap_or(days);
    let weekday = |days: i64| (days + if mode.monday_first { 3 } else { 4 }).rem_euclid(7);
    let year_days = |year: i64| if calendar::month_days(year, 2) == 29 { 366 } else { 365 };
    let mut year = civil.year;
    let mut start = first_day(year);
    let mut offset = weekday(start);
    let mut in_year = mode.in_year;
    let is_before = |offset: i64| if mode.whole_first { offset != 0 } else { offset >= 4 };
    if civil.month == 1 && civil.day <= 7 - offset {
        if !in_year && is_before(offset) {
            return (0, year);
        }
        if is_before(offset) {
            in_year = true;
            year -= 1;
            start -= year_days(year);
            offset = (offset + 7 * 53 - year_days(year)).rem_euclid(7);
        }
    }
    let from_start = match is_before(offset) {
        true => days - (start + 7 - offset),
        false => days - (start - offset),
    };
    if in_year && from_start >= 52 * 7 {
        let next = (offset + year_days(year)).rem_euclid(7);
        if !is_before(next) {
            return (1, year + 1);
        }
    }
    (from_start / 7 + 1, year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_are_counted_by_mode() {
        let week = |text: (i64, i64, i64), mode| {
            let days = calendar::days(text.0, text.1, text.2).unwrap();
            week(&Civil::of_days(days), days, Mode::of(mode))
        };
        let first: Vec<_> = (0..8).map(|mode| week((2024, 1, 5), mode).0).collect();
        assert_eq!(first, [0, 1, 53, 1, 1, 1, 1, 1]);
        let last: Vec<_> = (0..8).map(|mode| week((2024, 12, 30), mode).0).collect();
        assert_eq!(last, [52, 53, 52, 1, 53, 53, 1, 53]);
        assert_eq!(week((2024, 12, 30), 3), (1, 2025));
    }
}
