//! Readings of `serverStatus` from servers of each version and role.

use std::collections::{BTreeMap, BTreeSet};

use mongodb::bson::{Bson, Document, doc};
use proptest::prelude::*;

use super::*;
use crate::test_responses::{later, server_status, server_status_of_mmap};

const NOW_MS: i64 = 1_700_000_000_000;

/// Returns the values of a response, given the state after earlier responses.
fn values(server_state: &mut ServerState, status: &Document, now_ms: i64) -> BTreeMap<String, f64> {
    let mut readings = Readings::default();
    read(status, now_ms, Some(4.0), server_state, &mut readings);
    assert_eq!(readings.not_finite(), 0);
    let values: BTreeMap<_, _> =
        readings.as_slice().iter().map(|r| (r.metric.to_string(), r.value)).collect();
    assert_eq!(values.len(), readings.as_slice().len(), "no series is read twice");
    values
}

fn values_of_first_response(version: &str, role: &str) -> BTreeMap<String, f64> {
    values(&mut ServerState::default(), &server_status(version, role), NOW_MS)
}

/// Values that the first response of every version of a mongod with `WiredTiger` yields.
const MONGOD_VALUES: [(&str, f64); 46] = [
    ("mongodb_assert_regular", 1.0),
    ("mongodb_assert_warning", 2.0),
    ("mongodb_assert_msg", 3.0),
    ("mongodb_assert_user", 40.0),
    ("mongodb_opcounter_cmd", 16.0),
    ("mongodb_opcounter_query", 12.0),
    ("mongodb_opcounter_insert", 11.0),
    ("mongodb_opcounter_update", 13.0),
    ("mongodb_opcounter_delete", 14.0),
    ("mongodb_opcounter_getmore", 15.0),
    ("mongodb_opcounter_ttl_deleted", 26.0),
    ("mongodb_document_metrics_returned", 23.0),
    ("mongodb_document_metrics_inserted", 22.0),
    ("mongodb_document_metrics_updated", 24.0),
    ("mongodb_document_metrics_deleted", 21.0),
    ("mongodb_query_executor_scanned", 1000.0),
    ("mongodb_query_executor_scanned_objects", 2000.0),
    ("mongodb_operations_scan_and_order", 25.0),
    ("mongodb_connections", 20.0),
    ("mongodb_connections_available", 180.0),
    ("mongodb_connections_percent", 10.0),
    ("mongodb_connections_created", 500.0),
    ("mongodb_cursors_total_open", 6.0),
    ("mongodb_cursors_total_timed_out", 4.0),
    ("mongodb_global_lock_current_queue_total", 3.0),
    ("mongodb_global_lock_current_queue_readers", 1.0),
    ("mongodb_global_lock_current_queue_writers", 2.0),
    ("mongodb_memory_resident", 104_857_600.0),
    ("mongodb_memory_virtual", 1_572_864_000.0),
    ("mongodb_computed_memory", 1_572_864_000.0),
    ("mongodb_network_bytes_in", 1000.0),
    ("mongodb_network_bytes_out", 2000.0),
    ("mongodb_network_num_requests", 30.0),
    ("mongodb_cache_bytes_read_into", 31.0),
    ("mongodb_cache_bytes_written_from", 32.0),
    ("mongodb_cache_dirty_bytes", 50_000_000.0),
    ("mongodb_cache_used_bytes", 600_000_000.0),
    ("mongodb_cache_fill_ratio", 0.6),
    ("mongodb_cache_dirty_fill_ratio", 0.05),
    ("mongodb_tickets_available_reads", 126.0),
    ("mongodb_tickets_available_write", 127.0),
    ("mongodb_extra_info_page_faults", 17.0),
    ("mongodb_uptime", 7200.0),
    ("mongodb_restarts_in_last_hour", 0.0),
    ("mongodb_process_cpu_time_user", 30.0),
    ("mongodb_certificate_expires", 1_800_000_000.0),
];

/// Values of the internals of a server, whose paths differ by version.
const INTERNAL_VALUES: [(&str, f64); 24] = [
    ("mongodb_write_conflicts", 8.0),
    ("mongodb_transactions_open", 3.0),
    ("mongodb_transactions_started", 97.0),
    ("mongodb_transactions_aborted", 4.0),
    ("mongodb_flow_control_lagged", 0.0),
    ("mongodb_flow_control_lags", 2.0),
    ("mongodb_flow_control_lagged_time", 8.0),
    ("mongodb_flow_control_wait_time", 4.5),
    ("mongodb_tickets_used_reads", 2.0),
    ("mongodb_tickets_used_write", 1.0),
    ("mongodb_tickets_total_reads", 128.0),
    ("mongodb_tickets_total_write", 128.0),
    ("mongodb_checkpoints", 120.0),
    ("mongodb_checkpoint_time", 60.0),
    ("mongodb_checkpoint_time_latest", 0.25),
    ("mongodb_checkpoint_time_max", 0.9),
    ("mongodb_cache_eviction_time_of_applications", 3.5),
    ("mongodb_repl_buffer_operations", 3.0),
    ("mongodb_repl_buffer_bytes", 300.0),
    ("mongodb_repl_apply_batches", 70.0),
    ("mongodb_repl_apply_time", 3.5),
    ("mongodb_repl_network_bytes", 7_200.0),
    ("mongodb_repl_getmore_time", 7.4),
    ("mongodb_range_deleter_tasks", 2.0),
];

#[test]
fn every_version_of_a_mongod_yields_the_common_series() {
    for version in ["4.4.29", "5.0.26", "6.0.15", "7.0.5", "8.0.4", "8.2.1"] {
        let values = values_of_first_response(version, "primary");
        for (metric, expected) in MONGOD_VALUES {
            let actual = values.get(metric).copied();
            assert!(
                actual.is_some_and(|v| (v - expected).abs() < 1e-9),
                "{version} {metric}: {actual:?}"
            );
        }
        for (metric, expected) in INTERNAL_VALUES {
            assert_eq!(values.get(metric), Some(&expected), "{version} {metric}");
        }
        let is_8 = version.starts_with('8');
        for (metric, is_expected) in [
            ("mongodb_connections_rejected", version >= "7"),
            ("mongodb_tickets_queued_reads", is_8),
            ("mongodb_repl_write_buffer_bytes", is_8),
            ("mongodb_cache_eviction_attempts_by_applications", is_8),
            ("mongodb_cache_evicted_by_applications", !is_8),
        ] {
            assert_eq!(values.contains_key(metric), is_expected, "{version} {metric}");
        }
        let has_spills = values.contains_key("mongodb_query_spill_to_disk_during_sort");
        assert_eq!(has_spills, !version.starts_with(['4', '5']), "{version}");
    }
    assert_eq!(values_of_first_response("4.4.29", "primary")["mongodb_version"], 40_429.0);
    assert_eq!(values_of_first_response("8.0.4-rc1", "primary")["mongodb_version"], 80_004.0);
}

#[test]
fn each_role_yields_the_series_of_its_fields() {
    let names = |role| values_of_first_response("7.0.5", role).into_keys().collect::<BTreeSet<_>>();
    let (standalone, primary, mongos) = (names("standalone"), names("primary"), names("mongos"));
    let only_in_sets: Vec<_> = primary.difference(&standalone).map(String::as_str).collect();
    let expected = [
        "mongodb_elections_called",
        "mongodb_elections_won",
        "mongodb_opcounter_repl_cmd",
        "mongodb_opcounter_repl_delete",
        "mongodb_opcounter_repl_insert",
        "mongodb_opcounter_repl_update",
        "mongodb_range_deleter_tasks",
    ];
    assert_eq!(only_in_sets, expected);
    assert_eq!((names("secondary"), names("config")), (primary.clone(), primary.clone()));
    assert!(!mongos.iter().any(|name| name.contains("cache") || name.contains("tickets")));
    for metric in ["mongodb_opcounter_query", "mongodb_connections", "mongodb_network_bytes_in"] {
        assert!(mongos.contains(metric), "{metric}");
    }
    assert!(!names("arbiter").contains("mongodb_cache_used_bytes"));
    let elections = values_of_first_response("7.0.5", "primary");
    assert_eq!(elections["mongodb_elections_called"], 5.0);
    assert_eq!(elections["mongodb_elections_won"], 5.0);
}

#[test]
fn fields_of_mmapv1_servers_are_read() {
    let values = values(&mut ServerState::default(), &server_status_of_mmap(), NOW_MS);
    for (metric, expected) in [
        ("mongodb_memory_mapped", 419_430_400.0),
        ("mongodb_computed_memory", 1_153_433_600.0),
        ("mongodb_cursors_client_size", 7.0),
        ("mongodb_cursors_total_open", 6.0),
        ("mongodb_global_accesses_not_in_memory", 9.0),
        ("mongodb_global_page_fault_exceptions_thrown", 3.0),
        ("mongodb_journaling_commits_in_write_lock", 2.0),
        ("mongodb_journaling_mb", 524_288.0),
        ("mongodb_journaling_write_data_files_mb", 262_144.0),
        ("mongodb_background_flush_avg", 5.0),
        ("mongodb_index_counters_btree_accesses", 10.0),
        ("mongodb_index_counters_btree_hits", 8.0),
        ("mongodb_index_counters_btree_misses", 2.0),
        ("mongodb_index_counters_btree_miss_ratio", 0.2),
    ] {
        assert_eq!(values.get(metric), Some(&expected), "{metric}");
    }
}

#[test]
fn ratios_cover_the_time_between_two_responses() {
    let (mut server_state, status) = (ServerState::default(), server_status("7.0.5", "primary"));
    let derived = |values: BTreeMap<String, f64>| {
        let is_derived = |name: &String| {
            name.contains("per_returned")
                || name.contains("execution_time")
                || name.contains("_cpu_")
        };
        let derived = values.into_iter().filter(|(name, _)| is_derived(name));
        derived.filter(|(name, _)| !name.contains("cpu_time")).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(derived(values(&mut server_state, &status, NOW_MS)), BTreeMap::new());
    let status = later(
        &status,
        10,
        &[
            ("metrics.queryExecutor", "scanned", 500),
            ("metrics.queryExecutor", "scannedObjects", 50),
            ("metrics.document", "returned", 10),
            ("opLatencies.reads", "latency", 30_000),
            ("opLatencies.reads", "ops", 20),
            ("extra_info", "user_time_us", 15_000_000),
            ("extra_info", "system_time_us", 500_000),
        ],
    );
    let actual = derived(values(&mut server_state, &status, NOW_MS + 10_000));
    let expected = [
        ("mongodb_op_execution_time_reads", 1.5),
        ("mongodb_process_cpu_kernel", 5.0),
        ("mongodb_process_cpu_user", 150.0),
        ("mongodb_process_normalized_cpu_kernel", 1.25),
        ("mongodb_process_normalized_cpu_user", 37.5),
        ("mongodb_query_targeting_scanned_objects_per_returned", 5.0),
        ("mongodb_query_targeting_scanned_per_returned", 50.0),
    ];
    assert_eq!(actual, expected.map(|(name, value)| (name.to_owned(), value)).into());

    // The ratio must show a search through a million documents without a result.
    let scan = [("metrics.queryExecutor", "scannedObjects", 1_000_000)];
    let actual = derived(values(&mut server_state, &later(&status, 10, &scan), NOW_MS + 20_000));
    assert_eq!(actual["mongodb_query_targeting_scanned_objects_per_returned"], 1e6);
}

#[test]
fn a_restart_counts_for_an_hour_and_resets_the_ratios() {
    let (mut server_state, status) = (ServerState::default(), server_status("7.0.5", "primary"));
    let restarts = |server_state: &mut ServerState, status: &Document, now_ms| {
        let values = values(server_state, status, now_ms);
        (values["mongodb_restarts_in_last_hour"], values.contains_key("mongodb_process_cpu_user"))
    };
    assert_eq!(restarts(&mut server_state, &status, NOW_MS), (0.0, false));
    let start = server_state.started_ms();
    // Uptimes jitter by some milliseconds, but the start time must not change.
    let later_status = later(&status, 10, &[]);
    assert_eq!(restarts(&mut server_state, &later_status, NOW_MS + 10_040), (0.0, true));
    assert_eq!(server_state.started_ms(), start);
    let mut restarted = status.clone();
    restarted.extend(doc! { "pid": 99_i64, "uptimeMillis": 3_000_i64 });
    assert_eq!(restarts(&mut server_state, &restarted, NOW_MS + 20_000), (1.0, false));
    assert_eq!(server_state.started_ms(), Some(NOW_MS + 17_000));
    let an_hour_later = later(&restarted, 3_600, &[]);
    assert_eq!(restarts(&mut server_state, &an_hour_later, NOW_MS + 3_620_000), (0.0, true));
}

/// Regression: a server that had just been set up was reported as restarted.
#[test]
fn the_first_contact_with_a_young_server_is_not_a_restart() {
    let (mut server_state, mut status) =
        (ServerState::default(), server_status("7.0.5", "primary"));
    status.insert("uptimeMillis", 60_000_i64);
    assert_eq!(values(&mut server_state, &status, NOW_MS)["mongodb_restarts_in_last_hour"], 0.0);
}

#[test]
fn a_restart_with_an_unchanged_process_id_is_detected_in_a_container() {
    let (mut server_state, mut status) =
        (ServerState::default(), server_status("7.0.5", "primary"));
    status.extend(doc! { "pid": 1_i64, "uptimeMillis": 1_000_i64 });
    values(&mut server_state, &status, NOW_MS);
    // The server was restarted, and its uptime now exceeds the uptime of the previous process.
    status.insert("uptimeMillis", 200_000_i64);
    values(&mut server_state, &status, NOW_MS + 300_000);
    assert_eq!(server_state.started_ms(), Some(NOW_MS + 100_000));
}

/// Generates values of any type for a field.
fn any_value() -> impl Strategy<Value = Bson> {
    prop_oneof![
        any::<f64>().prop_map(Bson::Double),
        any::<i64>().prop_map(Bson::Int64),
        any::<i32>().prop_map(Bson::Int32),
        ".{0,5}".prop_map(Bson::String),
        Just(Bson::Null),
        any::<i64>().prop_map(|time| Bson::DateTime(mongodb::bson::DateTime::from_millis(time))),
    ]
}

/// Returns a document with some of the expected fields, of any type.
fn any_status() -> impl Strategy<Value = Document> {
    let paths: Vec<&str> = ROWS.iter().flat_map(|row| row.paths.iter().copied()).collect();
    let other_paths =
        ["uptimeMillis", "pid", "version", "metrics.document.returned", "opLatencies.reads.ops"];
    let paths: Vec<&str> = paths.into_iter().chain(other_paths).collect();
    prop::collection::vec((prop::sample::select(paths), any_value()), 0..40).prop_map(|fields| {
        let mut status = Document::new();
        for (path, value) in fields {
            let mut parts: Vec<&str> = path.split('.').collect();
            let name = parts.pop().unwrap();
            let mut inner = &mut status;
            for part in parts {
                if inner.get_document(part).is_err() {
                    inner.insert(part, Document::new());
                }
                inner = inner.get_document_mut(part).unwrap();
            }
            inner.insert(name, value);
        }
        status
    })
}

proptest! {
    #[test]
    fn every_response_yields_finite_values_without_a_panic(
        responses in prop::collection::vec((any_status(), 0..100_000_i64), 1..5)
    ) {
        let mut server_state = ServerState::default();
        for (status, offset_ms) in responses {
            let mut readings = Readings::default();
            read(&status, NOW_MS + offset_ms, Some(0.0), &mut server_state, &mut readings);
            for reading in readings.as_slice() {
                prop_assert!(reading.value.is_finite());
            }
        }
    }
}
