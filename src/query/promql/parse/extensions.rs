//! What Prometheus has and the parser has not, replaced in the text before it is parsed: duration
//! expressions such as `[step() * 4]`, `[1h - 10m:30s + 5s]` and `offset (2 * 5m)`, and the modifiers
//! `anchored` and `smoothed` (Prometheus, docs/querying/basics.md).
//!
//! Must never know: the tree, series, values.

use std::borrow::Cow;

use super::durations::{self, QueryTimes};
use crate::query::promql::value::error::PromqlError;

/// The label under which a selector carries its modifier past the parser.
pub(crate) const EXTENSION_LABEL: &str = "__extension__";
/// One of the modifiers, as a value of [`EXTENSION_LABEL`].
pub(crate) const ANCHORED: &str = "anchored";
/// The other one.
pub(crate) const SMOOTHED: &str = "smoothed";

/// Replaces calculated lengths of time by plain ones, and modifiers by matchers.
pub(crate) fn resolve(text: &str, times: QueryTimes) -> Result<Cow<'_, str>, PromqlError> {
    let lower = text.to_ascii_lowercase();
    if !text.contains('[') && !["offset", ANCHORED, SMOOTHED].iter().any(|own| lower.contains(own))
    {
        return Ok(Cow::Borrowed(text));
    }
    let out = String::with_capacity(text.len());
    let mut scan = Scan { rest: text, out, times, selector_end: None };
    let mut braces = 0_usize;
    while let Some(now) = scan.rest.chars().next() {
        match now {
            '"' | '\'' | '`' => scan.string(now),
            // A remark, up to the end of the line.
            '#' => drop(scan.until('\n')),
            '[' if braces == 0 => scan.bracket()?,
            _ if is_word(now) && braces == 0 => scan.operand()?,
            _ => {
                if now == '}' && braces == 1 {
                    scan.selector_end = Some(scan.out.len());
                } else if braces == 0 && !now.is_whitespace() && now != '@' {
                    scan.selector_end = None;
                }
                match now {
                    '{' => braces += 1,
                    '}' => braces = braces.saturating_sub(1),
                    _ => {}
                }
                scan.out.push(now);
                scan.take(now.len_utf8());
            }
        }
    }
    Ok(Cow::Owned(scan.out))
}

/// Reads a query from the left.
struct Scan<'a> {
    rest: &'a str,
    out: String,
    times: QueryTimes,
    /// Where the selector ends in the output that a modifier here would belong to: behind its name,
    /// or before its closing brace.
    selector_end: Option<usize>,
}

impl<'a> Scan<'a> {
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn until(&mut self, end: char) -> &'a str {
        self.take(self.rest.find(end).unwrap_or(self.rest.len()))
    }

    /// Copies a text in quotes.
    fn string(&mut self, quote: char) {
        let mut escaped = false;
        let is_end = |(_, now): &(usize, char)| {
            let ends = *now == quote && !escaped;
            escaped = *now == '\\' && quote != '`' && !escaped;
            ends
        };
        let end = self.rest.char_indices().skip(1).find(is_end);
        let text = self.take(end.map_or(self.rest.len(), |(at, _)| at + quote.len_utf8()));
        self.out.push_str(text);
    }

    /// A name, a number, or a modifier.
    fn operand(&mut self) -> Result<(), PromqlError> {
        let word = self.take(word_end(self.rest));
        let lower = word.to_ascii_lowercase();
        match (lower.as_str(), self.selector_end) {
            (ANCHORED | SMOOTHED, Some(end)) => self.mark(end, &lower),
            ("offset", _) => {
                self.out.push_str(word);
                self.offset()?;
            }
            _ => {
                self.out.push_str(word);
                // The time behind an `@` leaves the selector before it as it is.
                let before = self.out.strip_suffix(word).unwrap_or_default();
                let is_time = before.trim_end().ends_with('@');
                if !is_time {
                    self.selector_end = Some(self.out.len());
                } else if self.rest.starts_with("()") {
                    let call = self.take(2);
                    self.out.push_str(call);
                }
            }
        }
        Ok(())
    }

    /// Puts a modifier among the matchers of the selector that ends there.
    fn mark(&mut self, end: usize, modifier: &str) {
        let matcher = format!("{EXTENSION_LABEL}=\"{modifier}\"");
        let (before, behind) = self.out.split_at(end);
        let marked = if behind.starts_with('}') {
            let is_first = before.trim_end().ends_with(['{', ',']);
            format!("{}{matcher}", if is_first { "" } else { "," })
        } else {
            format!("{{{matcher}}}")
        };
        self.out.insert_str(end, &marked);
        self.selector_end = None;
    }

    /// The range, and of a subquery the step.
    fn bracket(&mut self) -> Result<(), PromqlError> {
        self.take(1);
        self.out.push('[');
        let inside = self.until(']');
        for (index, part) in inside.split(':').enumerate() {
            if index > 0 {
                self.out.push(':');
            }
            let is_plain = part.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
            if is_plain {
                self.out.push_str(part);
                continue;
            }
            let millis = durations::millis(part, self.times)?;
            if millis <= 0 {
                return Err(bad("duration must be greater than 0"));
            }
            push_millis("", millis, &mut self.out);
        }
        let close = self.take(1);
        self.out.push_str(close);
        Ok(())
    }

    /// What stands behind `offset`, when it is in parentheses, a call, or nothing at all.
    fn offset(&mut self) -> Result<(), PromqlError> {
        let is_sign = |c: char| c.is_whitespace() || c == '+' || c == '-';
        let operand = self.rest.trim_start_matches(is_sign);
        let (name, behind) = operand.split_at(word_end(operand));
        let group = behind.trim_start();
        if name.starts_with(|first: char| first.is_ascii_digit()) {
            let bytes = self.rest.len() - behind.len();
            let whole = self.take(bytes);
            if durations::millis(name, self.times).is_ok_and(|millis| millis == 0) {
                // The parser takes no length of nothing, but a number of seconds.
                self.out.push_str(" 0");
            } else {
                self.out.push_str(whole);
            }
            return Ok(());
        }
        let calls = ["", "step", "range", "min", "max", "min_of", "max_of"];
        if !group.starts_with('(') || !calls.contains(&&*name.to_ascii_lowercase()) {
            return Ok(());
        }
        let mut depth = 0_usize;
        let close = group.find(|c: char| {
            depth = if c == '(' { depth + 1 } else { depth - usize::from(c == ')') };
            depth == 0
        });
        let close = close.ok_or_else(|| bad("unclosed left parenthesis"))?;
        let whole = self.take(self.rest.len() - group.len() + close + 1);
        let millis = durations::millis(whole, self.times)?;
        push_millis(if millis < 0 { " -" } else { " " }, millis, &mut self.out);
        Ok(())
    }
}

fn push_millis(sign: &str, millis: i64, out: &mut String) {
    if millis == 0 {
        return out.push_str(" 0");
    }
    out.push_str(sign);
    out.push_str(&millis.unsigned_abs().to_string());
    out.push_str("ms");
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | ':' | '.')
}

fn word_end(text: &str) -> usize {
    text.find(|c: char| !is_word(c)).unwrap_or(text.len())
}

fn bad(problem: &str) -> PromqlError {
    PromqlError::BadData(format!("parse error: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: QueryTimes = QueryTimes { step: 15.0, range: 3600.0 };

    #[test]
    fn calculated_lengths_become_plain_ones() {
        for (text, expected) in [
            ("rate(x[5m])", "rate(x[5m])"),
            ("rate(x[5m+1m])", "rate(x[360000ms])"),
            ("x[11s+10s-5*2^2]", "x[1000ms]"),
            ("rate(x[step() * 4])", "rate(x[60000ms])"),
            ("x[max(step(), 1m)]", "x[60000ms]"),
            ("x[max_of(STEP(), 1m)]", "x[60000ms]"),
            ("x[30m+0s]", "x[1800000ms]"),
            ("x[ MIN(range(), 2h) : step()+5 ]", "x[3600000ms:20000ms]"),
            ("x[1h:]", "x[1h:]"),
            ("x offset 5m + y", "x offset 5m + y"),
            ("x offset (5m + 30s) + y", "x offset 330000ms + y"),
            ("x offset -(5m)", "x offset -300000ms"),
            ("x offset -step() - y", "x offset -15000ms - y"),
            ("x offset min(1m, 2m)", "x offset 60000ms"),
            ("x offset Min_Of(1m, 2m)", "x offset 60000ms"),
            ("x offset (step() - 15) + y", "x offset 0 + y"),
            ("x offset 0s", "x offset 0"),
            ("x offset 2 ^ 2", "x offset 2 ^ 2"),
            (
                r#"x{a="[1+1]", offset="(1)"}[1m+1m] # [1+"#,
                r#"x{a="[1+1]", offset="(1)"}[120000ms] "#,
            ),
            (
                r#"label_replace(x[5m], "é\"[", '[', `[`, "")"#,
                r#"label_replace(x[5m], "é\"[", '[', `[`, "")"#,
            ),
        ] {
            assert_eq!(resolve(text, TIMES).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn modifiers_become_matchers() {
        for (text, expected) in [
            ("x smoothed", r#"x{__extension__="smoothed"} "#),
            ("rate(x[5m] ANCHORED)", r#"rate(x{__extension__="anchored"}[5m] )"#),
            (r#"x{a="b"}[5m] smoothed"#, r#"x{a="b",__extension__="smoothed"}[5m] "#),
            (
                "x{ }[1m] offset 1m @ 5 anchored",
                r#"x{ __extension__="anchored"}[1m] offset 1m @ 5 "#,
            ),
            ("x @ start() smoothed", r#"x{__extension__="smoothed"} @ start() "#),
            ("x @ 5 smoothed + y", r#"x{__extension__="smoothed"} @ 5  + y"#),
            ("smoothed + anchored", "smoothed + anchored"),
            ("(x) smoothed", "(x) smoothed"),
        ] {
            assert_eq!(resolve(text, TIMES).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_length_is_refused() {
        let instant = QueryTimes { step: 0.0, range: 0.0 };
        for (text, expected) in [
            ("x[1m-1m]", "greater than 0"),
            ("x[5m/0]", "division by zero"),
            ("x[5m%0]", "modulo by zero"),
            ("x[up + 1m]", "numbers"),
            ("x[time()+1m]", "step(), range()"),
            ("x[9^999+1]", "out of range"),
            ("x[1m and 2m]", "parse error"),
            ("x[step()+1m 1]", "parse error"),
        ] {
            let refused = resolve(text, TIMES).unwrap_err().to_string();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
        assert!(resolve("x[step()*2]", instant).is_err());
        assert_eq!(resolve("x offset range()", instant).unwrap(), "x offset 0");
        let deep = format!("x[{}1{}]", "(".repeat(5000), ")".repeat(5000));
        assert!(resolve(&deep, TIMES).unwrap_err().to_string().contains("split it"));
        for text in ["x[", "x offset (", "[", "offset", "x offset -", "\"", "x[`]", "é[é+é]"] {
            let _no_panic = resolve(text, TIMES);
        }
    }
}
