//! Output for a terminal: texts without control characters, folded to the terminal's width.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

/// Returns true when a character would move the cursor, or color, hide or reorder output.
fn is_control(c: char) -> bool {
    let reorders = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2066}'..='\u{2069}');
    c.is_control() || reorders || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Escapes control characters and line breaks of a text, such as `\n` and `\u{1b}`.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// Escapes control characters of a message, but keeps its line breaks.
pub(super) fn lines(message: &str) -> String {
    message.split('\n').map(text).collect::<Vec<_>>().join("\n")
}

/// Escapes control characters in JSON; they can only occur inside its strings.
pub(super) fn json(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    for c in body.chars() {
        if is_control(c) && !matches!(c, '\n' | '\r' | '\t') {
            write!(out, "\\u{:04x}", u32::from(c)).unwrap_or_default();
        } else {
            out.push(c);
        }
    }
    out
}

/// Prints a message without control characters, and ends its line.
pub(super) fn print(text: &str) -> anyhow::Result<ExitCode> {
    write(&lines(text.trim_end()))
}

/// Prints JSON without control characters.
pub(super) fn print_json(body: &str) -> anyhow::Result<ExitCode> {
    write(&json(body.trim_end()))
}

fn write(text: &str) -> anyhow::Result<ExitCode> {
    match writeln!(io::stdout().lock(), "{text}") {
        // The reader, such as `head`, has read enough.
        Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        outcome => Ok(outcome.map(|()| ExitCode::SUCCESS)?),
    }
}

/// Returns the width of the output: `COLUMNS`, else the terminal's width; unlimited in a pipe.
pub(super) fn columns() -> usize {
    let configured = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let detected = || console::Term::stdout().size_checked().map(|(_, columns)| columns.into());
    let of_terminal = || io::stdout().is_terminal().then(detected).flatten();
    configured.or_else(of_terminal).filter(|columns| *columns > 0).unwrap_or(usize::MAX)
}

/// Breaks a text into lines of at most `columns`, if possible after spaces and commas.
pub(super) fn fold(text: &str, columns: usize) -> String {
    let mut out = String::new();
    let mut line: Vec<char> = Vec::new();
    for c in text.chars() {
        line.push(c);
        if line.len() > columns.max(1) {
            let cut = line[..line.len() - 1].iter().rposition(|c| matches!(c, ' ' | ','));
            let rest = line.split_off(cut.map_or(line.len() - 1, |cut| cut + 1));
            out.push_str(line.iter().collect::<String>().trim_end());
            out.push('\n');
            line = rest;
        }
    }
    out.extend(line);
    out
}

/// Writes lines to standard error.
pub(super) fn print_error(message: &str) {
    // Nothing can be reported when standard error is closed.
    drop(writeln!(io::stderr(), "{}", lines(message)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_after_commas_and_spaces() {
        assert_eq!(fold("a{b=1,c=2} d", 8), "a{b=1,\nc=2} d");
        assert_eq!(fold("abcdefghij", 4), "abcd\nefgh\nij");
        assert_eq!(fold("short", 80), "short");
    }

    #[test]
    fn control_characters_are_escaped() {
        for (given, shown) in [
            ("plain name-1.2 \u{e4}\u{4e2d}", "plain name-1.2 \u{e4}\u{4e2d}"),
            ("a\x1b[2Jb", r"a\u{1b}[2Jb"),
            ("a\nb\rc\td\x07", r"a\nb\rc\td\u{7}"),
            ("\u{9b}31m\u{7f}", r"\u{9b}31m\u{7f}"),
            ("gpj.\u{202e}exe\u{2066}", r"gpj.\u{202e}exe\u{2066}"),
            ("a\u{2028}b\u{feff}", r"a\u{2028}b\u{feff}"),
        ] {
            assert_eq!(text(given), shown);
            assert_eq!(text(shown), shown, "again");
        }
        assert_eq!(lines("a\x1b\nb\x07"), "a\\u{1b}\nb\\u{7}");
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let value = serde_json::json!({"a\u{9b}b": ["\x1b[2J", "\u{202e}", "\n\u{7f}", "\u{e4}"]});
        let shown = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!shown.chars().any(|c| is_control(c) && c != '\n'), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
