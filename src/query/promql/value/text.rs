//! String values. Prometheus' strings may contain bytes that are not UTF-8; Granary represents them
//! as unused characters.
//!
//! Must never know: the syntax of strings in a query.

/// The first of the unused characters that represent bytes. The distance from this character is the
/// byte.
const FIRST_BYTE_CHARACTER: u32 = 0x0010_ff00;

/// Returns the character that represents a byte.
pub(crate) fn char_of(byte: u8) -> Option<char> {
    char::from_u32(FIRST_BYTE_CHARACTER + u32::from(byte))
}

/// Returns the byte that a character represents.
pub(crate) fn byte_of(letter: char) -> Option<u8> {
    u32::from(letter).checked_sub(FIRST_BYTE_CHARACTER).and_then(|byte| u8::try_from(byte).ok())
}

/// Returns a text for display: bytes that are not UTF-8 are replaced.
pub(crate) fn displayable(text: &str) -> String {
    let replaced = |c| if byte_of(c).is_some() { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(replaced).collect()
}

/// Returns a text in quotes, with bytes that are not UTF-8 as `\xff`.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match byte_of(letter) {
            Some(byte) => {
                out.push_str("\\x");
                let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
                out.extend([digit(byte >> 4), digit(byte & 15)]);
            }
            None => out.extend(letter.escape_debug()),
        }
    }
    out.push('"');
    out
}

/// Returns true when a text is a valid label name: non-empty, and only UTF-8.
pub(crate) fn is_label_name(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|letter| byte_of(letter).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_non_empty_utf8_text_is_a_label_name() {
        for (name, is_valid) in [("a", true), ("1-b", true), ("", false), ("\u{10ffc5}", false)] {
            assert_eq!(is_label_name(name), is_valid, "{name}");
        }
    }
}
