//! Patterns of paths: `*`, `?`, `[a-z]` and `{a,b}` (graphite.readthedocs.io, "Paths and
//! Wildcards"). No wildcard matches a dot.
//!
//! Must never know: series.

use crate::query::QueryError;

/// The maximum number of patterns that a pattern with braces expands to.
const ALTERNATIVES_MAX: usize = 256;
/// The maximum size of a pattern in bytes.
const PATTERN_BYTES_MAX: usize = 4096;
/// The maximum number of intermediate and final patterns that one pattern expands to.
const STEPS_MAX: usize = 4096;
/// The characters that make a text a pattern.
const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

/// Returns the patterns that a pattern with braces expands to.
///
/// # Errors
/// When the pattern is too long, or expands to too many patterns.
pub(super) fn expand_braces(pattern: &str) -> Result<Vec<String>, QueryError> {
    if pattern.len() > PATTERN_BYTES_MAX {
        let length = pattern.len();
        return Err(QueryError::Invalid(format!(
            "a path of {length} bytes exceeds the limit of {PATTERN_BYTES_MAX}: use several targets"
        )));
    }
    let (mut open, mut done, mut steps) = (vec![pattern.to_owned()], Vec::new(), 0);
    while let Some(text) = open.pop() {
        // The innermost braces come first.
        let inner = text.find('}').and_then(|end| {
            let start = text.get(..end)?.rfind('{')?;
            Some((text.get(..start)?, text.get(start + 1..end)?, text.get(end + 1..)?))
        });
        let Some((before, words, after)) = inner else {
            done.push(text);
            continue;
        };
        let words_count = words.bytes().filter(|byte| *byte == b',').count() + 1;
        steps += words_count;
        if open.len() + done.len() + words_count > ALTERNATIVES_MAX || steps > STEPS_MAX {
            return Err(QueryError::Invalid(format!(
                "the braces of {pattern:?} stand for more than {ALTERNATIVES_MAX} paths: use fewer, \
                 or *"
            )));
        }
        // Reversed, because the last pattern is processed next.
        open.extend(words.rsplit(',').map(|word| format!("{before}{word}{after}")));
    }
    Ok(done)
}

/// Returns true when a text contains wildcards.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(WILDCARDS)
}

/// Returns the part of a pattern before its first wildcard.
pub(super) fn literal_start(pattern: &str) -> &str {
    pattern.find(WILDCARDS).and_then(|end| pattern.get(..end)).unwrap_or(pattern)
}

/// Returns the regular expression for a pattern without braces, or for a part of a pattern.
pub(super) fn regex(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '*' => out.push_str("[^.]*"),
            '?' => out.push_str("[^.]"),
            '[' => match rest.split_once(']').filter(|(inside, _)| !inside.is_empty()) {
                Some((inside, after)) => {
                    let (negation, inside) = match inside.strip_prefix('!') {
                        Some(inside) => ("^", inside),
                        None => ("", inside),
                    };
                    out.push('[');
                    out.push_str(negation);
                    for c in inside.chars() {
                        if "\\[]^&~".contains(c) {
                            out.push('\\');
                        }
                        out.push(c);
                    }
                    out.push(']');
                    rest = after;
                }
                None => out.push_str("\\["),
            },
            other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_stand_for_each_alternative_in_order() {
        let check = |pattern: &str, expected: &[&str]| {
            assert_eq!(expand_braces(pattern).unwrap(), expected, "{pattern}");
        };
        check("a.b", &["a.b"]);
        check("a.{b,c}.d", &["a.b.d", "a.c.d"]);
        check("{a,b{1,2}}.x", &["a.x", "b1.x", "a.x", "b2.x"]);
        check("a.{b.c,d}", &["a.b.c", "a.d"]);
        check("a}b{", &["a}b{"]);
        let too_many = expand_braces(&"{a,b}".repeat(9)).unwrap_err().to_string();
        assert!(too_many.contains("more than 256 paths"), "{too_many}");
        let words = expand_braces(&format!("{{{}}}", ",".repeat(300))).unwrap_err().to_string();
        assert!(words.contains("more than 256 paths"), "{words}");
        let steps = format!("{}{}", "{a,b}".repeat(8), "{a}".repeat(1000));
        assert!(
            expand_braces(&steps).is_err(),
            "the alternatives are copied for each of many braces"
        );
        let too_long = expand_braces(&"a".repeat(5000)).unwrap_err().to_string();
        assert!(too_long.contains("a path of 5000 bytes exceeds the limit of 4096"), "{too_long}");
    }

    #[test]
    fn wildcards_match_within_a_part() {
        let check = |pattern: &str, path: &str, expected: bool| {
            let regex = ::regex::Regex::new(&format!("^{}$", regex(pattern))).unwrap();
            assert_eq!(regex.is_match(path), expected, "{pattern} {path}");
        };
        check("a.*", "a.b", true);
        check("a.*", "a.b.c", false);
        check("a?c", "abc", true);
        check("a?c", "a.c", false);
        check("a[b-d]e", "ace", true);
        check("a[!b]e", "abe", false);
        check("a[^]e", "a^e", true);
        check("a[", "a[", true);
        check("a+b(", "a+b(", true);
        assert_eq!((literal_start("ab.c*"), literal_start("ab.c")), ("ab.c", "ab.c"));
        assert!(is_pattern("a?") && !is_pattern("a.b;c=d"));
    }
}
