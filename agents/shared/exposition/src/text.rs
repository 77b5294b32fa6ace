//! One line of text: where the series, the value and the time are in it, and the parts of a series.
//!
//! Must never know: which line it is, and what the comments said.

use std::borrow::Cow;

use crate::{
    labels::Labels,
    names::{Names, is_metric_name},
};

/// A line with a sample, cut apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line<'a> {
    /// Name and labels as they are written: the same bytes are the same series.
    pub series: &'a [u8],
    /// The value.
    pub value: f64,
    /// The time as it is written.
    pub time: Option<&'a str>,
}

/// Metric and labels of a series.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts<'a> {
    /// The name of the metric; empty when there is none.
    pub metric: Cow<'a, str>,
    /// The labels in the order in which they are written.
    pub labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// Cuts a line into its parts. The line is neither empty nor a comment.
///
/// # Errors
/// What is wrong with it.
pub fn cut(line: &[u8]) -> Result<Line<'_>, &'static str> {
    let end = series_end(line).ok_or("the labels have no end")?;
    let (series, rest) = line.split_at(end);
    let rest = std::str::from_utf8(rest).map_err(|_| "not UTF-8")?;
    let mut words = rest.split_ascii_whitespace();
    let value = words.next().unwrap_or_default().parse::<f64>();
    let value = value.map_err(|_| "not `series value timestamp`")?;
    // Behind a # comes an exemplar, which is not kept.
    let time = words.next().filter(|word| *word != "#");
    if time.is_some() && words.next().is_some_and(|word| word != "#") {
        return Err("more than `series value timestamp`");
    }
    Ok(Line { series, value, time })
}

/// Where the name and the labels end: nothing is read but quotes.
fn series_end(line: &[u8]) -> Option<usize> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let name = line.iter().position(|byte| *byte == b'{' || blank(byte)).unwrap_or(line.len());
    let open = name + line[name..].iter().position(|byte| !blank(byte)).unwrap_or(0);
    if line.get(open) != Some(&b'{') {
        return Some(name);
    }
    let mut quoted = false;
    let mut at = open + 1;
    while let Some(byte) = line.get(at) {
        match byte {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'}' if !quoted => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The parts of a series as it is written.
///
/// # Errors
/// What is wrong with it.
pub fn parts(series: &[u8], names: Names) -> Result<Parts<'_>, &'static str> {
    let text = std::str::from_utf8(series).map_err(|_| "not UTF-8")?;
    let (name, labels) = text.split_once('{').unwrap_or((text, "}"));
    let name = name.trim();
    let is_checked = names == Names::Valid;
    if is_checked && !name.is_empty() && !is_metric_name(name) {
        return Err("not a metric's name");
    }
    let mut parts = Parts { metric: Cow::Borrowed(name), labels: Vec::new() };
    let mut labels = Labels::new(labels, is_checked);
    while let Some(label) = labels.next()? {
        match label {
            (name, Some(value)) if name == "__name__" => parts.metric = value,
            (name, Some(value)) => parts.labels.push((name, value)),
            // A name that needs quotes stands alone in the braces.
            (name, None) => parts.metric = name,
        }
    }
    Ok(parts)
}
