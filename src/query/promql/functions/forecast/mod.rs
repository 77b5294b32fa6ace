//! Forecasts of a window: `forecast` and `forecast_until`, which Prometheus does not have.
//!
//! `steps` turns the window into the means of equal time steps, `model` fits a trend with a season
//! to them. Must never know: the store, the tree.

mod model;
mod steps;

#[cfg(test)]
mod tests;

use model::Model;
use steps::{Steps, seasons};

use super::window::{RangeFunction, WindowResult};
use crate::query::promql::value::{annotations::Notes, windows::Window};

/// The quantile without an argument: the median.
const MEDIAN: f64 = 0.5;

/// Returns the function with a name, if it is in this folder.
pub(super) fn function(name: &str) -> Option<RangeFunction> {
    Some(match name {
        "forecast" => forecast,
        "forecast_until" => forecast_until,
        _ => return None,
    })
}

/// Returns the forecast value a number of seconds after the evaluation.
#[expect(clippy::unnecessary_wraps, reason = "functions of windows return results")]
fn forecast(window: &Window<'_>, arguments: &[f64], _: &Notes<'_>) -> WindowResult {
    let ahead = arguments.first().copied().unwrap_or(f64::NAN);
    let Some((steps, model)) = fitted(window) else { return Ok(None) };
    let horizon = steps.horizon_of(window.frame.evaluated_at as f64 + ahead * 1000.0);
    Ok(model.quantile_at(horizon, quantile_of(arguments)))
}

/// Returns the seconds after the evaluation until the forecast reaches a level; `None` when that is
/// further ahead than the window's samples reach back.
#[expect(clippy::unnecessary_wraps, reason = "functions of windows return results")]
fn forecast_until(window: &Window<'_>, arguments: &[f64], _: &Notes<'_>) -> WindowResult {
    let level = arguments.first().copied().unwrap_or(f64::NAN);
    let Some((steps, model)) = fitted(window) else { return Ok(None) };
    let Some(horizon) = model.horizon_of(level, quantile_of(arguments)) else { return Ok(None) };
    let ahead_ms = steps.time_of(horizon) - window.frame.evaluated_at as f64;
    Ok(Some((ahead_ms / 1000.0).max(0.0)))
}

fn fitted(window: &Window<'_>) -> Option<(Steps, Model)> {
    let steps = Steps::of_window(window)?;
    let model = Model::fit(&steps.means, &seasons(steps.width_ms))?;
    Some((steps, model))
}

fn quantile_of(arguments: &[f64]) -> f64 {
    arguments.get(1).copied().unwrap_or(MEDIAN)
}
