//! Open file handles of the whole host.

use std::sync::Arc;

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::Host;

/// The source of the metrics of file handles.
#[derive(Debug)]
pub(crate) struct Files(pub(crate) Arc<Host>);

impl Source for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let text = self.0.read_text("sys/fs/file-nr")?;
        let (allocated, unused, max) = parse(&text).ok_or("file-nr: not three numbers")?;
        self.0.gauges(
            readings,
            "files",
            [
                // METRICS.md defines this metric as the handles in use.
                ("system_file_handles_allocated", allocated - unused),
                ("system_file_handles_max", max),
            ],
        );
        Ok(())
    }
}

fn parse(text: &str) -> Option<(f64, f64, f64)> {
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_three_numbers_is_rejected() {
        assert_eq!(parse("518\t0\t2466177\n"), Some((518.0, 0.0, 2_466_177.0)));
        assert_eq!(parse("518 0"), None);
        assert_eq!(parse("518 x 3"), None);
    }
}
