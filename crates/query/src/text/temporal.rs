//! Dates and times as MySQL prints them.

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, TimeUnit};

use crate::Result;
use crate::relation::zero_date;

const SECONDS_PER_DAY: i64 = 86_400;

/// The numbers behind timestamps or durations (whatever at NULLs).
pub fn ticks(array: &ArrayRef) -> Result<Vec<i64>> {
    let numbers = cast(array, &DataType::Int64).map_err(super::internal)?;
    Ok(numbers.as_primitive::<Int64Type>().values().to_vec())
}

/// Fractional digits printed where no MySQL type says how many; MySQL knows no more than six.
pub fn digits(unit: TimeUnit) -> usize {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond | TimeUnit::Nanosecond => 6,
    }
}

fn ticks_per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// `2024-02-29`, of days since 1970-01-01.
pub fn date(days: i64, out: &mut String) {
    let (year, month, day) = civil(days);
    out.push_str(&format!("{year:04}-{month:02}-{day:02}"));
}

/// `2024-02-29 12:34:56.789`, of ticks since the epoch.
pub fn date_time(ticks: i64, unit: TimeUnit, digits: usize, out: &mut String) {
    let per_second = ticks_per_second(unit);
    let seconds = ticks.div_euclid(per_second);
    date(seconds.div_euclid(SECONDS_PER_DAY), out);
    out.push(' ');
    clock(seconds.rem_euclid(SECONDS_PER_DAY).unsigned_abs(), out);
    fraction(ticks.rem_euclid(per_second).unsigned_abs(), per_second, digits, out);
}

/// `-838:59:59.000`: hours go past 24.
pub fn time(ticks: i64, unit: TimeUnit, digits: usize, out: &mut String) {
    let per_second = ticks_per_second(unit);
    if ticks < 0 {
        out.push('-');
    }
    let magnitude = ticks.unsigned_abs();
    clock(magnitude / per_second.unsigned_abs(), out);
    fraction(magnitude % per_second.unsigned_abs(), per_second, digits, out);
}

fn clock(seconds: u64, out: &mut String) {
    out.push_str(&format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60));
}

fn fraction(ticks: u64, per_second: i64, digits: usize, out: &mut String) {
    if digits == 0 {
        return;
    }
    let nanos = ticks * (1_000_000_000 / per_second.unsigned_abs());
    let all = format!("{nanos:09}");
    out.push_str(&format!(".{}", &all[..digits.min(9)]));
}

/// Year, month and day of days since 1970-01-01 in the Gregorian calendar; its own parts of a date that no calendar
/// has.
///
/// Counts from 0000-03-01, so that the leap day ends a year: 400 years are 146,097 days, and the months from March on
/// have lengths that repeat every five, 153 days.
fn civil(days: i64) -> (i64, i64, i64) {
    if let Some(parts) = zero_date::civil(days) {
        return parts;
    }
    const DAYS_TO_EPOCH: i64 = 719_468;
    let days = days + DAYS_TO_EPOCH;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(print: impl FnOnce(&mut String)) -> String {
        let mut out = String::new();
        print(&mut out);
        out
    }

    #[test]
    fn dates() {
        let cases = [
            (0, "1970-01-01"),
            (-354_285, "1000-01-01"),
            (2_932_896, "9999-12-31"),
            (19_782, "2024-02-29"),
            (-1, "1969-12-31"),
            (-719_529, "0000-00-00"),
            (-719_528, "0000-01-01"),
        ];
        for (days, text) in cases {
            assert_eq!(shown(|out| date(days, out)), text);
        }
    }

    #[test]
    fn times_go_past_a_day_and_below_zero() {
        assert_eq!(shown(|out| time(-3_020_399, TimeUnit::Second, 0, out)), "-838:59:59");
        assert_eq!(shown(|out| time(-1, TimeUnit::Millisecond, 3, out)), "-00:00:00.001");
        assert_eq!(shown(|out| time(-1_500_000, TimeUnit::Microsecond, 6, out)), "-00:00:01.500000");
        assert_eq!(shown(|out| time(100, TimeUnit::Millisecond, 1, out)), "00:00:00.1");
    }

    #[test]
    fn date_times_have_the_digits_of_their_type() {
        let micros = 1_709_210_096_789_012;
        assert_eq!(
            shown(|out| date_time(micros, TimeUnit::Microsecond, 6, out)),
            "2024-02-29 12:34:56.789012"
        );
        assert_eq!(
            shown(|out| date_time(micros / 1_000, TimeUnit::Millisecond, 1, out)),
            "2024-02-29 12:34:56.7"
        );
        assert_eq!(shown(|out| date_time(-1, TimeUnit::Second, 0, out)), "1969-12-31 23:59:59");
    }
}
