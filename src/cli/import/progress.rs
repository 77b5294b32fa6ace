//! The progress of an import: a bar in a terminal, otherwise a line from time to time.

use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use crate::{
    cli::{progress, screen::print_error},
    clock::Stopwatch,
    model::with_noun,
};

/// The interval of lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The bar or the lines.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    bytes: u64,
    watch: Stopwatch,
    lines: u32,
}

impl Progress {
    pub(super) fn new(bytes: u64) -> Self {
        let bar = progress::bar(bytes);
        let template = "{bar:30} {bytes}/{total_bytes} {elapsed} ETA {eta} {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, bytes, watch: Stopwatch::start(), lines: 0 }
    }

    /// Updates the bar, or writes a line when it is due.
    pub(super) fn show(&mut self, read: u64, samples: u64) {
        let seconds = self.watch.seconds().max(0.001);
        let rate = samples as f64 / seconds;
        self.bar.set_position(read);
        self.bar.set_message(format!("{}, {rate:.0}/s", with_noun(samples, "sample")));
        if self.bar.is_hidden() && self.watch.elapsed() > LINE_EVERY * (self.lines + 1) {
            self.lines = (self.watch.elapsed().as_secs() / LINE_EVERY.as_secs()) as u32;
            let (read, bytes) = (HumanBytes(read), HumanBytes(self.bytes));
            let line = format!("{read} of {bytes}, {}, {rate:.0}/s", with_noun(samples, "sample"));
            print_error(&line);
        }
    }

    /// Writes a line above the bar.
    pub(super) fn say(&self, line: &str) {
        self.bar.suspend(|| print_error(line));
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    pub(super) fn seconds(&self) -> f64 {
        self.watch.seconds()
    }
}
