//! The names of metrics and labels that need no quotes.

/// The names that are accepted without quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Any name: files of other stores contain names that break the rules of the formats.
    Any,
    /// Letters, digits and underscores, by the rules of the formats.
    Valid,
}

/// Returns true when the text is a metric name that needs no quotes.
pub(crate) fn is_metric_name(name: &str) -> bool {
    is_name(name, |byte| byte == b':')
}

/// Returns true when the text is a label name that needs no quotes.
pub(crate) fn is_label_name(name: &str) -> bool {
    is_name(name, |_| false)
}

fn is_name(name: &str, is_also_letter: impl Fn(u8) -> bool) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || is_also_letter(byte);
    name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}
