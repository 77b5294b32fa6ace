//! Function calls: evaluates the arguments and calls the function.
//!
//! A few functions depend on the syntax of an argument, not only on its value; this file handles
//! these functions. Must never know: what functions compute.

use super::{
    chunks::{VisitSeries, selector_of_times},
    expression::{Evaluator, is_range_vector},
};
use crate::query::QueryError;
use crate::{
    policy::query_plan::Detail,
    query::promql::{
        context::Context,
        functions::{
            self, Arguments,
            absent::absent,
            extended::ExtendedFunction,
            info::{self, InfoSelector},
            missing_argument, range,
            window::RangeFunction,
        },
        selectors::{
            Held, SampleProperty,
            compiled::{fixed_labels, unchecked_matchers},
        },
        syntax::tree::{Call, Expr, MatrixSelector},
        value::{
            range_vector::RangeVector,
            series::{Series, Value},
            steps::Steps,
            windows::Extension,
        },
    },
    store::Columns,
};

impl Evaluator<'_> {
    /// Evaluates a function call.
    pub(super) fn call(&self, call: &Call, steps: &Steps) -> Result<Value, QueryError> {
        let (name, arguments) = (call.function.name, call.arguments.as_slice());
        let locations = self.locations(call.span, arguments);
        let context = Context { notes: self.notes.of_call(&locations), ..self.context(steps) };
        if let Some(function) = range::function(name) {
            let mut all = Vec::new();
            self.range_call((name, function, arguments), &context, Held::All, &mut |series| {
                all.extend(series);
                Ok(())
            })?;
            return Ok(Value::Vector(all));
        }
        let first = || arguments.first().ok_or_else(|| missing_argument(name));
        Ok(match name {
            "absent" => {
                let found = self.vector(first()?, steps)?;
                Value::Vector(absent(fixed_labels(first()?), &found, steps))
            }
            "absent_over_time" => Value::Vector(self.absent_over_time(first()?, &context)?),
            "info" => Value::Vector(self.info(arguments, &context)?),
            "timestamp" => Value::Vector(self.timestamp(call, steps)?),
            _ => {
                let values = arguments.iter().map(|argument| self.value(argument, steps));
                let values = values.collect::<Result<Vec<_>, _>>()?;
                functions::call(name, Arguments::new(name, values), &context)?
            }
        })
    }

    /// Calls a function of a range vector and of further numbers, and `visit` with some series of
    /// the result at a time.
    pub(super) fn range_call(
        &self,
        (name, function, arguments): (&str, RangeFunction, &[Expr]),
        context: &Context<'_>,
        held: Held,
        visit: &mut VisitSeries<'_>,
    ) -> Result<(), QueryError> {
        if let Some((matrix, extension)) = arguments.iter().find_map(extended_selector) {
            return visit(self.extended_call(name, matrix, extension, context.steps)?);
        }
        let (mut windows, mut numbers) = (None, Vec::new());
        for argument in arguments {
            if is_range_vector(argument) {
                windows = Some(argument.without_parens());
            } else {
                numbers.push(self.scalar(argument, context.steps)?);
            }
        }
        let (detail, columns) = (range::needed_detail(name), range::read_columns(name));
        let context = Context { notes: context.notes.at_argument(0), ..*context };
        let mut call = |windows: &RangeVector| {
            visit(range::call(name, function, windows, &numbers, &context)?)
        };
        let windows = windows.ok_or_else(|| missing_argument(name))?;
        if let Expr::Matrix(matrix) = windows {
            let read = (detail, columns);
            return self.selectors.range_in_chunks(matrix, context.steps, read, held, &mut call);
        }
        call(&self.range_vector(windows, context.steps, detail, columns)?)
    }

    /// Calls a function of an extended range selector.
    fn extended_call(
        &self,
        name: &str,
        matrix: &MatrixSelector,
        extension: Extension,
        steps: &Steps,
    ) -> Result<Vec<Series>, QueryError> {
        let range_ms = matrix.range.positive_millis(self.query.times)?;
        let function = ExtendedFunction::new(name, extension, range_ms)?;
        let is_smoothed = extension == Extension::Smoothed;
        let after_ms = if is_smoothed { self.selectors.lookback_ms } else { 0 };
        let compute = |samples: &[_], to| function.value(samples, to);
        let mut found =
            self.selectors.extended_values(&matrix.selector, steps, range_ms, after_ms, compute)?;
        for entry in &mut found {
            entry.drop_metric = true;
        }
        Ok(found)
    }

    fn absent_over_time(
        &self,
        argument: &Expr,
        context: &Context<'_>,
    ) -> Result<Vec<Series>, QueryError> {
        let (detail, columns) = (Detail::Aggregates, Columns::NONE);
        let windows = self.range_vector(argument, context.steps, detail, columns)?;
        let found = range::over_windows(
            &windows,
            false,
            context,
            |window, _| Ok(window.has_readings().then_some(1.0)),
            |window, _| Ok(window.has_readings().then_some(1.0).into()),
        )?;
        Ok(absent(fixed_labels(argument), &found, context.steps))
    }

    /// Evaluates `timestamp`: the time of the sample for a selector, otherwise the evaluation time.
    fn timestamp(&self, call: &Call, steps: &Steps) -> Result<Vec<Series>, QueryError> {
        if let Some(selector) = selector_of_times(call) {
            let times = self.selectors.instant(selector, steps, SampleProperty::Time)?;
            return Ok(functions::map_values(times, |_, time| time));
        }
        let argument = call.arguments.first().ok_or_else(|| missing_argument("timestamp"))?;
        let mut series = self.vector(argument, steps)?;
        for entry in &mut series {
            for (step, _) in std::mem::take(&mut entry.histograms).iter() {
                entry.values[step] = 0.0;
            }
        }
        Ok(functions::map_values(series, |step, _| steps.time_at(step) as f64 / 1000.0))
    }

    /// Evaluates `info`: adds labels of the info series that the second argument selects to the
    /// series of the first. Info series are read at the times of the first selector of the first
    /// argument.
    fn info(&self, arguments: &[Expr], context: &Context<'_>) -> Result<Vec<Series>, QueryError> {
        let steps = context.steps;
        let [base, rest @ ..] = arguments else {
            return Err(QueryError::Invalid("parse error: info needs an argument".to_owned()));
        };
        let first = base.selectors().into_iter().next();
        let shift = first.map(|selector| self.selectors.shift(selector)).transpose()?;
        let shifted = |time| shift.map_or(time, |shift| shift.of(time));
        let first = shifted(steps.start) - self.selectors.lookback_ms + 1;
        let base = Value::Vector(self.vector(base, steps)?);
        let conditions = match rest.first() {
            Some(Expr::Vector(selector)) => {
                unchecked_matchers(selector, self.bounds.limits)?.into_iter().flatten().collect()
            }
            _ => Vec::new(),
        };
        let selector = InfoSelector::new(conditions, self.bounds)?;
        let held_memory = self.bounds.hold(&base);
        let times = first..=shifted(steps.last());
        let found = self.selectors.newest_times(selector.matchers(), steps, &times)?;
        drop(held_memory);
        let Value::Vector(base) = base else { return Ok(Vec::new()) };
        info::add_info_labels(&base, &found, &selector, context)
    }
}

/// Returns the selector and the extension of an expression that is an extended range selector.
fn extended_selector(expression: &Expr) -> Option<(&MatrixSelector, Extension)> {
    let Expr::Matrix(matrix) = expression.without_parens() else { return None };
    Some((matrix, matrix.selector.extension?))
}
