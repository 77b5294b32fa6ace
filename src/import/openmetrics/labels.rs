//! The text of labels: `name="value"` with its quotes and escapes, name by name.
//!
//! Must never know: which label is the metric's name, and what comes behind the braces.

use std::borrow::Cow;

/// What is left of `name="value",...}`.
pub(super) struct Labels<'a>(pub(super) &'a str);

pub(super) type Label<'a> = (Cow<'a, str>, Option<Cow<'a, str>>);

impl<'a> Labels<'a> {
    pub(super) fn next(&mut self) -> Result<Option<Label<'a>>, &'static str> {
        self.0 = self.0.trim_start_matches([' ', '\t']);
        if self.0.starts_with('}') {
            return Ok(None);
        }
        let name = if self.0.starts_with('"') {
            self.quoted()?
        } else {
            let (name, rest) = self.0.split_once('=').ok_or("a label is not name=\"value\"")?;
            self.0 = rest;
            let value = self.value()?;
            return Ok(Some((Cow::Borrowed(name.trim()), Some(value))));
        };
        let rest = self.0.trim_start_matches([' ', '\t']);
        if let Some(rest) = rest.strip_prefix('=') {
            self.0 = rest;
            let value = self.value()?;
            return Ok(Some((name, Some(value))));
        }
        self.separator()?;
        Ok(Some((name, None)))
    }

    fn value(&mut self) -> Result<Cow<'a, str>, &'static str> {
        self.0 = self.0.trim_start_matches([' ', '\t']);
        let value = self.quoted()?;
        self.separator()?;
        Ok(value)
    }

    fn separator(&mut self) -> Result<(), &'static str> {
        self.0 = self.0.trim_start_matches([' ', '\t']);
        match self.0.strip_prefix(',') {
            Some(rest) => self.0 = rest,
            None if self.0.starts_with('}') => {}
            None => return Err("labels are not separated by commas"),
        }
        Ok(())
    }

    /// A text in quotes; `\\`, `\"` and `\n` are its escapes.
    fn quoted(&mut self) -> Result<Cow<'a, str>, &'static str> {
        let text = self.0.strip_prefix('"').ok_or("a label's value is not in quotes")?;
        let mut escaped = false;
        let end = text.find(|letter| {
            let closes = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            closes
        });
        let (inside, rest) =
            end.and_then(|end| text.split_at_checked(end)).ok_or("a quote is not closed")?;
        self.0 = rest.strip_prefix('"').unwrap_or(rest);
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
                // Prometheus keeps what it does not know.
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            (letter, false) => out.push(letter),
        }
    }
    Cow::Owned(out)
}
