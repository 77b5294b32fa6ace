//! Functions that return one number per time.
//!
//! Must never know: the store, the tree.

use super::Arguments;
use crate::query::QueryError;
use crate::query::promql::{
    context::Context,
    value::{
        numbers::{larger, smaller},
        series::{Series, is_present},
    },
};

/// Evaluates the function with a name, if it is in this file.
pub(super) fn call(
    name: &str,
    arguments: &mut Arguments<'_>,
    context: &Context<'_>,
) -> Result<Option<Vec<f64>>, QueryError> {
    let (steps, query) = (context.steps, context.query);
    let seconds = |millis: i64| millis as f64 / 1000.0;
    let constant = |number: f64| Ok(Some(vec![number; steps.count]));
    match name {
        "time" => Ok(Some(steps.times().map(seconds).collect())),
        "pi" => constant(std::f64::consts::PI),
        "start" => constant(seconds(query.start)),
        "end" => constant(seconds(query.end)),
        "range" => constant(seconds(query.end - query.start)),
        "step" => constant(seconds(query.step_ms)),
        "min_of" | "max_of" => {
            let (left, right) = (arguments.scalar()?, arguments.scalar()?);
            let choose = if name == "min_of" { smaller } else { larger };
            Ok(Some(left.into_iter().zip(right).map(|(left, right)| choose(left, right)).collect()))
        }
        "scalar" => {
            let series = arguments.vector()?;
            Ok(Some((0..steps.count).map(|step| only_value(&series, step)).collect()))
        }
        _ => Ok(None),
    }
}

/// Returns the value at a time when exactly one series has a value there; NaN otherwise.
fn only_value(series: &[Series], step: usize) -> f64 {
    let mut present =
        series.iter().map(|series| series.values[step]).filter(|value| is_present(*value));
    match (present.next(), present.next()) {
        (Some(value), None) => value,
        _ => f64::NAN,
    }
}
