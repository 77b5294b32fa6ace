//! The queries, and the metrics of their columns.

use crate::rows::Rows;

/// The states of connections. A state without connections counts 0.
pub(super) const STATES: [&str; 5] =
    ["active", "idle", "idle in transaction", "idle in transaction (aborted)", "other"];

/// The metrics of each database, by column.
pub(super) const DATABASE: Rows = Rows {
    gauges: &[
        ("numbackends", "postgres_database_connections", "connections"),
        ("age", "postgres_database_transaction_age", "transactions"),
    ],
    counters: &[
        ("xact_commit", "postgres_transactions_committed", "transactions"),
        ("xact_rollback", "postgres_transactions_rolled_back", "transactions"),
        ("blks_read", "postgres_blocks_read", "blocks"),
        ("blks_hit", "postgres_blocks_hit", "blocks"),
        ("tup_returned", "postgres_rows_returned", "rows"),
        ("tup_fetched", "postgres_rows_fetched", "rows"),
        ("tup_inserted", "postgres_rows_inserted", "rows"),
        ("tup_updated", "postgres_rows_updated", "rows"),
        ("tup_deleted", "postgres_rows_deleted", "rows"),
        ("conflicts", "postgres_conflicts", "queries"),
        ("temp_files", "postgres_temporary_files", "files"),
        ("temp_bytes", "postgres_temporary_bytes", "bytes"),
        ("deadlocks", "postgres_deadlocks", "deadlocks"),
    ],
};
pub(super) const SIZES: Rows =
    Rows { gauges: &[("size", "postgres_database_size", "bytes")], counters: &[] };
/// The metrics of the whole server, by column.
pub(super) const SERVER: Rows = Rows {
    gauges: &[
        ("uptime", "postgres_uptime", "seconds"),
        ("is_standby", "postgres_is_standby", ""),
        ("connections_max", "postgres_connections_max", "connections"),
        ("replay_lag", "postgres_replay_lag", "seconds"),
        ("locks_waiting", "postgres_locks_waiting", "locks"),
        ("transaction_longest", "postgres_transaction_longest", "seconds"),
    ],
    counters: &[("wal", "postgres_wal_position", "bytes")],
};
pub(super) const STANDBYS: Rows =
    Rows { gauges: &[("behind", "postgres_standby_behind", "bytes")], counters: &[] };

pub(super) const SERVER_SQL: &str = "SELECT
    extract(epoch FROM now() - pg_postmaster_start_time())::float8 AS uptime,
    pg_is_in_recovery()::int::float8 AS is_standby,
    current_setting('max_connections')::float8 AS connections_max,
    CASE WHEN pg_is_in_recovery()
        THEN extract(epoch FROM now() - pg_last_xact_replay_timestamp()) END::float8 AS replay_lag,
    (SELECT count(*) FROM pg_locks WHERE NOT granted)::float8 AS locks_waiting,
    (SELECT coalesce(max(extract(epoch FROM now() - xact_start)), 0) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())::float8
        AS transaction_longest,
    pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
        ELSE pg_current_wal_lsn() END, '0/0')::float8 AS wal";
pub(super) const STATES_SQL: &str =
    "SELECT coalesce(state, 'other') AS state, count(*)::float8 AS connections
    FROM pg_stat_activity WHERE backend_type = 'client backend' GROUP BY 1";
pub(super) const SIZES_SQL: &str =
    "SELECT datname::text AS database, pg_database_size(oid)::float8 AS size
    FROM pg_database WHERE datallowconn AND has_database_privilege(oid, 'CONNECT')
    ORDER BY datname LIMIT 200";
pub(super) const STANDBYS_SQL: &str = "SELECT application_name AS standby,
    coalesce(host(client_addr), 'local') AS address, max(pg_wal_lsn_diff(
        CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END,
        replay_lsn))::float8 AS behind
    FROM pg_stat_replication GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 50";

/// Returns the query for the columns of [`DATABASE`].
pub(super) fn databases_sql() -> String {
    let columns: Vec<String> = DATABASE
        .names()
        .map(|name| match name {
            "age" => "age(d.datfrozenxid)::float8 AS age".to_owned(),
            column => format!("s.{column}::float8"),
        })
        .collect();
    format!(
        "SELECT d.datname::text AS database, {} FROM pg_stat_database s JOIN pg_database d \
         ON d.oid = s.datid WHERE d.datallowconn ORDER BY d.datname LIMIT 200",
        columns.join(", ")
    )
}
