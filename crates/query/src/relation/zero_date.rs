//! Dates that no calendar has in Arrow: the zero date `0000-00-00`, partial dates (`2024-00-10`), the 30th of February.
//!
//! They are days before the year 0, which neither server has. The zero date is the last of them: it is before all
//! dates, as it is for the servers. Partial dates are between other days for the servers, where there is no room for
//! them: they are counted, shown, compared for equality and computed with, and a query that orders dates refuses them.
//! A DATETIME keeps its time of day.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use tanada_innodb::Value;

/// Days from 1970-01-01 to the zero date.
pub(crate) const ZERO_DATE: i32 = -719_529;
/// More than any date packed into a number.
const PACKED_DATES: i64 = 10_000 * 512;
/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Days of a date that no calendar has.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    match (year, month, day) {
        (0, 0, 0) => ZERO_DATE.into(),
        _ => i64::from(ZERO_DATE) - PACKED_DATES + (year << 9 | month << 5 | day),
    }
}

/// Year, month and day of such days; `None` of days of the calendar.
pub(crate) fn civil(days: i64) -> Option<(i64, i64, i64)> {
    let packed = days - (i64::from(ZERO_DATE) - PACKED_DATES);
    match packed {
        PACKED_DATES => Some((0, 0, 0)),
        1..PACKED_DATES => Some((packed >> 9, packed >> 5 & 15, packed & 31)),
        _ => None,
    }
}

/// Whether these microseconds since 1970-01-01 are of no date of the calendar.
pub(crate) fn is_none_of_calendar(micros: i64) -> bool {
    micros < (i64::from(ZERO_DATE) + 1) * DAY
}

/// Microseconds since 1970-01-01 of such a date as the server prints it.
pub(crate) fn moment(text: &str) -> Option<i64> {
    let (date, clock) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let days = days(parts.next()??, parts.next()??, parts.next()??);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut seconds = 0;
    for part in clock.split(':') {
        seconds = seconds * 60 + part.parse::<i64>().ok()?;
    }
    let micros: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    Some(days * DAY + seconds * 1_000_000 + micros)
}

/// Whether it is a date with a year, as the server prints it.
pub(crate) fn is_partial(text: &str) -> bool {
    !text.starts_with("0000-00-00")
}

/// A DATE as the reader has it.
pub(crate) fn date(days: i32) -> Value<'static> {
    match civil(days.into()) {
        Some((year, month, day)) => Value::ZeroDate(format!("{year:04}-{month:02}-{day:02}")),
        None => Value::Date(days),
    }
}

/// A DATETIME or TIMESTAMP as the reader has it.
pub(crate) fn date_time(micros: i64) -> Value<'static> {
    let Some((year, month, day)) = civil(micros.div_euclid(DAY)) else { return Value::DateTime(micros) };
    let of_day = micros.rem_euclid(DAY);
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let clock = format!("{hours:02}:{minutes:02}:{seconds:02}.{fraction:06}");
    Value::ZeroDate(format!("{year:04}-{month:02}-{day:02} {clock}"))
}

/// The zero date of an Arrow type; `None` if it is no type of dates.
pub(crate) fn scalar(data_type: &DataType) -> Option<ScalarValue> {
    scalar_of(ZERO_DATE, data_type)
}

/// The first date of the calendar, which dates that are none are before.
pub(crate) fn begin_of_calendar(data_type: &DataType) -> Option<ScalarValue> {
    scalar_of(ZERO_DATE + 1, data_type)
}

fn scalar_of(days: i32, data_type: &DataType) -> Option<ScalarValue> {
    let micros = i64::from(days) * DAY;
    Some(match data_type {
        DataType::Date32 => ScalarValue::Date32(Some(days)),
        DataType::Timestamp(TimeUnit::Second, zone) => {
            ScalarValue::TimestampSecond(Some(micros / 1_000_000), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Millisecond, zone) => {
            ScalarValue::TimestampMillisecond(Some(micros / 1_000), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            ScalarValue::TimestampMicrosecond(Some(micros), zone.clone())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_no_calendar_keep_their_parts() {
        let zero = moment("0000-00-00").unwrap();
        assert_eq!(zero, i64::from(ZERO_DATE) * DAY);
        assert!(is_none_of_calendar(zero) && !is_none_of_calendar(zero + DAY));
        for text in ["0000-00-00 01:02:03.500000", "2024-00-10 00:00:00.000000", "9999-12-00 23:59:59.999999"]
        {
            let micros = moment(text).unwrap();
            assert!(is_none_of_calendar(micros));
            assert_eq!(date_time(micros), Value::ZeroDate(text.to_string()));
        }
        for text in ["0000-00-00", "0000-00-01", "2023-02-30", "9999-00-31"] {
            let days = moment(text).unwrap() / DAY;
            assert_eq!(date(i32::try_from(days).unwrap()), Value::ZeroDate(text.to_string()));
        }
        assert_eq!((date(0), civil(-719_528)), (Value::Date(0), None));
    }
}
