//! Names in Prometheus' text format
//! (<https://prometheus.io/docs/instrumenting/content_negotiation>).
//!
//! Old scrapers read only letters, digits and `_`. New scrapers announce that they read any name,
//! which is then quoted. Must never know: what is exposed.

/// The form of names that a scraper reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameFormat {
    /// `_` replaces all other characters.
    Underscores,
    /// Names with other characters are quoted.
    Utf8,
}

impl NameFormat {
    /// Returns the form for the scraper's `Accept` header.
    pub(super) fn from_accept(accept: &str) -> Self {
        let mut words = accept.split([',', ';']).map(str::trim);
        let reads_all = words.any(|word| word == "escaping=allow-utf-8");
        if reads_all { Self::Utf8 } else { Self::Underscores }
    }

    /// Returns the `Content-Type` of the text.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Underscores => "text/plain; version=0.0.4; charset=utf-8",
            Self::Utf8 => "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8",
        }
    }

    /// Writes the name of a metric outside of braces.
    pub(super) fn push_metric(self, name: &str, out: &mut String) {
        self.push(name, |byte| byte == b':', out);
    }

    /// Writes the name of a label.
    pub(super) fn push_label(self, name: &str, out: &mut String) {
        self.push(name, |_| false, out);
    }

    /// Writes the name of a metric or label as messages contain it, without quotes.
    pub(super) fn push_unquoted(self, name: &str, is_metric: bool, out: &mut String) {
        match self {
            Self::Utf8 => out.push_str(name),
            Self::Underscores => self.push(name, |byte| is_metric && byte == b':', out),
        }
    }

    /// Begins a series with the name of its metric. Returns the character that begins the next
    /// label.
    pub(super) fn open(self, metric: &str, out: &mut String) -> char {
        if self == Self::Utf8 && !is_plain(metric, |byte| byte == b':') {
            out.push('{');
            self.push_metric(metric, out);
            return ',';
        }
        self.push_metric(metric, out);
        '{'
    }

    fn push(self, name: &str, is_allowed: impl Fn(u8) -> bool + Copy, out: &mut String) {
        if is_plain(name, is_allowed) {
            out.push_str(name);
        } else if self == Self::Utf8 {
            out.push('"');
            push_escaped(name, out);
            out.push('"');
        } else {
            let is_first_digit = name.starts_with(|first: char| first.is_ascii_digit());
            out.extend(is_first_digit.then_some('_'));
            out.extend(name.chars().map(|c| {
                let is_kept = c.is_ascii() && (is_word(c as u8) || is_allowed(c as u8));
                if is_kept { c } else { '_' }
            }));
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_plain(name: &str, is_allowed: impl Fn(u8) -> bool) -> bool {
    name.bytes().all(|byte| is_word(byte) || is_allowed(byte))
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// Writes a text between quotes.
pub(super) fn push_escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}
