//! The collector of MySQL and MariaDB servers, based on SHOW GLOBAL STATUS and the replication
//! status (dev.mysql.com, "Server Status Variables"), over a persistent connection.

use granary_agent_kit::Readings;
use mysql::{Conn, OptsBuilder, Row as ResultRow, Value, prelude::Queryable};

use crate::{
    rows::{Row, Rows},
    settings::{ServerAddress, Service},
    target::Collector,
};

const PORT: u16 = 3306;
/// The maximum size of a response and of each packet.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// The approximate memory of a row without its cells.
const ROW_BYTES: usize = 64;

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

/// The connection to a MySQL server.
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
            // With an explicit value, the library does not query the value of the server.
            .max_allowed_packet(Some(ANSWER_BYTES_MAX))
            .tcp_connect_timeout(timeout)
            .read_timeout(timeout)
            .write_timeout(timeout);
        let options = match self.service.server_address(PORT) {
            ServerAddress::Path(path) => options.socket(Some(path.to_string_lossy())),
            ServerAddress::Tcp(host, port) => options.ip_or_hostname(Some(host)).tcp_port(port),
        };
        Conn::new(options).map_err(|cause| cause.to_string())
    }
}

impl Collector for MySql {
    fn collect(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), String> {
        let live_connection = self
            .connection
            .take()
            .and_then(|mut connection| connection.ping().ok().map(|()| connection));
        let mut connection = match live_connection {
            Some(connection) => connection,
            None => self.connect()?,
        };
        for (sql, rows) in [("SHOW GLOBAL STATUS", STATUS), (VARIABLES_SQL, VARIABLES)] {
            for (name, value) in query_rows(&mut connection, sql)?.iter().filter_map(number) {
                rows.push_value((&name, value), &[], readings);
            }
        }
        push_replication(&mut connection, readings);
        self.connection = Some(connection);
        Ok(())
    }
}

/// Reads all rows of a response.
fn query_rows(connection: &mut Conn, sql: &str) -> Result<Vec<ResultRow>, String> {
    let fault = |cause: mysql::Error| cause.to_string();
    let mut bytes = 0;
    let mut result_rows = Vec::new();
    for row in connection.query_iter(sql).map_err(fault)? {
        let row = row.map_err(fault)?;
        let cells = (0..row.len()).filter_map(|index| row.as_ref(index));
        let texts = cells.map(|cell| if let Value::Bytes(text) = cell { text.len() } else { 0 });
        bytes += ROW_BYTES + texts.sum::<usize>();
        if bytes > ANSWER_BYTES_MAX {
            return Err(format!("{sql}: the answer has more than {ANSWER_BYTES_MAX} bytes"));
        }
        result_rows.push(row);
    }
    Ok(result_rows)
}

/// Returns the name and the number of a row, or `None` when the value is not a number.
fn number(row: &ResultRow) -> Option<(String, f64)> {
    let value: String = row.get_opt(1)?.ok()?;
    Some((row.get_opt(0)?.ok()?, value.parse().ok()?))
}

/// Adds the lag of each replication channel. There is no channel without replication, or without
/// the privilege.
fn push_replication(connection: &mut Conn, readings: &mut Readings) {
    let response = query_rows(connection, "SHOW REPLICA STATUS");
    let response = response.or_else(|_| query_rows(connection, "SHOW SLAVE STATUS"));
    let rows = response.unwrap_or_default();
    for row in &rows {
        let text = |names: [&str; 2]| {
            let get = |name: &str| row.get_opt::<Option<String>, _>(name)?.ok().flatten();
            names.into_iter().find_map(get)
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

/// Returns the rows of all metrics.
#[cfg(test)]
pub(crate) fn all_rows() -> impl Iterator<Item = Row> {
    [STATUS, VARIABLES]
        .into_iter()
        .flat_map(|rows| rows.gauges.iter().chain(rows.counters).copied())
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Read, Write},
        net::{TcpListener, TcpStream},
        thread,
    };

    use granary_agent_kit::Source;

    use super::*;
    use crate::{Kind, settings::service_at, target::Target};

    /// Builds a packet of the protocol, with its number.
    fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
        [&length[..3], &[number], payload].concat()
    }

    fn greeting() -> Vec<u8> {
        // The flags announce protocol 4.1, secure connections and plugins.
        let (low, high) = (0x8200_u16.to_le_bytes(), 0x0008_u16.to_le_bytes());
        let before = [b"\x0a8.0.0\0\x01\0\0\0abcdefgh\0".as_slice(), &low, b"\x21\x02\0"];
        let after = [high.as_slice(), b"\x15", &[0; 10], b"ijklmnopqrst\0mysql_native_password\0"];
        packet(0, &[before.concat(), after.concat()].concat())
    }

    /// Builds a result with two columns; `None` is NULL.
    fn result_set(rows: &[[Option<&[u8]>; 2]]) -> Vec<u8> {
        let column = b"\x03def\0\0\0\x01a\x01a\x0c\x21\0\xff\0\0\0\xfd\0\0\0\0\0".as_slice();
        let end = b"\xfe\0\0\x02\0".as_slice();
        let mut payloads = vec![b"\x02".to_vec(), column.to_vec(), column.to_vec(), end.to_vec()];
        let cell = |cell: Option<&[u8]>| match cell {
            Some(text) => [&[u8::try_from(text.len()).unwrap()][..], text].concat(),
            None => vec![0xfb],
        };
        payloads.extend(rows.iter().map(|row| row.iter().copied().flat_map(cell).collect()));
        payloads.push(end.to_vec());
        let numbers = (0..=u8::MAX).cycle().skip(1);
        numbers.zip(payloads).flat_map(|(number, payload)| packet(number, &payload)).collect()
    }

    fn read_request(stream: &mut TcpStream) -> io::Result<()> {
        let mut head = [0; 4];
        stream.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        io::copy(&mut stream.take(length.into()), &mut io::sink()).map(drop)
    }

    /// Starts a server that accepts all users and returns the same result for each query; returns
    /// its address.
    fn serve(response: Vec<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let mut stream = listener.accept()?.0;
            stream.write_all(&greeting())?;
            read_request(&mut stream)?;
            stream.write_all(&packet(2, b"\0\0\0\x02\0\0\0"))?;
            loop {
                read_request(&mut stream)?;
                stream.write_all(&response)?;
            }
            #[expect(unreachable_code, reason = "the type of the error must be known")]
            io::Result::Ok(())
        });
        address
    }

    #[test]
    fn a_server_that_violates_the_protocol_is_down() {
        for response in [packet(1, b""), packet(1, b"\xfb/etc/passwd"), b"+PONG\r\n".to_vec()] {
            let timeout = std::time::Duration::from_secs(1);
            let settings =
                crate::settings::Service { timeout, ..service_at(serve(response.clone())) };
            let mut target =
                Target::new(Kind::MySql, &settings, Box::new(MySql::new(&settings)), "web1");
            let mut readings = Readings::default();
            target.sample(0, &mut readings).unwrap();
            let up =
                readings.as_slice().iter().find(|reading| reading.metric == "mysql_up").unwrap();
            assert_eq!((up.value, readings.problems().len()), (0.0, 1), "{response:?}");
        }
    }

    #[test]
    fn the_size_of_a_response_is_limited() {
        let row = [Some([b'x'; 250].as_slice()), Some(b"1".as_slice())];
        let response = result_set(&vec![row; ANSWER_BYTES_MAX / 250]);
        let fault = MySql::new(&service_at(serve(response))).collect(0, &mut Readings::default());
        let fault = fault.unwrap_err();
        assert_eq!(fault, "SHOW GLOBAL STATUS: the answer has more than 16777216 bytes");
    }

    #[test]
    fn values_that_are_no_numbers_are_skipped() {
        let response = result_set(&[
            [Some(b"Queries"), Some(b"7")],
            [Some(b"Uptime"), None],
            [None, Some(b"1")],
            [Some(b"Threads_running"), Some(b"\xff\xfe")],
            [Some(b"Questions"), Some(b"ON")],
        ]);
        let mut readings = Readings::default();
        MySql::new(&service_at(serve(response))).collect(0, &mut readings).unwrap();
        let values: Vec<_> = readings
            .as_slice()
            .iter()
            .map(|reading| (reading.metric.to_string(), reading.value))
            .collect();
        assert_eq!(values[0], ("mysql_queries".to_owned(), 7.0));
        assert!(values.iter().all(|(name, _)| name != "mysql_uptime"), "{values:?}");
    }
}
