//! Faults of settings, collected to be reported together.
//!
//! Must never know: which keys exist.

use crate::model::Span;

/// The messages, each with its key.
#[derive(Default)]
pub(super) struct Faults(pub(super) Vec<String>);

impl Faults {
    pub(super) fn at_least(&mut self, key: &str, value: usize, min: usize) {
        if value < min {
            self.0.push(format!("{key} = {value} is too small; use {min} or more"));
        }
    }

    pub(super) fn span(&mut self, key: &str, text: &str) -> Option<Span> {
        text.parse().map_err(|cause| self.0.push(format!("{key}: {cause}"))).ok()
    }
}
