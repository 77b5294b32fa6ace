//! Functions of evaluated arguments.
//!
//! [`call`] evaluates functions of values, `range` evaluates functions of range vectors; each
//! receives its arguments and a [`Context`]. The signatures are in `syntax/functions.rs`. Parts of
//! `absent`, `absent_over_time`, `info` and `timestamp` are in `evaluate/call.rs`. Must never know:
//! the store, the tree, the evaluator.

pub(crate) mod absent;
mod buckets;
mod changes;
pub(crate) mod distributions;
pub(crate) mod extended;
mod extrapolation;
mod forecast;
mod histograms;
mod increase;
pub(crate) mod info;
mod labels;
mod maths;
mod native_histograms;
mod normal;
mod over_time;
pub(crate) mod range;
mod rates;
mod regression;
mod scalars;
mod sorting;
pub(crate) mod window;

use buckets::Bucket;

use crate::query::QueryError;
use crate::query::promql::{
    context::Context,
    value::{
        histograms::HistogramColumn,
        series::{Series, Value, is_present},
    },
};

/// Returns a quantile of a classic histogram, given upper bounds and cumulative counts.
pub(crate) fn quantile_of_buckets(quantile: f64, all: &[(f64, f64)]) -> f64 {
    let all = all.iter().map(|(bound, count)| Bucket { bound: *bound, count: *count });
    buckets::quantile(quantile, all.collect()).0
}

/// The evaluated arguments of a call, consumed in order.
pub(crate) struct Arguments<'a> {
    function: &'a str,
    values: std::vec::IntoIter<Value>,
}

impl<'a> Arguments<'a> {
    /// Creates the arguments of a function.
    pub(crate) fn new(function: &'a str, values: Vec<Value>) -> Self {
        Self { function, values: values.into_iter() }
    }

    /// Returns true when all arguments are consumed.
    fn is_empty(&self) -> bool {
        self.values.as_slice().is_empty()
    }

    /// Returns the next argument, which must be an instant vector.
    fn vector(&mut self) -> Result<Vec<Series>, QueryError> {
        match self.values.next() {
            Some(Value::Vector(series)) => Ok(series),
            Some(Value::Scalar(_) | Value::Text(_)) => Err(self.wrong_type("instant vector")),
            None => Err(missing_argument(self.function)),
        }
    }

    /// Returns the next argument, which must be one number per time.
    fn scalar(&mut self) -> Result<Vec<f64>, QueryError> {
        match self.values.next() {
            Some(Value::Scalar(values)) => Ok(values),
            Some(Value::Vector(_) | Value::Text(_)) => Err(self.wrong_type("scalar")),
            None => Err(missing_argument(self.function)),
        }
    }

    /// Returns the next argument, which must be a text.
    fn text(&mut self) -> Result<String, QueryError> {
        match self.values.next() {
            Some(Value::Text(text)) => Ok(text),
            Some(Value::Vector(_) | Value::Scalar(_)) => Err(self.wrong_type("string")),
            None => Err(missing_argument(self.function)),
        }
    }

    /// Returns all remaining arguments, which must be one number per time.
    fn scalars(&mut self) -> Result<Vec<Vec<f64>>, QueryError> {
        let mut all = Vec::new();
        while !self.is_empty() {
            all.push(self.scalar()?);
        }
        Ok(all)
    }

    /// Returns all remaining arguments, which must be texts.
    fn texts(&mut self) -> Result<Vec<String>, QueryError> {
        let mut all = Vec::new();
        while !self.is_empty() {
            all.push(self.text()?);
        }
        Ok(all)
    }

    fn wrong_type(&self, wanted: &str) -> QueryError {
        QueryError::Invalid(format!(
            "parse error: expected type {wanted} in call to {:?}",
            self.function
        ))
    }
}

/// Evaluates a function that takes no range vector.
pub(crate) fn call(
    name: &str,
    mut arguments: Arguments<'_>,
    context: &Context<'_>,
) -> Result<Value, QueryError> {
    if let Some(values) = scalars::call(name, &mut arguments, context)? {
        return Ok(Value::Scalar(values));
    }
    Ok(Value::Vector(match name {
        "vector" => vec![Series::unlabelled(arguments.scalar()?)],
        "label_join" => labels::join(arguments.vector()?, &arguments.texts()?, context.bounds)?,
        "label_replace" => {
            labels::replace(arguments.vector()?, &arguments.texts()?, context.bounds)?
        }
        "sort" | "sort_desc" => sorting::by_value(arguments.vector()?, name == "sort", context),
        "sort_by_label" | "sort_by_label_desc" => {
            let (series, names) = (arguments.vector()?, arguments.texts()?);
            sorting::by_labels(series, &names, name == "sort_by_label", context)
        }
        "histogram_quantile" => histograms::quantile(arguments, context)?,
        "histogram_quantiles" => histograms::quantiles(arguments, context)?,
        "histogram_fraction" => histograms::fraction(arguments, context)?,
        _ => match native_histograms::function(name) {
            Some(function) => {
                let all = arguments.vector()?;
                native_histograms::map_histograms(all, |_, histogram| function(histogram))
            }
            None => maths::call(name, arguments, context)?,
        },
    }))
}

/// Returns whether each value of a function's result follows from one value of its first argument,
/// and from further arguments that are numbers.
pub(crate) fn is_element_wise(name: &str) -> bool {
    maths::has(name) || native_histograms::function(name).is_some()
}

/// Returns the error for a call without a required argument.
pub(crate) fn missing_argument(name: &str) -> QueryError {
    QueryError::Invalid(format!("parse error: an argument is missing in the call to {name:?}"))
}

/// Applies a function to every value. The metric's name does not apply to the result.
pub(crate) fn map_values(
    mut series: Vec<Series>,
    mut function: impl FnMut(usize, f64) -> f64,
) -> Vec<Series> {
    for entry in &mut series {
        entry.drop_metric = true;
        entry.histograms = HistogramColumn::NONE;
        for (step, value) in entry.values.iter_mut().enumerate() {
            if is_present(*value) {
                *value = function(step, *value);
            }
        }
    }
    series.retain(Series::has_values);
    series
}
