//! Parsing of numbers, durations and escape sequences.
//!
//! The source is Prometheus (docs/querying/basics.md, "Literals"; model.ParseDuration) and Go's
//! syntax of literals, which Prometheus uses. Must never know: tokens.

use crate::{model::LENGTH_UNITS, query::promql::value::text::char_of};

/// The longest duration in milliseconds: 31,688 years, so that times cannot overflow.
pub(crate) const MILLIS_MAX: i64 = 1_000_000_000_000_000;

/// A number or a duration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Quantity {
    /// A number.
    Number(f64),
    /// A duration, in milliseconds.
    Millis(i64),
}

/// Parses a text that begins with a digit or a point. The error is a message.
pub(super) fn quantity(text: &str) -> Result<Quantity, String> {
    let syntax_error = || format!("bad number or duration syntax: {text:?}");
    let digits = without_underscores(text).ok_or_else(syntax_error)?;
    match number(&digits) {
        Some(value) if value.is_finite() => return Ok(Quantity::Number(value)),
        Some(_) => return Err(format!("error parsing number: {text:?}: value out of range")),
        None => {}
    }
    let (mut total, mut rest, mut units) = (0_i64, digits.as_str(), LENGTH_UNITS.as_slice());
    while !rest.is_empty() {
        let amount = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (amount, tail) = rest.split_at(amount);
        let unit = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, tail) = tail.split_at(unit);
        if amount.is_empty() || !LENGTH_UNITS.iter().any(|(name, _)| *name == unit) {
            return Err(syntax_error());
        }
        // Units must be in descending order, each at most once.
        let position = units.iter().position(|(name, _)| *name == unit);
        let position = position.ok_or_else(|| format!("not a valid duration string: {text:?}"))?;
        let millis = amount.parse::<i64>().ok().and_then(|n| n.checked_mul(units[position].1));
        total = millis
            .and_then(|millis| total.checked_add(millis))
            .filter(|total| *total <= MILLIS_MAX)
            .ok_or("duration out of range")?;
        (rest, units) = (tail, &units[position + 1..]);
    }
    Ok(Quantity::Millis(total))
}

/// Parses a decimal, hexadecimal or octal number. A decimal number out of range is infinite.
fn number(digits: &str) -> Option<f64> {
    let integer = |digits: &str, radix| i64::from_str_radix(digits, radix).ok();
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return integer(hex, 16).map(|value| value as f64);
    }
    let octal = digits.strip_prefix('0').and_then(|octal| integer(octal, 8));
    octal.map(|value| value as f64).or_else(|| digits.parse().ok())
}

/// Removes the underscores, each of which must be between two digits or after `0x`.
fn without_underscores(text: &str) -> Option<String> {
    if !text.contains('_') {
        return Some(text.to_owned());
    }
    let bytes = text.as_bytes();
    let is_hex = matches!(bytes, [b'0', b'x' | b'X', ..]);
    let is_digit = |index: Option<usize>| {
        let byte = index.and_then(|index| bytes.get(index));
        byte.is_some_and(|byte| byte.is_ascii_digit() || (is_hex && byte.is_ascii_hexdigit()))
    };
    let is_valid = |index: usize| {
        (is_digit(index.checked_sub(1)) || (is_hex && index == 2)) && is_digit(Some(index + 1))
    };
    let mut underscores = (0..bytes.len()).filter(|index| bytes[*index] == b'_');
    underscores.all(is_valid).then(|| text.replace('_', ""))
}

/// Reads the escape sequence after a backslash and appends its bytes. The error is a message.
pub(super) fn unescape(
    quote: char,
    chars: &mut impl Iterator<Item = char>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let unterminated = || "escape sequence not terminated".to_owned();
    let kind = chars.next().ok_or_else(unterminated)?;
    let plain = match kind {
        'a' => 7,
        'b' => 8,
        't' => b'\t',
        'n' => b'\n',
        'v' => 11,
        'f' => 12,
        'r' => b'\r',
        '\\' => b'\\',
        _ if kind == quote => quote as u8,
        _ => 0,
    };
    if plain != 0 {
        out.push(plain);
        return Ok(());
    }
    let (first, digits, radix) = match kind {
        '0'..='7' => (kind.to_digit(8), 2, 8),
        'x' => (None, 2, 16),
        'u' => (None, 4, 16),
        'U' => (None, 8, 16),
        _ => return Err(format!("unknown escape sequence {}", code_point(kind))),
    };
    let mut code = first.unwrap_or(0);
    for _ in 0..digits {
        let letter = chars.next().ok_or_else(unterminated)?;
        let digit = letter.to_digit(radix).ok_or_else(|| {
            format!("illegal character {} in escape sequence", code_point(letter))
        })?;
        code = code.saturating_mul(radix).saturating_add(digit);
    }
    let is_byte = !matches!(kind, 'u' | 'U');
    if let (true, Ok(byte)) = (is_byte, u8::try_from(code)) {
        out.push(byte);
    } else if let (false, Some(letter)) = (is_byte, char::from_u32(code)) {
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        return Err("escape sequence is an invalid Unicode code point".to_owned());
    }
    Ok(())
}

fn code_point(letter: char) -> String {
    format!("U+{:04X} {letter:?}", u32::from(letter))
}

/// Converts bytes to text: bytes that are not UTF-8 become the characters that represent them.
pub(super) fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let mut out = String::new();
        for chunk in error.as_bytes().utf8_chunks() {
            out.push_str(chunk.valid());
            out.extend(chunk.invalid().iter().copied().filter_map(char_of));
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lengths_of_time_are_parsed_as_in_prometheus() {
        let number = |value| Ok(Quantity::Number(value));
        let millis = |value| Ok(Quantity::Millis(value));
        for (text, expected) in [
            ("1", number(1.0)),
            ("1.", number(1.0)),
            (".5", number(0.5)),
            ("1e3", number(1000.0)),
            ("1E-3", number(0.001)),
            ("0x1F", number(31.0)),
            ("0X_1_f", number(31.0)),
            ("017", number(15.0)),
            ("089", number(89.0)),
            ("00", number(0.0)),
            ("00.5", number(0.5)),
            ("1_000_000", number(1e6)),
            ("1_0.2_5", number(10.25)),
            ("5m", millis(300_000)),
            ("1h30m5s7ms", millis(5_405_007)),
            ("1y2w3d", millis((365 + 14 + 3) * 86_400_000)),
            ("0s", millis(0)),
            ("1_0s", millis(10_000)),
        ] {
            assert_eq!(quantity(text), expected, "{text}");
        }
    }

    #[test]
    fn invalid_texts_are_neither_numbers_nor_lengths_of_time() {
        for (text, expected) in [
            ("1..2", "bad number or duration syntax: \"1..2\""),
            ("0deadbeef", "bad number"),
            ("0x", "bad number"),
            ("1__0", "bad number"),
            ("1_", "bad number"),
            ("1_.5", "bad number"),
            ("1_e3", "bad number"),
            ("5mm", "bad number"),
            ("5m1", "bad number"),
            ("1.5h", "bad number"),
            ("5m1h", "not a valid duration string: \"5m1h\""),
            ("5m1m", "not a valid duration string"),
            ("99999999999999y", "duration out of range"),
            ("9999999999999999999999s", "duration out of range"),
            ("1e400", "error parsing number: \"1e400\": value out of range"),
        ] {
            let refused = quantity(text).unwrap_err();
            assert!(refused.starts_with(expected), "{text}: {refused}");
        }
    }
}
