//! Numbers in the formats of Prometheus' templates.
//!
//! Must never know: the meaning of the numbers.

use crate::model::UnixMillis;

const LARGE: [&str; 8] = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
const SMALL: [&str; 8] = ["m", "u", "n", "p", "f", "a", "z", "y"];
const BINARY: [&str; 8] = ["ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"];

/// Formats a number with four digits, as Go's `%.4g`.
fn four_digits(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:.3e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |digits: &str| {
        let cut = digits.trim_end_matches('0').trim_end_matches('.');
        if digits.contains('.') { cut.to_owned() } else { digits.to_owned() }
    };
    if (-4..4).contains(&exponent) {
        let decimals = usize::try_from(3 - exponent).unwrap_or(0);
        return trimmed(&format!("{value:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.unsigned_abs())
}

/// Formats a number with a prefix for powers of 1000: `1.234k`.
pub(super) fn thousands(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return four_digits(value);
    }
    if value.abs() >= 1.0 {
        return scaled(value, 1000.0, &LARGE);
    }
    small(value)
}

/// Formats a number with a prefix for powers of 1024: `1Mi`.
pub(super) fn binary(value: f64) -> String {
    if value.abs() <= 1.0 || !value.is_finite() {
        return four_digits(value);
    }
    scaled(value, 1024.0, &BINARY)
}

fn scaled(mut value: f64, base: f64, prefixes: &[&str]) -> String {
    let mut prefix = "";
    for next in prefixes {
        if value.abs() < base {
            break;
        }
        prefix = next;
        value /= base;
    }
    format!("{}{prefix}", four_digits(value))
}

fn small(mut value: f64) -> String {
    let mut prefix = "";
    for next in SMALL {
        if value.abs() >= 1.0 {
            break;
        }
        prefix = next;
        value *= 1000.0;
    }
    format!("{}{prefix}", four_digits(value))
}

/// Formats seconds as days, hours, minutes and seconds: `1d 2h 3m 4s`.
pub(super) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return four_digits(seconds);
    }
    if seconds == 0.0 {
        return format!("{}s", four_digits(seconds));
    }
    if seconds.abs() < 1.0 {
        return format!("{}s", small(seconds));
    }
    let sign = if seconds < 0.0 { "-" } else { "" };
    let whole_seconds = seconds.abs() as i64;
    let (s, m, h, d) = (
        whole_seconds % 60,
        whole_seconds / 60 % 60,
        whole_seconds / 3600 % 24,
        whole_seconds / 86_400,
    );
    match (d, h, m) {
        (0, 0, 0) => format!("{sign}{}s", four_digits(seconds.abs())),
        (0, 0, _) => format!("{sign}{m}m {s}s"),
        (0, _, _) => format!("{sign}{h}h {m}m {s}s"),
        _ => format!("{sign}{d}d {h}h {m}m {s}s"),
    }
}

/// Formats a ratio as a percentage: `12.34%`.
pub(super) fn percentage(ratio: f64) -> String {
    format!("{}%", four_digits(ratio * 100.0))
}

/// Formats Unix seconds as Go's time format.
pub(super) fn timestamp(seconds: f64) -> String {
    if !seconds.is_finite() {
        return four_digits(seconds);
    }
    let ms = (seconds * 1000.0).round() as i64;
    let civil = UnixMillis(ms).civil();
    let fraction = match ms.rem_euclid(1000) {
        0 => String::new(),
        ms => format!(".{ms:03}").trim_end_matches('0').to_owned(),
    };
    format!("{}{fraction} +0000 UTC", civil.strftime("%Y-%m-%d %H:%M:%S"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_prometheus_shows_them() {
        let check = |shown: fn(f64) -> String, value: f64, expected: &str| {
            assert_eq!(shown(value), expected, "{value}");
        };
        for (value, expected) in [
            (0.0, "0"),
            (1.0, "1"),
            (1_234_567.0, "1.235M"),
            (0.12, "120m"),
            (999.0, "999"),
            (-12_345.0, "-12.35k"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (1e30, "1e+06Y"),
        ] {
            check(thousands, value, expected);
        }
        check(binary, 1023.0, "1023");
        check(binary, 1_048_576.0, "1Mi");
        check(binary, 0.5, "0.5");
        for (value, expected) in [
            (0.0, "0s"),
            (1.0, "1s"),
            (60.0, "1m 0s"),
            (3600.0, "1h 0m 0s"),
            (86_400.0 + 2.0 * 3600.0 + 62.0, "1d 2h 1m 2s"),
            (-86_399.0, "-23h 59m 59s"),
            (0.1, "100ms"),
            (12.345_678, "12.35s"),
        ] {
            check(duration, value, expected);
        }
        check(percentage, 1.234_567_8, "123.5%");
        check(timestamp, 0.0, "1970-01-01 00:00:00 +0000 UTC");
        check(four_digits, 0.000_012_3, "1.23e-05");
        check(four_digits, 123_456.0, "1.235e+05");
    }
}
