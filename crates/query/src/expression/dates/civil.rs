//! A date and time by its parts, of which month and day may be zero.

use crate::expression::calendar::{self, DAY};

/// A date and time as the servers compute with it. `2024-00-10` has one, but is no day of a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::expression) struct Civil {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    /// Microseconds of the day.
    pub micros: i64,
}

impl Civil {
    /// Of microseconds since 1970-01-01.
    pub(in crate::expression) fn of_micros(micros: i64) -> Civil {
        let (year, month, day) = calendar::civil(micros.div_euclid(DAY));
        Civil { year, month, day, micros: micros.rem_euclid(DAY) }
    }

    /// Of days since 1970-01-01.
    pub(in crate::expression) fn of_days(days: i64) -> Civil {
        Civil::of_micros(days * DAY)
    }

    /// Days since 1970-01-01; `None` if no calendar has the date.
    pub(in crate::expression) fn days(&self) -> Option<i64> {
        calendar::days(self.year, self.month, self.day)
    }

    /// Microseconds since 1970-01-01; `None` if no calendar has the date.
    pub(in crate::expression) fn since_epoch(&self) -> Option<i64> {
        self.days().map(|days| days * DAY + self.micros)
    }

    /// Whether all of the date is zero.
    pub(super) fn is_zero(&self) -> bool {
        (self.year, self.month, self.day) == (0, 0, 0)
    }

    /// Whether the month or the day is zero.
    pub(super) fn has_zeros(&self) -> bool {
        self.month == 0 || self.day == 0
    }

    /// Whether its parts are in range: a zero month or day is, the 30th of February is not.
    pub(super) fn is_possible(&self) -> bool {
        let longest = if self.month == 0 { 31 } else { calendar::month_days(self.year, self.month) };
        (0..=9999).contains(&self.year) && (0..=12).contains(&self.month) && (0..=longest).contains(&self.day)
    }
}
