//! MySQL and MariaDB, by SHOW GLOBAL STATUS and the state of their replication (dev.mysql.com,
//! "Server Status Variables"), over a connection that is kept.

use granary_agent_kit::Readings;
use mysql::{Conn, OptsBuilder, Row as Answer, prelude::Queryable};

use crate::{
    rows::{Row, Rows},
    settings::{Place, Service},
    target::Ask,
};

const PORT: u16 = 3306;

const GAUGES: [Row; 13] = [
    ("Uptime", "mysql_uptime", "seconds"),
    ("Threads_connected", "mysql_connections", "connections"),
    ("Threads_running", "mysql_connections_running", "connections"),
    ("Threads_cached", "mysql_threads_cached", "threads"),
    ("Max_used_connections", "mysql_connections_peak", "connections"),
    ("Open_tables", "mysql_tables_open", "tables"),
    ("Open_files", "mysql_files_open", "files"),
    ("Innodb_buffer_pool_pages_total", "mysql_buffer_pool_pages", "pages"),
    ("Innodb_buffer_pool_pages_free", "mysql_buffer_pool_pages_free", "pages"),
    ("Innodb_buffer_pool_pages_dirty", "mysql_buffer_pool_pages_dirty", "pages"),
    ("Innodb_row_lock_current_waits", "mysql_row_locks_waiting", "locks"),
    ("Innodb_history_list_length", "mysql_history_list_length", "transactions"),
    ("wsrep_cluster_size", "mysql_cluster_size", "nodes"),
];
const COUNTERS: [Row; 34] = [
    ("Queries", "mysql_queries", "queries"),
    ("Questions", "mysql_questions", "queries"),
    ("Slow_queries", "mysql_queries_slow", "queries"),
    ("Com_select", "mysql_commands_select", "queries"),
    ("Com_insert", "mysql_commands_insert", "queries"),
    ("Com_update", "mysql_commands_update", "queries"),
    ("Com_delete", "mysql_commands_delete", "queries"),
    ("Com_replace", "mysql_commands_replace", "queries"),
    ("Com_commit", "mysql_commands_commit", "queries"),
    ("Com_rollback", "mysql_commands_rollback", "queries"),
    ("Connections", "mysql_connections_accepted", "connections"),
    ("Aborted_connects", "mysql_connections_failed", "connections"),
    ("Aborted_clients", "mysql_connections_aborted", "connections"),
    ("Bytes_received", "mysql_network_received", "bytes"),
    ("Bytes_sent", "mysql_network_sent", "bytes"),
    ("Created_tmp_tables", "mysql_temporary_tables", "tables"),
    ("Created_tmp_disk_tables", "mysql_temporary_tables_on_disk", "tables"),
    ("Select_full_join", "mysql_joins_without_index", "queries"),
    ("Select_scan", "mysql_table_scans", "queries"),
    ("Sort_merge_passes", "mysql_sort_merge_passes", "passes"),
    ("Table_locks_waited", "mysql_table_locks_waited", "locks"),
    ("Handler_read_rnd_next", "mysql_rows_scanned", "rows"),
    ("Innodb_buffer_pool_read_requests", "mysql_buffer_pool_requests", "pages"),
    ("Innodb_buffer_pool_reads", "mysql_buffer_pool_misses", "pages"),
    ("Innodb_data_read", "mysql_innodb_read", "bytes"),
    ("Innodb_data_written", "mysql_innodb_written", "bytes"),
    ("Innodb_data_fsyncs", "mysql_innodb_syncs", "syncs"),
    ("Innodb_os_log_written", "mysql_log_written", "bytes"),
    ("Innodb_log_waits", "mysql_log_waits", "waits"),
    ("Innodb_row_lock_waits", "mysql_row_lock_waits", "locks"),
    ("Handler_read_key", "mysql_rows_read_by_key", "rows"),
    ("Handler_write", "mysql_rows_inserted", "rows"),
    ("Handler_update", "mysql_rows_updated", "rows"),
    ("Handler_delete", "mysql_rows_deleted", "rows"),
];
const STATUS: Rows = Rows { gauges: &GAUGES, counters: &COUNTERS };
const VARIABLES: Rows = Rows {
    gauges: &[
        ("max_connections", "mysql_connections_max", "connections"),
        ("innodb_buffer_pool_size", "mysql_buffer_pool_size", "bytes"),
    ],
    counters: &[],
};
const VARIABLES_SQL: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
     ('max_connections', 'innodb_buffer_pool_size')";

/// Asks one.
#[derive(Debug)]
pub(crate) struct MySql {
    service: Service,
    connection: Option<Conn>,
}

impl MySql {
    pub(crate) fn new(service: &Service) -> Self {
        Self { service: service.clone(), connection: None }
    }

    fn connect(&self) -> Result<Conn, String> {
        let timeout = Some(self.service.timeout);
        let options = OptsBuilder::new()
            .user(Some(self.service.user.as_deref().unwrap_or("granary")))
            .pass(self.service.password()?)
            .prefer_socket(false)
            .tcp_connect_timeout(timeout)
            .read_timeout(timeout)
            .write_timeout(timeout);
        let options = match self.service.place(PORT) {
            Place::Path(path) => options.socket(Some(path.to_string_lossy())),
            Place::Tcp(host, port) => options.ip_or_hostname(Some(host)).tcp_port(port),
        };
        Conn::new(options).map_err(|cause| cause.to_string())
    }
}

impl Ask for MySql {
    fn ask(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), String> {
        let kept = self.connection.take().and_then(|mut own| own.ping().ok().map(|()| own));
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect()?,
        };
        for (sql, rows) in [("SHOW GLOBAL STATUS", STATUS), (VARIABLES_SQL, VARIABLES)] {
            let pairs: Vec<(String, String)> =
                connection.query(sql).map_err(|cause| cause.to_string())?;
            for (name, value) in pairs {
                if let Ok(value) = value.parse() {
                    rows.read((&name, value), &[], readings);
                }
            }
        }
        replication(&mut connection, readings);
        self.connection = Some(connection);
        Ok(())
    }
}

/// How far each channel is behind. Who may not ask does without, as may a server that has no other.
fn replication(connection: &mut Conn, readings: &mut Readings) {
    let answer = connection.query("SHOW REPLICA STATUS");
    let answer = answer.or_else(|_| connection.query("SHOW SLAVE STATUS"));
    let rows: Vec<Answer> = answer.unwrap_or_default();
    for row in &rows {
        let text = |names: [&str; 2]| {
            let of = |name: &str| row.get_opt::<Option<String>, _>(name)?.ok().flatten();
            names.into_iter().find_map(of)
        };
        let channel = text(["Channel_Name", "Connection_name"]).unwrap_or_default();
        let tags = [("channel", channel.as_str())];
        let seconds = text(["Seconds_Behind_Source", "Seconds_Behind_Master"]);
        if let Some(seconds) = seconds.and_then(|seconds| seconds.parse().ok()) {
            readings.gauge("mysql_replica_behind", "seconds", &tags, seconds);
        }
        for (metric, names) in [
            ("mysql_replica_receiving", ["Replica_IO_Running", "Slave_IO_Running"]),
            ("mysql_replica_applying", ["Replica_SQL_Running", "Slave_SQL_Running"]),
        ] {
            if let Some(word) = text(names) {
                readings.gauge(metric, "", &tags, f64::from(u8::from(word == "Yes")));
            }
        }
    }
}

/// What is read by name.
#[cfg(test)]
pub(crate) fn all_rows() -> impl Iterator<Item = Row> {
    [STATUS, VARIABLES]
        .into_iter()
        .flat_map(|rows| rows.gauges.iter().chain(rows.counters).copied())
}
