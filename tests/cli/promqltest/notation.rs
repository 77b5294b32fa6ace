//! The notation of series in scripts: labels, and values as sequences (`0+10x4`, `_x2`, `stale`).

use std::collections::BTreeMap;

use super::histogram::Histogram;

/// Prometheus' stale marker, which ends a series.
pub(crate) const STALE: u64 = 0x7ff0_0000_0000_0002;

/// Label names and values, including the metric's name as `__name__`.
pub(crate) type Labels = BTreeMap<String, String>;

/// One item of a sequence.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SequenceItem {
    /// No sample.
    Omitted,
    Value(f64),
    /// A native histogram.
    Histogram(Box<Histogram>),
}

/// A line of a `load`, or an expected line of an `eval`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) labels: Labels,
    pub(crate) items: Vec<SequenceItem>,
}

/// A parser that reads a text from the left.
struct Reader<'a> {
    rest: &'a str,
}

impl Series {
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let mut reader = Reader { rest: line };
        let labels = reader.read_labels()?;
        let mut items = Vec::new();
        while !reader.skip_space() {
            reader.read_item(&mut items)?;
        }
        Ok(Self { labels, items })
    }
}

/// Returns a number in the notation of scripts.
pub(crate) fn parse_number(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches(['+', '-']);
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        || ["inf", "nan"].contains(&&*digits.to_ascii_lowercase());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Returns a duration in ms: `5m`, `10s53ms`, or seconds without a unit.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Some((seconds * 1000.0).round() as i64);
    }
    let (sign, mut rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let mut total = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let ms = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 7 * 86_400_000,
            "y" => 365 * 86_400_000,
            _ => return None,
        };
        total += number.parse::<i64>().ok()? * ms;
        rest = tail;
    }
    Some(sign * total)
}

/// Reads a text in one of Go's three kinds of quotes.
pub(crate) fn unquote(text: &str) -> Result<String, String> {
    let mut reader = Reader { rest: text };
    let found = reader.read_quoted()?;
    if reader.skip_space() { Ok(found) } else { Err(format!("more follows {text:?}")) }
}

impl<'a> Reader<'a> {
    /// Skips spaces; returns true if the text has ended.
    fn skip_space(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.is_empty()
    }

    fn skip_text(&mut self, what: &str) -> bool {
        let found = self.rest.strip_prefix(what);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c: char| !fits(c)).unwrap_or(self.rest.len());
        let (start, rest) = self.rest.split_at(end);
        self.rest = rest;
        start
    }

    fn read_labels(&mut self) -> Result<Labels, String> {
        let mut out = Labels::new();
        let name = self.take_while(|c| c.is_alphanumeric() || "_:.".contains(c));
        if !name.is_empty() {
            out.insert("__name__".to_owned(), name.to_owned());
        }
        if !self.skip_text("{") {
            return Ok(out);
        }
        loop {
            self.skip_space();
            if self.skip_text("}") {
                return Ok(out);
            }
            let quoted = self.rest.starts_with(['"', '\'', '`']);
            let name = if quoted {
                self.read_quoted()?
            } else {
                self.take_while(|c| c.is_alphanumeric() || c == '_').to_owned()
            };
            self.skip_space();
            if self.skip_text("=") {
                self.skip_space();
                let value = self.read_quoted()?;
                // A label with an empty value is absent.
                if !value.is_empty() {
                    out.insert(name, value);
                }
            } else if quoted {
                out.insert("__name__".to_owned(), name);
            } else {
                return Err(format!("no label: {:?}", self.rest));
            }
            self.skip_space();
            self.skip_text(",");
        }
    }

    fn read_quoted(&mut self) -> Result<String, String> {
        let mut letters = self.rest.char_indices();
        let Some((_, quote @ ('"' | '\'' | '`'))) = letters.next() else {
            return Err(format!("no text in quotes: {:?}", self.rest));
        };
        let mut out = String::new();
        while let Some((at, letter)) = letters.next() {
            match letter {
                end if end == quote => {
                    self.rest = self.rest.split_at(at + quote.len_utf8()).1;
                    return Ok(out);
                }
                '\\' if quote != '`' => out.push(match letters.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, 't')) => '\t',
                    Some((_, 'r')) => '\r',
                    Some((_, same @ ('\\' | '"' | '\''))) => same,
                    other => return Err(format!("an unknown escape: {other:?}")),
                }),
                plain => out.push(plain),
            }
        }
        Err(format!("a text without an end: {:?}", self.rest))
    }

    /// Reads one item of a sequence.
    fn read_item(&mut self, out: &mut Vec<SequenceItem>) -> Result<(), String> {
        if self.skip_text("_") {
            let times = self.read_times()?.unwrap_or(1);
            out.extend((0..times).map(|_| SequenceItem::Omitted));
            return Ok(());
        }
        if let Some(mut histogram) = self.read_histogram()? {
            let factor = if self.rest.starts_with('-') { -1.0 } else { 1.0 };
            let mut step = None;
            // A sequence of histograms may have a step.
            if self.rest.starts_with(['+', '-']) {
                self.rest = self.rest.split_at(1).1;
                step = self.read_histogram()?;
            }
            for time in 0..=self.read_times()?.unwrap_or(0) {
                if let Some(step) = step.as_ref().filter(|_| time > 0) {
                    histogram.add(step, factor)?;
                }
                out.push(SequenceItem::Histogram(Box::new(histogram.clone())));
            }
            return Ok(());
        }
        if self.skip_text("stale") {
            let times = self.read_times()?.unwrap_or(0);
            out.extend((0..=times).map(|_| SequenceItem::Value(f64::from_bits(STALE))));
            return Ok(());
        }
        let mut value = self.read_number()?;
        let step = if self.rest.starts_with(['+', '-']) { self.read_number()? } else { 0.0 };
        for _ in 0..=self.read_times()?.unwrap_or(0) {
            out.push(SequenceItem::Value(value));
            value += step;
        }
        Ok(())
    }

    fn read_histogram(&mut self) -> Result<Option<Histogram>, String> {
        let Some(rest) = self.rest.strip_prefix("{{") else { return Ok(None) };
        let (text, rest) = rest.split_once("}}").ok_or("a histogram without an end")?;
        self.rest = rest;
        Histogram::parse(text).map(Some)
    }

    /// Reads a repetition such as `x5`, which means six values: one at time 0 and five more.
    fn read_times(&mut self) -> Result<Option<u32>, String> {
        if !self.skip_text("x") {
            return Ok(None);
        }
        let digits = self.take_while(|c| c.is_ascii_digit());
        digits.parse().map(Some).map_err(|_| format!("no number rest_of_text x: {:?}", self.rest))
    }

    fn read_number(&mut self) -> Result<f64, String> {
        let text = self.rest;
        let sign = usize::from(text.starts_with(['+', '-']));
        let body = text.split_at(sign).1;
        let word = ["inf", "nan"].into_iter().find(|word| {
            body.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
        });
        let mut length = word.map_or_else(|| decimal_length(body), str::len);
        let behind = body.split_at(length).1;
        if let Some(exponent) = behind.strip_prefix(['e', 'E']).filter(|_| word.is_none()) {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            length += 1 + exponent.len() - digits.len() + digits_length(digits);
        }
        let (number, rest) = text.split_at(sign + length);
        self.rest = rest;
        number.parse().map_err(|_| format!("no number: {text:?}"))
    }
}

fn digits_length(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn decimal_length(text: &str) -> usize {
    let whole = digits_length(text);
    let fraction = text.split_at(whole).1.strip_prefix('.');
    fraction.map_or(whole, |fraction| whole + 1 + digits_length(fraction))
}

#[test]
fn the_notation_of_scripts_is_read() {
    let check = |line: &str, expected: &str| {
        let read = Series::parse(line).unwrap_or_else(|cause| panic!("{line}: {cause}"));
        let shown: Vec<_> = read
            .items
            .iter()
            .map(|item| match item {
                SequenceItem::Omitted => "_".to_owned(),
                SequenceItem::Histogram(_) => "H".to_owned(),
                SequenceItem::Value(value) if value.to_bits() == STALE => "stale".to_owned(),
                SequenceItem::Value(value) => value.to_string(),
            })
            .collect();
        assert_eq!(shown.join(" "), expected, "{line}");
    };
    let labels = Series::parse(r#"m{unit="", job="a"} 1"#).unwrap().labels;
    let names: Vec<_> = labels.keys().map(String::as_str).collect();
    assert_eq!(names, ["__name__", "job"]);
    check("a 1 _ 2x2 _x2 3", "1 _ 2 2 2 _ _ 3");
    check("a{b=\"c\"} 0+10x3 5-2x2 -1.5e-3", "0 10 20 30 5 3 1 -0.0015");
    check("{} NaN -Inf +Inf stale .5 2.", "NaN -inf inf stale 0.5 2");
    check("h {{schema:0 sum:1}}x2 {{}}+{{sum:1}}x1 7", "H H H H H 7");
    let labels = Series::parse(r#"{"my.metric", a='b"', "c d" = "\n"} 1"#).unwrap().labels;
    let expected = [("__name__", "my.metric"), ("a", "b\""), ("c d", "\n")];
    assert_eq!(labels, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert_eq!(parse_duration("10s53ms"), Some(10_053));
    assert_eq!(parse_duration("1h5m"), Some(3_900_000));
    assert_eq!(parse_duration("30"), Some(30_000));
    assert_eq!(unquote("`a\\b`").unwrap(), "a\\b");
}
