//! Walks an expression's tree, all evaluation times at once: each node's operands first, then what
//! is calculated of them.
//!
//! Must never know: how cells are read, what functions, operators and aggregations compute.

use promql_parser::parser::{AggregateExpr, BinaryExpr, Expr, VectorSelector, value::ValueType};

use super::step_invariant::is_step_invariant;
use crate::query::promql::{
    aggregation::aggregate,
    binary::operate,
    context::{Context, bounds::Bounds},
    functions::extended,
    parse::{positions::Positions, selector::extension},
    selectors::{Selectors, Take},
    value::{
        annotations::Notes,
        error::PromqlError,
        series::{Series, Value, without_names},
        steps::{QueryRange, Steps},
        windows::Extension,
    },
};

/// What an evaluation needs.
pub(super) struct Evaluator<'a> {
    pub(super) selectors: Selectors<'a>,
    pub(super) bounds: &'a Bounds<'a>,
    pub(super) notes: Notes<'a>,
    pub(super) query: QueryRange,
    pub(super) positions: &'a Positions,
    /// Whether metrics' names that no longer fit are dropped at the end only.
    pub(super) delayed_name_removal: bool,
    /// Whether no cells are needed twice.
    pub(super) has_one_selector: bool,
}

impl Evaluator<'_> {
    /// What an expression comes to at the steps. Range vectors have no value of their own.
    pub(super) fn value(&self, expression: &Expr, steps: &Steps) -> Result<Value, PromqlError> {
        self.bounds.check_time()?;
        self.bounds.check_points(1, steps.count)?;
        if steps.count > 1 && is_step_invariant(expression) {
            return self.step_invariant(expression, steps);
        }
        let value = match expression {
            Expr::NumberLiteral(number) => Value::Scalar(vec![number.val; steps.count]),
            Expr::StringLiteral(text) => Value::Text(text.val.clone()),
            Expr::Paren(inner) => self.value(&inner.expr, steps)?,
            Expr::Unary(inner) => self.value(&inner.expr, steps)?.negated(),
            Expr::VectorSelector(selector) => Value::Vector(self.selected(selector, steps)?),
            Expr::Aggregate(aggregate) => Value::Vector(self.aggregate(aggregate, steps)?),
            Expr::Binary(binary) => self.binary(binary, steps)?,
            Expr::Call(call) => self.call(call, steps)?,
            Expr::MatrixSelector(_) | Expr::Subquery(_) | Expr::Extension(_) => {
                return Err(PromqlError::BadData(format!(
                    "{expression} is a range vector: give it to a function such as rate"
                )));
            }
        };
        let Value::Vector(series) = value else { return Ok(value) };
        self.bounds.check_points(series.len(), steps.count)?;
        let series = if self.delayed_name_removal { series } else { without_names(series)? };
        Ok(Value::Vector(series))
    }

    /// What is the same at all times is evaluated once.
    fn step_invariant(&self, expression: &Expr, steps: &Steps) -> Result<Value, PromqlError> {
        let value = self.value(expression, &Steps::instant(steps.start))?;
        if let Value::Vector(series) = &value {
            self.bounds.check_points(series.len(), steps.count)?;
        }
        Ok(value.repeated(steps.count))
    }

    fn selected(
        &self,
        selector: &VectorSelector,
        steps: &Steps,
    ) -> Result<Vec<Series>, PromqlError> {
        match extension(selector) {
            None => self.selectors.instant(selector, steps, Take::Value),
            Some(Extension::Smoothed) => {
                let after_ms = self.selectors.lookback_ms;
                self.selectors.around(selector, steps, 0, after_ms, extended::smoothed_at)
            }
            Some(Extension::Anchored) => Err(PromqlError::BadData(
                "parse error: anchored modifier can only be used with range vectors".to_owned(),
            )),
        }
    }

    fn binary(&self, binary: &BinaryExpr, steps: &Steps) -> Result<Value, PromqlError> {
        let left = self.value(&binary.lhs, steps)?;
        let held = self.bounds.hold(&left);
        let right = self.value(&binary.rhs, steps)?;
        drop(held);
        operate(binary, left, right, &self.context(steps))
    }

    fn aggregate(
        &self,
        aggregation: &AggregateExpr,
        steps: &Steps,
    ) -> Result<Vec<Series>, PromqlError> {
        let parameter = aggregation.param.as_deref();
        let parameter = parameter.map(|parameter| self.value(parameter, steps)).transpose()?;
        let input = self.vector(&aggregation.expr, steps)?;
        let notes = self.notes.of_call(self.positions.of_node(aggregation));
        aggregate(aggregation, parameter, input, &Context { notes, ..self.context(steps) })
    }

    /// The value as an instant vector.
    pub(super) fn vector(
        &self,
        expression: &Expr,
        steps: &Steps,
    ) -> Result<Vec<Series>, PromqlError> {
        match self.value(expression, steps)? {
            Value::Vector(series) => Ok(series),
            Value::Scalar(_) | Value::Text(_) => Err(wrong_type(expression, "instant vector")),
        }
    }

    /// The value as one number for each time.
    pub(super) fn scalar(&self, expression: &Expr, steps: &Steps) -> Result<Vec<f64>, PromqlError> {
        match self.value(expression, steps)? {
            Value::Scalar(values) => Ok(values),
            Value::Vector(_) | Value::Text(_) => Err(wrong_type(expression, "scalar")),
        }
    }

    pub(super) fn context<'c>(&'c self, steps: &'c Steps) -> Context<'c> {
        Context { steps, query: &self.query, bounds: self.bounds, notes: self.notes }
    }
}

pub(super) fn wrong_type(expression: &Expr, wanted: &str) -> PromqlError {
    PromqlError::BadData(format!("parse error: expected type {wanted}, got {expression}"))
}

/// Whether an expression is a range vector.
pub(super) fn is_range_vector(expression: &Expr) -> bool {
    expression.value_type() == ValueType::Matrix
}
