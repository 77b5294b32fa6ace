//! Function calls: evaluates the arguments and hands them to the function.
//!
//! A few functions look at what an argument is, not only at its value: they get that here. Must never
//! know: what functions compute.

use promql_parser::parser::{Call, Expr, MatrixSelector};

use super::expression::{Evaluator, is_range_vector};
use crate::{
    policy::query_plan::Detail,
    query::promql::{
        context::Context,
        functions::{
            self, Arguments,
            absent::absent,
            extended::ExtendedFunction,
            info::{self, InfoSelector},
            missing, range,
            window::RangeFunction,
        },
        parse::selector::{conditions_of, extended, first_selector, named_labels, without_parens},
        selectors::{Take, modifiers::positive_ms},
        value::{
            error::PromqlError,
            series::{Series, Value},
            steps::Steps,
            windows::Extension,
        },
    },
    store::Columns,
};

impl Evaluator<'_> {
    /// What a function call comes to.
    pub(super) fn call(&self, call: &Call, steps: &Steps) -> Result<Value, PromqlError> {
        let name = call.func.name;
        let arguments: Vec<&Expr> = call.args.args.iter().map(|argument| &**argument).collect();
        let notes = self.notes.of_call(self.positions.of_node(call));
        let context = Context { notes, ..self.context(steps) };
        if let Some(function) = range::function(name) {
            return Ok(Value::Vector(self.range_call(name, function, &arguments, &context)?));
        }
        let first = || arguments.first().copied().ok_or_else(|| missing(name));
        Ok(match name {
            "absent" => {
                let found = self.vector(first()?, steps)?;
                Value::Vector(absent(named_labels(first()?), &found, steps))
            }
            "absent_over_time" => Value::Vector(self.absent_over_time(first()?, &context)?),
            "info" => Value::Vector(self.info(&arguments, &context)?),
            "timestamp" => Value::Vector(self.timestamp(first()?, steps)?),
            _ => {
                let value = |argument: &&Expr| self.value(argument, steps);
                let values = arguments.iter().map(value).collect::<Result<Vec<_>, _>>()?;
                functions::call(name, Arguments::new(name, values), &context)?
            }
        })
    }

    /// Functions of a range vector, and of numbers beside it.
    fn range_call(
        &self,
        name: &str,
        function: RangeFunction,
        arguments: &[&Expr],
        context: &Context<'_>,
    ) -> Result<Vec<Series>, PromqlError> {
        if let Some((matrix, extension)) = arguments.iter().find_map(|own| extended(own)) {
            return self.extended_call(name, matrix, extension, context.steps);
        }
        let (mut windows, mut numbers) = (None, Vec::new());
        for argument in arguments {
            if is_range_vector(argument) {
                windows = Some(without_parens(argument));
            } else {
                numbers.push(self.scalar(argument, context.steps)?);
            }
        }
        let (detail, columns) = (range::detail(name), range::columns(name));
        let own = Context { notes: context.notes.at_argument(0), ..*context };
        let windows = windows.ok_or_else(|| missing(name))?;
        if let Expr::MatrixSelector(matrix) = windows
            && self.has_one_selector
        {
            let (mut series, read) = (Vec::new(), (detail, columns));
            self.selectors.range_in_parts(matrix, context.steps, read, |windows| {
                series.extend(range::call(name, function, windows, &numbers, &own)?);
                Ok(())
            })?;
            return Ok(series);
        }
        let windows = self.range_vector(windows, context.steps, detail, columns)?;
        range::call(name, function, &windows, &numbers, &own)
    }

    /// Functions of an extended range selector.
    fn extended_call(
        &self,
        name: &str,
        matrix: &MatrixSelector,
        extension: Extension,
        steps: &Steps,
    ) -> Result<Vec<Series>, PromqlError> {
        let range_ms = positive_ms(matrix.range)?;
        let function = ExtendedFunction::new(name, extension, range_ms)?;
        let is_smoothed = extension == Extension::Smoothed;
        let after_ms = if is_smoothed { self.selectors.lookback_ms } else { 0 };
        let compute = |samples: &[_], to| function.value(samples, to);
        let mut found = self.selectors.around(&matrix.vs, steps, range_ms, after_ms, compute)?;
        for one in &mut found {
            one.drop_metric = true;
        }
        Ok(found)
    }

    fn absent_over_time(
        &self,
        argument: &Expr,
        context: &Context<'_>,
    ) -> Result<Vec<Series>, PromqlError> {
        let (detail, columns) = (Detail::Aggregates, Columns::NONE);
        let windows = self.range_vector(argument, context.steps, detail, columns)?;
        let found = range::over_windows(&windows, context, |window, _| {
            Ok(window.has_readings().then_some(1.0))
        })?;
        Ok(absent(named_labels(argument), &found, context.steps))
    }

    /// `timestamp`: of a selector the sample's time, of anything else the evaluation time.
    fn timestamp(&self, argument: &Expr, steps: &Steps) -> Result<Vec<Series>, PromqlError> {
        if let Expr::VectorSelector(selector) = without_parens(argument) {
            let times = self.selectors.instant(selector, steps, Take::Time)?;
            return Ok(functions::mapped(times, |_, time| time));
        }
        let series = self.vector(argument, steps)?;
        Ok(functions::mapped(series, |at, _| steps.at(at) as f64 / 1000.0))
    }

    /// `info`: the series of the first argument with labels of the info series that the second one
    /// selects. Those count whose samples lie where the first selector of the first argument looks.
    fn info(&self, arguments: &[&Expr], context: &Context<'_>) -> Result<Vec<Series>, PromqlError> {
        let steps = context.steps;
        let [base, rest @ ..] = arguments else {
            return Err(PromqlError::BadData("parse error: info needs an argument".to_owned()));
        };
        let shift = first_selector(base).map(|selector| self.selectors.shift(selector));
        let looks_at = |time| shift.map_or(time, |shift| shift.of(time));
        let first = looks_at(steps.start) - self.selectors.lookback_ms + 1;
        let base = Value::Vector(self.vector(base, steps)?);
        let given = match rest.first() {
            None => Vec::new(),
            Some(Expr::VectorSelector(selector)) => {
                conditions_of(selector, self.bounds.limits)?.into_iter().flatten().collect()
            }
            Some(other) => {
                return Err(PromqlError::BadData(format!(
                    "parse error: expected label selectors only, got {other} in call to \"info\""
                )));
            }
        };
        let selector = InfoSelector::new(given, self.bounds)?;
        let held = self.bounds.hold(&base);
        let within = first..=looks_at(steps.last());
        let found = self.selectors.newest_times(selector.matchers(), steps, &within)?;
        drop(held);
        let Value::Vector(base) = base else { return Ok(Vec::new()) };
        info::joined(&base, &found, &selector, context)
    }
}
