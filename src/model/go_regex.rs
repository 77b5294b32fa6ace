//! Translation of Go's regular expressions, which Prometheus uses, to the syntax of the `regex`
//! crate.
//!
//! The two syntaxes differ in classes such as `\w` (ASCII in Go, Unicode in `regex`), in set
//! operators within brackets, which Go lacks, in braces that are not a repetition, and in `\Q`.

use std::str::Chars;

const DIGITS: &str = "0-9";
const SPACES: &str = r"\t\n\f\r\x20";
const WORDS: &str = "0-9A-Za-z_";
/// Maximum length of a repetition in braces: a bound for the search of the closing brace.
const REPETITION_BYTES_MAX: usize = 24;
/// Maximum length of a class name.
const CLASS_NAME_BYTES_MAX: usize = 16;

/// Translates a pattern to a pattern with the same meaning. Invalid patterns stay invalid.
pub fn translate_pattern(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '\\' => escape(&mut rest, &mut out),
            '[' => brackets(&mut rest, &mut out),
            '{' if !repeats(rest.as_str()) => out.push_str(r"\{"),
            _ => out.push(letter),
        }
    }
    out
}

/// Returns true when a brace followed by `rest` begins a repetition.
fn repeats(rest: &str) -> bool {
    let bytes = &rest.as_bytes()[..rest.len().min(REPETITION_BYTES_MAX)];
    let Some(end) = bytes.iter().position(|byte| *byte == b'}') else { return false };
    let mut bounds = bytes[..end].splitn(2, |byte| *byte == b',');
    let number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    bounds.next().is_some_and(number)
        && bounds.next().is_none_or(|text| text.is_empty() || number(text))
}

/// Returns the members of a class such as `\d`, and true when the class is negated.
fn class_members(name: char) -> Option<(&'static str, bool)> {
    let members = match name.to_ascii_lowercase() {
        'd' => DIGITS,
        's' => SPACES,
        'w' => WORDS,
        _ => return None,
    };
    Some((members, name.is_ascii_uppercase()))
}

/// Translates an escape outside of brackets.
fn escape(rest: &mut Chars<'_>, out: &mut String) {
    let Some(name) = rest.clone().next() else { return out.push('\\') };
    if let Some((members, is_negated)) = class_members(name) {
        rest.next();
        out.extend([if is_negated { "[^" } else { "[" }, members, "]"]);
    } else if matches!(name, 'b' | 'B') {
        rest.next();
        out.push_str(if name == 'b' { r"(?-u:\b)" } else { r"(?-u:\B)" });
    } else if name == 'Q' {
        rest.next();
        let text = rest.as_str();
        let (text, after) = text.split_once(r"\E").unwrap_or((text, ""));
        out.push_str(&regex::escape(text));
        *rest = after.chars();
    } else {
        copy_escape(rest, out);
    }
}

/// Copies an escape that needs no translation.
fn copy_escape(rest: &mut Chars<'_>, out: &mut String) {
    out.push('\\');
    let Some(name) = rest.next() else { return };
    out.push(name);
    if matches!(name, 'p' | 'P' | 'x') && rest.as_str().starts_with('{') {
        for letter in rest.by_ref() {
            out.push(letter);
            if letter == '}' {
                return;
            }
        }
    }
}

/// Translates a bracket expression: characters, ranges and named classes.
fn brackets(rest: &mut Chars<'_>, out: &mut String) {
    out.push('[');
    if rest.as_str().starts_with('^') {
        out.extend(rest.next());
    }
    let mut first = true;
    while let Some(letter) = rest.clone().next() {
        if letter == ']' && !first {
            out.extend(rest.next());
            return;
        }
        first = false;
        let named = rest.as_str().strip_prefix("[:").and_then(class_name_end);
        if let Some(length) = named {
            let (name, after) = rest.as_str().split_at(length + 4);
            out.push_str(name);
            *rest = after.chars();
        } else if let Some((members, is_negated)) = class_in_brackets(rest) {
            rest.nth(1);
            out.extend(if is_negated { ["[^", members, "]"] } else { ["", members, ""] });
        } else {
            character(rest, out);
            let mut ahead = rest.clone();
            if ahead.next() == Some('-') && ahead.next().is_some_and(|end| end != ']') {
                out.extend(rest.next());
                character(rest, out);
            }
        }
    }
}

/// Returns the length of the name of a class such as `[:alpha:]`.
fn class_name_end(after: &str) -> Option<usize> {
    let name = &after.as_bytes()[..after.len().min(CLASS_NAME_BYTES_MAX)];
    name.windows(2).position(|end| end == b":]")
}

fn class_in_brackets(rest: &Chars<'_>) -> Option<(&'static str, bool)> {
    class_members(rest.as_str().strip_prefix('\\')?.chars().next()?)
}

/// Translates a literal character within brackets.
fn character(rest: &mut Chars<'_>, out: &mut String) {
    match rest.next() {
        Some('\\') => copy_escape(rest, out),
        Some(letter) => {
            if matches!(letter, '[' | ']' | '&' | '~' | '-' | '^') {
                out.push('\\');
            }
            out.push(letter);
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translated_patterns_match_as_in_prometheus() {
        for (pattern, value, expected) in [
            (r"\w+", "caf\u{e9}", false),
            (r"\W", "\u{e9}", true),
            (r"[\w]+", "caf\u{e9}", false),
            (r"[\W\d]+", "\u{e9}1", true),
            (r"\d", "\u{663}", false),
            (r"a\s\S", "a x", true),
            (r"\s", "\u{a0}", false),
            (r"a\b.*", "a\u{e9}", true),
            (r"\pL\B", "\u{3b1}", true),
            (r"[a[b]+", "[ab", true),
            ("[^[]+", "a]", true),
            ("[]a]+", "]a", true),
            ("[a&&b]+", "a&b", true),
            ("[+--]+", "+,-", true),
            (r"[\x00-\x20x~~y]+", "\t~x", true),
            ("[[:alpha:]_-]+", "a_-", true),
            ("[--]+", "-", true),
            (r"\Qa.b\E+", "a.bb", true),
            (r"\Q[", "[", true),
            (r"\p{Greek}\x{61}\pL", "\u{3b1}aa", true),
            ("a{b}c{2}", "a{b}cc", true),
            ("a{,2}x{", "a{,2}x{", true),
            ("a{2,}b{1,3}", "aabbb", true),
        ] {
            let all = format!("^(?s:{})$", translate_pattern(pattern));
            let compiled = regex::Regex::new(&all);
            let found = compiled.unwrap_or_else(|cause| panic!("{pattern}: {cause}"));
            assert_eq!(found.is_match(value), expected, "{pattern} {value}");
        }
        for pattern in [r"\", "[", "[a", r"[\", "(", "[z-a]", "[^", r"\x{"] {
            let all = format!("^(?s:{})$", translate_pattern(pattern));
            assert!(regex::Regex::new(&all).is_err(), "{pattern}");
        }
    }
}
