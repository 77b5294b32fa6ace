//! Numbers in their shortest form, as Go writes them.
//!
//! Must never know: what the numbers mean.

use std::io::Write;

/// The limit of numbers with at most fifteen digits, in thousandths.
const DECIMAL_MAX: u64 = 1_000_000_000_000_000;

/// The size of the buffer for a decimal number, which is copied as a whole.
pub(super) const DECIMAL_BYTES: usize = 32;

/// The two digits of each number below a hundred.
const PAIRS: [[u8; 2]; 100] = {
    let (mut pairs, mut number) = ([[0; 2]; 100], 0);
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The digits of a number of thousandths, after a decimal point.
#[derive(Clone, Copy)]
struct Fraction {
    text: [u8; 4],
    /// The length without trailing zeros, and without the point when no digit remains.
    length: u8,
}

/// The fractions from 0 to 999 thousandths.
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

/// Writes a value in Go's shortest form: plain digits, with an exponent for very small and very
/// large values.
pub(in crate::api::prometheus) fn push_float(value: f64, out: &mut Vec<u8>) {
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

/// Writes a number with at most three decimals and fifteen digits, and returns its length; `None`
/// for other numbers. No other number of fifteen digits is the same double, so this form is the
/// shortest.
///
/// Copies have constant lengths where possible, because these compile without calls. Excess bytes
/// are overwritten later, or follow the returned length.
#[inline]
pub(super) fn put_decimal(value: f64, to: &mut [u8; DECIMAL_BYTES]) -> Option<usize> {
    let number = (value * 1000.0 + 0.5_f64.copysign(value)) as i64;
    let size = number.unsigned_abs();
    let is_exact = (number as f64 / 1000.0).to_bits() == value.to_bits();
    if !is_exact || size >= DECIMAL_MAX {
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
    debug_assert!(written.is_ok(), "writing to memory cannot fail");
}

/// Writes a number in scientific notation like Go: with a sign and at least two digits.
pub(in crate::api::prometheus) fn push_exponent(
    value: f64,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    write!(out, "{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::tests::written, *};

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
}
