//! Literals that the parser reads otherwise than Prometheus: rewritten before it sees them.
//!
//! Must never know: the tree.

use std::{iter::Peekable, str::Chars};

use crate::query::promql::value::text::char_of;

/// Copies a string up to its closing quote, with a mark before its text. Bytes written as `\xff` or
/// `\377` are put together to characters.
pub(crate) fn copy_string(
    quote: char,
    mark: &str,
    chars: &mut Peekable<Chars<'_>>,
    out: &mut String,
) {
    if quote == '`' {
        out.push('"');
        out.push_str(mark);
        return copy_raw(chars, out);
    }
    out.push(quote);
    out.push_str(mark);
    let mut bytes = Vec::new();
    while let Some(now) = chars.next() {
        if now == '\\' {
            if let Some(byte) = high_byte(chars) {
                bytes.push(byte);
                continue;
            }
            flush(&mut bytes, out);
            out.push(now);
            out.extend(chars.next());
            continue;
        }
        flush(&mut bytes, out);
        out.push(now);
        if now == quote {
            return;
        }
    }
    flush(&mut bytes, out);
}

/// Copies what stands between backticks as text between quotes: the parser looks for escapes in
/// either.
fn copy_raw(chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    for now in chars {
        match now {
            '`' => return out.push('"'),
            '\\' => out.push_str(r"\\"),
            '"' => out.push_str(r#"\""#),
            '\n' => out.push_str(r"\n"),
            _ => out.push(now),
        }
    }
}

fn flush(bytes: &mut Vec<u8>, out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().copied().filter_map(char_of));
    }
    bytes.clear();
}

/// The byte above ASCII that an escape means; what is no such escape is not read.
fn high_byte(chars: &mut Peekable<Chars<'_>>) -> Option<u8> {
    let mut ahead = chars.clone();
    let (digits, radix) = match ahead.peek()? {
        'x' => {
            ahead.next();
            (2, 16)
        }
        '0'..='3' => (3, 8),
        _ => return None,
    };
    let mut byte = 0;
    for _ in 0..digits {
        byte = byte * radix + ahead.next()?.to_digit(radix)?;
    }
    let byte = u8::try_from(byte).ok().filter(|byte| !byte.is_ascii())?;
    *chars = ahead;
    Some(byte)
}

/// The rest of a number or duration that begins with `first`, without the underscores between its
/// digits.
pub(crate) fn number(first: char, chars: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::from(first);
    let belongs = |next: &char| next.is_ascii_alphanumeric() || matches!(next, '_' | '.');
    while let Some(next) = chars.next_if(belongs) {
        text.push(next);
    }
    if between_digits(&text) { text.replace('_', "") } else { text }
}

/// Whether every underscore stands between two digits, or behind `0x`.
fn between_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let hex = matches!(bytes, [b'0', b'x' | b'X', ..]);
    let digit = |index: Option<usize>| {
        let found = index.and_then(|index| bytes.get(index));
        found.is_some_and(|byte| byte.is_ascii_digit() || (hex && byte.is_ascii_hexdigit()))
    };
    let good = |index: usize| {
        (digit(index.checked_sub(1)) || (hex && index == 2)) && digit(Some(index + 1))
    };
    (0..bytes.len()).filter(|index| bytes[*index] == b'_').all(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_written_as_the_parser_reads_them() {
        for (text, expected) in [
            (r#""\xc3\xa9" rest"#, "\"\u{e9}\""),
            (r#""a\303\251b""#, "\"a\u{e9}b\""),
            (r#""\xff""#, "\"\u{10ffff}\""),
            (r#"'\x41\101\\xff\"'"#, r#"'\x41\101\\xff\"'"#),
            (r#""\xc3"#, "\"\u{10ffc3}"),
            (r#""\xf"#, r#""\xf"#),
            ("`\\xff\"'\n` rest", r#""\\xff\"'\n""#),
            (r"`\w", r#""\\w"#),
        ] {
            let mut chars = text.chars().peekable();
            let quote = chars.next().unwrap();
            let mut out = String::new();
            copy_string(quote, "", &mut chars, &mut out);
            assert_eq!(out, expected, "{text}");
        }
    }

    #[test]
    fn underscores_between_digits_are_left_out() {
        for (text, expected) in [
            ("1_000_000 + 1", "1000000"),
            ("0x_1F_ff", "0x1Fff"),
            ("1_0.2_5", "10.25"),
            ("1__0", "1__0"),
            ("1_", "1_"),
            ("1_.5", "1_.5"),
            ("1_e3", "1_e3"),
            ("5m", "5m"),
        ] {
            let mut chars = text.chars().peekable();
            let first = chars.next().unwrap();
            assert_eq!(number(first, &mut chars), expected, "{text}");
        }
    }
}
