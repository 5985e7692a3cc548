//! Dates and times: their numbers, texts and parts.

use crate::relation::zero_date;

/// Microseconds of a day.
pub(super) const DAY: i64 = 86_400_000_000;
const SECOND: i64 = 1_000_000;
/// The longest TIME, in microseconds.
pub(super) const MAX_TIME: i64 = (838 * 3600 + 59 * 60 + 59) * SECOND;

/// Year, month and day of days since 1970-01-01 (the proleptic Gregorian calendar); its own parts of a date that no
/// calendar has.
pub(super) fn civil(days: i64) -> (i64, i64, i64) {
    if let Some(parts) = zero_date::civil(days) {
        return parts;
    }
    // Days are counted from 0000-03-01, so that a leap day ends its year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Days since 1970-01-01 of a date; `None` if no calendar has it or the server does not.
pub(super) fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(0..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=month_days(year, month)).contains(&day)
    {
        return None;
    }
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    Some(era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468)
}

/// Days of a month.
pub(super) fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Hours, minutes, seconds and microseconds of a span that is not negative.
pub(super) fn clock(micros: i64) -> (i64, i64, i64, i64) {
    let seconds = micros / SECOND;
    (seconds / 3600, seconds / 60 % 60, seconds % 60, micros % SECOND)
}

/// 20240105.
pub(super) fn date_number(days: i64) -> i64 {
    let (year, month, day) = civil(days);
    year * 10_000 + month * 100 + day
}

/// 20240105101112.
pub(super) fn date_time_number(micros: i64) -> i64 {
    let (hours, minutes, seconds, _) = clock(micros.rem_euclid(DAY));
    date_number(micros.div_euclid(DAY)) * 1_000_000 + hours * 10_000 + minutes * 100 + seconds
}

/// 101112, with its sign.
pub(super) fn time_number(micros: i64) -> i64 {
    let (hours, minutes, seconds, _) = clock(micros.abs());
    (hours * 10_000 + minutes * 100 + seconds) * micros.signum()
}

/// 2024-01-05.
pub(super) fn date_text(days: i64) -> String {
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// 2024-01-05 10:11:12.
pub(super) fn date_time_text(micros: i64, fsp: u8) -> String {
    let of_day = micros.rem_euclid(DAY);
    format!("{} {}", date_text(micros.div_euclid(DAY)), time_text(of_day, fsp))
}

/// -10:11:12.
pub(super) fn time_text(micros: i64, fsp: u8) -> String {
    let (hours, minutes, seconds, fraction) = clock(micros.abs());
    let sign = if micros < 0 { "-" } else { "" };
    let text = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}");
    if fsp == 0 {
        return text;
    }
    let fraction = format!("{fraction:06}");
    format!("{text}.{}", &fraction[..usize::from(fsp.min(6))])
}

/// Microseconds rounded half up (away from zero) to `fsp` digits.
pub(super) fn rounded(micros: i64, fsp: u8) -> i64 {
    let unit = 10i64.pow(u32::from(6 - fsp.min(6)));
    // Times before the epoch round up all the same, as their fraction counts from their second.
    (micros + unit / 2).div_euclid(unit) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree() {
        for (year, month, day, number) in [(1970, 1, 1, 0), (2000, 2, 29, 11_016), (1969, 12, 31, -1)] {
            assert_eq!(days(year, month, day), Some(number));
            assert_eq!(civil(number), (year, month, day));
        }
        for number in (-719_468..2_932_896).step_by(97) {
            let (year, month, day) = civil(number);
            assert_eq!(days(year, month, day), Some(number));
        }
        assert_eq!(days(2023, 2, 29), None);
    }

    #[test]
    fn fractions_round_to_the_digits_of_the_type() {
        assert_eq!(rounded(1_500_000, 0), 2_000_000);
        assert_eq!(date_time_text(1_234_567, 3), "1970-01-01 00:00:01.234");
    }
}
