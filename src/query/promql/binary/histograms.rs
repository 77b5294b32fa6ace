//! Binary operators with native histograms, at one time.
//!
//! Must never know: the store, the tree, labels.

use std::sync::Arc;

use super::operators::Operation;
use crate::{
    model::{Histogram, ResetHint},
    query::QueryError,
    query::promql::{
        context::bounds::Bounds,
        syntax::operator::Operator,
        value::{
            annotations::Notes,
            histograms::{are_equal, divided, scaled},
            series::{ABSENT, Element, Series, is_present},
        },
    },
};

/// A binary operator with its modifier `bool` and the notes of its location.
#[derive(Clone, Copy)]
pub(super) struct Operating<'a> {
    pub(super) operator: Operator,
    pub(super) operation: Operation,
    pub(super) return_bool: bool,
    pub(super) notes: Notes<'a>,
}

/// The result of an operator at one time.
pub(super) enum Combined {
    Nothing,
    Number(f64),
    Histogram(Arc<Histogram>),
}

impl Combined {
    /// Stores the result at a time of a series, and reserves the memory of a new histogram.
    pub(super) fn store(
        self,
        series: &mut Series,
        step: usize,
        bounds: &Bounds<'_>,
    ) -> Result<(), QueryError> {
        series.remove(step);
        match self {
            Self::Nothing => {}
            Self::Number(value) => series.values[step] = value,
            Self::Histogram(histogram) => {
                // A comparison shares the histogram of its operand.
                if Arc::strong_count(&histogram) == 1 {
                    bounds.reserve(histogram.bytes())?;
                }
                let count = series.values.len();
                series.histograms.set(step, histogram, count);
            }
        }
        Ok(())
    }
}

impl From<f64> for Combined {
    fn from(value: f64) -> Self {
        if is_present(value) { Self::Number(value) } else { Self::Nothing }
    }
}

impl From<Histogram> for Combined {
    fn from(histogram: Histogram) -> Self {
        Self::Histogram(Arc::new(histogram))
    }
}

impl Operating<'_> {
    /// Applies the operator to two values. A comparison keeps `kept`.
    pub(super) fn apply(
        &self,
        left: Element<'_>,
        right: Element<'_>,
        kept: Element<'_>,
    ) -> Combined {
        match (left, right) {
            (Element::Number(_), Element::Number(_))
                if matches!(self.operation, Operation::Trim(_)) =>
            {
                self.incompatible("float", "float")
            }
            (Element::Number(left), Element::Number(right)) => {
                let kept = if let Element::Number(kept) = kept { kept } else { ABSENT };
                self.operation.apply(left, right, kept, self.return_bool).into()
            }
            (Element::Histogram(left), Element::Histogram(right)) => self.of_both(left, right),
            (Element::Histogram(histogram), Element::Number(number)) => {
                match (self.operator, self.operation) {
                    (Operator::Multiply, _) => scaled(histogram, number).into(),
                    (Operator::Divide, _) => divided(histogram, number).into(),
                    (_, Operation::Trim(trim)) => trim(histogram, number).into(),
                    _ => self.incompatible("histogram", "float"),
                }
            }
            (Element::Number(number), Element::Histogram(histogram))
                if self.operator == Operator::Multiply =>
            {
                scaled(histogram, number).into()
            }
            (Element::Number(_), Element::Histogram(_)) => self.incompatible("float", "histogram"),
        }
    }

    fn of_both(&self, left: &Arc<Histogram>, right: &Histogram) -> Combined {
        if matches!(self.operator, Operator::Add | Operator::Subtract) {
            return self.sum(left, right);
        }
        if !matches!(self.operator, Operator::Equal | Operator::NotEqual) {
            return self.incompatible("histogram", "histogram");
        }
        let holds = are_equal(left, right) == (self.operator == Operator::Equal);
        match (self.return_bool, holds) {
            (true, _) => Combined::Number(f64::from(u8::from(holds))),
            (false, true) => Combined::Histogram(left.clone()),
            (false, false) => Combined::Nothing,
        }
    }

    fn sum(&self, left: &Histogram, right: &Histogram) -> Combined {
        let is_sum = self.operator == Operator::Add;
        let mut out = left.clone();
        let added = if is_sum { out.add(right) } else { out.subtract(right) };
        let Ok(added) = added else {
            let operator = self.operator;
            self.notes.warn(|| {
                format!("incompatible bucket layout encountered for binary operator {operator}")
            });
            return Combined::Nothing;
        };
        let name = if is_sum { "addition" } else { "subtraction" };
        if added.has_hint_collision {
            self.notes.warn_of_reset_conflict(name);
        }
        if added.has_reconciled_bounds {
            self.notes.inform_of_reconciled_bounds(name);
        }
        if !is_sum {
            out.hint = ResetHint::Gauge;
        }
        out.into()
    }

    /// Adds an info about values that the operator cannot combine.
    pub(super) fn incompatible(&self, left: &str, right: &str) -> Combined {
        let operator = self.operator;
        self.notes.inform(|| {
            format!(
                "incompatible sample types encountered for binary operator \"{operator}\": {left} \
                 {operator} {right}"
            )
        });
        Combined::Nothing
    }
}
