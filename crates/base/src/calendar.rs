//! The proleptic Gregorian calendar: days since 1970-01-01 and the dates that they are.
//!
//! The algorithms are Howard Hinnant's. Years are counted from March 1, so that the leap day ends its year: 400 of them
//! have 146,097 days, and the lengths of the months from March on repeat every five months, which have 153 days.

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;
const DAYS_OF_400_YEARS: i64 = 146_097;

/// Days since 1970-01-01 of a date. Month and day have to be in the calendar (see [`is_date`]).
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_OF_400_YEARS + day_of_era - DAYS_TO_EPOCH
}

/// Year, month and day of days since 1970-01-01: the inverse of [`days_from_civil`].
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + DAYS_TO_EPOCH;
    let era = days.div_euclid(DAYS_OF_400_YEARS);
    let day_of_era = days.rem_euclid(DAYS_OF_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Days of a month; 0 if the year has no such month.
pub fn month_days(year: i64, month: u32) -> u32 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// Whether the calendar has this date.
pub fn is_date(year: i64, month: u32, day: u32) -> bool {
    (1..=month_days(year, month)).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree() {
        for (year, month, day, days) in [
            (1970, 1, 1, 0),
            (2000, 2, 29, 11_016),
            (1969, 12, 31, -1),
            (0, 1, 1, -719_528),
            (1000, 1, 1, -354_285),
            (9999, 12, 31, 2_932_896),
        ] {
            assert_eq!(days_from_civil(year, month, day), days);
            assert_eq!(civil_from_days(days), (year, month, day));
        }
        for days in (-720_000..2_932_896).step_by(97) {
            let (year, month, day) = civil_from_days(days);
            assert!(is_date(year, month, day));
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }

    #[test]
    fn months_have_their_days() {
        assert!(is_date(2024, 2, 29) && is_date(2000, 2, 29));
        for (year, month, day) in [(2023, 2, 29), (1900, 2, 29), (2024, 0, 1), (2024, 13, 1), (2024, 4, 31)] {
            assert!(!is_date(year, month, day), "{year}-{month}-{day}");
        }
    }
}
