//! The faults of settings, collected so that all are reported together.
//!
//! Must never know: which keys there are.

use std::time::Duration;

use crate::model::Span;

/// Each as a message with its key.
#[derive(Default)]
pub(super) struct Faults(pub(super) Vec<String>);

impl Faults {
    pub(super) fn duration(&mut self, key: &str, text: &str) -> Duration {
        match text.parse::<Span>() {
            Ok(Span::Fixed(ms)) => Duration::from_millis(ms as u64),
            Ok(Span::Months(_)) => {
                self.0.push(format!("{key} = {text:?} must be in days or smaller units"));
                Duration::ZERO
            }
            Err(cause) => {
                self.0.push(format!("{key}: {cause}"));
                Duration::ZERO
            }
        }
    }

    pub(super) fn at_least<T: PartialOrd + std::fmt::Display + Copy>(
        &mut self,
        key: &str,
        value: T,
        least: T,
    ) -> T {
        if value < least {
            self.0.push(format!("{key} = {value} is too small; use {least} or more"));
        }
        value
    }

    /// At least one.
    pub(super) fn some(&mut self, key: &str, value: usize) -> usize {
        self.at_least(key, value, 1)
    }

    pub(super) fn span(&mut self, key: &str, text: &str) -> Option<Span> {
        text.parse().map_err(|cause| self.0.push(format!("{key}: {cause}"))).ok()
    }
}
