//! Lengths of time in a query: durations such as `5m`, seconds, and calculations, which may use
//! `step()` and `range()`.
//!
//! The source is Prometheus (docs/querying/basics.md, "Arithmetic expressions for durations"). Must
//! never know: tokens, selectors.

use super::{
    literal::MILLIS_MAX,
    operator::Operator,
    span::{SyntaxError, TextSpan},
};
use crate::query::promql::value::steps::QueryTimes;

/// A duration.
#[derive(Debug)]
pub(crate) enum DurationExpr {
    /// Milliseconds; only an offset may be negative.
    Millis(i64),
    /// A calculation with its span in the query.
    Computed(Box<Calculation>, TextSpan),
}

/// The calculation of a duration, in seconds.
#[derive(Debug)]
pub(crate) enum Calculation {
    /// A number.
    Seconds(f64),
    /// A duration such as `5m`, in milliseconds.
    Millis(i64),
    /// `step()`
    Step,
    /// `range()`
    Range,
    /// A calculation in parentheses.
    Paren(Box<Self>),
    /// A calculation with its sign changed.
    Negative(Box<Self>),
    /// An arithmetic operator with two operands.
    Binary(Operator, Box<Self>, Box<Self>),
    /// The smaller or larger of two calculations.
    Choice(Choice, Box<Self>, Box<Self>),
}

/// The choice between two durations; each has two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Min,
    MinOf,
    Max,
    MaxOf,
}

impl Choice {
    pub(super) const ALL: [Self; 4] = [Self::Min, Self::MinOf, Self::Max, Self::MaxOf];

    /// Returns the name in a query.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::MinOf => "min_of",
            Self::Max => "max",
            Self::MaxOf => "max_of",
        }
    }
}

impl DurationExpr {
    /// Returns the duration in milliseconds.
    ///
    /// # Errors
    /// When the duration cannot be calculated at these times.
    pub(crate) fn millis(&self, times: QueryTimes) -> Result<i64, SyntaxError> {
        let (calculation, span) = match self {
            Self::Millis(millis) => return Ok(*millis),
            Self::Computed(calculation, span) => (calculation, *span),
        };
        let error = |problem: &str| SyntaxError::new(span, problem);
        let seconds = calculation.seconds(times).map_err(error)?;
        millis_of(seconds).ok_or_else(|| error("duration out of range"))
    }

    /// Returns the milliseconds of a duration that must be positive.
    ///
    /// # Errors
    /// When the duration is not positive, or cannot be calculated at these times.
    pub(crate) fn positive_millis(&self, times: QueryTimes) -> Result<i64, SyntaxError> {
        let millis = self.millis(times)?;
        if millis > 0 {
            return Ok(millis);
        }
        let span = if let Self::Computed(_, span) = self { *span } else { TextSpan::default() };
        Err(SyntaxError::new(span, "duration must be greater than 0"))
    }
}

/// Converts seconds to whole milliseconds. Returns `None` when they are out of range.
pub(super) fn millis_of(seconds: f64) -> Option<i64> {
    // Rounding to nanoseconds makes 0.57 s exactly 570 ms.
    let millis = ((seconds * 1e9).round() / 1e6).trunc();
    (millis.abs() <= MILLIS_MAX as f64).then_some(millis as i64)
}

impl Calculation {
    /// Returns true when the result is the same for all queries.
    pub(super) fn is_constant(&self) -> bool {
        match self {
            Self::Seconds(_) | Self::Millis(_) => true,
            Self::Step | Self::Range => false,
            Self::Paren(inner) | Self::Negative(inner) => inner.is_constant(),
            Self::Binary(_, left, right) | Self::Choice(_, left, right) => {
                left.is_constant() && right.is_constant()
            }
        }
    }

    fn seconds(&self, times: QueryTimes) -> Result<f64, &'static str> {
        Ok(match self {
            Self::Seconds(seconds) => *seconds,
            Self::Millis(millis) => *millis as f64 / 1000.0,
            Self::Step => times.step,
            Self::Range => times.range,
            Self::Paren(inner) => inner.seconds(times)?,
            Self::Negative(inner) => -inner.seconds(times)?,
            Self::Choice(choice, left, right) => {
                let (left, right) = (left.seconds(times)?, right.seconds(times)?);
                match choice {
                    Choice::Min | Choice::MinOf => left.min(right),
                    Choice::Max | Choice::MaxOf => left.max(right),
                }
            }
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.seconds(times)?, right.seconds(times)?);
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide if right == 0.0 => return Err("division by zero"),
                    Operator::Divide => left / right,
                    Operator::Modulo if right == 0.0 => return Err("modulo by zero"),
                    Operator::Modulo => left % right,
                    Operator::Power => left.powf(right),
                    Operator::Or
                    | Operator::And
                    | Operator::Unless
                    | Operator::Equal
                    | Operator::NotEqual
                    | Operator::Less
                    | Operator::LessOrEqual
                    | Operator::Greater
                    | Operator::GreaterOrEqual
                    | Operator::TrimUpper
                    | Operator::TrimLower
                    | Operator::Atan2 => {
                        return Err("a duration may only contain arithmetic operators");
                    }
                }
            }
        })
    }
}
