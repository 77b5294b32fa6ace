//! Evaluation of an expression's tree at all evaluation times at once: the operands of each node
//! first, then the node.
//!
//! Must never know: how cells are read, what functions, operators and aggregations compute.

use super::step_invariant::is_step_invariant;
use crate::query::QueryError;
use crate::query::promql::{
    aggregation::{aggregator, reduces_parts},
    binary::operate,
    context::{Context, bounds::Bounds},
    functions::extended,
    selectors::{SampleProperty, Selectors},
    syntax::ParsedQuery,
    syntax::{
        span::TextSpan,
        tree::{Aggregate, Binary, Expr, ValueType, VectorSelector},
    },
    value::{
        annotations::Notes,
        series::{Series, Value, without_names},
        steps::{QueryRange, Steps},
        windows::Extension,
    },
};

/// The state of an evaluation.
pub(super) struct Evaluator<'a> {
    pub(super) selectors: Selectors<'a>,
    pub(super) bounds: &'a Bounds<'a>,
    pub(super) notes: Notes<'a>,
    pub(super) query: QueryRange,
    pub(super) parsed: &'a ParsedQuery,
    /// True when metric names are dropped at the end of the evaluation only.
    pub(super) delayed_name_removal: bool,
}

impl Evaluator<'_> {
    /// Evaluates an expression at the steps. A range vector has no value.
    pub(super) fn value(&self, expression: &Expr, steps: &Steps) -> Result<Value, QueryError> {
        self.bounds.check_time()?;
        self.bounds.check_points(1, steps.count)?;
        if steps.count > 1 && is_step_invariant(expression) {
            return self.step_invariant(expression, steps);
        }
        let value = match expression {
            Expr::Number(number) => Value::Scalar(vec![number.value; steps.count]),
            Expr::Text(text) => Value::Text(text.value.clone()),
            Expr::Paren(paren) => self.value(&paren.inner, steps)?,
            Expr::Unary(unary) => {
                let value = self.value(&unary.inner, steps)?;
                self.bounds.reserve(value.copied_histograms_bytes())?;
                value.negated()
            }
            Expr::Vector(selector) => Value::Vector(self.select(selector, steps)?),
            Expr::Aggregate(aggregate) => Value::Vector(self.aggregate(aggregate, steps)?),
            Expr::Binary(binary) => self.binary(binary, steps)?,
            Expr::Call(call) => self.call(call, steps)?,
            Expr::Matrix(_) | Expr::Subquery(_) => {
                return Err(QueryError::Invalid(format!(
                    "{expression} is a range vector: use it in a function such as rate"
                )));
            }
        };
        let Value::Vector(series) = value else { return Ok(value) };
        self.bounds.check_points(series.len(), steps.count)?;
        let series = if self.delayed_name_removal { series } else { without_names(series)? };
        Ok(Value::Vector(series))
    }

    /// Evaluates a step-invariant expression once and repeats its value at all steps.
    fn step_invariant(&self, expression: &Expr, steps: &Steps) -> Result<Value, QueryError> {
        let value = self.value(expression, &Steps::instant(steps.start))?;
        if let Value::Vector(series) = &value {
            self.bounds.check_points(series.len(), steps.count)?;
        }
        Ok(value.repeated(steps.count))
    }

    fn select(&self, selector: &VectorSelector, steps: &Steps) -> Result<Vec<Series>, QueryError> {
        match selector.extension {
            None => self.selectors.instant(selector, steps, SampleProperty::Value),
            Some(Extension::Smoothed) => {
                let after_ms = self.selectors.lookback_ms;
                self.selectors.extended_values(selector, steps, 0, after_ms, extended::smoothed_at)
            }
            Some(Extension::Anchored) => Err(QueryError::Invalid(
                "parse error: anchored modifier can only be used with range vectors".to_owned(),
            )),
        }
    }

    fn binary(&self, binary: &Binary, steps: &Steps) -> Result<Value, QueryError> {
        let left = self.value(&binary.left, steps)?;
        let held_memory = self.bounds.hold(&left);
        let right = self.value(&binary.right, steps)?;
        drop(held_memory);
        let locations = self.locations(binary.span, &[]);
        let context = Context { notes: self.notes.of_call(&locations), ..self.context(steps) };
        operate(binary, left, right, &context)
    }

    fn aggregate(&self, aggregation: &Aggregate, steps: &Steps) -> Result<Vec<Series>, QueryError> {
        let Aggregate { operation, parameter, input, grouping, .. } = aggregation;
        let locations = self.aggregate_locations(aggregation);
        let context = Context { notes: self.notes.of_call(&locations), ..self.context(steps) };
        if let Some(series) = self.aggregate_in_shards(aggregation, steps, &context)? {
            return Ok(series);
        }
        let parameter = parameter.as_deref();
        let parameter = parameter.map(|parameter| self.value(parameter, steps)).transpose()?;
        let mut result = aggregator(*operation, grouping.as_ref(), parameter, &context)?;
        if !reduces_parts(*operation) || !self.is_read_in_chunks(input, steps) {
            result.add(self.vector(input, steps)?)?;
            return result.finish();
        }
        self.vector_in_chunks(input, steps, &mut |series| {
            result.add(series)?;
            self.bounds.check_result(result.series_count(), steps.count)
        })?;
        let series = result.finish()?;
        self.bounds.check_result(series.len(), steps.count)?;
        Ok(series)
    }

    /// Returns the locations of an aggregation, its parameter and its input.
    pub(super) fn aggregate_locations(&self, aggregation: &Aggregate) -> Vec<String> {
        let Aggregate { parameter, input, span, .. } = aggregation;
        let spans = [*span].into_iter().chain(parameter.as_deref().map(Expr::span));
        spans.chain([input.span()]).map(|span| self.parsed.location(span)).collect()
    }

    /// Evaluates an expression to an instant vector.
    pub(super) fn vector(
        &self,
        expression: &Expr,
        steps: &Steps,
    ) -> Result<Vec<Series>, QueryError> {
        match self.value(expression, steps)? {
            Value::Vector(series) => Ok(series),
            Value::Scalar(_) | Value::Text(_) => Err(wrong_type(expression, "instant vector")),
        }
    }

    /// Evaluates an expression to one number per time.
    pub(super) fn scalar(&self, expression: &Expr, steps: &Steps) -> Result<Vec<f64>, QueryError> {
        match self.value(expression, steps)? {
            Value::Scalar(values) => Ok(values),
            Value::Vector(_) | Value::Text(_) => Err(wrong_type(expression, "scalar")),
        }
    }

    /// Returns the locations of a call and of its arguments in the query.
    pub(super) fn locations(&self, call: TextSpan, arguments: &[Expr]) -> Vec<String> {
        let spans = std::iter::once(call).chain(arguments.iter().map(Expr::span));
        spans.map(|span| self.parsed.location(span)).collect()
    }

    pub(super) fn context<'c>(&'c self, steps: &'c Steps) -> Context<'c> {
        Context { steps, query: &self.query, bounds: self.bounds, notes: self.notes }
    }
}

pub(super) fn wrong_type(expression: &Expr, wanted: &str) -> QueryError {
    QueryError::Invalid(format!("parse error: expected type {wanted}, got {expression}"))
}

/// Returns true when an expression is a range vector.
pub(super) fn is_range_vector(expression: &Expr) -> bool {
    expression.value_type() == ValueType::Matrix
}
