//! Durations and sizes in the notation of Prometheus' settings.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// The maximum duration of a setting.
const SPAN_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Units of time in descending order. A text contains each unit at most once, in this order.
const TIME_UNITS: [(&str, u64); 7] = [
    ("y", 365 * 24 * 60 * 60 * 1000),
    ("w", 7 * 24 * 60 * 60 * 1000),
    ("d", 24 * 60 * 60 * 1000),
    ("h", 60 * 60 * 1000),
    ("m", 60 * 1000),
    ("s", 1000),
    ("ms", 1),
];
const SIZE_UNITS: [&str; 5] = ["B", "K", "M", "G", "T"];

/// A duration, such as `15s` or `1m30s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(pub(crate) Duration);

/// A size, such as `10MB`; units are powers of 1024, as in Prometheus. 0 means "no limit".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Size(pub(crate) u64);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_span(&text).map(Self).ok_or_else(|| {
            de::Error::custom(format!("{text:?} is not a duration; use 15s or 1m30s"))
        })
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_size(&text)
            .map(Self)
            .ok_or_else(|| de::Error::custom(format!("{text:?} is not a size; use 10MB")))
    }
}

/// Parses a duration in Prometheus' notation.
pub(crate) fn parse_span(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut millis = 0_u64;
    let mut units = TIME_UNITS.iter();
    while !rest.is_empty() && rest != "0" {
        let (number, after_number) = split_number(rest)?;
        let unit =
            after_number.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after_number.len());
        let (unit, after_unit) = after_number.split_at_checked(unit)?;
        let (_, factor) = units.by_ref().find(|(word, _)| *word == unit)?;
        millis = number.checked_mul(*factor)?.checked_add(millis)?;
        rest = after_unit;
    }
    let span = Duration::from_millis(millis);
    (!text.is_empty() && span <= SPAN_MAX).then_some(span)
}

fn parse_size(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let (number, unit) = split_number(text)?;
    let unit = unit.strip_suffix("iB").or_else(|| unit.strip_suffix('B').filter(|u| !u.is_empty()));
    let unit = unit.unwrap_or(if text.ends_with('B') { "B" } else { return None });
    let power = SIZE_UNITS.iter().position(|word| *word == unit)?;
    number.checked_mul(1024_u64.checked_pow(power as u32)?)
}

fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (digits, after_number) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, after_number))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_parsed_as_in_prometheus() {
        let check = |text, millis: Option<u64>| {
            assert_eq!(parse_span(text), millis.map(Duration::from_millis), "{text}");
        };
        check("15s", Some(15_000));
        check("1m30s", Some(90_000));
        check("1h0m5ms", Some(3_600_005));
        check("2w1d", Some(15 * 86_400_000));
        check("0", Some(0));
        check("1y1w", None);
        for bad in ["", "5", "s", "1.5s", "30s1m", "1s1s", "-1s", "1 s", "9999999999999999999s"] {
            check(bad, None);
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        let check = |text, bytes| assert_eq!(parse_size(text), bytes, "{text}");
        check("0", Some(0));
        check("512B", Some(512));
        check("1KB", Some(1024));
        check("10MB", Some(10 << 20));
        check("1GiB", Some(1 << 30));
        for bad in
            ["", "10", "MB", "10M", "10mb", "1.5MB", "99999999999999999999TB", "9999999999TB"]
        {
            check(bad, None);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(text in "[0-9a-zA-Z é.-]{0,12}") {
            let _outcome = (parse_span(&text), parse_size(&text));
        }
    }
}
