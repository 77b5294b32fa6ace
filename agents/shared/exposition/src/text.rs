//! One line of text: series, value and timestamp, and the parts of a series.
//!
//! Must never know: other lines and comments.

use std::borrow::Cow;

use crate::{
    labels::Labels,
    names::{Names, is_metric_name},
};

/// A parsed line with a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line<'a> {
    /// Name and labels as text: equal bytes mean equal series.
    pub series: &'a [u8],
    /// The value.
    pub value: f64,
    /// The timestamp as text.
    pub time: Option<&'a str>,
}

/// Metric and labels of a series.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeriesParts<'a> {
    /// The name of the metric, or an empty text.
    pub metric: Cow<'a, str>,
    /// The labels in their original order.
    pub labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// Splits a line into its parts. The line must be neither empty nor a comment.
///
/// # Errors
/// The reason why the text is invalid.
pub fn cut(line: &[u8]) -> Result<Line<'_>, &'static str> {
    let end = series_end(line).ok_or("the labels have no end")?;
    let (series, rest) = line.split_at(end);
    let rest = std::str::from_utf8(rest).map_err(|_| "not UTF-8")?;
    let mut words = rest.split_ascii_whitespace();
    let value = words.next().unwrap_or_default().parse::<f64>();
    let value = value.map_err(|_| "not `series value timestamp`")?;
    // An exemplar, which follows a #, is ignored.
    let time = words.next().filter(|word| *word != "#");
    if time.is_some() && words.next().is_some_and(|word| word != "#") {
        return Err("more than `series value timestamp`");
    }
    Ok(Line { series, value, time })
}

/// Returns the end of name and labels, by scanning for quotes and braces only.
fn series_end(line: &[u8]) -> Option<usize> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let name = line.iter().position(|byte| *byte == b'{' || is_blank(byte)).unwrap_or(line.len());
    let brace = name + line[name..].iter().position(|byte| !is_blank(byte)).unwrap_or(0);
    if line.get(brace) != Some(&b'{') {
        return Some(name);
    }
    let mut is_quoted = false;
    let mut index = brace + 1;
    while let Some(byte) = line.get(index) {
        match byte {
            b'\\' if is_quoted => index += 1,
            b'"' => is_quoted = !is_quoted,
            b'}' if !is_quoted => return Some(index + 1),
            _ => {}
        }
        index += 1;
    }
    None
}

/// Parses the text of a series.
///
/// # Errors
/// The reason why the text is invalid.
pub fn parts(series: &[u8], names: Names) -> Result<SeriesParts<'_>, &'static str> {
    let text = std::str::from_utf8(series).map_err(|_| "not UTF-8")?;
    let (name, labels) = text.split_once('{').unwrap_or((text, "}"));
    let name = name.trim();
    let is_checked = names == Names::Valid;
    if is_checked && !name.is_empty() && !is_metric_name(name) {
        return Err("not a metric's name");
    }
    let mut parts = SeriesParts { metric: Cow::Borrowed(name), labels: Vec::new() };
    let mut labels = Labels::new(labels, is_checked);
    while let Some(label) = labels.next()? {
        match label {
            (name, Some(value)) if name == "__name__" => parts.metric = value,
            (name, Some(value)) => parts.labels.push((name, value)),
            // A quoted metric name is an element of the braces without a value.
            (name, None) => parts.metric = name,
        }
    }
    Ok(parts)
}
