//! The evaluation of an expression for a document, within the quota of the pipeline.
//!
//! Must never know: how expressions are parsed.

use super::{Bucket, Expression, dates};
use crate::query::{
    QueryError,
    pipeline::{
        arithmetic::{Function, call, unfit},
        order::order_all,
        percentiles::PercentileState,
        quota::Share,
        value::{Fields, Value},
    },
};

impl Expression {
    /// Evaluates the expression for a document; `None` when a field is missing.
    ///
    /// # Errors
    /// When a quota is used up, or an argument has a wrong type.
    pub(in crate::pipeline) fn evaluate(
        &self,
        document: &Fields,
        share: &mut Share<'_>,
    ) -> Result<Option<Value>, QueryError> {
        Ok(match self {
            Self::Literal(value) => Some(share.copy(value)?),
            Self::Path(path) => path.get(document, share)?,
            Self::Root => Some(Value::Fields(share.copy_fields(document)?)),
            Self::Fields(fields) => {
                share.charge(1)?;
                let mut out = Vec::new();
                for (name, expression) in fields {
                    out.extend(
                        expression.evaluate(document, share)?.map(|value| (name.clone(), value)),
                    );
                }
                Some(Value::Fields(out.into_iter().collect()))
            }
            Self::List(values) => {
                share.charge(1)?;
                Some(Value::List(evaluate_all(values, document, share)?))
            }
            Self::Call(function, arguments) => {
                evaluate_call(*function, arguments, document, share)?
            }
            Self::Accumulated(operator, arguments) => {
                let mut values = evaluate_all(arguments, document, share)?;
                if let [Value::List(list)] = &mut values[..] {
                    values = std::mem::take(list);
                }
                Some(operator.combine(values))
            }
            Self::Percentiles(percentiles, input) => {
                let mut state = PercentileState::default();
                let values = match input.evaluate(document, share)? {
                    Some(Value::List(values)) => values,
                    found => found.into_iter().collect(),
                };
                for value in &values {
                    state.add(value);
                }
                share.charge(percentiles.len())?;
                Some(percentiles.finish(state))
            }
            Self::RegexMatch(input, pattern) => Some(match input.evaluate(document, share)? {
                None | Some(Value::Null) => Value::Bool(false),
                Some(Value::Text(text)) => Value::Bool(pattern.is_match(&text)),
                Some(other) => return Err(unfit("$regexMatch", &other, "a text")),
            }),
            Self::Bucket(bucket) => Some(bucket.evaluate(document, share)?),
            Self::DatePart(..)
            | Self::DateParts(..)
            | Self::DateTrunc(..)
            | Self::DateToString(_) => Some(self.evaluate_date(document, share)?),
        })
    }

    fn evaluate_date(&self, document: &Fields, share: &mut Share<'_>) -> Result<Value, QueryError> {
        let mut date = |expression: &Self, name: &str| match expression.evaluate(document, share)? {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Date(at)) => Ok(Some(at)),
            Some(other) => Err(unfit(name, &other, "a date")),
        };
        let found = match self {
            Self::DatePart(part, expression, zone) => {
                date(expression, part.name())?.map(|at| part.of(&dates::local(at, zone)))
            }
            Self::DateParts(expression, zone, iso) => {
                let at = date(expression, "$dateToParts")?;
                share.charge(dates::PARTS_VALUES)?;
                at.map(|at| dates::parts(&dates::local(at, zone), *iso))
            }
            Self::DateTrunc(truncation, expression, zone) => {
                date(expression, "$dateTrunc")?.map(|at| Value::Date(truncation.start_of(at, zone)))
            }
            Self::DateToString(options) => match date(&options.date, "$dateToString")? {
                Some(at) => {
                    let text = options.format.text(&dates::local(at, &options.zone));
                    share.charge(1 + text.len() / 64)?;
                    Some(Value::Text(text.into()))
                }
                None => match &options.on_null {
                    Some(on_null) => on_null.evaluate(document, share)?,
                    None => None,
                },
            },
            _ => None,
        };
        Ok(found.unwrap_or(Value::Null))
    }
}

impl Bucket {
    fn evaluate(&self, document: &Fields, share: &mut Share<'_>) -> Result<Value, QueryError> {
        let value = self.by.evaluate(document, share)?.unwrap_or(Value::Null);
        let above = self.boundaries.partition_point(|low| order_all(low, &value).is_le());
        let is_beyond = above == self.boundaries.len();
        let found = above.checked_sub(1).filter(|_| !is_beyond);
        let bucket = found.and_then(|index| self.boundaries.get(index)).or(self.default.as_ref());
        let Some(bucket) = bucket else {
            let value_text = serde_json::to_string(&value).unwrap_or_default();
            return Err(QueryError::Invalid(format!(
                "$bucket: {} falls into no bucket; add a default",
                value_text.chars().take(60).collect::<String>()
            )));
        };
        share.copy(bucket)
    }
}

/// Evaluates expressions; missing values become `Null`.
fn evaluate_all(
    expressions: &[Expression],
    document: &Fields,
    share: &mut Share<'_>,
) -> Result<Vec<Value>, QueryError> {
    let value =
        |expression: &Expression| Ok(expression.evaluate(document, share)?.unwrap_or(Value::Null));
    expressions.iter().map(value).collect()
}

/// Evaluates a function with lazy arguments; `None` when the chosen field is missing.
fn evaluate_call(
    function: Function,
    arguments: &[Expression],
    document: &Fields,
    share: &mut Share<'_>,
) -> Result<Option<Value>, QueryError> {
    let mut value = |index: usize| -> Result<Option<Value>, QueryError> {
        let found = arguments.get(index).map(|argument| argument.evaluate(document, share));
        Ok(found.transpose()?.flatten())
    };
    // Only the chosen argument is evaluated.
    match function {
        Function::Cond => {
            let chosen = if value(0)?.is_some_and(|value| value.is_truthy()) { 1 } else { 2 };
            value(chosen)
        }
        Function::IfNull => {
            let last = arguments.len().saturating_sub(1);
            for index in 0..last {
                let found = value(index)?;
                if found.as_ref().is_some_and(|value| *value != Value::Null) {
                    return Ok(found);
                }
            }
            value(last)
        }
        Function::And | Function::Or => {
            let decisive = function == Function::Or;
            for index in 0..arguments.len() {
                if value(index)?.is_some_and(|value| value.is_truthy()) == decisive {
                    return Ok(Some(Value::Bool(decisive)));
                }
            }
            Ok(Some(Value::Bool(!decisive)))
        }
        _ if function.is_comparison() => {
            let (a, b) = (value(0)?, value(1)?);
            // A missing field precedes null.
            let order = match (&a, &b) {
                (Some(a), Some(b)) => order_all(a, b),
                _ => a.is_some().cmp(&b.is_some()),
            };
            Ok(Some(function.comparison_result(order)))
        }
        _ => Ok(Some(call(function, evaluate_all(arguments, document, share)?)?)),
    }
}
