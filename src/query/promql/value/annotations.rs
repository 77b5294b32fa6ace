//! The warnings and infos of an answer.
//!
//! Must never know: the functions that add annotations.

use std::cell::RefCell;

use super::numbers::text_of;

/// Maximum number of warnings, and of infos, per answer.
const ANNOTATIONS_MAX: usize = 10;

/// The annotations of an answer, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Annotations {
    /// Possible errors in the answer.
    pub(crate) warnings: Vec<String>,
    /// Possible errors in the expression.
    pub(crate) infos: Vec<String>,
}

/// A writer of annotations, with their location in the query if it is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notes<'a> {
    all: &'a RefCell<Annotations>,
    /// The locations of a call and of its arguments; empty when unknown.
    locations: &'a [String],
    location: Option<&'a str>,
}

impl<'a> Notes<'a> {
    /// Creates notes without a location.
    pub(crate) fn new(all: &'a RefCell<Annotations>) -> Self {
        Self { all, locations: &[], location: None }
    }

    /// Returns notes for a call, given the locations of the call and its arguments.
    pub(crate) fn of_call(self, locations: &'a [String]) -> Self {
        Self { locations, location: None, ..self }
    }

    /// Returns notes that name the location of the call.
    pub(crate) fn at_call(self) -> Self {
        Self { location: self.locations.first().map(String::as_str), ..self }
    }

    /// Returns notes that name the location of an argument.
    pub(crate) fn at_argument(self, index: usize) -> Self {
        Self { location: self.locations.get(index + 1).map(String::as_str), ..self }
    }

    /// Adds a warning.
    pub(crate) fn warn(&self, text: impl FnOnce() -> String) {
        self.add(&mut self.all.borrow_mut().warnings, "PromQL warning: ", text);
    }

    /// Adds an info.
    pub(crate) fn inform(&self, text: impl FnOnce() -> String) {
        self.add(&mut self.all.borrow_mut().infos, "PromQL info: ", text);
    }

    /// Warns of quantiles outside of 0 to 1.
    pub(crate) fn check_quantiles(&self, quantiles: &[f64]) {
        for q in quantiles.iter().filter(|q| !(0.0..=1.0).contains(*q)) {
            self.warn(|| format!("quantile value should be between 0 and 1, got {}", text_of(*q)));
        }
    }

    /// Warns of a series with numbers and native histograms in a window.
    pub(crate) fn warn_of_mixed_samples(&self, metric: &str) {
        self.warn(|| {
            format!("encountered a mix of histograms and floats for metric name {metric:?}")
        });
    }

    /// Warns of a series with several kinds of native histograms in a window.
    pub(crate) fn warn_of_mixed_kinds(&self, metric: &str) {
        self.warn(|| {
            format!(
                "encountered a mix of counter, gauge and delta histograms for metric name \
                 {metric:?}"
            )
        });
    }

    /// Warns of exponential and custom buckets that cannot be added.
    pub(crate) fn warn_of_mixed_buckets(&self, metric: &str) {
        self.warn(|| {
            format!(
                "vector contains a mix of histograms with exponential and custom buckets schemas \
                 for metric name {metric:?}"
            )
        });
    }

    /// Warns of counts before and after a reset in one sum.
    pub(crate) fn warn_of_reset_conflict(&self, operation: &str) {
        self.warn(|| format!("conflicting counter resets during histogram {operation}"));
    }

    /// Adds an info about different custom bounds in one sum.
    pub(crate) fn inform_of_reconciled_bounds(&self, operation: &str) {
        self.inform(|| format!("mismatched custom buckets were reconciled during {operation}"));
    }

    /// Adds the annotations of another part of the evaluation, which are complete texts.
    pub(crate) fn add_all(&self, others: Annotations) {
        let mut all = self.all.borrow_mut();
        let Annotations { warnings, infos } = &mut *all;
        for (texts, others) in [(warnings, others.warnings), (infos, others.infos)] {
            for text in others {
                if texts.len() < ANNOTATIONS_MAX && !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
    }

    fn add(&self, texts: &mut Vec<String>, prefix: &str, text: impl FnOnce() -> String) {
        if texts.len() < ANNOTATIONS_MAX {
            let location =
                self.location.map_or_else(String::new, |location| format!(" ({location})"));
            let text = format!("{prefix}{}{location}", text());
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
}
