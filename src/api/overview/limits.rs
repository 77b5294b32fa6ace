//! The daemon's limits, their current use, and the settings that change them.

use serde::Serialize;

use super::OverviewParts;
use crate::store::{KEYS_MAX, OBJECTS_BYTES_MAX, OBJECTS_MAX};

/// The limits that come from settings.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "each field is the setting of its name")]
pub struct OverviewLimits {
    pub series_max: usize,
    pub sender_series_max: usize,
    pub senders_max: usize,
    pub queue_bytes_max: usize,
    pub connections_max: usize,
    pub body_memory_max: usize,
    pub queries_max: usize,
    pub tails_max: usize,
}

/// A limit and its current use.
#[derive(Debug, Serialize)]
pub(super) struct Limit {
    name: &'static str,
    used: u64,
    max: u64,
    /// The setting that changes the limit; empty when none does.
    setting: &'static str,
}

impl Limit {
    fn new(name: &'static str, used: usize, max: usize, setting: &'static str) -> Self {
        Self { name, used: used as u64, max: max as u64, setting }
    }

    /// Creates a limit that no setting changes.
    fn without_setting(name: &'static str, used: u64, max: u64) -> Self {
        Self { name, used, max, setting: "" }
    }
}

pub(super) fn limits(parts: &OverviewParts) -> Vec<Limit> {
    [store_limits(parts), ingest_limits(parts), query_limits(parts)].into_iter().flatten().collect()
}

fn store_limits(parts: &OverviewParts) -> Vec<Limit> {
    let OverviewParts { admin, bounds, limits, .. } = parts;
    let (bounds, limits) = (*bounds, limits.get());
    let store = &admin.store;
    let largest = store.all_series().largest_senders(1);
    let largest = largest.first().map_or(0, |(_, series)| *series);
    let (journal, _) = store.journal_waiting();
    let (objects, bytes) = store.objects_size();
    let (series_max, sender_max) = (limits.series_max, limits.sender_series_max);
    let (cells, cells_max) = (store.catalog_bytes(), store.cell_bytes_due(&bounds));
    let (of_project, senders) = ("senders of the largest project", store.sender_count_max());
    let (of_sender, of_journal) =
        ("series of the largest sender", "bytes of the journal that wait for a checkpoint");
    vec![
        Limit::new("series", store.all_series().len(), series_max, "limits.series_max"),
        Limit::new(of_sender, largest, sender_max, "limits.series_max"),
        Limit::new(of_project, senders, limits.senders_max, "limits.series_max"),
        Limit::without_setting("bytes of cells in memory", cells as u64, cells_max as u64),
        Limit::without_setting(of_journal, journal as u64, bounds.journal_bytes_max as u64),
        Limit::without_setting("objects of one kind", objects, OBJECTS_MAX),
        Limit::without_setting("keys", admin.access.keys.current().count() as u64, KEYS_MAX),
        Limit::without_setting("bytes of objects of one kind", bytes, OBJECTS_BYTES_MAX),
    ]
}

fn ingest_limits(parts: &OverviewParts) -> Vec<Limit> {
    let OverviewParts { admin, limits, .. } = parts;
    let limits = limits.get();
    let connections = usize::try_from(admin.metrics.connections.get()).unwrap_or(0);
    let (queued, queue_max) = (admin.writer.queued_bytes(), limits.queue_bytes_max);
    let (bodies, bodies_max) = (admin.bodies.used_bytes(), limits.body_memory_max);
    let waiting = "bytes that wait for the journal";
    vec![
        Limit::without_setting(waiting, queued as u64, queue_max as u64),
        Limit::new("bytes of requests", bodies, bodies_max, "ingest.body_memory_max"),
        Limit::new("connections", connections, limits.connections_max, "server.connections_max"),
    ]
}

fn query_limits(parts: &OverviewParts) -> Vec<Limit> {
    let OverviewParts { query, limits, .. } = parts;
    let limits = limits.get();
    let queries_max = limits.queries_max;
    let queries = queries_max.saturating_sub(query.permits.get().available_permits());
    let memory_max = query.promql.get().memory_max;
    let memory = memory_max.saturating_sub(query.resources.memory_free());
    let tails = query.tails.count(limits.tails_max);
    vec![
        Limit::new("queries under way", queries, queries_max, "limits.query_memory_max"),
        Limit::new("bytes of queries", memory, memory_max, "limits.query_memory_max"),
        Limit::without_setting("live tails", tails as u64, limits.tails_max as u64),
    ]
}
