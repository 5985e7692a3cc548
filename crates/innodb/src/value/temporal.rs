//! DATE, TIME, DATETIME, TIMESTAMP: the stored forms.
//!
//! Since MySQL 5.6 a time is a packed number of fields (`my_time.cc`): big-endian, offset so that it compares as bytes,
//! with up to three bytes of fraction after it. The `legacy` forms before that are decimal numbers (`hhmmss`,
//! `YYYYMMDDhhmmss`) or plain seconds.

use tanada_base::calendar::{civil_from_days, days_from_civil, is_date};

use super::Value;
use crate::{Error, ErrorKind, Result};

const MICROS: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * MICROS;

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn width_error(what: &str, bytes: &[u8]) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a {what} of {} bytes", bytes.len()))
}

fn range_error(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a {what} is out of range"))
}

/// Bytes of the fraction of a time of `fsp` digits.
pub(crate) fn fraction_bytes(fsp: u8) -> usize {
    usize::from(fsp.min(6)).div_ceil(2)
}

/// Microseconds of stored fraction bytes (hundredths, ten-thousandths or millionths).
fn fraction_us(bytes: &[u8]) -> i64 {
    let scale = match bytes.len() {
        1 => 10_000,
        2 => 100,
        _ => 1,
    };
    big_endian(bytes) as i64 * scale
}

/// Writes `.ffffff` cut to `fsp` digits.
pub(crate) fn write_fraction(text: &mut String, micros: i64, fsp: u8) {
    if fsp > 0 {
        let digits = format!("{micros:06}");
        text.push('.');
        text.push_str(&digits[..usize::from(fsp.min(6))]);
    }
}

/// DATE of three bytes.
pub(crate) fn decode_date(bytes: &[u8]) -> Result<Value<'static>> {
    let [a, b, c] = bytes else { return Err(width_error("DATE", bytes)) };
    let packed = u32::from_be_bytes([0, a ^ 0x80, *b, *c]);
    Ok(date(i64::from(packed >> 9), packed >> 5 & 15, packed & 31))
}

fn date(year: i64, month: u32, day: u32) -> Value<'static> {
    if is_date(year, month, day) {
        Value::Date(days_from_civil(year, month, day) as i32)
    } else {
        Value::ZeroDate(format!("{year:04}-{month:02}-{day:02}"))
    }
}

/// Fields of a DATETIME.
#[derive(Clone, Copy)]
pub(crate) struct Fields {
    pub(crate) year: i64,
    pub(crate) month: u32,
    pub(crate) day: u32,
    pub(crate) second_of_day: i64,
    pub(crate) micros: i64,
}

impl Fields {
    fn value(self, fsp: u8) -> Value<'static> {
        let Fields { year, month, day, second_of_day, micros } = self;
        if is_date(year, month, day) {
            let days = days_from_civil(year, month, day);
            return Value::DateTime(days * DAY_US + second_of_day * MICROS + micros);
        }
        let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
        let mut text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
        write_fraction(&mut text, micros, fsp);
        Value::ZeroDate(text)
    }
}

/// Unpacks the 40 bits of date and time of day (without the sign bit).
pub(crate) fn unpack_datetime(packed: u64, micros: i64) -> Result<Fields> {
    let (days, clock) = (packed >> 17, packed & 0x1ffff);
    let (hour, minute, second) = ((clock >> 12) as i64, (clock >> 6 & 63) as i64, (clock & 63) as i64);
    if hour > 23 || minute > 59 || second > 59 || micros >= MICROS {
        return Err(range_error("DATETIME"));
    }
    Ok(Fields {
        year: (days >> 5) as i64 / 13,
        month: ((days >> 5) % 13) as u32,
        day: (days & 31) as u32,
        second_of_day: hour * 3600 + minute * 60 + second,
        micros,
    })
}

/// DATETIME(fsp).
pub(crate) fn decode_datetime(bytes: &[u8], fsp: u8) -> Result<Value<'static>> {
    let Some((packed, fraction)) = bytes.split_at_checked(5) else {
        return Err(width_error("DATETIME", bytes));
    };
    let packed = big_endian(packed).wrapping_sub(1 << 39);
    if packed >= 1 << 39 {
        return Err(range_error("DATETIME"));
    }
    Ok(unpack_datetime(packed, fraction_us(fraction))?.value(fsp))
}

/// DATETIME before MySQL 5.6: the decimal number YYYYMMDDhhmmss.
pub(crate) fn decode_legacy_datetime(bytes: &[u8]) -> Result<Value<'static>> {
    if bytes.len() != 8 {
        return Err(width_error("DATETIME", bytes));
    }
    let number = (big_endian(bytes) ^ 1 << 63) as i64;
    if !(0..=99_991_231_235_959).contains(&number) {
        return Err(range_error("DATETIME"));
    }
    let (date, time) = (number / MICROS, number % MICROS);
    let (hour, minute, second) = (time / 10_000, time / 100 % 100, time % 100);
    if hour > 23 || minute > 59 || second > 59 {
        return Err(range_error("DATETIME"));
    }
    let fields = Fields {
        year: date / 10_000,
        month: (date / 100 % 100) as u32,
        day: (date % 100) as u32,
        second_of_day: hour * 3600 + minute * 60 + second,
        micros: 0,
    };
    Ok(fields.value(0))
}

/// TIMESTAMP(fsp), and with fsp 0 its legacy form: seconds since 1970, UTC; 0 is the zero date.
pub(crate) fn decode_timestamp(bytes: &[u8], fsp: u8) -> Result<Value<'static>> {
    let Some((seconds, fraction)) = bytes.split_at_checked(4) else {
        return Err(width_error("TIMESTAMP", bytes));
    };
    let (seconds, micros) = (big_endian(seconds) as i64, fraction_us(fraction));
    if seconds == 0 && micros == 0 {
        let zero = Fields { year: 0, month: 0, day: 0, second_of_day: 0, micros: 0 };
        return Ok(zero.value(fsp));
    }
    if micros >= MICROS {
        return Err(range_error("TIMESTAMP"));
    }
    Ok(Value::DateTime(seconds * MICROS + micros))
}

/// Signed microseconds of hours, minutes and seconds packed as 10, 6 and 6 bits over 24 bits of fraction.
pub(crate) fn unpack_time(packed: i64) -> Result<i64> {
    let magnitude = packed.unsigned_abs();
    let (clock, micros) = (magnitude >> 24, (magnitude & 0xff_ffff) as i64);
    let (hour, minute, second) = ((clock >> 12) as i64, (clock >> 6 & 63) as i64, (clock & 63) as i64);
    if hour > 838 || minute > 59 || second > 59 || micros >= MICROS {
        return Err(range_error("TIME"));
    }
    let time = (hour * 3600 + minute * 60 + second) * MICROS + micros;
    Ok(if packed < 0 { -time } else { time })
}

/// TIME(fsp).
pub(crate) fn decode_time(bytes: &[u8]) -> Result<Value<'static>> {
    if !(3..=6).contains(&bytes.len()) {
        return Err(width_error("TIME", bytes));
    }
    // The fraction belongs to the same two's complement number as the clock, but in its own unit.
    let fraction = bytes.len() - 3;
    let number = big_endian(bytes) as i64 - (1 << (8 * fraction + 23));
    let (clock, part) =
        (number.unsigned_abs() >> (8 * fraction), number.unsigned_abs() & ((1 << (8 * fraction)) - 1));
    let unit = [1, 10_000, 100, 1][fraction];
    let magnitude = (clock << 24) as i64 + part as i64 * unit;
    unpack_time(if number < 0 { -magnitude } else { magnitude }).map(Value::Time)
}

/// TIME before MySQL 5.6: the signed decimal number hhmmss.
pub(crate) fn decode_legacy_time(bytes: &[u8]) -> Result<Value<'static>> {
    if bytes.len() != 3 {
        return Err(width_error("TIME", bytes));
    }
    let number = big_endian(bytes) as i64 - (1 << 23);
    let magnitude = number.abs();
    let (hour, minute, second) = (magnitude / 10_000, magnitude / 100 % 100, magnitude % 100);
    if minute > 59 || second > 59 {
        return Err(range_error("TIME"));
    }
    let time = (hour * 3600 + minute * 60 + second) * MICROS;
    Ok(Value::Time(if number < 0 { -time } else { time }))
}

/// The stored form of a DATE; `None` if there is none.
pub(crate) fn encode_date(days: i64) -> Option<[u8; 3]> {
    pack_date(civil_from_days(days))
}

/// The stored form of a DATE by its year, month and day.
pub(crate) fn pack_date((year, month, day): (i64, u32, u32)) -> Option<[u8; 3]> {
    let packed = u32::try_from(year).ok().filter(|year| *year <= 9999)? << 9 | month << 5 | day;
    let [_, a, b, c] = packed.to_be_bytes();
    Some([a ^ 0x80, b, c])
}

/// The stored form of a fraction; `None` if `fsp` digits do not hold it exactly.
fn encode_fraction(micros: i64, fsp: u8, stored: &mut Vec<u8>) -> Option<()> {
    if micros % 10i64.pow(6 - u32::from(fsp.min(6))) != 0 {
        return None;
    }
    match fraction_bytes(fsp) {
        0 => {}
        1 => stored.push((micros / 10_000) as u8),
        2 => stored.extend_from_slice(&((micros / 100) as u16).to_be_bytes()),
        _ => stored.extend_from_slice(&(micros as u32).to_be_bytes()[1..]),
    }
    Some(())
}

/// The stored form of a DATETIME(fsp); `None` if there is none.
pub(crate) fn encode_datetime(micros: i64, fsp: u8) -> Option<Vec<u8>> {
    pack_datetime(civil_from_days(micros.div_euclid(DAY_US)), micros.rem_euclid(DAY_US), fsp)
}

/// The stored form of a DATETIME(fsp) by its year, month and day, and the microseconds of its day.
pub(crate) fn pack_datetime((year, month, day): (i64, u32, u32), in_day: i64, fsp: u8) -> Option<Vec<u8>> {
    if !(0..=9999).contains(&year) {
        return None;
    }
    let second = in_day / MICROS;
    let days = (year as u64 * 13 + u64::from(month)) << 5 | u64::from(day);
    let clock = (((second / 3600) << 12) | ((second / 60 % 60) << 6) | (second % 60)) as u64;
    let packed = (days << 17 | clock) + (1 << 39);
    let mut stored = packed.to_be_bytes()[3..].to_vec();
    encode_fraction(in_day % MICROS, fsp, &mut stored)?;
    Some(stored)
}

/// The stored form of a legacy DATETIME; `None` if there is none.
pub(crate) fn encode_legacy_datetime(micros: i64) -> Option<Vec<u8>> {
    pack_legacy_datetime(civil_from_days(micros.div_euclid(DAY_US)), micros.rem_euclid(DAY_US))
}

/// The stored form of a legacy DATETIME by its year, month and day, and the microseconds of its day.
pub(crate) fn pack_legacy_datetime((year, month, day): (i64, u32, u32), in_day: i64) -> Option<Vec<u8>> {
    let second = in_day / MICROS;
    if !(0..=9999).contains(&year) || in_day % MICROS != 0 {
        return None;
    }
    let date = year * 10_000 + i64::from(month) * 100 + i64::from(day);
    let number = date * MICROS + second / 3600 * 10_000 + second / 60 % 60 * 100 + second % 60;
    Some((number as u64 ^ 1 << 63).to_be_bytes().to_vec())
}

/// The stored form of a TIMESTAMP(fsp); `None` if there is none.
pub(crate) fn encode_timestamp(micros: i64, fsp: u8) -> Option<Vec<u8>> {
    let seconds = u32::try_from(micros.div_euclid(MICROS)).ok().filter(|_| micros != 0)?;
    let mut stored = seconds.to_be_bytes().to_vec();
    encode_fraction(micros.rem_euclid(MICROS), fsp, &mut stored)?;
    Some(stored)
}

/// The stored form of a TIME(fsp); `None` if there is none.
pub(crate) fn encode_time(micros: i64, fsp: u8) -> Option<Vec<u8>> {
    let magnitude = micros.unsigned_abs() as i64;
    let second = magnitude / MICROS;
    if second / 3600 > 838 {
        return None;
    }
    let fraction = fraction_bytes(fsp);
    let mut digits = Vec::new();
    encode_fraction(magnitude % MICROS, fsp, &mut digits)?;
    let clock = ((second / 3600) << 12) | ((second / 60 % 60) << 6) | (second % 60);
    let number = clock << (8 * fraction) | big_endian(&digits) as i64;
    let number = (if micros < 0 { -number } else { number }) + (1 << (8 * fraction + 23));
    Some(number.to_be_bytes()[8 - 3 - fraction..].to_vec())
}

/// The stored form of a legacy TIME; `None` if there is none.
pub(crate) fn encode_legacy_time(micros: i64) -> Option<Vec<u8>> {
    let second = micros.abs() / MICROS;
    if micros % MICROS != 0 || second / 3600 > 838 {
        return None;
    }
    let number = second / 3600 * 10_000 + second / 60 % 60 * 100 + second % 60;
    let number = if micros < 0 { -number } else { number } + (1 << 23);
    Some(number.to_be_bytes()[5..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_round_trip_and_compare_as_bytes() {
        for fsp in 0..=6u8 {
            let unit = 10i64.pow(6 - u32::from(fsp));
            let times =
                [-3_020_399 * MICROS, -MICROS - unit, -MICROS, -unit, 0, unit, MICROS, 3_020_399 * MICROS];
            let stored: Vec<_> = times.iter().map(|time| encode_time(*time, fsp).unwrap()).collect();
            assert!(stored.is_sorted(), "{stored:?}");
            for (time, stored) in times.iter().zip(&stored) {
                assert_eq!(decode_time(stored).unwrap(), Value::Time(*time), "fsp {fsp}");
            }
            let moment = 1_709_210_096 * MICROS + unit * i64::from(fsp > 0);
            let stored = encode_datetime(moment, fsp).unwrap();
            assert_eq!(decode_datetime(&stored, fsp).unwrap(), Value::DateTime(moment));
            let stored = encode_timestamp(moment, fsp).unwrap();
            assert_eq!(decode_timestamp(&stored, fsp).unwrap(), Value::DateTime(moment));
        }
        assert_eq!(encode_time(1, 5), None);
        assert_eq!(encode_datetime(-719_529 * DAY_US, 0), None);
    }

    #[test]
    fn legacy_forms_survive_the_round_trip() {
        for time in [-3_020_399 * MICROS, -MICROS, 0, 45_296 * MICROS] {
            assert_eq!(decode_legacy_time(&encode_legacy_time(time).unwrap()).unwrap(), Value::Time(time));
        }
        let moment = 1_709_210_096 * MICROS;
        let stored = encode_legacy_datetime(moment).unwrap();
        assert_eq!(decode_legacy_datetime(&stored).unwrap(), Value::DateTime(moment));
    }

    #[test]
    fn dates_of_no_calendar_keep_their_spelling() {
        let packed = |year: u32, month: u32, day: u32| {
            let [_, a, b, c] = (year << 9 | month << 5 | day).to_be_bytes();
            decode_date(&[a ^ 0x80, b, c]).unwrap()
        };
        assert_eq!(packed(0, 0, 0), Value::ZeroDate("0000-00-00".into()));
        assert_eq!(packed(2024, 0, 10), Value::ZeroDate("2024-00-10".into()));
        assert_eq!(packed(2023, 2, 29), Value::ZeroDate("2023-02-29".into()));
        assert_eq!(packed(2024, 2, 29), Value::Date(19_782));
        let zero = (1u64 << 39).to_be_bytes();
        assert_eq!(
            decode_datetime(&[&zero[3..], &[0]].concat(), 2).unwrap(),
            Value::ZeroDate("0000-00-00 00:00:00.00".into())
        );
    }
}
