//! The collector of Redis servers, based on the command INFO (redis.io, "INFO"), over a persistent
//! connection.
//!
//! `connection` implements the two commands in use.

mod connection;

use granary_agent_kit::Readings;

use self::connection::Connection;
use crate::{
    rows::{Row, Rows},
    settings::Service,
    target::Collector,
};

/// The maximum number of databases that are sampled.
const DATABASES_MAX: usize = 64;

/// The gauges: the key of INFO, the metric, its unit.
const GAUGES: [Row; 19] = [
    ("uptime_in_seconds", "redis_uptime", "seconds"),
    ("connected_clients", "redis_clients_connected", "clients"),
    ("blocked_clients", "redis_clients_blocked", "clients"),
    ("maxclients", "redis_clients_max", "clients"),
    ("used_memory", "redis_memory_used", "bytes"),
    ("used_memory_rss", "redis_memory_resident", "bytes"),
    ("used_memory_peak", "redis_memory_peak", "bytes"),
    ("used_memory_lua", "redis_memory_lua", "bytes"),
    ("maxmemory", "redis_memory_max", "bytes"),
    ("mem_fragmentation_ratio", "redis_memory_fragmentation_ratio", ""),
    ("rdb_changes_since_last_save", "redis_rdb_changes_since_save", "changes"),
    ("rdb_bgsave_in_progress", "redis_rdb_saving", ""),
    ("aof_current_size", "redis_aof_size", "bytes"),
    ("loading", "redis_loading", ""),
    ("pubsub_channels", "redis_pubsub_channels", "channels"),
    ("connected_slaves", "redis_replicas", "replicas"),
    ("master_last_io_seconds_ago", "redis_primary_last_io", "seconds"),
    ("repl_backlog_size", "redis_replication_backlog", "bytes"),
    ("latest_fork_usec", "redis_fork_microseconds", "microseconds"),
];

/// The counters: the key of INFO, the metric, its unit.
const COUNTERS: [Row; 16] = [
    ("total_connections_received", "redis_connections_received", "connections"),
    ("rejected_connections", "redis_connections_rejected", "connections"),
    ("total_commands_processed", "redis_commands_processed", "commands"),
    ("total_error_replies", "redis_errors", "errors"),
    ("total_net_input_bytes", "redis_network_received", "bytes"),
    ("total_net_output_bytes", "redis_network_sent", "bytes"),
    ("expired_keys", "redis_keys_expired", "keys"),
    ("evicted_keys", "redis_keys_evicted", "keys"),
    ("keyspace_hits", "redis_keyspace_hits", "lookups"),
    ("keyspace_misses", "redis_keyspace_misses", "lookups"),
    ("sync_full", "redis_syncs_full", "syncs"),
    ("sync_partial_ok", "redis_syncs_partial", "syncs"),
    ("sync_partial_err", "redis_syncs_partial_failed", "syncs"),
    ("master_repl_offset", "redis_replication_offset", "bytes"),
    ("used_cpu_sys", "redis_cpu_kernel", "seconds"),
    ("used_cpu_user", "redis_cpu_user", "seconds"),
];

const ROWS: Rows = Rows { gauges: &GAUGES, counters: &COUNTERS };

/// The gauges of keys with texts: the key of INFO, the text for the value 1, the metric.
const STATES: [Row; 4] = [
    ("role", "master", "redis_is_primary"),
    ("master_link_status", "up", "redis_primary_link_up"),
    ("rdb_last_bgsave_status", "ok", "redis_rdb_last_save_ok"),
    ("aof_last_write_status", "ok", "redis_aof_last_write_ok"),
];

/// The connection to a Redis server.
#[derive(Debug)]
pub(crate) struct Redis {
    service: Service,
    connection: Option<Connection>,
}

impl Redis {
    pub(crate) fn new(service: &Service) -> Self {
        Self { service: service.clone(), connection: None }
    }
}

impl Collector for Redis {
    fn collect(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), String> {
        let answered_connection = self
            .connection
            .take()
            .and_then(|mut connection| Some((connection.info().ok()?, connection)));
        let (info, connection) = if let Some(answered) = answered_connection {
            answered
        } else {
            let mut connection = Connection::open(&self.service)?;
            (connection.info()?, connection)
        };
        push_info(&info, readings);
        self.connection = Some(connection);
        Ok(())
    }
}

/// Parses the response of INFO. Keys without a metric are skipped.
fn push_info(info: &str, readings: &mut Readings) {
    let pairs = || info.lines().filter_map(|line| line.trim_end().split_once(':'));
    for (key, value) in pairs() {
        if let Ok(number) = value.parse() {
            ROWS.push_value((key, number), &[], readings);
        } else if let Some((_, active_text, metric)) =
            STATES.iter().find(|(known, ..)| *known == key)
        {
            readings.gauge(*metric, "", &[], f64::from(u8::from(value == *active_text)));
        }
    }
    let is_database = |key: &str| key.strip_prefix("db").is_some_and(|n| n.parse::<u32>().is_ok());
    for (name, value) in pairs().filter(|(key, _)| is_database(key)).take(DATABASES_MAX) {
        for part in value.split(',').filter_map(|part| part.split_once('=')) {
            let metric = match part.0 {
                "keys" => "redis_keys",
                "expires" => "redis_keys_expiring",
                _ => continue,
            };
            if let Ok(count) = part.1.parse::<u64>() {
                readings.gauge(metric, "keys", &[("database", name)], count as f64);
            }
        }
    }
}

/// Returns the rows of all gauges and counters.
#[cfg(test)]
pub(crate) fn all_rows() -> impl Iterator<Item = Row> {
    GAUGES.into_iter().chain(COUNTERS)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        thread,
    };

    use super::*;
    use crate::settings::service_at;

    const INFO: &str = "# Server\r\nredis_version:7.0.15\r\nuptime_in_seconds:9\r\n\r\n# Clients\r\nconnected_clients:2\r\nkeyspace_hits:7\r\nrole:slave\r\nmaster_link_status:down\r\nrdb_last_bgsave_status:ok\r\nmem_fragmentation_ratio:1.50\r\nused_cpu_sys:0.25\r\ndb0:keys=5,expires=1,avg_ttl=0\r\n";

    fn values(readings: &Readings) -> Vec<(String, f64)> {
        readings
            .as_slice()
            .iter()
            .map(|reading| (reading.metric.to_string(), reading.value))
            .collect()
    }

    #[test]
    fn info_is_read_by_its_keys() {
        let mut readings = Readings::default();
        push_info(INFO, &mut readings);
        let expected = [
            ("redis_uptime", 9.0),
            ("redis_clients_connected", 2.0),
            ("redis_keyspace_hits", 7.0),
            ("redis_is_primary", 0.0),
            ("redis_primary_link_up", 0.0),
            ("redis_rdb_last_save_ok", 1.0),
            ("redis_memory_fragmentation_ratio", 1.5),
            ("redis_cpu_kernel", 0.25),
            ("redis_keys", 5.0),
            ("redis_keys_expiring", 1.0),
        ];
        assert_eq!(values(&readings), expected.map(|(name, value)| (name.to_owned(), value)));
    }

    /// Answers each request of a connection with the next text, then closes it.
    fn serve(connections: Vec<Vec<String>>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for answers in connections {
                let (mut stream, _) = listener.accept().unwrap();
                for response in answers {
                    let mut request = [0; 1000];
                    let _length = stream.read(&mut request).unwrap();
                    stream.write_all(response.as_bytes()).unwrap();
                }
            }
        });
        address
    }

    #[test]
    fn a_connection_is_reused_and_replaced_after_its_end() {
        let info = || format!("${}\r\n{INFO}\r\n", INFO.len());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "secret\n").unwrap();
        let ok = || "+OK\r\n".to_owned();
        let refused = || "-ERR unknown command 'AUTH', with args: 'secret'\r\n".to_owned();
        let address = serve(vec![vec![ok(), info(), info()], vec![ok(), info()], vec![refused()]]);
        let mut redis = Redis::new(&Service { password_file: Some(file), ..service_at(address) });
        for _ in 0..3 {
            let mut readings = Readings::default();
            redis.collect(0, &mut readings).unwrap();
            assert_eq!(readings.len(), 10);
        }
        let fault = redis.collect(0, &mut Readings::default()).unwrap_err();
        assert_eq!(fault, "AUTH is refused: ERR");
    }

    #[test]
    fn an_invalid_response_is_an_error() {
        for response in ["$99999999999\r\n", "HTTP/1.1 400\r\n", "$5\r\nab", "", "$x\r\n"] {
            let mut redis = Redis::new(&service_at(serve(vec![vec![response.to_owned()]])));
            assert!(redis.collect(0, &mut Readings::default()).is_err(), "{response:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_info_is_parsed(text in "[ -~\r\n:=,]{0,200}") {
            push_info(&text, &mut Readings::default());
        }
    }
}
