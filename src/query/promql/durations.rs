//! Lengths of time that are calculated: `[step() * 4]`, `[1h - 10m:30s + 5s]`, `offset (2 * 5m)`
//! (Prometheus, docs/querying/basics.md, "Duration expressions").
//!
//! The parser knows plain lengths alone, so calculated ones are replaced in the text before. Must
//! never know: series, values.

use std::borrow::Cow;

use promql_parser::parser::{Expr, token};

use super::{PromqlError, source::parse_within_depth};

/// What `step()` and `range()` mean, in seconds; 0 for instant queries.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryTimes {
    pub(super) step: f64,
    pub(super) range: f64,
}

/// Replaces calculated lengths of time by plain ones.
pub(super) fn resolve(text: &str, times: QueryTimes) -> Result<Cow<'_, str>, PromqlError> {
    if !text.contains('[') && !text.to_ascii_lowercase().contains("offset") {
        return Ok(Cow::Borrowed(text));
    }
    let mut scan = Scan { rest: text, out: String::with_capacity(text.len()), times };
    let mut braces = 0_usize;
    while let Some(now) = scan.rest.chars().next() {
        match now {
            '"' | '\'' | '`' => scan.string(now),
            // A remark, up to the end of the line.
            '#' => drop(scan.until('\n')),
            '[' if braces == 0 => scan.bracket()?,
            _ if is_word(now) => {
                let word = scan.word();
                scan.out.push_str(word);
                if braces == 0 && word.eq_ignore_ascii_case("offset") {
                    scan.offset()?;
                }
            }
            _ => {
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

    fn word(&mut self) -> &'a str {
        self.take(word_end(self.rest))
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

    /// The range, and of a subquery the step.
    fn bracket(&mut self) -> Result<(), PromqlError> {
        self.take(1);
        self.out.push('[');
        for (index, part) in self.until(']').split(':').enumerate() {
            if index > 0 {
                self.out.push(':');
            }
            let is_plain = part.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
            if is_plain {
                self.out.push_str(part);
                continue;
            }
            let millis = calculated(part, self.times)?;
            if millis <= 0 {
                return Err(bad("duration must be greater than 0"));
            }
            push_millis("", millis, &mut self.out);
        }
        Ok(())
    }

    /// What stands behind `offset`, when it is in parentheses or a call.
    fn offset(&mut self) -> Result<(), PromqlError> {
        let is_sign = |c: char| c.is_whitespace() || c == '+' || c == '-';
        let operand = self.rest.trim_start_matches(is_sign);
        let (name, group) = operand.split_at(word_end(operand));
        let group = group.trim_start();
        let calls = ["", "step", "range", "min", "max"];
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
        let millis = calculated(whole, self.times)?;
        push_millis(if millis < 0 { " -" } else { " " }, millis, &mut self.out);
        Ok(())
    }
}

fn push_millis(sign: &str, millis: i64, out: &mut String) {
    out.push_str(sign);
    out.push_str(&millis.unsigned_abs().to_string());
    out.push_str("ms");
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == ':'
}

fn word_end(text: &str) -> usize {
    text.find(|c: char| !is_word(c)).unwrap_or(text.len())
}

/// Milliseconds of an expression whose numbers are seconds.
fn calculated(text: &str, times: QueryTimes) -> Result<i64, PromqlError> {
    let mut named = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(now) = rest.chars().next() {
        let (word, behind) = rest.split_at(word_end(rest).max(now.len_utf8()));
        match word.to_ascii_lowercase().as_str() {
            "min" => named.push_str("duration_min"),
            "max" => named.push_str("duration_max"),
            _ => named.push_str(word),
        }
        rest = behind;
    }
    let seconds = seconds(&parse_within_depth(&named)?, times)?;
    let millis = (seconds * 1000.0).round();
    if millis.abs() > 1e15 {
        return Err(bad("duration out of range"));
    }
    Ok(millis as i64)
}

fn seconds(expression: &Expr, times: QueryTimes) -> Result<f64, PromqlError> {
    let of = |expression: &Expr| seconds(expression, times);
    Ok(match expression {
        Expr::NumberLiteral(number) => number.val,
        Expr::Paren(inner) => of(&inner.expr)?,
        Expr::Unary(inner) => -of(&inner.expr)?,
        Expr::Binary(binary) => {
            let (left, right) = (of(&binary.lhs)?, of(&binary.rhs)?);
            match binary.op.id() {
                token::T_ADD => left + right,
                token::T_SUB => left - right,
                token::T_MUL => left * right,
                token::T_POW => left.powf(right),
                token::T_DIV if right == 0.0 => return Err(bad("division by zero")),
                token::T_DIV => left / right,
                token::T_MOD if right == 0.0 => return Err(bad("modulo by zero")),
                token::T_MOD => left % right,
                _ => return Err(bad("only + - * / % ^ calculate a duration")),
            }
        }
        Expr::Call(call) => {
            let arguments: Result<Vec<_>, _> = call.args.args.iter().map(|own| of(own)).collect();
            match (call.func.name, arguments?.as_slice()) {
                ("step", []) => times.step,
                ("range", []) => times.range,
                ("duration_min", [one, next]) => one.min(*next),
                ("duration_max", [one, next]) => one.max(*next),
                _ => return Err(bad("a duration is made of step(), range(), min and max only")),
            }
        }
        Expr::Aggregate(_)
        | Expr::Subquery(_)
        | Expr::StringLiteral(_)
        | Expr::VectorSelector(_)
        | Expr::MatrixSelector(_)
        | Expr::Extension(_) => return Err(bad("a duration is made of numbers only")),
    })
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
            ("x[ MIN(range(), 2h) : step()+5 ]", "x[3600000ms:20000ms]"),
            ("x[1h:]", "x[1h:]"),
            ("x offset 5m + y", "x offset 5m + y"),
            ("x offset (5m + 30s) + y", "x offset 330000ms + y"),
            ("x offset -(5m)", "x offset -300000ms"),
            ("x offset -step() - y", "x offset -15000ms - y"),
            ("x offset min(1m, 2m)", "x offset 60000ms"),
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
    fn what_is_no_length_is_refused() {
        for (text, expected) in [
            ("x[1m-1m]", "greater than 0"),
            ("x[5m/0]", "division by zero"),
            ("x[5m%0]", "modulo by zero"),
            ("x[up + 1m]", "numbers only"),
            ("x[time()+1m]", "step(), range()"),
            ("x[9^999+1]", "out of range"),
            ("x[1m and 2m]", "parse error"),
        ] {
            let refused = resolve(text, TIMES).unwrap_err().to_string();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
        let deep = format!("x[{}1{}]", "(".repeat(5000), ")".repeat(5000));
        assert!(resolve(&deep, TIMES).unwrap_err().to_string().contains("split it"));
        for text in ["x[", "x offset (", "[", "offset", "x offset -", "\"", "x[`]", "é[é+é]"] {
            let _no_panic = resolve(text, TIMES);
        }
    }
}
