//! The table of `serverStatus` fields and their series.
//!
//! Names follow MMS, in lower case and with the prefix `mongodb_`.

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldType {
    /// A counter since the server's start.
    Counter,
    /// A gauge.
    Gauge,
}

/// A series with its name and paths. Fields have moved between versions: the first existing path is
/// used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) metric: &'static str,
    pub(crate) field_type: FieldType,
    pub(crate) unit: &'static str,
    pub(crate) paths: &'static [&'static str],
    pub(crate) factor: f64,
}

const MIB: f64 = 1_048_576.0;

const fn row(
    metric: &'static str,
    field_type: FieldType,
    unit: &'static str,
    paths: &'static [&'static str],
) -> Row {
    Row { metric, field_type, unit, paths, factor: 1.0 }
}

pub(super) const fn counter(
    metric: &'static str,
    unit: &'static str,
    paths: &'static [&'static str],
) -> Row {
    row(metric, FieldType::Counter, unit, paths)
}

pub(super) const fn gauge(
    metric: &'static str,
    unit: &'static str,
    paths: &'static [&'static str],
) -> Row {
    row(metric, FieldType::Gauge, unit, paths)
}

pub(super) const fn scaled(factor: f64, row: Row) -> Row {
    Row { factor, ..row }
}

/// The series whose values are read from one field.
pub(crate) const ROWS: &[Row] = &[
    counter("mongodb_assert_regular", "assertions", &["asserts.regular"]),
    counter("mongodb_assert_warning", "assertions", &["asserts.warning"]),
    counter("mongodb_assert_msg", "assertions", &["asserts.msg"]),
    counter("mongodb_assert_user", "assertions", &["asserts.user"]),
    counter("mongodb_opcounter_cmd", "operations", &["opcounters.command"]),
    counter("mongodb_opcounter_query", "operations", &["opcounters.query"]),
    counter("mongodb_opcounter_insert", "operations", &["opcounters.insert"]),
    counter("mongodb_opcounter_update", "operations", &["opcounters.update"]),
    counter("mongodb_opcounter_delete", "operations", &["opcounters.delete"]),
    counter("mongodb_opcounter_getmore", "operations", &["opcounters.getmore"]),
    counter("mongodb_opcounter_ttl_deleted", "documents", &["metrics.ttl.deletedDocuments"]),
    counter("mongodb_opcounter_repl_cmd", "operations", &["opcountersRepl.command"]),
    counter("mongodb_opcounter_repl_insert", "operations", &["opcountersRepl.insert"]),
    counter("mongodb_opcounter_repl_update", "operations", &["opcountersRepl.update"]),
    counter("mongodb_opcounter_repl_delete", "operations", &["opcountersRepl.delete"]),
    counter("mongodb_document_metrics_returned", "documents", &["metrics.document.returned"]),
    counter("mongodb_document_metrics_inserted", "documents", &["metrics.document.inserted"]),
    counter("mongodb_document_metrics_updated", "documents", &["metrics.document.updated"]),
    counter("mongodb_document_metrics_deleted", "documents", &["metrics.document.deleted"]),
    counter("mongodb_query_executor_scanned", "keys", &["metrics.queryExecutor.scanned"]),
    counter(
        "mongodb_query_executor_scanned_objects",
        "documents",
        &["metrics.queryExecutor.scannedObjects"],
    ),
    counter("mongodb_operations_scan_and_order", "operations", &["metrics.operation.scanAndOrder"]),
    counter(
        "mongodb_query_spill_to_disk_during_sort",
        "spills",
        &["metrics.query.sort.spillToDisk"],
    ),
    gauge("mongodb_connections", "connections", &["connections.current"]),
    gauge("mongodb_connections_available", "connections", &["connections.available"]),
    gauge("mongodb_connections_active", "connections", &["connections.active"]),
    counter("mongodb_connections_created", "connections", &["connections.totalCreated"]),
    gauge(
        "mongodb_cursors_total_open",
        "cursors",
        &["metrics.cursor.open.total", "cursors.totalOpen"],
    ),
    counter(
        "mongodb_cursors_total_timed_out",
        "cursors",
        &["metrics.cursor.timedOut", "cursors.timedOut"],
    ),
    gauge("mongodb_cursors_client_size", "bytes", &["cursors.clientCursors_size"]),
    gauge(
        "mongodb_global_lock_current_queue_total",
        "operations",
        &["globalLock.currentQueue.total"],
    ),
    gauge(
        "mongodb_global_lock_current_queue_readers",
        "operations",
        &["globalLock.currentQueue.readers"],
    ),
    gauge(
        "mongodb_global_lock_current_queue_writers",
        "operations",
        &["globalLock.currentQueue.writers"],
    ),
    gauge("mongodb_active_clients_readers", "clients", &["globalLock.activeClients.readers"]),
    gauge("mongodb_active_clients_writers", "clients", &["globalLock.activeClients.writers"]),
    scaled(MIB, gauge("mongodb_memory_resident", "bytes", &["mem.resident"])),
    scaled(MIB, gauge("mongodb_memory_virtual", "bytes", &["mem.virtual"])),
    scaled(MIB, gauge("mongodb_memory_mapped", "bytes", &["mem.mapped"])),
    counter("mongodb_network_bytes_in", "bytes", &["network.bytesIn"]),
    counter("mongodb_network_bytes_out", "bytes", &["network.bytesOut"]),
    counter("mongodb_network_num_requests", "requests", &["network.numRequests"]),
    counter("mongodb_cache_bytes_read_into", "bytes", &["wiredTiger.cache.bytes read into cache"]),
    counter(
        "mongodb_cache_bytes_written_from",
        "bytes",
        &["wiredTiger.cache.bytes written from cache"],
    ),
    gauge(
        "mongodb_cache_dirty_bytes",
        "bytes",
        &["wiredTiger.cache.tracked dirty bytes in the cache"],
    ),
    gauge("mongodb_cache_used_bytes", "bytes", &["wiredTiger.cache.bytes currently in the cache"]),
    gauge("mongodb_cache_max_bytes", "bytes", &["wiredTiger.cache.maximum bytes configured"]),
    gauge(
        "mongodb_tickets_available_reads",
        "tickets",
        // The path since 8.0, and the path in earlier versions.
        &["queues.execution.read.available", "wiredTiger.concurrentTransactions.read.available"],
    ),
    gauge(
        "mongodb_tickets_available_write",
        "tickets",
        &["queues.execution.write.available", "wiredTiger.concurrentTransactions.write.available"],
    ),
    counter("mongodb_extra_info_page_faults", "faults", &["extra_info.page_faults"]),
    counter(
        "mongodb_global_accesses_not_in_memory",
        "accesses",
        &["recordStats.accessesNotInMemory"],
    ),
    counter(
        "mongodb_global_page_fault_exceptions_thrown",
        "faults",
        &["recordStats.pageFaultExceptionsThrown"],
    ),
    // MMAPv1 reported these fields for the last three seconds.
    gauge("mongodb_journaling_commits_in_write_lock", "commits", &["dur.commitsInWriteLock"]),
    scaled(MIB, gauge("mongodb_journaling_mb", "bytes", &["dur.journaledMB"])),
    scaled(
        MIB,
        gauge("mongodb_journaling_write_data_files_mb", "bytes", &["dur.writeToDataFilesMB"]),
    ),
    gauge("mongodb_background_flush_avg", "milliseconds", &["backgroundFlushing.average_ms"]),
    counter(
        "mongodb_index_counters_btree_accesses",
        "accesses",
        &["indexCounters.accesses", "indexCounters.btree.accesses"],
    ),
    counter(
        "mongodb_index_counters_btree_hits",
        "accesses",
        &["indexCounters.hits", "indexCounters.btree.hits"],
    ),
    counter(
        "mongodb_index_counters_btree_misses",
        "accesses",
        &["indexCounters.misses", "indexCounters.btree.misses"],
    ),
    gauge(
        "mongodb_index_counters_btree_miss_ratio",
        "",
        &["indexCounters.missRatio", "indexCounters.btree.missRatio"],
    ),
    gauge("mongodb_uptime", "seconds", &["uptime"]),
    scaled(1e-6, counter("mongodb_process_cpu_time_user", "seconds", &["extra_info.user_time_us"])),
    scaled(
        1e-6,
        counter("mongodb_process_cpu_time_kernel", "seconds", &["extra_info.system_time_us"]),
    ),
];

/// The reasons for elections; each has the fields `called` and `successful`.
pub(crate) const ELECTIONS: [&str; 5] =
    ["stepUpCmd", "priorityTakeover", "catchUpTakeover", "electionTimeout", "freezeTimeout"];
