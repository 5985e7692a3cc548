//! Time zones of a session, `SET time_zone = ...`, and of `CONVERT_TZ`.
//!
//! A time that a clock shows twice is the earlier one, a time that it skips is the moment of the change, as in both
//! servers.

use std::str::FromStr;

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

use super::Refusal;

const SECOND: i64 = 1_000_000;

/// A time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// Seconds east of UTC.
    Offset(i32),
    /// A zone of the IANA database.
    Named(Tz),
}

impl Zone {
    /// The zone of sessions that set none.
    pub const UTC: Zone = Zone::Offset(0);

    /// The zone of a name (`Europe/Berlin`, in any case) or an offset (`+05:30`). `SYSTEM` is UTC. `None` if there is
    /// no such zone.
    pub fn parse(text: &str, mysql: bool) -> Option<Zone> {
        if text.eq_ignore_ascii_case("SYSTEM") {
            return Some(Zone::UTC);
        }
        match offset(text, mysql) {
            Some(seconds) => Some(Zone::Offset(seconds)),
            None => named(text).map(Zone::Named),
        }
    }

    /// Microseconds of the clock in this zone at a moment.
    ///
    /// # Errors
    /// If the moment is out of range or the zone's rules are not known for it.
    pub(super) fn local(&self, utc_micros: i64) -> Result<i64, Refusal> {
        let shift = match self {
            Zone::Offset(seconds) => i64::from(*seconds),
            Zone::Named(zone) => {
                let seconds = utc_micros.div_euclid(SECOND);
                known(seconds)?;
                let moment = DateTime::from_timestamp(seconds, 0).ok_or_else(far)?.naive_utc();
                i64::from(zone.offset_from_utc_datetime(&moment).fix().local_minus_utc())
            }
        };
        Ok(utc_micros + shift * SECOND)
    }

    /// The moment at which the clock in this zone shows `local_micros`.
    ///
    /// # Errors
    /// If it is out of range or the zone's rules are not known for it.
    pub(super) fn moment(&self, local_micros: i64) -> Result<i64, Refusal> {
        let zone = match self {
            Zone::Offset(seconds) => return Ok(local_micros - i64::from(*seconds) * SECOND),
            Zone::Named(zone) => zone,
        };
        let seconds = local_micros.div_euclid(SECOND);
        known(seconds)?;
        let clock = DateTime::from_timestamp(seconds, 0).ok_or_else(far)?.naive_utc();
        match zone.offset_from_local_datetime(&clock) {
            MappedLocalTime::Single(offset) | MappedLocalTime::Ambiguous(offset, _) => {
                Ok(local_micros - i64::from(offset.fix().local_minus_utc()) * SECOND)
            }
            MappedLocalTime::None => skipped(zone, clock),
        }
    }
}

/// The moment at which a clock skips `clock`.
fn skipped(zone: &Tz, clock: NaiveDateTime) -> Result<i64, Refusal> {
    // A day before and after, the offsets are those around the change.
    let middle = clock.and_utc().timestamp();
    let offset = |seconds: i64| -> Result<i64, Refusal> {
        let moment = DateTime::from_timestamp(seconds, 0).ok_or_else(far)?.naive_utc();
        Ok(i64::from(zone.offset_from_utc_datetime(&moment).fix().local_minus_utc()))
    };
    let (mut early, mut late) = (middle - 86_400, middle + 86_400);
    let before = offset(early)?;
    while early + 1 < late {
        let moment = early.midpoint(late);
        if offset(moment)? == before { early = moment } else { late = moment }
    }
    Ok(late * SECOND)
}

/// A server's tables of zones end with 2037, from when on its clocks stand still.
fn known(seconds: i64) -> Result<(), Refusal> {
    const END_OF_TABLES: i64 = 2_145_916_800;
    if seconds < END_OF_TABLES { Ok(()) } else { Err(Refusal::new("a time zone after 2037")) }
}

fn far() -> Refusal {
    Refusal::new("a date out of range")
}

/// Seconds of `+05:30`. MySQL reads -13:59 to +14:00, MariaDB -12:59 to +13:00.
fn offset(text: &str, mysql: bool) -> Option<i32> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str| {
        let is_plain = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_plain { text.parse::<i32>().ok() } else { None }
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let total = hours * 60 + minutes;
    let most = match (mysql, sign) {
        (true, 1) => 14 * 60,
        (true, _) => 13 * 60 + 59,
        (false, 1) => 13 * 60,
        (false, _) => 12 * 60 + 59,
    };
    (minutes < 60 && total <= most).then_some(sign * total * 60)
}

fn named(text: &str) -> Option<Tz> {
    Tz::from_str(text).ok().or_else(|| {
        chrono_tz::TZ_VARIANTS.iter().copied().find(|zone| zone.name().eq_ignore_ascii_case(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_within_the_servers_bounds() {
        assert_eq!(Zone::parse("+05:30", true), Some(Zone::Offset(19_800)));
        assert_eq!(Zone::parse("-1:00", false), Some(Zone::Offset(-3600)));
        assert_eq!(Zone::parse("+14:00", true), Some(Zone::Offset(50_400)));
        assert_eq!(Zone::parse("+14:00", false), None);
        assert_eq!(Zone::parse("+05:60", true), None);
        assert_eq!(Zone::parse("5:00", true), None);
    }

    #[test]
    fn clocks_change_with_their_zone() {
        let berlin = Zone::parse("europe/berlin", true).unwrap();
        let moment = |clock: &str| {
            let clock = chrono::NaiveDateTime::parse_from_str(clock, "%Y-%m-%d %H:%M:%S").unwrap();
            berlin.moment(clock.and_utc().timestamp_micros()).unwrap()
        };
        // 2024-03-31 01:00 UTC is when the clock goes from 02:00 to 03:00.
        let change = 1_711_846_800 * SECOND;
        assert_eq!(moment("2024-03-31 01:59:59"), change - SECOND);
        assert_eq!(moment("2024-03-31 02:30:00"), change);
        assert_eq!(moment("2024-03-31 03:00:00"), change);
        assert_eq!(berlin.local(change).unwrap() - change, 7200 * SECOND);
        // 2024-10-27 02:30 is shown twice.
        assert_eq!(moment("2024-10-27 02:30:00"), 1_729_989_000 * SECOND);
        assert!(berlin.local(2_200_000_000 * SECOND).is_err());
    }
}
