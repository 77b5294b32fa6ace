//! Evaluation of the input of an aggregation in chunks of series, so that its memory does not
//! depend on the number of series.
//!
//! Selectors are evaluated in chunks, as are functions of range selectors, and operators and
//! functions of these and of numbers. Everything else is evaluated as a whole, because its result
//! depends on several series. Must never know: how cells are read, what aggregations and functions
//! compute.

use super::{expression::Evaluator, step_invariant::is_step_invariant};
use crate::query::QueryError;
use crate::query::promql::{
    binary::operate,
    context::Context,
    functions::{self, Arguments, is_element_wise, map_values, range},
    selectors::{Held, SampleProperty},
    syntax::tree::{Binary, Call, Expr, ValueType, VectorSelector},
    value::{
        series::{Series, Value, without_names},
        steps::Steps,
    },
};

/// A visitor of series.
pub(super) type VisitSeries<'v> = dyn FnMut(Vec<Series>) -> Result<(), QueryError> + 'v;

impl Evaluator<'_> {
    /// Returns true when the series of an expression can be evaluated in chunks. Without delayed
    /// removal of names, series of different chunks must remain distinct when their names are
    /// dropped, because equal series are joined.
    pub(super) fn is_read_in_chunks(&self, expression: &Expr, steps: &Steps) -> bool {
        if steps.count > 1 && is_step_invariant(expression) {
            return false;
        }
        let is_distinct = |selector: &VectorSelector| {
            let is_one_metric = || selector.name.is_some() && !self.selectors.has_metric_labels();
            selector.extension.is_none() && (self.delayed_name_removal || is_one_metric())
        };
        match expression {
            Expr::Paren(paren) => self.is_read_in_chunks(&paren.inner, steps),
            // A plain selector keeps its names.
            Expr::Vector(selector) => selector.extension.is_none(),
            Expr::Call(call) => match input_of_elements(call) {
                Some(input) => {
                    self.is_read_in_chunks(input, steps)
                        && input.selectors().into_iter().all(is_distinct)
                }
                None => selector_of_times(call)
                    .or_else(|| range_selector(call))
                    .is_some_and(is_distinct),
            },
            Expr::Unary(unary) => {
                self.is_read_in_chunks(&unary.inner, steps)
                    && unary.inner.selectors().into_iter().all(is_distinct)
            }
            Expr::Binary(binary) => operand_of_number(binary).is_some_and(|operand| {
                self.is_read_in_chunks(operand, steps)
                    && operand.selectors().into_iter().all(is_distinct)
            }),
            Expr::Aggregate(_)
            | Expr::Matrix(_)
            | Expr::Number(_)
            | Expr::Subquery(_)
            | Expr::Text(_) => false,
        }
    }

    /// Calls `visit` with the series of an expression, a chunk at a time, in the same order as
    /// without chunks.
    pub(super) fn vector_in_chunks(
        &self,
        expression: &Expr,
        steps: &Steps,
        visit: &mut VisitSeries<'_>,
    ) -> Result<(), QueryError> {
        self.bounds.check_time()?;
        self.bounds.check_points(1, steps.count)?;
        let mut visit = |series: Vec<Series>| {
            self.bounds.check_points(series.len(), steps.count)?;
            visit(if self.delayed_name_removal { series } else { without_names(series)? })
        };
        match expression {
            Expr::Paren(paren) => self.vector_in_chunks(&paren.inner, steps, &mut visit),
            Expr::Unary(unary) => self.vector_in_chunks(&unary.inner, steps, &mut |series| {
                let value = Value::Vector(series);
                self.bounds.reserve(value.copied_histograms_bytes())?;
                visit(series_of(value.negated()))
            }),
            Expr::Binary(binary) => self.binary_in_chunks(binary, steps, &mut visit),
            Expr::Vector(selector) => {
                let read = (SampleProperty::Value, Held::Chunk);
                self.selectors.instant_in_chunks(selector, steps, read, &mut visit)
            }
            Expr::Call(call) => self.call_in_chunks(call, steps, &mut visit),
            Expr::Aggregate(_)
            | Expr::Matrix(_)
            | Expr::Number(_)
            | Expr::Subquery(_)
            | Expr::Text(_) => visit(self.vector(expression, steps)?),
        }
    }

    fn call_in_chunks(
        &self,
        call: &Call,
        steps: &Steps,
        visit: &mut VisitSeries<'_>,
    ) -> Result<(), QueryError> {
        let (name, arguments) = (call.function.name, call.arguments.as_slice());
        let locations = self.locations(call.span, arguments);
        let context = Context { notes: self.notes.of_call(&locations), ..self.context(steps) };
        if let Some(input) = input_of_elements(call) {
            let numbers = arguments[1..].iter().map(|number| self.value(number, steps));
            let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
            return self.vector_in_chunks(input, steps, &mut |series| {
                let values = [Value::Vector(series)].into_iter().chain(numbers.clone()).collect();
                visit(series_of(functions::call(name, Arguments::new(name, values), &context)?))
            });
        }
        if let Some(selector) = selector_of_times(call) {
            let read = (SampleProperty::Time, Held::Chunk);
            return self.selectors.instant_in_chunks(selector, steps, read, &mut |times| {
                visit(map_values(times, |_, time| time))
            });
        }
        let Some(function) = range::function(name) else {
            return visit(series_of(self.call(call, steps)?));
        };
        self.range_call((name, function, arguments), &context, Held::Chunk, visit)
    }

    fn binary_in_chunks(
        &self,
        binary: &Binary,
        steps: &Steps,
        visit: &mut VisitSeries<'_>,
    ) -> Result<(), QueryError> {
        let is_left = is_number(&binary.right);
        let (input, number) =
            if is_left { (&binary.left, &binary.right) } else { (&binary.right, &binary.left) };
        let number = self.value(number, steps)?;
        let locations = self.locations(binary.span, &[]);
        let context = Context { notes: self.notes.of_call(&locations), ..self.context(steps) };
        self.vector_in_chunks(input, steps, &mut |series| {
            let (series, number) = (Value::Vector(series), number.clone());
            let (left, right) = if is_left { (series, number) } else { (number, series) };
            visit(series_of(operate(binary, left, right, &context)?))
        })
    }
}

/// Returns the first argument of a function of each of its values, if no other argument depends on
/// series.
fn input_of_elements(call: &Call) -> Option<&Expr> {
    let (input, numbers) = call.arguments.split_first()?;
    (is_element_wise(call.function.name) && numbers.iter().all(is_number)).then_some(input)
}

/// Returns the selector of the samples whose times a call returns.
pub(super) fn selector_of_times(call: &Call) -> Option<&VectorSelector> {
    let argument = call.arguments.first().filter(|_| call.function.name == "timestamp")?;
    if let Expr::Vector(selector) = argument.without_parens() { Some(selector) } else { None }
}

/// Returns the selector of a function's range, if the function is called for each series.
fn range_selector(call: &Call) -> Option<&VectorSelector> {
    range::function(call.function.name)?;
    call.arguments.iter().find_map(|argument| match argument.without_parens() {
        Expr::Matrix(matrix) => Some(&matrix.selector),
        Expr::Aggregate(_)
        | Expr::Binary(_)
        | Expr::Call(_)
        | Expr::Number(_)
        | Expr::Paren(_)
        | Expr::Subquery(_)
        | Expr::Text(_)
        | Expr::Unary(_)
        | Expr::Vector(_) => None,
    })
}

/// Returns the operand of an operator whose other operand is a number.
fn operand_of_number(binary: &Binary) -> Option<&Expr> {
    match (is_number(&binary.left), is_number(&binary.right)) {
        (false, true) => Some(&binary.left),
        (true, false) => Some(&binary.right),
        (true, true) | (false, false) => None,
    }
}

/// Returns true when an expression is a number that depends on no series.
fn is_number(expression: &Expr) -> bool {
    expression.value_type() == ValueType::Scalar && expression.selectors().is_empty()
}

fn series_of(value: Value) -> Vec<Series> {
    match value {
        Value::Vector(series) => series,
        Value::Scalar(_) | Value::Text(_) => Vec::new(),
    }
}
