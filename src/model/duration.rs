//! Durations in the notation of Prometheus: `1h30m`.
//!
//! Must never know: the use of durations.

/// The longest duration of Go: nanoseconds in 63 bits.
pub const LENGTH_MS_MAX: i64 = 9_223_372_036_854;

/// The units in milliseconds, longest first.
pub const LENGTH_UNITS: [(&str, i64); 7] = [
    ("y", 365 * 86_400_000),
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// Parses a duration in milliseconds: units as in `1h30m`, the longest first, each once; or `0`.
/// Returns `None` for other texts, and for durations longer than [`LENGTH_MS_MAX`].
pub fn parse_duration_ms(text: &str) -> Option<i64> {
    if text == "0" {
        return Some(0);
    }
    let mut units = LENGTH_UNITS.iter();
    let (mut rest, mut total) = (text, 0_i64);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at_checked(digits)?;
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, tail) = tail.split_at_checked(letters)?;
        let (_, ms) = units.find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.parse::<i64>().ok()?.checked_mul(*ms)?)?;
        rest = tail;
    }
    (!text.is_empty() && total <= LENGTH_MS_MAX).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_prometheus() {
        let check = |text: &str, expected| assert_eq!(parse_duration_ms(text), expected, "{text}");
        check("0", Some(0));
        check("30s", Some(30_000));
        check("5ms", Some(5));
        check("1h30m", Some(5_400_000));
        check("1w2d3h4m5s6ms", Some(604_800_000 + 2 * 86_400_000 + 11_045_006));
        check("2y", Some(63_072_000_000));
        check("292y", Some(292 * 365 * 86_400_000));
        for text in [
            "",
            "5",
            "m",
            "1",
            "1m1h",
            "1m1m",
            "1 m",
            "5 m",
            "30m1h",
            "1M",
            "-1m",
            "-5m",
            "1.5h",
            "293y",
            "99999999999999y",
            "99999999999999999999y",
        ] {
            check(text, None);
        }
    }
}
