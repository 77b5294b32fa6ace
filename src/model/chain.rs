//! Errors with their causes, as people are shown them.
//!
//! Must never know: which error it is.

use std::error::Error;

/// An error and its chain of causes in one text.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
