//! Expressions as text on one line.
//!
//! The source is Prometheus' printer (promql/parser/printer.go). Must never know: tokens, values.

use std::fmt::{self, Display, Formatter, Write as _};

use super::{
    duration_expr::{Calculation, DurationExpr},
    tree::{
        Aggregate, AtTime, Binary, Call, Expr, Grouping, ManySide, Matcher, Matching, Number,
        Paren, Shift, Subquery, Unary, VectorSelector,
    },
};
use crate::{
    model::LENGTH_UNITS,
    query::promql::value::{text::byte_of, windows::Extension},
};

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aggregate(aggregate) => {
                write!(f, "{}(", AggregateHead(aggregate))?;
                if let Some(parameter) = &aggregate.parameter {
                    write!(f, "{parameter}, ")?;
                }
                write!(f, "{})", aggregate.input)
            }
            Self::Binary(binary) => {
                write!(f, "{} {} {}", binary.left, BinaryHead(binary), binary.right)
            }
            Self::Call(Call { function, arguments, .. }) => {
                write!(f, "{}({})", function.name, Joined(arguments, ", "))
            }
            Self::Matrix(matrix) => {
                let selector = &matrix.selector;
                write_series(selector, f)?;
                write!(f, "[{}]", matrix.range)?;
                write_modifiers(selector.extension, &selector.shift, f)
            }
            Self::Number(number) => number.fmt(f),
            Self::Paren(Paren { inner, .. }) => write!(f, "({inner})"),
            Self::Subquery(subquery) => write!(f, "{}{}", subquery.inner, Window(subquery)),
            Self::Text(text) => write_quoted(&text.value, f),
            Self::Unary(Unary { inner, .. }) => write!(f, "-{inner}"),
            Self::Vector(selector) => selector.fmt(f),
        }
    }
}

/// An aggregation before its arguments.
pub(super) struct AggregateHead<'e>(pub(super) &'e Aggregate);

impl Display for AggregateHead<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.operation.name())?;
        match &self.0.grouping {
            Some(Grouping::Except(names)) => write!(f, " without ({}) ", Names(names)),
            Some(Grouping::Only(names)) if !names.is_empty() => {
                write!(f, " by ({}) ", Names(names))
            }
            Some(Grouping::Only(_)) | None => Ok(()),
        }
    }
}

/// An operator with its modifiers.
pub(super) struct BinaryHead<'e>(pub(super) &'e Binary);

impl Display for BinaryHead<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Binary { operator, return_bool, matching, .. } = self.0;
        write!(f, "{operator}{}", if *return_bool { " bool" } else { "" })?;
        let Matching { labels, many, included, fill_left, fill_right } = matching;
        match labels {
            Some(Grouping::Only(names)) => write!(f, " on ({})", Names(names))?,
            Some(Grouping::Except(names)) if !names.is_empty() || *many != ManySide::Neither => {
                write!(f, " ignoring ({})", Names(names))?;
            }
            Some(Grouping::Except(_)) | None => {}
        }
        match many {
            ManySide::Left => write!(f, " group_left ({})", Names(included))?,
            ManySide::Right => write!(f, " group_right ({})", Names(included))?,
            ManySide::Neither => {}
        }
        match (fill_left, fill_right) {
            (Some(left), Some(right)) if left.to_bits() == right.to_bits() => {
                write!(f, " fill ({})", Float(*left))
            }
            _ => {
                let left = fill_left.iter().map(|value| ("fill_left", value));
                let right = fill_right.iter().map(|value| ("fill_right", value));
                left.chain(right)
                    .try_for_each(|(name, value)| write!(f, " {name} ({})", Float(*value)))
            }
        }
    }
}

/// The brackets and the modifiers of a subquery.
pub(super) struct Window<'e>(pub(super) &'e Subquery);

impl Display for Window<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Subquery { range, step, shift, .. } = self.0;
        write!(f, "[{range}:")?;
        if let Some(step) = step {
            write!(f, "{step}")?;
        }
        f.write_char(']')?;
        write_modifiers(None, shift, f)
    }
}

impl Display for VectorSelector {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_series(self, f)?;
        write_modifiers(self.extension, &self.shift, f)
    }
}

impl VectorSelector {
    /// Returns the name and the matchers as text. Selectors that differ only in their modifiers
    /// return the same text.
    pub(crate) fn series_text(&self) -> String {
        struct Series<'e>(&'e VectorSelector);
        impl Display for Series<'_> {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                write_series(self.0, f)
            }
        }
        Series(self).to_string()
    }
}

fn write_series(selector: &VectorSelector, f: &mut Formatter<'_>) -> fmt::Result {
    let name = selector.name.as_deref().unwrap_or_default();
    f.write_str(name)?;
    match selector.alternatives.as_slice() {
        [set] if set.is_empty() && !name.is_empty() => Ok(()),
        [set] => {
            let mut matchers: Vec<_> = set.iter().map(Matcher::to_string).collect();
            matchers.sort_unstable();
            write!(f, "{{{}}}", matchers.join(","))
        }
        sets => {
            f.write_char('{')?;
            for (index, set) in sets.iter().enumerate() {
                write!(f, "{}{}", if index > 0 { " or " } else { "" }, Joined(set, ", "))?;
            }
            f.write_char('}')
        }
    }
}

fn write_modifiers(
    extension: Option<Extension>,
    shift: &Shift,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    match extension {
        Some(Extension::Anchored) => f.write_str(" anchored")?,
        Some(Extension::Smoothed) => f.write_str(" smoothed")?,
        None => {}
    }
    match shift.at {
        Some(AtTime::Start) => f.write_str(" @ start()")?,
        Some(AtTime::End) => f.write_str(" @ end()")?,
        Some(AtTime::Millis(millis)) => {
            let (sign, millis) = (if millis < 0 { "-" } else { "" }, millis.unsigned_abs());
            write!(f, " @ {sign}{}.{:03}", millis / 1000, millis % 1000)?;
        }
        None => {}
    }
    if let Some(offset) = &shift.offset {
        write!(f, " offset {offset}")?;
    }
    Ok(())
}

impl Display for Matcher {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Names(std::slice::from_ref(&self.label)), self.comparison.operator())?;
        write_quoted(&self.value, f)
    }
}

impl Display for Number {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_negative_zero = self.value == 0.0 && self.value.is_sign_negative();
        match (self.is_duration, is_negative_zero) {
            (true, true) => f.write_str("-0s"),
            (true, false) => write_millis((self.value * 1000.0).round() as i64, f),
            (false, _) => Float(self.value).fmt(f),
        }
    }
}

struct Float(f64);

impl Display for Float {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            f64::INFINITY => f.write_str("Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            value => value.fmt(f),
        }
    }
}

impl Display for DurationExpr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Millis(millis) => write_millis(*millis, f),
            Self::Computed(calculation, _) => calculation.fmt(f),
        }
    }
}

impl Display for Calculation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(seconds) => seconds.fmt(f),
            Self::Millis(millis) => write_millis(*millis, f),
            Self::Step => f.write_str("step()"),
            Self::Range => f.write_str("range()"),
            Self::Paren(inner) => write!(f, "({inner})"),
            Self::Negative(inner) => write!(f, "-{inner}"),
            Self::Binary(operator, left, right) => write!(f, "{left} {operator} {right}"),
            Self::Choice(pick, left, right) => write!(f, "{}({left}, {right})", pick.name()),
        }
    }
}

/// Writes a duration in units. Years and weeks are used only when they leave no remainder:
/// 90d is easier to read than 12w6d.
fn write_millis(millis: i64, f: &mut Formatter<'_>) -> fmt::Result {
    if millis == 0 {
        return f.write_str("0s");
    }
    if millis < 0 {
        f.write_char('-')?;
    }
    let mut rest = millis.abs();
    for (unit, duration) in LENGTH_UNITS {
        if rest >= duration && (!matches!(unit, "y" | "w") || rest % duration == 0) {
            write!(f, "{}{unit}", rest / duration)?;
            rest %= duration;
        }
    }
    Ok(())
}

/// Elements with a separator between them.
struct Joined<'e, T>(&'e [T], &'static str);

impl<T: Display> Display for Joined<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, element) in self.0.iter().enumerate() {
            write!(f, "{}{element}", if index > 0 { self.1 } else { "" })?;
        }
        Ok(())
    }
}

/// Names of labels; names that are not words are quoted.
struct Names<'e>(&'e [String]);

impl Display for Names<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let is_word = !name.starts_with(|first: char| first.is_ascii_digit())
                && !name.is_empty()
                && name.chars().all(is_part);
            if is_word { f.write_str(name)? } else { write_quoted(name, f)? }
        }
        Ok(())
    }
}

fn write_quoted(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for letter in text.chars() {
        match letter {
            '\\' => f.write_str("\\\\")?,
            '"' => f.write_str("\\\"")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            _ => match byte_of(letter) {
                Some(byte) => write!(f, "\\x{byte:02x}")?,
                None => f.write_char(letter)?,
            },
        }
    }
    f.write_char('"')
}
