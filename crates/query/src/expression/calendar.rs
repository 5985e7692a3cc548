//! Dates and times: their numbers, texts and parts.

use tanada_base::calendar;

/// Microseconds of a day.
pub(super) const DAY: i64 = 86_400_000_000;
const SECOND: i64 = 1_000_000;
/// The longest TIME, in microseconds.
pub(super) const MAX_TIME: i64 = (838 * 3600 + 59 * 60 + 59) * SECOND;

/// Year, month and day of days since 1970-01-01.
pub(super) fn civil(days: i64) -> (i64, i64, i64) {
    let (year, month, day) = calendar::civil_from_days(days);
    (year, month.into(), day.into())
}

/// Days since 1970-01-01 of a date; `None` if no calendar has it or the server does not.
pub(super) fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let (month, day) = (u32::try_from(month).ok()?, u32::try_from(day).ok()?);
    let is_date = (0..=9999).contains(&year) && calendar::is_date(year, month, day);
    is_date.then(|| calendar::days_from_civil(year, month, day))
}

/// Days of a month.
pub(super) fn month_days(year: i64, month: i64) -> i64 {
    u32::try_from(month).map_or(0, |month| calendar::month_days(year, month).into())
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
