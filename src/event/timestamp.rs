//! Points in time as events print them.
//!
//! Equal instants must agree however they are printed, so identity uses seconds and nanoseconds since 1970, never text.

use std::fmt;

use chrono::{DateTime, NaiveDate, Utc};

use super::document::{Kind, Value};

const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// An instant: whole seconds since 1970, rounded down, and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instant {
    seconds: i64,
    nanos: u32,
}

impl Instant {
    /// Reads RFC 3339: `T` and `Z` in either case, 0 to 9 digits of fraction, any offset, no leap seconds.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        // The cheap look at fixed places goes first: nearly every string of an event fails here.
        let [y @ .., b'-', _, _, b'-', _, _, b'T' | b't', _, _, b':', _, _, b':', _, _] = text.get(..19)? else {
            return None;
        };
        let (year, month, day) = (number(y)?, number(&text[5..7])?, number(&text[8..10])?);
        let (hour, minute, second) = (number(&text[11..13])?, number(&text[14..16])?, number(&text[17..19])?);
        let (nanos, zone) = fraction(&text[19..])?;
        let offset = offset_seconds(zone)?;
        let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
        let local = date.and_hms_opt(hour, minute, second)?.and_utc().timestamp();
        Some(Self { seconds: local - offset, nanos })
    }

    /// Reads a string, or an object with `seconds` (number or decimal text) and perhaps `nanos`.
    pub(super) fn read(value: Value<'_>) -> Option<Self> {
        match value.kind() {
            Kind::Text(text) => Self::parse(text),
            Kind::Object => {
                let seconds = integer(value.get("seconds")?)?;
                let nanos = value.get("nanos").map_or(Some(0), integer)?;
                let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < NANOS_PER_SECOND)?;
                Some(Self { seconds, nanos })
            }
            _ => None,
        }
    }

    /// For the typed view; `None` beyond the years chrono knows.
    pub(super) const fn to_utc(self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(self.seconds, self.nanos)
    }

    /// Milliseconds for the claim key: 0 outside the years 2000 to 2099.
    pub(super) fn key_millis(self) -> u64 {
        const FROM: i64 = 946_684_800;
        const BEFORE: i64 = 4_102_444_800;
        if (FROM..BEFORE).contains(&self.seconds) {
            self.seconds.unsigned_abs() * 1000 + u64::from(self.nanos / 1_000_000)
        } else {
            0
        }
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.seconds, self.nanos)
    }
}

fn integer(value: Value<'_>) -> Option<i64> {
    match value.kind() {
        Kind::Unsigned(number) => i64::try_from(number).ok(),
        Kind::Signed(number) => Some(number),
        Kind::Text(_) => value.text()?.parse().ok(),
        _ => None,
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0_u32, |sum, digit| {
        digit.is_ascii_digit().then(|| sum.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')))
    })
}

/// Nanoseconds, and what follows the fraction.
fn fraction(text: &[u8]) -> Option<(u32, &[u8])> {
    let Some(rest) = text.strip_prefix(b".") else { return Some((0, text)) };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let (digits, zone) = rest.split_at(digits);
    let scale = 10_u32.pow(9 - u32::try_from(digits.len()).ok()?);
    Some((number(digits)? * scale, zone))
}

fn offset_seconds(zone: &[u8]) -> Option<i64> {
    let sign = match zone {
        [b'Z' | b'z'] => return Some(0),
        [b'+', _, _, b':', _, _] => 1,
        [b'-', _, _, b':', _, _] => -1,
        _ => return None,
    };
    let (hours, minutes) = (number(&zone[1..3])?, number(&zone[4..6])?);
    (hours < 24 && minutes < 60).then(|| sign * i64::from(hours * 3600 + minutes * 60))
}
