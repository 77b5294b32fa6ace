//! Numbers, times and labels as Prometheus writes them in JSON.
//!
//! Must never know: what is answered.

use std::io::Write;

/// Numbers of more than fifteen digits, in thousandths.
const DECIMAL_MAX: u64 = 1_000_000_000_000_000;

/// Bytes of such a number, at most, of the length that is copied at once.
const DECIMAL_BYTES: usize = 32;
/// Bytes of what stands before a point's value, at most, of the length that is copied at once.
const BEFORE_BYTES: usize = 32;
const BEHIND: &[u8; 2] = b"\"]";
/// Bytes of a point whose value has few decimals, at most.
const POINT_BYTES: usize = BEFORE_BYTES + DECIMAL_BYTES + BEHIND.len();

/// Two digits of each number below a hundred.
const PAIRS: [[u8; 2]; 100] = {
    let (mut pairs, mut number) = ([[0; 2]; 100], 0);
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// A part of thousandths with the point before it.
#[derive(Clone, Copy)]
struct Fraction {
    text: [u8; 4],
    /// Bytes without zeros at the end, and without the point when none is left.
    length: u8,
}

/// All of them.
static FRACTIONS: [Fraction; 1000] = {
    let (mut all, mut part) = ([Fraction { text: [0; 4], length: 0 }; 1000], 1);
    while part < all.len() {
        let [ten, one] = PAIRS[part % 100];
        let length = match part {
            _ if part % 100 == 0 => 2,
            _ if part % 10 == 0 => 3,
            _ => 4,
        };
        all[part] = Fraction { text: [b'.', b'0' + (part / 100) as u8, ten, one], length };
        part += 1;
    }
    all
};

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
    let mut decimal = [0; DECIMAL_BYTES];
    match put_decimal(value, &mut decimal) {
        Some(length) => out.extend_from_slice(&decimal[..length]),
        None => push_shortest(value, out),
    }
}

/// Writes a number that has three decimals at most, and fifteen digits, and returns its length; `None`
/// when it is no such one. No other number of fifteen digits is the same double, so none is shorter.
///
/// What is copied is of constant length where it can be, and cut behind: that is no call.
#[inline]
fn put_decimal(value: f64, to: &mut [u8; DECIMAL_BYTES]) -> Option<usize> {
    let number = (value * 1000.0 + 0.5_f64.copysign(value)) as i64;
    let size = number.unsigned_abs();
    let is_it = (number as f64 / 1000.0).to_bits() == value.to_bits();
    if !is_it || size >= DECIMAL_MAX {
        return None;
    }
    to[0] = b'-';
    let mut at = usize::from(number < 0);
    let (whole, part) = (size / 1000, (size % 1000) as usize);
    if whole < 10_000 {
        let ([a, b], [c, d]) = (PAIRS[whole as usize / 100], PAIRS[whole as usize % 100]);
        let zeros = usize::from(whole < 1000) + usize::from(whole < 100) + usize::from(whole < 10);
        let digits = u32::from_le_bytes([a, b, c, d]) >> (8 * zeros);
        to[at..at + 4].copy_from_slice(&digits.to_le_bytes());
        at += 4 - zeros;
    } else {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(whole).as_bytes();
        to[at..at + digits.len()].copy_from_slice(digits);
        at += digits.len();
    }
    let Fraction { text, length } = FRACTIONS[part];
    to[at..at + 4].copy_from_slice(&text);
    Some(at + usize::from(length))
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
pub(super) struct Times(Vec<BeforeValue>);

/// What stands before the values of one time, with the byte before it.
#[derive(Debug, Clone, Copy)]
struct BeforeValue {
    at_ms: i64,
    text: [u8; BEFORE_BYTES],
    length: u8,
}

impl BeforeValue {
    fn of(at_ms: i64) -> Self {
        let mut own = vec![b','];
        push_before_value(at_ms, &mut own);
        let mut text = [0; BEFORE_BYTES];
        // The longest of all times takes 25 bytes.
        text[..own.len()].copy_from_slice(&own);
        Self { at_ms, text, length: own.len() as u8 }
    }
}

/// Times that are kept formatted, at most.
const TIMES_MAX: usize = 11_000;

impl Times {
    /// A point whose time is likely that of the other series at this place, behind the byte that
    /// stands between it and what was written before.
    pub(super) fn push_point(
        &mut self,
        before: u8,
        (place, at_ms, value): (usize, i64, f64),
        out: &mut Vec<u8>,
    ) {
        if place == self.0.len() && place < TIMES_MAX {
            self.0.push(BeforeValue::of(at_ms));
        }
        let known = self.0.get(place).filter(|own| own.at_ms == at_ms);
        if known.is_none_or(|known| !known.push_point(before, value, out)) {
            out.push(before);
            push_point(at_ms, value, out);
        }
    }
}

impl BeforeValue {
    /// Writes a point, if its value has few decimals.
    fn push_point(&self, before: u8, value: f64, out: &mut Vec<u8>) -> bool {
        let from = out.len();
        out.extend_from_slice(&[0; POINT_BYTES]);
        let length = self.put_point(before, value, &mut out[from..]);
        out.truncate(from + length.unwrap_or(0));
        length.is_some()
    }

    #[inline]
    fn put_point(&self, before: u8, value: f64, to: &mut [u8]) -> Option<usize> {
        *to.first_chunk_mut()? = self.text;
        *to.first_mut()? = before;
        let at = usize::from(self.length);
        let end = at + put_decimal(value, to.get_mut(at..)?.first_chunk_mut()?)?;
        *to.get_mut(end..)?.first_chunk_mut()? = *BEHIND;
        Some(end + BEHIND.len())
    }
}

/// A text in quotes.
pub(super) fn push_text(text: &str, out: &mut Vec<u8>) {
    let is_special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // All of them are looked at, many at a time.
    if !text.bytes().fold(false, |any, byte| any | is_special(byte)) {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        return out.push(b'"');
    }
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
    // Labels of stored series go through several iterators, which this makes one loop.
    labels.into_iter().enumerate().for_each(|(index, (name, value))| {
        push_comma(index, out);
        push_text(name, out);
        out.push(b':');
        push_text(value, out);
    });
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
            let mut short = [0; DECIMAL_BYTES];
            if let Some(length) = put_decimal(value, &mut short) {
                let short = String::from_utf8(short[..length].to_vec());
                prop_assert_eq!(short, Ok(written(|out| push_shortest(value, out))));
            } else {
                prop_assert!(by > 1000.0 || by == 3.0 || value.abs() > 1e11);
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
        let furthest = 1_000_000_000_000_000;
        for points in [
            [(0, 1000), (1, 1500)],
            [(0, 1000), (1, 1700)],
            [(1, 1500), (2, 9000)],
            [(2, 9000), (3, -furthest + 1)],
            [(3, -furthest + 1), (4, i64::MIN)],
            [(3, furthest), (4, i64::MIN)],
        ] {
            for (place, at) in points {
                for value in [0.5, -99_999_999_999.999, 1e300, f64::NAN] {
                    let plain = written(|out| push_point(at, value, out));
                    let kept = written(|out| times.push_point(b'!', (place, at, value), out));
                    assert_eq!(kept, format!("!{plain}"));
                }
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
