//! The collector of PostgreSQL servers from version 10 on, based on the statistics views
//! (postgresql.org, "The Cumulative Statistics System"), over a persistent read-only connection.

mod connection;
mod queries;

use granary_agent_kit::Readings;
use tokio::runtime::{self, Runtime};
use tokio_postgres::{Row as ResultRow, types::Type};

use self::{
    connection::OpenConnection,
    queries::{
        DATABASE, SERVER, SERVER_SQL, SIZES, SIZES_SQL, STANDBYS, STANDBYS_SQL, STATES, STATES_SQL,
        databases_sql,
    },
};
use crate::{
    rows::Rows,
    settings::{Service, ServiceError},
    target::Collector,
};

/// The interval of the query for database sizes, which is expensive because it scans all files.
const SIZES_INTERVAL_MS: i64 = 300_000;

/// The connection to a PostgreSQL server.
pub(crate) struct Postgres {
    service: Service,
    runtime: Runtime,
    connection: Option<OpenConnection>,
    sizes_next_ms: i64,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").field("service", &self.service).finish_non_exhaustive()
    }
}

impl Postgres {
    pub(crate) fn new(service: &Service) -> Result<Self, ServiceError> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|cause| ServiceError(format!("postgres: {cause}")))?;
        Ok(Self { service: service.clone(), runtime, connection: None, sizes_next_ms: i64::MIN })
    }

    /// Returns true when the query for sizes is due.
    fn is_sizes_query_due(&self, now_ms: i64) -> bool {
        // The query is also due after a large step back of the clock.
        now_ms >= self.sizes_next_ms || now_ms < self.sizes_next_ms - SIZES_INTERVAL_MS
    }
}

impl Collector for Postgres {
    fn collect(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), String> {
        let with_sizes = self.is_sizes_query_due(now_ms);
        let previous = self.connection.take();
        let round = sample_server(&self.service, previous, with_sizes, readings);
        self.connection = Some(self.runtime.block_on(round)?);
        // A failed query is not repeated before the next interval either.
        if with_sizes {
            self.sizes_next_ms = now_ms.saturating_add(SIZES_INTERVAL_MS);
        }
        Ok(())
    }
}

/// Samples a server over the persistent connection if it still works, and returns the connection to
/// keep.
async fn sample_server(
    service: &Service,
    previous: Option<OpenConnection>,
    with_sizes: bool,
    readings: &mut Readings,
) -> Result<OpenConnection, String> {
    // A connection that the server has closed fails at its next use.
    let connection = match previous {
        Some(connection) if connection.is_usable().await => connection,
        _ => OpenConnection::new(service).await?,
    };
    push_rows(&connection.query(SERVER_SQL).await?, SERVER, readings);
    push_rows(&connection.query(&databases_sql()).await?, DATABASE, readings);
    push_rows(&connection.query(STANDBYS_SQL).await?, STANDBYS, readings);
    let rows = connection.query(STATES_SQL).await?;
    let states = rows.iter().filter_map(|row| {
        Some((row.try_get::<_, String>("state").ok()?, row.try_get::<_, f64>("connections").ok()?))
    });
    push_connections(&states.collect::<Vec<_>>(), readings);
    if with_sizes {
        // The query fails when files disappear during the scan; the server is still healthy.
        match connection.query(SIZES_SQL).await {
            Ok(rows) => push_rows(&rows, SIZES, readings),
            Err(cause) => {
                readings.problem(format!("postgres {}: sizes", service.address), cause);
            }
        }
    }
    Ok(connection)
}

/// Adds the values of each row: text columns are tags, numeric columns are values, and NULL is
/// skipped.
fn push_rows(answers: &[ResultRow], rows: Rows, readings: &mut Readings) {
    for answer in answers {
        let tags = tag_columns(answer);
        let tags: Vec<(&'static str, &str)> =
            tags.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for column in answer.columns().iter().filter(|column| *column.type_() == Type::FLOAT8) {
            if let Ok(Some(value)) = answer.try_get::<_, Option<f64>>(column.name()) {
                rows.push_value((column.name(), value), &tags, readings);
            }
        }
    }
}

/// Returns the columns that are tags.
fn tag_columns(answer: &ResultRow) -> Vec<(&'static str, String)> {
    ["database", "standby", "address"]
        .into_iter()
        .filter_map(|name| Some((name, answer.try_get::<_, String>(name).ok()?)))
        .collect()
}

fn push_connections(counts: &[(String, f64)], readings: &mut Readings) {
    for state in STATES {
        let is_of_state =
            |name: &str| name == state || (state == "other" && !STATES.contains(&name));
        let count: f64 =
            counts.iter().filter(|(name, _)| is_of_state(name)).map(|(_, count)| count).sum();
        readings.gauge("postgres_connections", "connections", &[("state", state)], count);
    }
}

/// Returns the rows of all metrics.
#[cfg(test)]
pub(crate) fn all_rows() -> impl Iterator<Item = crate::rows::Row> {
    [DATABASE, SIZES, SERVER, STANDBYS]
        .into_iter()
        .flat_map(|rows| rows.gauges.iter().chain(rows.counters).copied())
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{Shutdown, TcpListener, TcpStream},
        thread,
        time::Duration,
    };

    use super::*;
    use crate::settings::service_at;

    #[test]
    fn a_hanging_server_is_an_error_after_the_timeout() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let timeout = Duration::from_millis(200);
        let mut hanging = Postgres::new(&Service { timeout, ..service_at(address) }).unwrap();
        // The system accepts the connection, but no server answers.
        for _ in 0..2 {
            let fault = hanging.collect(0, &mut Readings::default()).unwrap_err();
            assert_eq!(fault, "took longer than 200ms");
        }
        drop(listener);
    }

    /// Builds a message of the protocol.
    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[kind], &length[..], body].concat()
    }

    /// Serves a client like a server that accepts all users, returns no rows for all statements,
    /// and fails the query for sizes.
    fn serve(mut stream: TcpStream) -> Option<()> {
        let mut length = [0; 4];
        stream.read_exact(&mut length).ok()?;
        let mut start = vec![0; u32::from_be_bytes(length) as usize - 4];
        stream.read_exact(&mut start).ok()?;
        let ready = message(b'Z', b"I");
        stream.write_all(&[message(b'R', &[0; 4]), ready.clone()].concat()).ok()?;
        let mut has_failed = false;
        loop {
            let mut head = [0; 5];
            stream.read_exact(&mut head).ok()?;
            let mut body =
                vec![0; u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4];
            stream.read_exact(&mut body).ok()?;
            has_failed |=
                head[0] == b'P' && String::from_utf8_lossy(&body).contains("pg_database_size");
            let answer = match head[0] {
                b'P' if has_failed => message(b'E', b"SERROR\0C58P01\0Mcould not stat file\0\0"),
                b'S' => {
                    has_failed = false;
                    ready.clone()
                }
                b'Q' => [message(b'I', b""), ready.clone()].concat(),
                b'X' => return stream.shutdown(Shutdown::Both).ok(),
                _ if has_failed => continue,
                b'P' => message(b'1', b""),
                b'B' => message(b'2', b""),
                b'D' if body[0] == b'S' => [message(b't', &[0; 2]), message(b'n', b"")].concat(),
                b'D' => message(b'n', b""),
                b'E' => message(b'C', b"SELECT 0\0"),
                b'C' => message(b'3', b""),
                _ => continue,
            };
            stream.write_all(&answer).ok()?;
        }
    }

    #[test]
    fn a_failed_query_for_sizes_is_a_problem_and_is_repeated_after_its_interval() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || serve(stream.unwrap()));
            }
        });
        let mut postgres = Postgres::new(&service_at(address)).unwrap();
        let mut problems = |now_ms| {
            let mut readings = Readings::default();
            assert_eq!(postgres.collect(now_ms, &mut readings), Ok(()));
            assert_eq!(readings.len(), STATES.len());
            readings.problems().values().cloned().collect::<Vec<_>>()
        };
        assert_eq!(problems(1000), ["could not stat file (58P01)"]);
        assert_eq!(problems(2000), [""; 0], "the query is not due");
        assert_eq!(problems(1000 + SIZES_INTERVAL_MS), ["could not stat file (58P01)"]);
    }

    #[test]
    fn each_state_has_a_count_and_unknown_states_count_as_other() {
        let mut readings = Readings::default();
        let counts =
            [("active", 2.0), ("idle", 5.0), ("fastpath function call", 1.0), ("other", 3.0)];
        push_connections(&counts.map(|(state, count)| (state.to_owned(), count)), &mut readings);
        let values: Vec<f64> = readings.as_slice().iter().map(|reading| reading.value).collect();
        assert_eq!(values, [2.0, 5.0, 0.0, 0.0, 4.0]);
    }

    #[test]
    fn columns_are_queried_by_their_names() {
        let sql = databases_sql();
        assert!(
            sql.contains(
                "s.numbackends::float8, age(d.datfrozenxid)::float8 AS age, s.xact_commit"
            )
        );
    }
}
