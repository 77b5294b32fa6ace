//! Reads the text of a query once before the parser does: its nesting is bounded, and patterns are
//! handed past the parser as plain values with a mark.
//!
//! The parser recurses as deep as a query nests and compiles every pattern that it meets. Must never
//! know: the tree.

use super::literals;
use crate::query::promql::value::error::PromqlError;

/// How deep operators and parentheses may nest: what a small stack holds in any build.
pub(crate) const DEPTH_MAX: usize = 128;

/// Before the value of a matcher that is more than `=`: the parser sees `=` only, so that it
/// compiles no pattern, and leaves it to others what must not be empty.
pub(crate) const MARKS: [(&str, &str); 3] =
    [("=~", "\u{1}=~\u{1}"), ("!~", "\u{1}!~\u{1}"), ("!=", "\u{1}!=\u{1}")];

/// The operator and the value of a matcher that the parser has read.
pub(crate) fn unmarked(value: &str) -> (&'static str, &str) {
    let marked = |(operator, mark)| Some((operator, value.strip_prefix(mark)?));
    MARKS.into_iter().find_map(marked).unwrap_or(("=", value))
}

/// Reads the text once: bounds the tree's depth, and marks patterns.
pub(crate) fn mark_patterns(text: &str) -> Result<String, PromqlError> {
    let mut out = String::with_capacity(text.len() + 64);
    let mut depth = Depth::default();
    let mut mark_next = "";
    let mut chars = text.chars().peekable();
    while let Some(now) = chars.next() {
        match now {
            '"' | '\'' | '`' => {
                literals::copy_string(now, std::mem::take(&mut mark_next), &mut chars, &mut out);
            }
            '#' => while chars.next_if(|next| *next != '\n').is_some() {},
            '=' | '!' if depth.now.braces => {
                let next = chars.next_if(|next| matches!((now, next), (_, '~') | ('!', '=')));
                let operator = [Some(now), next].into_iter().flatten().collect::<String>();
                let marked = MARKS.into_iter().find(|(own, _)| *own == operator);
                mark_next = marked.map_or("", |(_, mark)| mark);
                out.push(if marked.is_some() { '=' } else { now });
            }
            '0'..='9' if !out.ends_with(in_name) => {
                mark_next = "";
                let number = literals::number(now, &mut chars);
                number.chars().for_each(|now| depth.see(now));
                out.push_str(&number);
            }
            _ => {
                if !now.is_whitespace() {
                    mark_next = "";
                }
                depth.see(now);
                out.push(now);
            }
        }
    }
    let deepest = depth.deepest();
    if deepest > DEPTH_MAX {
        return Err(PromqlError::BadData(format!(
            "the query nests {deepest} operators and parentheses, more than {DEPTH_MAX}: split it"
        )));
    }
    Ok(out)
}

/// Whether a digit after this belongs to a name.
fn in_name(before: char) -> bool {
    before.is_alphanumeric() || matches!(before, '_' | ':')
}

const OPERATOR_WORDS: [&str; 4] = ["and", "or", "unless", "atan2"];
/// One more than the longest of them has.
const OPERATOR_WORD_BYTES_MAX: usize = 7;

/// How deep the tree of a text may become: a chain of operators is as deep as it is long.
#[derive(Default)]
struct Depth {
    /// The groups that are open.
    open: Vec<Level>,
    now: Level,
    word: String,
}

#[derive(Default)]
struct Level {
    braces: bool,
    operators: usize,
    /// The deepest group within the current argument, and the deepest argument before.
    inner: usize,
    before: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.before.max(self.operators + self.inner)
    }
}

impl Depth {
    fn see(&mut self, now: char) {
        if now.is_alphanumeric() || now == '_' {
            // Longer words are no operators.
            if self.word.len() < OPERATOR_WORD_BYTES_MAX {
                self.word.push(now.to_ascii_lowercase());
            }
            return;
        }
        let operator = OPERATOR_WORDS.contains(&self.word.as_str()) && !self.now.braces;
        self.now.operators += usize::from(operator);
        self.word.clear();
        match now {
            '(' | '[' | '{' => {
                let level = Level { braces: now == '{', ..Level::default() };
                self.open.push(std::mem::replace(&mut self.now, level));
            }
            ')' | ']' | '}' => {
                let inner = self.now.depth() + 1;
                self.now = self.open.pop().unwrap_or_default();
                // A bracket makes the expression before it one deeper, as an operator does.
                self.now.operators += usize::from(now == ']');
                self.now.inner = self.now.inner.max(inner);
            }
            ',' => {
                let before = self.now.depth();
                let braces = self.now.braces;
                self.now = Level { braces, before, ..Level::default() };
            }
            // A matcher is no operator.
            _ if self.now.braces => {}
            '+' | '-' | '*' | '/' | '%' | '^' | '<' | '>' | '=' | '!' => self.now.operators += 1,
            _ => {}
        }
    }

    /// Groups that are never closed count, too: the text may still be parsed.
    fn deepest(mut self) -> usize {
        while !self.open.is_empty() {
            self.see(')');
        }
        self.now.depth()
    }
}
