//! What a duration expression comes to: numbers of seconds, lengths such as `5m`, `step()`, `range()`,
//! `min` and `max` under either name, and operators.
//!
//! Must never know: queries.

use crate::query::promql::value::error::PromqlError;

/// How deep parentheses may nest.
const DEPTH_MAX: usize = 64;
/// Milliseconds of a length, at most.
const MILLIS_MAX: f64 = 1e15;

/// What `step()` and `range()` mean, in seconds; 0 for instant queries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryTimes {
    pub(crate) step: f64,
    pub(crate) range: f64,
}

/// The milliseconds of a whole text.
pub(crate) fn millis(text: &str, times: QueryTimes) -> Result<i64, PromqlError> {
    let mut reader = Reader { rest: text, times, depth: 0 };
    let seconds = reader.sum()?;
    reader.skip_space();
    if !reader.rest.is_empty() {
        return Err(bad(&format!("a duration is made of numbers only, not {:?}", reader.rest)));
    }
    let millis = (seconds * 1000.0).trunc();
    if millis.is_nan() || millis.abs() > MILLIS_MAX {
        return Err(bad("duration out of range"));
    }
    Ok(millis as i64)
}

/// Reads from the left, one operator's precedence at a time.
struct Reader<'a> {
    rest: &'a str,
    times: QueryTimes,
    depth: usize,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, letter: char) -> bool {
        self.skip_space();
        let found = self.rest.strip_prefix(letter);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn sum(&mut self) -> Result<f64, PromqlError> {
        let mut value = self.product()?;
        loop {
            if self.eat('+') {
                value += self.product()?;
            } else if self.eat('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, PromqlError> {
        let mut value = self.signed()?;
        loop {
            if self.eat('*') {
                value *= self.signed()?;
            } else if self.eat('/') {
                let by = self.signed()?;
                value = if by == 0.0 { return Err(bad("division by zero")) } else { value / by };
            } else if self.eat('%') {
                let by = self.signed()?;
                value = if by == 0.0 { return Err(bad("modulo by zero")) } else { value % by };
            } else {
                return Ok(value);
            }
        }
    }

    /// A sign binds less than a power.
    fn signed(&mut self) -> Result<f64, PromqlError> {
        let mut sign = 1.0;
        loop {
            if self.eat('-') {
                sign = -sign;
            } else if !self.eat('+') {
                return Ok(sign * self.power()?);
            }
        }
    }

    fn power(&mut self) -> Result<f64, PromqlError> {
        let base = self.operand()?;
        if !self.eat('^') {
            return Ok(base);
        }
        self.deeper(|own| Ok(base.powf(own.signed()?)))
    }

    fn deeper(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<f64, PromqlError>,
    ) -> Result<f64, PromqlError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(bad("the duration nests too deep: split it"));
        }
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn operand(&mut self) -> Result<f64, PromqlError> {
        if self.eat('(') {
            return self.deeper(|own| {
                let value = own.sum()?;
                own.close()?;
                Ok(value)
            });
        }
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':');
        let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if word.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
            return seconds(word).ok_or_else(|| bad(&format!("not a valid duration: {word:?}")));
        }
        let lower = word.to_ascii_lowercase();
        if word.is_empty() || !self.eat('(') {
            return Err(bad("a duration is made of numbers only"));
        }
        match lower.as_str() {
            "step" => self.close().map(|()| self.times.step),
            "range" => self.close().map(|()| self.times.range),
            "min" | "min_of" | "max" | "max_of" => self.deeper(|own| {
                let one = own.sum()?;
                if !own.eat(',') {
                    return Err(bad(&format!("{lower} of durations needs two")));
                }
                let next = own.sum()?;
                own.close()?;
                Ok(if lower.starts_with("min") { one.min(next) } else { one.max(next) })
            }),
            _ => Err(bad("a duration is made of step(), range(), min and max only")),
        }
    }

    fn close(&mut self) -> Result<(), PromqlError> {
        if self.eat(')') { Ok(()) } else { Err(bad("unclosed left parenthesis in a duration")) }
    }
}

/// Seconds of `5m`, `1h30m`, or of a number.
fn seconds(word: &str) -> Option<f64> {
    let plain = word.replace('_', "");
    if let Some(digits) = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok().map(|value| value as f64);
    }
    if let Ok(value) = plain.parse::<f64>() {
        return Some(value);
    }
    let (mut total, mut rest, mut before) = (0.0, word, f64::INFINITY);
    while !rest.is_empty() {
        let (digits, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, tail) =
            tail.split_at(tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len()));
        let own = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            "y" => 31_536_000.0,
            _ => return None,
        };
        // The larger units come first, each once.
        if own >= before {
            return None;
        }
        total += digits.parse::<f64>().ok()? * own;
        (rest, before) = (tail, own);
    }
    Some(total)
}

fn bad(problem: &str) -> PromqlError {
    PromqlError::BadData(format!("parse error: {problem}"))
}
