//! Memory, swap space, swap traffic, page faults and processes killed for lack of memory.

use std::sync::Arc;

use granary_agent_kit::{Readings, Source, SourceError};
use procfs::{Meminfo, VmStat};

use crate::host::Host;

/// The source of memory metrics.
#[derive(Debug)]
pub(crate) struct Memory(pub(crate) Arc<Host>);

impl Source for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        match self.0.parse::<VmStat>("vmstat") {
            Ok(vmstat) => self.push_vmstat(&vmstat, readings),
            Err(cause) => readings.problem("memory: vmstat", cause),
        }
        let info: Meminfo = self.0.parse("meminfo")?;
        let bytes = |value: u64| value as f64;
        // Kernels before 3.14 do not report available memory.
        let available = info.mem_available.unwrap_or(info.mem_free + info.buffers + info.cached);
        self.0.gauges(
            readings,
            "bytes",
            [
                ("system_memory_total", bytes(info.mem_total)),
                ("system_memory_used", bytes(info.mem_total.saturating_sub(available))),
                ("system_memory_free", bytes(info.mem_free)),
                ("system_memory_available", bytes(available)),
                ("system_memory_buffers", bytes(info.buffers)),
                ("system_memory_cached", bytes(info.cached)),
                ("system_memory_active", bytes(info.active)),
                ("system_memory_inactive", bytes(info.inactive)),
                ("system_memory_dirty", bytes(info.dirty)),
                ("system_memory_writeback", bytes(info.writeback)),
                ("system_memory_mapped", bytes(info.mapped)),
                ("system_memory_slab", bytes(info.slab)),
                ("system_memory_committed", bytes(info.committed_as)),
                ("swap_usage_total", bytes(info.swap_total)),
                ("swap_usage_used", bytes(info.swap_total.saturating_sub(info.swap_free))),
                ("swap_usage_free", bytes(info.swap_free)),
            ],
        );
        let optional_gauges = [
            ("system_memory_anonymous", info.anon_pages),
            ("system_memory_shared", info.shmem),
            ("system_memory_slab_reclaimable", info.s_reclaimable),
            ("system_memory_page_tables", info.page_tables),
            ("system_memory_kernel_stack", info.kernel_stack),
        ];
        for (metric, value) in optional_gauges {
            if let Some(value) = value {
                self.0.gauges(readings, "bytes", [(metric, bytes(value))]);
            }
        }
        Ok(())
    }
}

impl Memory {
    fn push_vmstat(&self, vmstat: &VmStat, readings: &mut Readings) {
        let page_bytes = procfs::page_size() as f64;
        for (key, metric, unit, factor) in [
            ("pswpin", "swap_io_in", "bytes", page_bytes),
            ("pswpout", "swap_io_out", "bytes", page_bytes),
            ("pgfault", "system_page_faults", "faults", 1.0),
            ("pgmajfault", "system_page_faults_major", "faults", 1.0),
            ("oom_kill", "system_oom_kills", "processes", 1.0),
        ] {
            if let Some(value) = vmstat.0.get(key) {
                self.0.counters(readings, unit, [(metric, *value as f64 * factor)]);
            }
        }
    }
}
