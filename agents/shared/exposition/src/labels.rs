//! The text of labels: `name="value"` with its quotes and escapes, name by name.
//!
//! Must never know: which label is the metric's name, and the text after the braces.

use std::borrow::Cow;

use crate::names::is_label_name;

/// The labels `name="value",...}` that are not parsed yet.
pub(crate) struct Labels<'a> {
    rest: &'a str,
    /// True when names without quotes must be valid.
    names_are_checked: bool,
}

pub(crate) type Label<'a> = (Cow<'a, str>, Option<Cow<'a, str>>);

impl<'a> Labels<'a> {
    pub(crate) fn new(text: &'a str, names_are_checked: bool) -> Self {
        Self { rest: text, names_are_checked }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Label<'a>>, &'static str> {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        if self.rest.starts_with('}') {
            return Ok(None);
        }
        let name = if self.rest.starts_with('"') {
            self.quoted()?
        } else {
            let (name, rest) = self.rest.split_once('=').ok_or("a label is not name=\"value\"")?;
            self.rest = rest;
            let name = name.trim();
            if self.names_are_checked && !is_label_name(name) {
                return Err("not a label's name");
            }
            let value = self.value()?;
            return Ok(Some((Cow::Borrowed(name), Some(value))));
        };
        let rest = self.rest.trim_start_matches([' ', '\t']);
        if let Some(rest) = rest.strip_prefix('=') {
            self.rest = rest;
            let value = self.value()?;
            return Ok(Some((name, Some(value))));
        }
        self.separator()?;
        Ok(Some((name, None)))
    }

    fn value(&mut self) -> Result<Cow<'a, str>, &'static str> {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        let value = self.quoted()?;
        self.separator()?;
        Ok(value)
    }

    fn separator(&mut self) -> Result<(), &'static str> {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        match self.rest.strip_prefix(',') {
            Some(rest) => self.rest = rest,
            None if self.rest.starts_with('}') => {}
            None => return Err("labels are not separated by commas"),
        }
        Ok(())
    }

    /// Parses a quoted text with the escapes `\\`, `\"` and `\n`.
    fn quoted(&mut self) -> Result<Cow<'a, str>, &'static str> {
        let text = self.rest.strip_prefix('"').ok_or("a label's value is not in quotes")?;
        let mut escaped = false;
        let end = text.find(|letter| {
            let closes = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            closes
        });
        let (inside, rest) =
            end.and_then(|end| text.split_at_checked(end)).ok_or("a quote is not closed")?;
        self.rest = rest.strip_prefix('"').unwrap_or(rest);
        Ok(unescape(inside))
    }
}

fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => out.push('\n'),
                Some(other @ ('\\' | '"')) => out.push(other),
                // Prometheus keeps unknown escapes.
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            (letter, false) => out.push(letter),
        }
    }
    Cow::Owned(out)
}
