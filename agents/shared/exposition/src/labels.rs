//! The text of labels: `name="value"` with its quotes and escapes, name by name.
//!
//! Must never know: which label is the metric's name, and the text after the braces.

use std::borrow::Cow;

use crate::names::is_label_name;

/// The labels `name="value",...}` that are not parsed yet.
pub(crate) struct Labels<'a> {
    rest: &'a str,
    /// True when names without quotes must be valid.
    checks_names: bool,
}

pub(crate) type Label<'a> = (Cow<'a, str>, Option<Cow<'a, str>>);

impl<'a> Labels<'a> {
    pub(crate) fn new(text: &'a str, checks_names: bool) -> Self {
        Self { rest: text, checks_names }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Label<'a>>, &'static str> {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        if self.rest.starts_with('}') {
            return Ok(None);
        }
        let name = if self.rest.starts_with('"') {
            self.parse_quoted()?
        } else {
            let (name, rest) = self.rest.split_once('=').ok_or("a label is not name=\"value\"")?;
            self.rest = rest;
            let name = name.trim();
            if self.checks_names && !is_label_name(name) {
                return Err("not a label's name");
            }
            let value = self.parse_value()?;
            return Ok(Some((Cow::Borrowed(name), Some(value))));
        };
        let rest = self.rest.trim_start_matches([' ', '\t']);
        if let Some(rest) = rest.strip_prefix('=') {
            self.rest = rest;
            let value = self.parse_value()?;
            return Ok(Some((name, Some(value))));
        }
        self.skip_separator()?;
        Ok(Some((name, None)))
    }

    fn parse_value(&mut self) -> Result<Cow<'a, str>, &'static str> {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        let value = self.parse_quoted()?;
        self.skip_separator()?;
        Ok(value)
    }

    fn skip_separator(&mut self) -> Result<(), &'static str> {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        match self.rest.strip_prefix(',') {
            Some(rest) => self.rest = rest,
            None if self.rest.starts_with('}') => {}
            None => return Err("labels are not separated by commas"),
        }
        Ok(())
    }

    /// Parses a quoted text with the escapes `\\`, `\"` and `\n`.
    fn parse_quoted(&mut self) -> Result<Cow<'a, str>, &'static str> {
        let text = self.rest.strip_prefix('"').ok_or("a label's value is not in quotes")?;
        let mut is_escaped = false;
        let end = text.find(|letter| {
            let is_end = letter == '"' && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            is_end
        });
        let (content, rest) =
            end.and_then(|end| text.split_at_checked(end)).ok_or("a quote is not closed")?;
        self.rest = rest.strip_prefix('"').unwrap_or(rest);
        Ok(unescape(content))
    }
}

fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut unescaped = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => unescaped.push('\n'),
                Some(other @ ('\\' | '"')) => unescaped.push(other),
                // Prometheus keeps unknown escapes.
                Some(other) => unescaped.extend(['\\', other]),
                None => unescaped.push('\\'),
            },
            (letter, false) => unescaped.push(letter),
        }
    }
    Cow::Owned(unescaped)
}
