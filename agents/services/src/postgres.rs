//! PostgreSQL from 10 on, by its statistics views (postgresql.org, "The Cumulative Statistics
//! System"), over a connection that is kept, which may change nothing.

use std::time::Duration;

use granary_agent_kit::Readings;
use postgres::{Client, Config, NoTls, Row as Answer, types::Type};

use crate::{
    rows::Rows,
    settings::{Place, Service},
    target::Ask,
};

const PORT: u16 = 5432;
/// How often databases are asked for their sizes, which looks at each of their files.
const SIZES_EVERY_MS: i64 = 300_000;
/// What connections are doing; those that none is in are 0.
const STATES: [&str; 5] =
    ["active", "idle", "idle in transaction", "idle in transaction (aborted)", "other"];

/// Of each database.
const DATABASE: Rows = Rows {
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
const SIZES: Rows = Rows { gauges: &[("size", "postgres_database_size", "bytes")], counters: &[] };
/// Of the server.
const SERVER: Rows = Rows {
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
const STANDBYS: Rows =
    Rows { gauges: &[("behind", "postgres_standby_behind", "bytes")], counters: &[] };

const SERVER_SQL: &str = "SELECT
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
const STATES_SQL: &str = "SELECT coalesce(state, 'other') AS state, count(*)::float8 AS connections
    FROM pg_stat_activity WHERE backend_type = 'client backend' GROUP BY 1";
const SIZES_SQL: &str = "SELECT datname::text AS database, pg_database_size(oid)::float8 AS size
    FROM pg_database WHERE datallowconn AND has_database_privilege(oid, 'CONNECT')
    ORDER BY datname LIMIT 200";
const STANDBYS_SQL: &str = "SELECT application_name AS standby,
    coalesce(host(client_addr), 'local') AS address, max(pg_wal_lsn_diff(
        CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END,
        replay_lsn))::float8 AS behind
    FROM pg_stat_replication GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 50";

/// The names of the view's columns, levels and totals alike.
fn databases_sql() -> String {
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

/// Asks one.
pub(crate) struct Postgres {
    service: Service,
    client: Option<Client>,
    sizes_next_ms: i64,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").field("service", &self.service).finish_non_exhaustive()
    }
}

impl Postgres {
    pub(crate) fn new(service: &Service) -> Self {
        Self { service: service.clone(), client: None, sizes_next_ms: i64::MIN }
    }

    fn connect(&self) -> Result<Client, String> {
        let Service { timeout, user, database, .. } = &self.service;
        let mut config = Config::new();
        match self.service.place(PORT) {
            Place::Path(folder) => config.host_path(folder),
            Place::Tcp(host, port) => config.host(&host).port(port),
        };
        if let Some(password) = self.service.password()? {
            config.password(password);
        }
        let millis = timeout.as_millis();
        config
            .user(user.as_deref().unwrap_or("granary"))
            .dbname(database.as_deref().unwrap_or("postgres"))
            .application_name("granary-agent")
            .options(&format!("-c statement_timeout={millis} -c default_transaction_read_only=on"))
            .connect_timeout(*timeout)
            .tcp_user_timeout(*timeout)
            .keepalives_idle(Duration::from_secs(30))
            .connect(NoTls)
            .map_err(|cause| told(&cause))
    }

    fn sizes(
        &mut self,
        client: &mut Client,
        now_ms: i64,
        into: &mut Readings,
    ) -> Result<(), String> {
        // A clock that steps back asks again.
        let is_due = now_ms >= self.sizes_next_ms || now_ms < self.sizes_next_ms - SIZES_EVERY_MS;
        if is_due {
            each(client, SIZES_SQL, SIZES, into)?;
            self.sizes_next_ms = now_ms.saturating_add(SIZES_EVERY_MS);
        }
        Ok(())
    }
}

impl Ask for Postgres {
    fn ask(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), String> {
        let kept = self.client.take().filter(|client| !client.is_closed());
        let kept = kept.and_then(|mut own| {
            // One that the server has closed meanwhile says so when it is used.
            own.is_valid(self.service.timeout).ok().map(|()| own)
        });
        let mut client = match kept {
            Some(client) => client,
            None => self.connect()?,
        };
        each(&mut client, SERVER_SQL, SERVER, readings)?;
        each(&mut client, &databases_sql(), DATABASE, readings)?;
        each(&mut client, STANDBYS_SQL, STANDBYS, readings)?;
        let rows = client.query(STATES_SQL, &[]).map_err(|cause| told(&cause))?;
        let states = rows.iter().filter_map(|row| {
            Some((
                row.try_get::<_, String>("state").ok()?,
                row.try_get::<_, f64>("connections").ok()?,
            ))
        });
        connections(&states.collect::<Vec<_>>(), readings);
        self.sizes(&mut client, now_ms, readings)?;
        self.client = Some(client);
        Ok(())
    }
}

/// What the server says is wrong, without the library's words around it.
fn told(cause: &postgres::Error) -> String {
    cause.as_db_error().map_or_else(
        || {
            let source = std::error::Error::source(cause);
            source.map_or_else(|| cause.to_string(), |source| format!("{cause}: {source}"))
        },
        |refusal| format!("{} ({})", refusal.message(), refusal.code().code()),
    )
}

/// Asks, and reads each row: texts are tags, numbers are values; none where there is none.
fn each(client: &mut Client, sql: &str, rows: Rows, readings: &mut Readings) -> Result<(), String> {
    for answer in client.query(sql, &[]).map_err(|cause| told(&cause))? {
        let tags = texts(&answer);
        let tags: Vec<(&'static str, &str)> =
            tags.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for column in answer.columns().iter().filter(|own| *own.type_() == Type::FLOAT8) {
            if let Ok(Some(value)) = answer.try_get::<_, Option<f64>>(column.name()) {
                rows.read((column.name(), value), &tags, readings);
            }
        }
    }
    Ok(())
}

/// The columns that are tags.
fn texts(answer: &Answer) -> Vec<(&'static str, String)> {
    ["database", "standby", "address"]
        .into_iter()
        .filter_map(|name| Some((name, answer.try_get::<_, String>(name).ok()?)))
        .collect()
}

fn connections(counted: &[(String, f64)], readings: &mut Readings) {
    for state in STATES {
        let is_own = |own: &str| own == state || (state == "other" && !STATES.contains(&own));
        let count: f64 =
            counted.iter().filter(|(own, _)| is_own(own)).map(|(_, count)| count).sum();
        readings.gauge("postgres_connections", "connections", &[("state", state)], count);
    }
}

/// A row of the table of what is emitted.
#[cfg(test)]
pub(crate) fn all_rows() -> impl Iterator<Item = crate::rows::Row> {
    [DATABASE, SIZES, SERVER, STANDBYS]
        .into_iter()
        .flat_map(|rows| rows.gauges.iter().chain(rows.counters).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_a_count_and_what_is_not_known_is_other() {
        let mut readings = Readings::default();
        let counted =
            [("active", 2.0), ("idle", 5.0), ("fastpath function call", 1.0), ("other", 3.0)];
        connections(&counted.map(|(state, count)| (state.to_owned(), count)), &mut readings);
        let values: Vec<f64> = readings.as_slice().iter().map(|own| own.value).collect();
        assert_eq!(values, [2.0, 5.0, 0.0, 0.0, 4.0]);
    }

    #[test]
    fn columns_are_asked_for_by_their_names() {
        let sql = databases_sql();
        assert!(
            sql.contains(
                "s.numbackends::float8, age(d.datfrozenxid)::float8 AS age, s.xact_commit"
            )
        );
    }
}
