//! The accumulators of `$group`: an operator over an expression of each document.
//!
//! Must never know: stages, or how many groups there are.

use super::{
    expression::Expression,
    operator::{AccumulatorState, OPERATORS, Operator},
    quota::Share,
    value::{Fields, Value},
};
use crate::query::QueryError;

/// An accumulator of a `$group`.
#[derive(Debug, Clone)]
pub(super) struct Accumulator {
    operator: Operator,
    expression: Expression,
}

impl Accumulator {
    /// Creates an accumulator that counts documents.
    pub(super) fn count() -> Self {
        Self { operator: Operator::Sum, expression: Expression::Literal(Value::Int(1)) }
    }

    /// Parses an accumulator such as `{$sum: "$x"}`.
    ///
    /// # Errors
    /// When the accumulator is invalid; the message lists the known accumulators.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        let Value::Fields(fields) = value else {
            return Err("takes an accumulator such as {$sum: \"$total\"}".to_owned());
        };
        let Some((name, argument)) = fields.single() else {
            return Err("takes one accumulator".to_owned());
        };
        let known = OPERATORS.iter().find(|(known, _)| *known == name);
        let Some((_, operator)) = known else {
            let names: Vec<_> = OPERATORS.iter().map(|(known, _)| *known).collect();
            return Err(format!("{name} is not known; use one of {}", names.join(", ")));
        };
        let expression = match operator {
            Operator::Count => {
                if !matches!(argument, Value::Fields(fields) if fields.is_empty()) {
                    return Err("$count takes {}".to_owned());
                }
                Expression::Literal(Value::Int(1))
            }
            _ => Expression::parse(argument)?,
        };
        Ok(Self { operator: *operator, expression })
    }

    /// Adds a document. Temporary values are charged to `share`. Returns how many more
    /// values the accumulator now holds; `None` when they are nested too deeply.
    pub(super) fn accumulate(
        &self,
        accumulated: &mut AccumulatorState,
        document: &Fields,
        share: &mut Share<'_>,
    ) -> Result<Option<usize>, QueryError> {
        if self.operator == Operator::First && matches!(accumulated, AccumulatorState::One(_)) {
            return Ok(Some(0));
        }
        Ok(self.operator.accumulate(accumulated, self.expression.evaluate(document, share)?))
    }

    /// Returns the result of a group.
    pub(super) fn finish(&self, accumulated: AccumulatorState) -> Value {
        self.operator.finish(accumulated)
    }
}
