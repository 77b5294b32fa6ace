//! Metrics that are copied from other counters at each scrape.

use prometheus::{IntCounter, IntGauge, Registry};

use super::{
    process::status_bytes,
    registering::{counter, gauge},
};
use crate::{store::Store, telemetry::log_limit::log_lines_dropped};

/// A function that reads the current value.
type ReadStore = fn(&Store) -> u64;

/// Metrics and the counters or gauges that they copy.
#[derive(Debug, Clone)]
pub(super) struct MirroredMetrics {
    counters: Vec<(IntCounter, ReadStore)>,
    gauges: Vec<(IntGauge, ReadStore)>,
}

impl MirroredMetrics {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counters: [(&str, ReadStore); 27] = [
            ("granary_commits_total", |s| s.counters().commits.get()),
            ("granary_journal_written_bytes_total", |s| s.counters().journal_bytes.get()),
            ("granary_samples_not_kept_total", |s| s.counters().samples_not_kept.get()),
            ("granary_ha_samples_left_out_total", |s| s.counters().samples_of_replicas.get()),
            ("granary_ha_failovers_total", |s| s.counters().failovers.get()),
            ("granary_checkpoints_total", |s| s.counters().checkpoints.get()),
            ("granary_cells_written_total", |s| s.counters().cells_written.get()),
            ("granary_cells_deleted_total", |s| s.counters().cells_erased.get()),
            ("granary_documents_created_total", |s| s.counters().documents_created.get()),
            ("granary_documents_patched_total", |s| s.counters().documents_patched.get()),
            ("granary_shells_preallocated_total", |s| s.counters().shells_preallocated.get()),
            ("granary_shells_missed_total", |s| s.counters().shells_missed.get()),
            ("granary_series_kind_changed_total", |s| s.counters().kinds_changed.get()),
            ("granary_series_kind_conflicts_total", |s| s.counters().kinds_refused.get()),
            ("granary_series_forgotten_total", |s| s.counters().series_forgotten.get()),
            ("granary_partitions_dropped_total", |s| s.counters().partitions_dropped.get()),
            ("granary_partitions_sealed_total", |s| s.counters().partitions_sealed.get()),
            ("granary_documents_sealed_total", |s| s.counters().documents_sealed.get()),
            ("granary_sealed_bytes_total", |s| s.counters().sealed_bytes.get()),
            ("granary_sealing_refused_total", |s| s.counters().sealing_refused.get()),
            ("granary_histograms_left_open_total", |s| s.counters().histograms_left_open.get()),
            ("granary_checker_files_total", |s| s.counters().checked_files.get()),
            ("granary_checker_bytes_total", |s| s.counters().checked_bytes.get()),
            ("granary_checker_passes_total", |s| s.counters().checker_passes.get()),
            ("granary_checker_faults_total", |s| s.counters().checker_faults.get()),
            ("granary_senders_forgotten_total", |s| s.counters().senders_forgotten.get()),
            ("granary_log_lines_left_out_total", |_| log_lines_dropped()),
        ];
        let gauges: [(&str, ReadStore); 10] = [
            ("granary_journal_file_bytes", Store::journal_bytes),
            ("granary_head_file_bytes", Store::head_bytes),
            ("granary_catalog_bytes", |s| s.catalog_bytes() as u64),
            ("granary_series", |s| s.all_series().len() as u64),
            ("granary_series_idle", |s| s.idle_series() as u64),
            ("granary_partitions_damaged", |s| s.damaged_partitions().len() as u64),
            ("granary_documents_damaged", Store::damaged_in_all),
            ("granary_journal_rows_damaged", |s| s.damaged_journal_rows().1),
            ("granary_senders", |s| s.sender_count() as u64),
            ("granary_process_resident_memory_peak_bytes", |_| status_bytes("VmHWM:")),
        ];
        Ok(Self {
            counters: counters
                .into_iter()
                .map(|(name, read)| Ok((counter(registry, name)?, read)))
                .collect::<Result<_, prometheus::Error>>()?,
            gauges: gauges
                .into_iter()
                .map(|(name, read)| Ok((gauge(registry, name)?, read)))
                .collect::<Result<_, prometheus::Error>>()?,
        })
    }

    /// Copies the current values.
    pub(super) fn update(&self, store: &Store) {
        for (counter, read) in &self.counters {
            counter.inc_by(read(store).saturating_sub(counter.get()));
        }
        for (gauge, read) in &self.gauges {
            gauge.set(read(store) as i64);
        }
    }
}
