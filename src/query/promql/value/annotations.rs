//! Annotations: the warnings and infos that go with an answer.
//!
//! Must never know: who gives them.

use std::cell::RefCell;

use super::numbers::text_of;

/// Annotations of an answer, at most, of either sort.
const ANNOTATIONS_MAX: usize = 10;

/// What a reader of the answer should know, each text once.
#[derive(Debug, Default)]
pub(crate) struct Annotations {
    /// What may be wrong with the answer.
    pub(crate) warnings: Vec<String>,
    /// What may be wrong with the expression.
    pub(crate) infos: Vec<String>,
}

/// Annotates the answer, with the place in the query's text that is looked at, if that is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notes<'a> {
    all: &'a RefCell<Annotations>,
    /// Where the call stands, and behind that its arguments; empty when not known.
    places: &'a [String],
    place: Option<&'a str>,
}

impl<'a> Notes<'a> {
    /// Notes of no place.
    pub(crate) fn new(all: &'a RefCell<Annotations>) -> Self {
        Self { all, places: &[], place: None }
    }

    /// Notes of a call: its places are that of the call and those of its arguments.
    pub(crate) fn of_call(self, places: &'a [String]) -> Self {
        Self { places, place: None, ..self }
    }

    /// Notes that name the place of the call.
    pub(crate) fn at_call(self) -> Self {
        Self { place: self.places.first().map(String::as_str), ..self }
    }

    /// Notes that name the place of one of the call's arguments.
    pub(crate) fn at_argument(self, index: usize) -> Self {
        Self { place: self.places.get(index + 1).map(String::as_str), ..self }
    }

    /// Adds a warning.
    pub(crate) fn warn(&self, text: impl FnOnce() -> String) {
        self.add(&mut self.all.borrow_mut().warnings, "PromQL warning: ", text);
    }

    /// Adds an info.
    pub(crate) fn inform(&self, text: impl FnOnce() -> String) {
        self.add(&mut self.all.borrow_mut().infos, "PromQL info: ", text);
    }

    /// Warns of quantiles that are none.
    pub(crate) fn check_quantiles(&self, quantiles: &[f64]) {
        for q in quantiles.iter().filter(|q| !(0.0..=1.0).contains(*q)) {
            self.warn(|| format!("quantile value should be between 0 and 1, got {}", text_of(*q)));
        }
    }

    fn add(&self, texts: &mut Vec<String>, prefix: &str, text: impl FnOnce() -> String) {
        if texts.len() < ANNOTATIONS_MAX {
            let place = self.place.map_or_else(String::new, |place| format!(" ({place})"));
            let text = format!("{prefix}{}{place}", text());
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
}
