//! Numbers, times and labels as Prometheus writes them in JSON.
//!
//! Must never know: what is answered.

use std::io::Write;

/// Numbers of more than fifteen digits, in thousandths.
const DECIMAL_MAX: u64 = 1_000_000_000_000_000;

/// A sample's value in Go's shortest form: plain digits, with an exponent for what is very small or
/// very large.
pub(super) fn push_float(value: f64, out: &mut Vec<u8>) {
    if !value.is_finite() {
        let word: &[u8] = match value {
            f64::INFINITY => b"+Inf",
            f64::NEG_INFINITY => b"-Inf",
            _ => b"NaN",
        };
        return out.extend_from_slice(word);
    }
    if !push_decimal(value, out) {
        push_shortest(value, out);
    }
}

/// Writes a number that has three decimals at most, and fifteen digits; false when it is no such one.
/// No other number of fifteen digits is the same double, so none is shorter.
fn push_decimal(value: f64, out: &mut Vec<u8>) -> bool {
    let number = (value * 1000.0 + 0.5_f64.copysign(value)) as i64;
    let size = number.unsigned_abs();
    let is_it = (number as f64 / 1000.0).to_bits() == value.to_bits();
    if !is_it || size >= DECIMAL_MAX {
        return false;
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(itoa::Buffer::new().format(size / 1000).as_bytes());
    let part = size % 1000;
    if part > 0 {
        let digits = [
            b'.',
            (part / 100) as u8 + b'0',
            (part / 10 % 10) as u8 + b'0',
            (part % 10) as u8 + b'0',
        ];
        let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
        out.extend_from_slice(&digits[..digits.len() - zeros]);
    }
    true
}

/// Writes a finite number in its shortest form.
fn push_shortest(value: f64, out: &mut Vec<u8>) {
    let mut digits = zmij::Buffer::new();
    let text = digits.format_finite(value).as_bytes();
    if !text.contains(&b'e') {
        return out.extend_from_slice(text.strip_suffix(b".0").unwrap_or(text));
    }
    let size = value.abs();
    let is_plain = (1e-6..1e21).contains(&size);
    let written = if is_plain { write!(out, "{value}") } else { push_exponent(value, out) };
    debug_assert!(written.is_ok(), "memory takes every write");
}

/// Go writes a sign and at least two digits.
pub(super) fn push_exponent(value: f64, out: &mut Vec<u8>) -> std::io::Result<()> {
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    write!(out, "{mantissa}e{sign}{digits:0>2}")
}

/// Unix seconds, with milliseconds where there are some.
pub(super) fn push_time(at_ms: i64, out: &mut Vec<u8>) {
    let (seconds, millis) = (at_ms.unsigned_abs() / 1000, at_ms.unsigned_abs() % 1000);
    if at_ms < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
    if millis != 0 {
        let written = write!(out, ".{millis:03}");
        debug_assert!(written.is_ok(), "memory takes every write");
    }
}

/// A point: `[time,"value"]`.
pub(super) fn push_point(at_ms: i64, value: f64, out: &mut Vec<u8>) {
    push_before_value(at_ms, out);
    push_float(value, out);
    out.extend_from_slice(b"\"]");
}

/// What stands before a point's value.
fn push_before_value(at_ms: i64, out: &mut Vec<u8>) {
    out.push(b'[');
    push_time(at_ms, out);
    out.extend_from_slice(b",\"");
}

/// The times of many series, each formatted once.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// By place: the time and where its text ends, with the brackets around it.
    ends: Vec<(i64, usize)>,
    texts: Vec<u8>,
}

/// Times that are kept formatted, at most.
const TIMES_MAX: usize = 11_000;

impl Times {
    /// A point whose time is likely that of the other series at this place.
    pub(super) fn push_point(&mut self, place: usize, at_ms: i64, value: f64, out: &mut Vec<u8>) {
        if place == self.ends.len() && place < TIMES_MAX {
            push_before_value(at_ms, &mut self.texts);
            self.ends.push((at_ms, self.texts.len()));
        }
        let Some((_, end)) = self.ends.get(place).filter(|(at, _)| *at == at_ms) else {
            return push_point(at_ms, value, out);
        };
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before].1);
        out.extend_from_slice(&self.texts[begin..*end]);
        push_float(value, out);
        out.extend_from_slice(b"\"]");
    }
}

/// A text in quotes.
pub(super) fn push_text(text: &str, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(out, text);
    debug_assert!(written.is_ok(), "memory takes every write");
}

/// `,"name":["text",...]`, or nothing when there is none.
pub(super) fn push_notes(name: &str, texts: &[String], out: &mut Vec<u8>) {
    if texts.is_empty() {
        return;
    }
    out.push(b',');
    push_text(name, out);
    out.extend_from_slice(b":[");
    for (index, text) in texts.iter().enumerate() {
        push_comma(index, out);
        push_text(text, out);
    }
    out.push(b']');
}

/// An object of texts.
pub(super) fn push_labels<'a>(
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    for (index, (name, value)) in labels.into_iter().enumerate() {
        push_comma(index, out);
        push_text(name, out);
        out.push(b':');
        push_text(value, out);
    }
    out.push(b'}');
}

/// What stands before the element with this index.
pub(super) fn push_comma(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_written_as_go_writes_them() {
        let check = |value: f64, expected: &str| {
            assert_eq!(written(|out| push_float(value, out)), expected);
        };
        check(0.0, "0");
        check(-0.0, "-0");
        check(1.0, "1");
        check(0.1, "0.1");
        check(-12.5, "-12.5");
        check(1e20, "100000000000000000000");
        check(-999_999_999_999_999.0, "-999999999999999");
        check(1e15, "1000000000000000");
        check(-1e16, "-10000000000000000");
        check(99_999_999_999_999.98, "99999999999999.98");
        check(0.001, "0.001");
        check(-0.000_999, "-0.000999");
        check(1e21, "1e+21");
        check(1.5e300, "1.5e+300");
        check(1e-6, "0.000001");
        check(1.25e-7, "1.25e-07");
        check(5e-324, "5e-324");
        check(f64::NAN, "NaN");
        check(f64::INFINITY, "+Inf");
        check(f64::NEG_INFINITY, "-Inf");
    }

    proptest! {
        #[test]
        fn a_number_of_few_decimals_is_written_in_its_shortest_form(
            number in prop_oneof![-2_000_000..2_000_000_i64, any::<i64>()],
            by in prop::sample::select(vec![1.0, 10.0, 100.0, 1000.0, 10_000.0, 3.0]),
        ) {
            let value = number as f64 / by;
            let mut short = Vec::new();
            if push_decimal(value, &mut short) {
                prop_assert_eq!(String::from_utf8(short), Ok(written(|out| push_shortest(value, out))));
            } else {
                prop_assert!(short.is_empty() && (by > 1000.0 || by == 3.0 || value.abs() > 1e11));
            }
        }
    }

    #[test]
    fn times_are_seconds_with_millis_where_there_are_some() {
        let check =
            |at: i64, expected: &str| assert_eq!(written(|out| push_time(at, out)), expected);
        check(1_435_781_451_781, "1435781451.781");
        check(1000, "1");
        check(1500, "1.500");
        check(7, "0.007");
        check(-1500, "-1.500");
        check(0, "0");
    }

    #[test]
    fn a_time_that_is_kept_is_written_as_any_other() {
        let mut times = Times::default();
        for points in [[(0, 1000), (1, 1500)], [(0, 1000), (1, 1700)], [(1, 1500), (2, 9000)]] {
            for (place, at) in points {
                let plain = written(|out| push_point(at, 0.5, out));
                assert_eq!(written(|out| times.push_point(place, at, 0.5, out)), plain);
            }
        }
    }

    #[test]
    fn labels_and_notes_are_escaped() {
        let labels = [("__name__", "up"), ("job", "a\"b\\\n")];
        let text = written(|out| push_labels(labels, out));
        assert_eq!(text, r#"{"__name__":"up","job":"a\"b\\\n"}"#);
        let notes = ["one".to_owned(), "two".to_owned()];
        assert_eq!(written(|out| push_notes("infos", &notes, out)), r#","infos":["one","two"]"#);
        assert_eq!(written(|out| push_notes("infos", &[], out)), "");
    }
}
