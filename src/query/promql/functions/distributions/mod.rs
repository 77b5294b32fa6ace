//! Functions of range vectors of series with native histograms.
//!
//! A window may have numbers and histograms. Where slots have one or two readings, all functions
//! follow Prometheus; merged slots have the first and the last reading, and the increase of a
//! counter or the sum of the readings. Must never know: the store, the tree.

mod over_time;
mod rates;

use std::sync::Arc;

use super::window::{Instead, RangeFunction, merged_samples_error};
use crate::query::QueryError;
use crate::{
    model::{Histogram, Kind},
    query::promql::value::{
        annotations::Notes,
        cells::TimedCell,
        histograms::{HistogramWindow, TimedHistogram},
        windows::Window,
    },
};

/// The result of a function for one window.
pub(crate) enum Outcome {
    Nothing,
    Number(f64),
    Histogram(Arc<Histogram>),
}

/// The result, or the error of a function that needs every sample.
pub(super) type OutcomeResult = Result<Outcome, QueryError>;

impl From<Option<f64>> for Outcome {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Nothing, Self::Number)
    }
}

/// The numbers and histograms of a series in a window.
#[derive(Clone, Copy)]
pub(crate) struct MixedWindow<'a> {
    /// The numbers.
    pub(crate) numbers: Window<'a>,
    /// The histograms.
    pub(crate) histograms: HistogramWindow<'a>,
    /// The kind of the histograms.
    pub(crate) kind: Kind,
    /// The name of the metric, for notes.
    pub(crate) metric: &'a str,
}

/// The sorts of samples in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Samples {
    None,
    Numbers,
    Histograms,
    Both,
}

impl MixedWindow<'_> {
    /// Returns true when the window has a number or a histogram.
    pub(crate) fn has_readings(&self) -> bool {
        self.samples() != Samples::None
    }

    fn samples(&self) -> Samples {
        match (self.numbers.has_readings(), self.histograms.count() > 0.0) {
            (false, false) => Samples::None,
            (true, false) => Samples::Numbers,
            (false, true) => Samples::Histograms,
            (true, true) => Samples::Both,
        }
    }

    /// Returns the error of a function that needs every reading, if some are unknown.
    fn check_single_readings(&self, function: &str, instead: Instead) -> Result<(), QueryError> {
        let merged = self.histograms.slots.iter().find(|slot| slot.is_merged());
        merged.map_or(Ok(()), |slot| {
            let TimedHistogram { first_at, last_at, n, .. } = *slot;
            let cell = TimedCell { first_at, last_at, n, ..TimedCell::sample(last_at, 0.0) };
            Err(merged_samples_error(function, instead, &self.numbers, &cell))
        })
    }
}

/// Evaluates a function of a window; `of_numbers` is the same function of numbers.
pub(crate) fn call(
    (name, of_numbers): (&str, RangeFunction),
    window: &MixedWindow<'_>,
    arguments: &[f64],
    notes: &Notes<'_>,
) -> OutcomeResult {
    let is_change = matches!(name, "delta" | "increase" | "rate" | "irate" | "idelta");
    let depends_on_kind = is_change || matches!(name, "sum_over_time" | "avg_over_time");
    if depends_on_kind && window.histograms.mixes_kinds() {
        notes.warn_of_mixed_kinds(window.metric);
        return Ok(Outcome::Nothing);
    }
    match name {
        "delta" | "increase" | "rate" | "sum_over_time" | "avg_over_time" => {
            match window.samples() {
                Samples::None => Ok(Outcome::Nothing),
                Samples::Numbers => of_numbers(&window.numbers, arguments, notes).map(Into::into),
                Samples::Both => {
                    notes.warn_of_mixed_samples(window.metric);
                    Ok(Outcome::Nothing)
                }
                Samples::Histograms if name.ends_with("_over_time") => {
                    over_time::sum(name, window, notes)
                }
                Samples::Histograms => Ok(rates::rate(name, window, notes)),
            }
        }
        "irate" | "idelta" => rates::instant(name, window, (of_numbers, arguments), notes),
        "changes" | "resets" => over_time::count_steps(name, window),
        "count_over_time" => Ok(over_time::count(window)),
        "present_over_time" => Ok(window.has_readings().then_some(1.0).into()),
        "first_over_time" | "last_over_time" | "ts_of_first_over_time" | "ts_of_last_over_time" => {
            Ok(over_time::end(name, window))
        }
        _ => match window.samples() {
            Samples::None | Samples::Histograms => Ok(Outcome::Nothing),
            samples @ (Samples::Numbers | Samples::Both) => {
                if samples == Samples::Both {
                    notes.inform(|| {
                        format!(
                            "ignored histograms in a range containing both floats and histograms \
                             for metric name {:?}",
                            window.metric
                        )
                    });
                }
                of_numbers(&window.numbers, arguments, notes).map(Into::into)
            }
        },
    }
}
