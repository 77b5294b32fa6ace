//! The accumulators of `$group`: an operator over an expression of each document.
//!
//! Must never know: stages, or how many groups there are.

use super::{
    expression::Expression,
    operator::{AccumulatorState, OPERATORS, Operator},
    percentiles::{self, PercentileState, Percentiles},
    quota::Share,
    value::{Fields, Value},
};
use crate::query::QueryError;

/// An accumulator of a `$group`.
#[derive(Debug, Clone)]
pub(super) struct Accumulator {
    method: Method,
    expression: Expression,
}

/// The combination of the expression's values.
#[derive(Debug, Clone)]
enum Method {
    Operator(Operator),
    Percentiles(Percentiles),
}

impl Accumulator {
    /// Creates an accumulator that counts documents.
    pub(super) fn count() -> Self {
        let expression = Expression::Literal(Value::Int(1));
        Self { method: Method::Operator(Operator::Sum), expression }
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
        if let Some((percentiles, input)) = Percentiles::parse(name, argument)? {
            let method = Method::Percentiles(percentiles);
            return Ok(Self { method, expression: Expression::parse(input)? });
        }
        let known = OPERATORS.iter().find(|(known, _)| *known == name);
        let Some((_, operator)) = known else {
            let names = OPERATORS.iter().map(|(known, _)| *known);
            let names: Vec<_> = names.chain(percentiles::NAMES).collect();
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
        Ok(Self { method: Method::Operator(*operator), expression })
    }

    /// Adds a document. Temporary values are charged to `share`. Returns how many more
    /// values the accumulator now holds; `None` when they are nested too deeply.
    pub(super) fn accumulate(
        &self,
        accumulated: &mut AccumulatorState,
        document: &Fields,
        share: &mut Share<'_>,
    ) -> Result<Option<usize>, QueryError> {
        let operator = match &self.method {
            Method::Operator(operator) => operator,
            Method::Percentiles(_) => {
                let Some(value) = self.expression.evaluate(document, share)? else {
                    return Ok(Some(0));
                };
                if !matches!(accumulated, AccumulatorState::Percentiles(_)) {
                    *accumulated = AccumulatorState::Percentiles(PercentileState::default());
                }
                let AccumulatorState::Percentiles(state) = accumulated else { return Ok(Some(0)) };
                return Ok(Some(state.add(&value)));
            }
        };
        if *operator == Operator::First && matches!(accumulated, AccumulatorState::One(_)) {
            return Ok(Some(0));
        }
        Ok(operator.accumulate(accumulated, self.expression.evaluate(document, share)?))
    }

    /// Returns the result of a group.
    pub(super) fn finish(&self, accumulated: AccumulatorState) -> Value {
        match (&self.method, accumulated) {
            (Method::Operator(operator), accumulated) => operator.finish(accumulated),
            (Method::Percentiles(percentiles), AccumulatorState::Percentiles(state)) => {
                percentiles.finish(state)
            }
            (Method::Percentiles(percentiles), _) => percentiles.finish(PercentileState::default()),
        }
    }
}
