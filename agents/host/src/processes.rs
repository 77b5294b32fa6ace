//! Processes, context switches and interrupts.

use std::{fs, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::{host::Host, stat::Stat};

/// The source of the metrics of all processes.
#[derive(Debug)]
pub(crate) struct Processes(pub(crate) Arc<Host>);

impl Source for Processes {
    fn name(&self) -> &'static str {
        "processes"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        match fs::read_dir(&self.0.proc) {
            Ok(entries) => {
                let is_process = |name: &[u8]| name.iter().all(u8::is_ascii_digit);
                let processes = entries
                    .filter_map(Result::ok)
                    .filter(|entry| is_process(entry.file_name().as_encoded_bytes()))
                    .count();
                let levels = [("system_processes_total", processes as f64)];
                self.0.gauges(readings, "processes", levels);
            }
            Err(cause) => readings.problem("processes: total", cause),
        }
        let stat = Stat::parse(&self.0.read_text("stat")?)?;
        self.0.gauges(
            readings,
            "processes",
            [
                ("system_processes_running", stat.running as f64),
                ("system_processes_blocked", stat.blocked as f64),
            ],
        );
        self.0.counters(readings, "processes", [("system_forks", stat.forks as f64)]);
        self.0.counters(
            readings,
            "switches",
            [("system_context_switches", stat.context_switches as f64)],
        );
        self.0.counters(
            readings,
            "interrupts",
            [
                ("system_interrupts", stat.interrupts as f64),
                ("system_soft_interrupts", stat.soft_interrupts as f64),
            ],
        );
        Ok(())
    }
}
