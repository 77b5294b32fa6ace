//! Numbers of things in words: `1 silence`, `2 silences`.

use std::fmt::Display;

/// Returns a number and its noun, in the singular or the plural.
pub fn with_noun<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) || noun.ends_with("series") {
        return format!("{count} {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_agree_with_their_number() {
        let cases = [
            (1, "silence", "1 silence"),
            (0, "silence", "0 silences"),
            (2, "silence", "2 silences"),
            (1, "series", "1 series"),
            (2, "series", "2 series"),
            (2, "query", "2 queries"),
            (2, "day", "2 days"),
            (2, "batch", "2 batches"),
        ];
        for (count, noun, expected) in cases {
            assert_eq!(with_noun(count as u64, noun), expected);
        }
    }
}
