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
    pub(crate) read: FieldType,
    pub(crate) unit: &'static str,
    pub(crate) paths: &'static [&'static str],
    pub(crate) factor: f64,
}

const MIB: f64 = 1_048_576.0;

const fn row(
    metric: &'static str,
    read: FieldType,
    unit: &'static str,
    paths: &'static [&'static str],
) -> Row {
    Row { metric, read, unit, paths, factor: 1.0 }
}

const fn total(metric: &'static str, unit: &'static str, paths: &'static [&'static str]) -> Row {
    row(metric, FieldType::Counter, unit, paths)
}

const fn level(metric: &'static str, unit: &'static str, paths: &'static [&'static str]) -> Row {
    row(metric, FieldType::Gauge, unit, paths)
}

const fn times(factor: f64, row: Row) -> Row {
    Row { factor, ..row }
}

/// All series whose values are read from one field.
pub(crate) const ROWS: &[Row] = &[
    total("mongodb_assert_regular", "assertions", &["asserts.regular"]),
    total("mongodb_assert_warning", "assertions", &["asserts.warning"]),
    total("mongodb_assert_msg", "assertions", &["asserts.msg"]),
    total("mongodb_assert_user", "assertions", &["asserts.user"]),
    total("mongodb_opcounter_cmd", "operations", &["opcounters.command"]),
    total("mongodb_opcounter_query", "operations", &["opcounters.query"]),
    total("mongodb_opcounter_insert", "operations", &["opcounters.insert"]),
    total("mongodb_opcounter_update", "operations", &["opcounters.update"]),
    total("mongodb_opcounter_delete", "operations", &["opcounters.delete"]),
    total("mongodb_opcounter_getmore", "operations", &["opcounters.getmore"]),
    total("mongodb_opcounter_ttl_deleted", "documents", &["metrics.ttl.deletedDocuments"]),
    total("mongodb_opcounter_repl_cmd", "operations", &["opcountersRepl.command"]),
    total("mongodb_opcounter_repl_insert", "operations", &["opcountersRepl.insert"]),
    total("mongodb_opcounter_repl_update", "operations", &["opcountersRepl.update"]),
    total("mongodb_opcounter_repl_delete", "operations", &["opcountersRepl.delete"]),
    total("mongodb_document_metrics_returned", "documents", &["metrics.document.returned"]),
    total("mongodb_document_metrics_inserted", "documents", &["metrics.document.inserted"]),
    total("mongodb_document_metrics_updated", "documents", &["metrics.document.updated"]),
    total("mongodb_document_metrics_deleted", "documents", &["metrics.document.deleted"]),
    total("mongodb_query_executor_scanned", "keys", &["metrics.queryExecutor.scanned"]),
    total(
        "mongodb_query_executor_scanned_objects",
        "documents",
        &["metrics.queryExecutor.scannedObjects"],
    ),
    total("mongodb_operations_scan_and_order", "operations", &["metrics.operation.scanAndOrder"]),
    total("mongodb_query_spill_to_disk_during_sort", "spills", &["metrics.query.sort.spillToDisk"]),
    level("mongodb_connections", "connections", &["connections.current"]),
    level("mongodb_connections_available", "connections", &["connections.available"]),
    level("mongodb_connections_active", "connections", &["connections.active"]),
    total("mongodb_connections_created", "connections", &["connections.totalCreated"]),
    level(
        "mongodb_cursors_total_open",
        "cursors",
        &["metrics.cursor.open.total", "cursors.totalOpen"],
    ),
    total(
        "mongodb_cursors_total_timed_out",
        "cursors",
        &["metrics.cursor.timedOut", "cursors.timedOut"],
    ),
    level("mongodb_cursors_client_size", "bytes", &["cursors.clientCursors_size"]),
    level(
        "mongodb_global_lock_current_queue_total",
        "operations",
        &["globalLock.currentQueue.total"],
    ),
    level(
        "mongodb_global_lock_current_queue_readers",
        "operations",
        &["globalLock.currentQueue.readers"],
    ),
    level(
        "mongodb_global_lock_current_queue_writers",
        "operations",
        &["globalLock.currentQueue.writers"],
    ),
    level("mongodb_active_clients_readers", "clients", &["globalLock.activeClients.readers"]),
    level("mongodb_active_clients_writers", "clients", &["globalLock.activeClients.writers"]),
    times(MIB, level("mongodb_memory_resident", "bytes", &["mem.resident"])),
    times(MIB, level("mongodb_memory_virtual", "bytes", &["mem.virtual"])),
    times(MIB, level("mongodb_memory_mapped", "bytes", &["mem.mapped"])),
    total("mongodb_network_bytes_in", "bytes", &["network.bytesIn"]),
    total("mongodb_network_bytes_out", "bytes", &["network.bytesOut"]),
    total("mongodb_network_num_requests", "requests", &["network.numRequests"]),
    total("mongodb_cache_bytes_read_into", "bytes", &["wiredTiger.cache.bytes read into cache"]),
    total(
        "mongodb_cache_bytes_written_from",
        "bytes",
        &["wiredTiger.cache.bytes written from cache"],
    ),
    level(
        "mongodb_cache_dirty_bytes",
        "bytes",
        &["wiredTiger.cache.tracked dirty bytes in the cache"],
    ),
    level("mongodb_cache_used_bytes", "bytes", &["wiredTiger.cache.bytes currently in the cache"]),
    level("mongodb_cache_max_bytes", "bytes", &["wiredTiger.cache.maximum bytes configured"]),
    level(
        "mongodb_tickets_available_reads",
        "tickets",
        // The path since 8.0, and the path in earlier versions.
        &["queues.execution.read.available", "wiredTiger.concurrentTransactions.read.available"],
    ),
    level(
        "mongodb_tickets_available_write",
        "tickets",
        &["queues.execution.write.available", "wiredTiger.concurrentTransactions.write.available"],
    ),
    total("mongodb_extra_info_page_faults", "faults", &["extra_info.page_faults"]),
    total(
        "mongodb_global_accesses_not_in_memory",
        "accesses",
        &["recordStats.accessesNotInMemory"],
    ),
    total(
        "mongodb_global_page_fault_exceptions_thrown",
        "faults",
        &["recordStats.pageFaultExceptionsThrown"],
    ),
    // MMAPv1 reported these fields for the last three seconds.
    level("mongodb_journaling_commits_in_write_lock", "commits", &["dur.commitsInWriteLock"]),
    times(MIB, level("mongodb_journaling_mb", "bytes", &["dur.journaledMB"])),
    times(
        MIB,
        level("mongodb_journaling_write_data_files_mb", "bytes", &["dur.writeToDataFilesMB"]),
    ),
    level("mongodb_background_flush_avg", "milliseconds", &["backgroundFlushing.average_ms"]),
    total(
        "mongodb_index_counters_btree_accesses",
        "accesses",
        &["indexCounters.accesses", "indexCounters.btree.accesses"],
    ),
    total(
        "mongodb_index_counters_btree_hits",
        "accesses",
        &["indexCounters.hits", "indexCounters.btree.hits"],
    ),
    total(
        "mongodb_index_counters_btree_misses",
        "accesses",
        &["indexCounters.misses", "indexCounters.btree.misses"],
    ),
    level(
        "mongodb_index_counters_btree_miss_ratio",
        "",
        &["indexCounters.missRatio", "indexCounters.btree.missRatio"],
    ),
    level("mongodb_uptime", "seconds", &["uptime"]),
    times(1e-6, total("mongodb_process_cpu_time_user", "seconds", &["extra_info.user_time_us"])),
    times(
        1e-6,
        total("mongodb_process_cpu_time_kernel", "seconds", &["extra_info.system_time_us"]),
    ),
];

/// The reasons for elections; each has the fields `called` and `successful`.
pub(crate) const ELECTIONS: [&str; 5] =
    ["stepUpCmd", "priorityTakeover", "catchUpTakeover", "electionTimeout", "freezeTimeout"];
