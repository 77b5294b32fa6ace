//! The connection to one server: commands within limits, and their errors.
//!
//! The driver opens two sockets: one for commands, and one for its health check once a minute.
//! Commands are not retried. Must never know: the meaning of responses.

use std::time::Duration;

use granary_agent_kit::{Stopwatch, hosts_of};
use mongodb::{
    Client,
    bson::{Document, doc},
    error::ErrorKind,
    options::{ClientOptions, ServerAddress, ServerMonitoringMode},
};

use crate::settings::{SettingsError, TargetSettings};

/// The name by which servers know the agent.
pub(crate) const APP_NAME: &str = "granary-agent";
/// The error code for a missing privilege.
const UNAUTHORIZED: i32 = 13;
/// The error code for a missing collection.
const NAMESPACE_NOT_FOUND: i32 = 26;
/// The error codes for a missing privilege, an unknown command, option or stage, and a command that
/// the service does not offer. Other errors, such as those of an election, are temporary.
const PERMANENT: [i32; 5] = [UNAUTHORIZED, 59, 72, 115, 40_324];
/// The interval of the driver's health check.
const HEALTH_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The reason why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server refused the command with a code.
    Refused(i32, String),
    /// The server was not reachable, or did not answer.
    Unreachable(String),
}

impl Fault {
    /// Returns true when the user lacks the privilege.
    pub(crate) fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Refused(UNAUTHORIZED, _))
    }

    /// Returns true when the server will refuse the command until it or its users change.
    pub(crate) fn is_permanent(&self) -> bool {
        matches!(self, Self::Refused(code, _) if PERMANENT.contains(code))
    }

    /// Returns true when the collection does not exist.
    pub(crate) fn is_namespace_not_found(&self) -> bool {
        matches!(self, Self::Refused(NAMESPACE_NOT_FOUND, _))
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Refused(_, cause) | Self::Unreachable(cause)) = self;
        f.write_str(cause)
    }
}

impl From<mongodb::error::Error> for Fault {
    fn from(error: mongodb::error::Error) -> Self {
        if let ErrorKind::Command(refused) = &*error.kind {
            let (code, name, message) = (refused.code, &refused.code_name, &refused.message);
            return Self::Refused(code, format!("{name} ({code}): {message}"));
        }
        Self::Unreachable(extract_cause(&error.kind.to_string()))
    }
}

/// The maximum length of a logged cause.
const CAUSE_CHARS_MAX: usize = 200;

/// Extracts the cause from a driver's error, which also dumps the state of all servers.
fn extract_cause(text: &str) -> String {
    let cause = text.rsplit_once("Error: ").map_or(text, |(_, cause)| cause);
    let end = [", labels:", ", source:", " }"].iter().filter_map(|end| cause.find(end)).min();
    let cause = end.and_then(|end| cause.get(..end)).unwrap_or(cause);
    let cause = cause.trim().trim_start_matches("Kind: ");
    cause.chars().take(CAUSE_CHARS_MAX).collect()
}

/// Returns the hosts of a target, with the connection options of each host.
pub(crate) async fn connection_options(
    target: &TargetSettings,
    timeout: Duration,
) -> Result<Vec<(ServerAddress, ClientOptions)>, SettingsError> {
    let hosts = hosts_of(&target.uri);
    let fault = |what: &str| SettingsError(format!("target {hosts}: {what}"));
    let options = ClientOptions::parse(&target.uri).await.map_err(|cause| {
        // The driver's error quotes the URI.
        if target.uri.contains('@') {
            fault("the URI is invalid; in names and passwords, %-encode @ : / and %")
        } else {
            fault(&cause.kind.to_string())
        }
    })?;
    let of_host = |host: &ServerAddress| (host.clone(), options_of_host(&options, host, timeout));
    Ok(options.hosts.iter().map(of_host).collect())
}

/// Returns the options for connecting to a single host.
pub(crate) fn options_of_host(
    options: &ClientOptions,
    host: &ServerAddress,
    timeout: Duration,
) -> ClientOptions {
    let mut host_options = options.clone();
    host_options.hosts = vec![host.clone()];
    host_options.direct_connection = Some(true);
    host_options.load_balanced = None;
    host_options.repl_set_name = None;
    host_options.app_name = Some(APP_NAME.to_owned());
    host_options.max_pool_size = Some(1);
    host_options.min_pool_size = None;
    host_options.max_connecting = Some(1);
    host_options.retry_reads = Some(false);
    host_options.connect_timeout = Some(timeout);
    // The timeout distinguishes an unreachable server from a slow server.
    host_options.server_selection_timeout = Some(timeout.mul_f64(0.75));
    host_options.heartbeat_freq = Some(HEALTH_CHECK_INTERVAL);
    host_options.server_monitoring_mode = Some(ServerMonitoringMode::Poll);
    host_options
}

/// A connection that measures its cost.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
    timeout: Duration,
    pub(crate) costs: Costs,
}

/// The commands since the agent's start, and the time that they took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Costs {
    pub(crate) commands: u64,
    pub(crate) failures: u64,
    /// The total time of commands.
    pub(crate) waiting_time: Duration,
}

impl Connection {
    /// Creates a connection that opens with the first command.
    pub(crate) fn new(
        options: ClientOptions,
        timeout: Duration,
        costs: Costs,
    ) -> Result<Self, Fault> {
        Ok(Self { client: Client::with_options(options)?, timeout, costs })
    }

    /// Sends a command with the time limit of a round on the server.
    pub(crate) async fn run_command(
        &mut self,
        database: &str,
        command: Document,
    ) -> Result<Document, Fault> {
        self.run_command_within(self.timeout, database, command).await
    }

    /// Sends a command with a time limit on the server.
    pub(crate) async fn run_command_within(
        &mut self,
        limit: Duration,
        database: &str,
        mut command: Document,
    ) -> Result<Document, Fault> {
        let max_ms = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX).max(1);
        command.insert("maxTimeMS", max_ms);
        self.send(database, command).await
    }

    /// Sends `hello`, or its predecessor for servers before 4.4.2.
    pub(crate) async fn hello(&mut self) -> Result<Document, Fault> {
        match self.send("admin", doc! { "hello": 1 }).await {
            Err(Fault::Refused(..)) => self.send("admin", doc! { "isMaster": 1 }).await,
            response => response,
        }
    }

    async fn send(&mut self, database: &str, command: Document) -> Result<Document, Fault> {
        self.costs.commands += 1;
        let watch = Stopwatch::start();
        let response = self.client.database(database).run_command(command).await;
        self.costs.waiting_time += watch.elapsed();
        response.map_err(|cause| {
            self.costs.failures += 1;
            cause.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_omits_the_drivers_dump_of_all_servers() {
        let dump = "Server selection timeout: No available servers. Topology: { Type: Single, Set \
                    Name: \"rs0\", Servers: [ { Address: db1:27017, Type: Unknown, Error: Kind: I/O \
                    error: Connection refused (os error 111), labels: {} } ] }";
        assert_eq!(extract_cause(dump), "I/O error: Connection refused (os error 111)");
        assert_eq!(extract_cause("no answer"), "no answer");
        assert_eq!(extract_cause(&"x".repeat(500)).len(), CAUSE_CHARS_MAX);
    }

    #[tokio::test]
    async fn each_host_of_a_uri_has_its_own_connection() {
        let target =
            TargetSettings::new("mongodb://u:p@db1,db2:27018/?replicaSet=rs0&maxPoolSize=50");
        let options = connection_options(&target, Duration::from_secs(4)).await.unwrap();
        let hosts: Vec<String> = options.iter().map(|(host, _)| host.to_string()).collect();
        assert_eq!(hosts, ["db1:27017", "db2:27018"]);
        for (host, option) in options {
            assert_eq!((option.hosts, option.direct_connection), (vec![host], Some(true)));
            assert_eq!((option.max_pool_size, option.repl_set_name), (Some(1), None));
            assert_eq!(option.server_selection_timeout, Some(Duration::from_secs(3)));
            assert!(option.credential.is_some());
        }
    }

    #[tokio::test]
    async fn an_error_about_a_uri_contains_only_its_hosts() {
        for (uri, part) in [
            ("mongodb://user:s3:cret@db1:port/", "%-encode"),
            ("mongodb://db1:port", "port"),
            ("http://db1", "scheme"),
        ] {
            let message = connection_options(&TargetSettings::new(uri), HEALTH_CHECK_INTERVAL)
                .await
                .unwrap_err()
                .0;
            assert!(message.contains("db1") && message.contains(part), "{uri}: {message}");
            assert!(!message.contains("cret") && !message.contains("user"), "{message}");
        }
    }
}
