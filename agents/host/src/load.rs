//! Load averages.

use std::sync::Arc;

use granary_agent_kit::{Readings, Source, SourceError};
use procfs::LoadAverage;

use crate::host::Host;

/// The source of load averages.
#[derive(Debug)]
pub(crate) struct Load(pub(crate) Arc<Host>);

impl Source for Load {
    fn name(&self) -> &'static str {
        "load"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let load: LoadAverage = self.0.parse("loadavg")?;
        // Two decimals, as the kernel prints them, without the rounding errors of f32.
        let round_to_hundredths = |value: f32| (f64::from(value) * 100.0).round() / 100.0;
        let levels = [
            ("system_load_1m", round_to_hundredths(load.one)),
            ("system_load_5m", round_to_hundredths(load.five)),
            ("system_load_15m", round_to_hundredths(load.fifteen)),
        ];
        self.0.gauges(readings, "", levels);
        self.0.gauges(readings, "threads", [("system_threads", f64::from(load.max))]);
        Ok(())
    }
}
