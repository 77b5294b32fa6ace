//! Errors with their causes, for people.
//!
//! Must never know: particular types of errors.

use std::error::Error;

/// Returns an error and its chain of causes in one text.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
