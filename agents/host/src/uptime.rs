//! The uptime and boot time of the host.

use std::sync::Arc;

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::Host;

/// The source of the uptime.
#[derive(Debug)]
pub(crate) struct Uptime(pub(crate) Arc<Host>);

impl Source for Uptime {
    fn name(&self) -> &'static str {
        "uptime"
    }

    fn booted_ms(&self) -> Option<i64> {
        Some(self.0.boot_ms)
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let uptime: procfs::Uptime = self.0.parse("uptime")?;
        let booted = self.0.boot_ms as f64 / 1000.0;
        let levels = [("system_uptime", uptime.uptime), ("system_boot_time", booted)];
        self.0.gauges(readings, "seconds", levels);
        Ok(())
    }
}
