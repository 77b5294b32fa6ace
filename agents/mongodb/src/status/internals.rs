//! The table of `serverStatus` fields about the inside of a server: transactions, flow control,
//! tickets, checkpoints, eviction, replication and the deletion of migrated ranges.
//!
//! Versions before 4.4 and servers without the field have no series.

use super::rows::{Row, counter, gauge, scaled};

const MICROS: f64 = 1e-6;
const MILLIS: f64 = 1e-3;

/// The series whose values are read from one field.
pub(super) const INTERNALS: &[Row] = &[
    counter("mongodb_write_conflicts", "conflicts", &["metrics.operation.writeConflicts"]),
    counter("mongodb_connections_rejected", "connections", &["connections.rejected"]),
    gauge("mongodb_transactions_open", "transactions", &["transactions.currentOpen"]),
    gauge("mongodb_transactions_active", "transactions", &["transactions.currentActive"]),
    gauge("mongodb_transactions_inactive", "transactions", &["transactions.currentInactive"]),
    counter("mongodb_transactions_started", "transactions", &["transactions.totalStarted"]),
    counter("mongodb_transactions_committed", "transactions", &["transactions.totalCommitted"]),
    counter("mongodb_transactions_aborted", "transactions", &["transactions.totalAborted"]),
    gauge("mongodb_flow_control_lagged", "", &["flowControl.isLagged"]),
    counter("mongodb_flow_control_lags", "lags", &["flowControl.isLaggedCount"]),
    scaled(
        MICROS,
        counter("mongodb_flow_control_lagged_time", "seconds", &["flowControl.isLaggedTimeMicros"]),
    ),
    scaled(
        MICROS,
        counter("mongodb_flow_control_wait_time", "seconds", &["flowControl.timeAcquiringMicros"]),
    ),
    gauge("mongodb_flow_control_target_rate", "tickets/second", &["flowControl.targetRateLimit"]),
    gauge("mongodb_tickets_used_reads", "tickets", &TICKETS_USED_READS),
    gauge("mongodb_tickets_used_write", "tickets", &TICKETS_USED_WRITE),
    gauge("mongodb_tickets_total_reads", "tickets", &TICKETS_TOTAL_READS),
    gauge("mongodb_tickets_total_write", "tickets", &TICKETS_TOTAL_WRITE),
    gauge(
        "mongodb_tickets_queued_reads",
        "operations",
        &["queues.execution.read.normalPriority.queueLength"],
    ),
    gauge(
        "mongodb_tickets_queued_write",
        "operations",
        &["queues.execution.write.normalPriority.queueLength"],
    ),
    counter("mongodb_checkpoints", "checkpoints", &CHECKPOINTS),
    scaled(MILLIS, counter("mongodb_checkpoint_time", "seconds", &CHECKPOINT_TIME)),
    scaled(MILLIS, gauge("mongodb_checkpoint_time_latest", "seconds", &CHECKPOINT_LATEST)),
    scaled(MILLIS, gauge("mongodb_checkpoint_time_max", "seconds", &CHECKPOINT_MAX)),
    counter(
        "mongodb_cache_evicted_by_applications",
        "pages",
        &["wiredTiger.cache.pages evicted by application threads"],
    ),
    counter(
        "mongodb_cache_eviction_attempts_by_applications",
        "pages",
        &["wiredTiger.cache.page evict attempts by application threads"],
    ),
    scaled(
        MICROS,
        counter("mongodb_cache_eviction_time_of_applications", "seconds", &EVICTION_TIME),
    ),
    gauge("mongodb_repl_buffer_operations", "operations", &BUFFER_COUNT),
    gauge("mongodb_repl_buffer_bytes", "bytes", &BUFFER_BYTES),
    gauge("mongodb_repl_buffer_max_bytes", "bytes", &BUFFER_MAX_BYTES),
    gauge(
        "mongodb_repl_write_buffer_operations",
        "operations",
        &["metrics.repl.buffer.write.count"],
    ),
    gauge("mongodb_repl_write_buffer_bytes", "bytes", &["metrics.repl.buffer.write.sizeBytes"]),
    counter("mongodb_repl_apply_operations", "operations", &["metrics.repl.apply.ops"]),
    counter("mongodb_repl_apply_batches", "batches", &["metrics.repl.apply.batches.num"]),
    scaled(
        MILLIS,
        counter("mongodb_repl_apply_time", "seconds", &["metrics.repl.apply.batches.totalMillis"]),
    ),
    counter("mongodb_repl_network_bytes", "bytes", &["metrics.repl.network.bytes"]),
    counter("mongodb_repl_network_operations", "operations", &["metrics.repl.network.ops"]),
    counter("mongodb_repl_getmores", "requests", &["metrics.repl.network.getmores.num"]),
    scaled(
        MILLIS,
        counter(
            "mongodb_repl_getmore_time",
            "seconds",
            &["metrics.repl.network.getmores.totalMillis"],
        ),
    ),
    gauge("mongodb_range_deleter_tasks", "ranges", &["shardingStatistics.rangeDeleterTasks"]),
];

// The first path exists since 8.0, the second one in earlier versions.
const TICKETS_USED_READS: [&str; 2] =
    ["queues.execution.read.out", "wiredTiger.concurrentTransactions.read.out"];
const TICKETS_USED_WRITE: [&str; 2] =
    ["queues.execution.write.out", "wiredTiger.concurrentTransactions.write.out"];
const TICKETS_TOTAL_READS: [&str; 2] =
    ["queues.execution.read.totalTickets", "wiredTiger.concurrentTransactions.read.totalTickets"];
const TICKETS_TOTAL_WRITE: [&str; 2] =
    ["queues.execution.write.totalTickets", "wiredTiger.concurrentTransactions.write.totalTickets"];
const CHECKPOINTS: [&str; 2] = [
    "wiredTiger.checkpoint.total succeed number of checkpoints",
    "wiredTiger.transaction.transaction checkpoints",
];
const CHECKPOINT_TIME: [&str; 2] = [
    "wiredTiger.checkpoint.total time (msecs)",
    "wiredTiger.transaction.transaction checkpoint total time (msecs)",
];
const CHECKPOINT_LATEST: [&str; 2] = [
    "wiredTiger.checkpoint.most recent time (msecs)",
    "wiredTiger.transaction.transaction checkpoint most recent time (msecs)",
];
const CHECKPOINT_MAX: [&str; 2] = [
    "wiredTiger.checkpoint.max time (msecs)",
    "wiredTiger.transaction.transaction checkpoint max time (msecs)",
];
const EVICTION_TIME: [&str; 2] = [
    "wiredTiger.cache.application thread time evicting (usecs)",
    "wiredTiger.thread-yield.application thread time evicting (usecs)",
];
// 8.0 has two buffers: received operations wait to be written, and written ones to be applied.
const BUFFER_COUNT: [&str; 2] = ["metrics.repl.buffer.apply.count", "metrics.repl.buffer.count"];
const BUFFER_BYTES: [&str; 2] =
    ["metrics.repl.buffer.apply.sizeBytes", "metrics.repl.buffer.sizeBytes"];
const BUFFER_MAX_BYTES: [&str; 2] =
    ["metrics.repl.buffer.apply.maxSizeBytes", "metrics.repl.buffer.maxSizeBytes"];
