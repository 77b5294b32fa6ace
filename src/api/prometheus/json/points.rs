//! Points of series. The text of a time that several series share is formatted once.
//!
//! Must never know: the series of the points.

use std::io::Write;

use super::numbers::{DECIMAL_BYTES, push_float, put_decimal};

/// The size of the buffer for the text before a value, which is copied as a whole.
const BEFORE_BYTES: usize = 32;
/// The text after a value.
const AFTER_VALUE: &[u8; 2] = b"\"]";
/// The maximum size of a point whose value has few decimals.
const POINT_BYTES: usize = BEFORE_BYTES + DECIMAL_BYTES + AFTER_VALUE.len();
/// The maximum number of formatted times in memory.
const TIMES_MAX: usize = 11_000;

/// Writes a time in Unix seconds, with milliseconds unless they are zero.
pub(in crate::api::prometheus) fn push_time(at_ms: i64, out: &mut Vec<u8>) {
    let (seconds, millis) = (at_ms.unsigned_abs() / 1000, at_ms.unsigned_abs() % 1000);
    if at_ms < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
    if millis != 0 {
        let written = write!(out, ".{millis:03}");
        debug_assert!(written.is_ok(), "writing to memory cannot fail");
    }
}

/// Writes a point: `[time,"value"]`.
pub(in crate::api::prometheus) fn push_point(at_ms: i64, value: f64, out: &mut Vec<u8>) {
    push_before_value(at_ms, out);
    push_float(value, out);
    out.extend_from_slice(b"\"]");
}

/// Writes the text before a point's value.
fn push_before_value(at_ms: i64, out: &mut Vec<u8>) {
    out.push(b'[');
    push_time(at_ms, out);
    out.extend_from_slice(b",\"");
}

/// The formatted times of many series.
#[derive(Debug, Default)]
pub(in crate::api::prometheus) struct Times(Vec<BeforeValue>);

/// The text before the values of one time. Its first byte is replaced in each point.
#[derive(Debug, Clone, Copy)]
struct BeforeValue {
    at_ms: i64,
    text: [u8; BEFORE_BYTES],
    length: u8,
}

impl BeforeValue {
    fn new(at_ms: i64) -> Self {
        let mut bytes = vec![b','];
        push_before_value(at_ms, &mut bytes);
        let mut text = [0; BEFORE_BYTES];
        // The longest text takes 25 bytes.
        text[..bytes.len()].copy_from_slice(&bytes);
        Self { at_ms, text, length: bytes.len() as u8 }
    }

    /// Writes a point if its value has few decimals, and returns true if it did.
    fn push_point(&self, before: u8, value: f64, out: &mut Vec<u8>) -> bool {
        let from = out.len();
        out.extend_from_slice(&[0; POINT_BYTES]);
        let length = self.put_point(before, value, &mut out[from..]);
        out.truncate(from + length.unwrap_or(0));
        length.is_some()
    }

    /// Writes a point into a buffer and returns its length; `None` if the value has many decimals.
    #[inline]
    fn put_point(&self, before: u8, value: f64, to: &mut [u8]) -> Option<usize> {
        *to.first_chunk_mut()? = self.text;
        *to.first_mut()? = before;
        let start = usize::from(self.length);
        let end = start + put_decimal(value, to.get_mut(start..)?.first_chunk_mut()?)?;
        *to.get_mut(end..)?.first_chunk_mut()? = *AFTER_VALUE;
        Some(end + AFTER_VALUE.len())
    }
}

impl Times {
    /// Writes a point after the byte `before`. The point at the same index of other series is
    /// likely to have the same time.
    pub(in crate::api::prometheus) fn push_point(
        &mut self,
        before: u8,
        (index, at_ms, value): (usize, i64, f64),
        out: &mut Vec<u8>,
    ) {
        if index == self.0.len() && index < TIMES_MAX {
            self.0.push(BeforeValue::new(at_ms));
        }
        let known = self.0.get(index).filter(|time| time.at_ms == at_ms);
        if known.is_none_or(|known| !known.push_point(before, value, out)) {
            out.push(before);
            push_point(at_ms, value, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::written, *};

    #[test]
    fn times_are_seconds_with_millis_unless_the_millis_are_zero() {
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
    fn remembered_times_are_written_like_all_others() {
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
            for (index, at) in points {
                for value in [0.5, -99_999_999_999.999, 1e300, f64::NAN] {
                    let plain = written(|out| push_point(at, value, out));
                    let remembered = written(|out| times.push_point(b'!', (index, at, value), out));
                    assert_eq!(remembered, format!("!{plain}"));
                }
            }
        }
    }
}
