//! Patterns of `$regex` and `$regexMatch`, compiled within limits.
//!
//! Must never know: documents, expressions.

use regex::{Regex, RegexBuilder};

use super::value::Value;
use crate::model::go_regex;

/// Maximum size of a compiled pattern in bytes; the cache of its automaton may take twice as much.
const PATTERN_BYTES_MAX: usize = 128 << 10;
/// Maximum nesting of groups in a pattern.
const PATTERN_DEPTH_MAX: u32 = 50;

/// Compiles a pattern: a text, or a document with `$regex` and `$options`.
pub(super) fn pattern(value: &Value, options: Option<&Value>) -> Result<Regex, String> {
    let (value, options) = match value {
        Value::Fields(fields) => {
            (fields.get("$regex").unwrap_or(value), fields.get("$options").or(options))
        }
        _ => (value, options),
    };
    let Some(text) = value.as_text() else {
        return Err("$regex must be a text".to_owned());
    };
    let options = match options {
        None => "",
        Some(Value::Text(options)) => options,
        Some(_) => return Err("$options must consist of letters of imsxu".to_owned()),
    };
    // The option u has no effect: patterns are always Unicode.
    if let Some(other) = options.chars().find(|c| !"imsxu".contains(*c)) {
        return Err(format!("$options: {other} is not known; use letters of imsxu"));
    }
    RegexBuilder::new(&go_regex::translate_pattern(text))
        .case_insensitive(options.contains('i'))
        .multi_line(options.contains('m'))
        .dot_matches_new_line(options.contains('s'))
        .ignore_whitespace(options.contains('x'))
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(2 * PATTERN_BYTES_MAX)
        .nest_limit(PATTERN_DEPTH_MAX)
        .build()
        .map_err(|cause| match cause {
            regex::Error::CompiledTooBig(_) => {
                format!("$regex: {text:?} is too large when compiled")
            }
            other => format!("$regex: {other}"),
        })
}
