//! Progress of long operations, on standard error and only in a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The maximum time between two updates of a bar.
const TICK: Duration = Duration::from_millis(100);

/// Returns a bar for a known number of steps.
pub(super) fn bar(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}

/// Returns a spinner for an unknown number of steps.
pub(super) fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(TICK);
    bar
}
