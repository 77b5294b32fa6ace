//! The settings of servers. Passwords are in separate files.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use granary_agent_kit::{hosts_of, read_small, some_span, span};
use serde::Deserialize;

use crate::Kind;

/// The maximum number of servers of a kind.
const SERVICES_MAX: usize = 200;
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// `host:port`, or the path of a socket; for nginx the URL of `stub_status`.
    pub address: String,
    /// The user name, if the server needs one.
    #[serde(default)]
    pub user: Option<String>,
    /// The file with the password; it is read for each connection.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// The database to connect to, for PostgreSQL.
    #[serde(default)]
    pub database: Option<String>,
    /// The interval (default: the agent's interval).
    #[serde(default, deserialize_with = "some_span")]
    pub interval: Option<Duration>,
    /// The timeout of each response.
    #[serde(default = "timeout", deserialize_with = "span")]
    pub timeout: Duration,
    /// The tag `host` (default: the agent's name for a server on this machine, otherwise the host
    /// of the address).
    #[serde(default)]
    pub host: Option<String>,
    /// Additional tags of the server's series.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// An error in the settings.
#[derive(Debug)]
pub struct ServiceError(pub(crate) String);

impl std::fmt::Display for ServiceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServiceError {}

fn timeout() -> Duration {
    Duration::from_secs(5)
}

/// Checks the values.
///
/// # Errors
/// The first error, with the server's address.
pub fn check(kind: Kind, services: &[Service]) -> Result<(), String> {
    if services.len() > SERVICES_MAX {
        return Err(format!("more than {SERVICES_MAX} servers"));
    }
    for (index, service) in services.iter().enumerate() {
        if service.address.contains('@') && !service.address.starts_with('/') {
            // The password would appear in messages and in a tag.
            let hosts = hosts_of(&service.address);
            return Err(format!(
                "\"...@{hosts}\": an address has no user and password; use user and password_file"
            ));
        }
        let fault = |problem: &str| Err(format!("{:?}: {problem}", service.address));
        if service.address.is_empty() {
            return fault("an address is needed, such as 127.0.0.1:6379");
        }
        if services.iter().take(index).any(|other| other.address == service.address) {
            return fault("two servers have this address");
        }
        if service.timeout.is_zero() || service.timeout > TIMEOUT_MAX {
            return fault("timeout must be more than 0s and at most 60s");
        }
        let needs_password = matches!(kind, Kind::Redis | Kind::Nginx);
        if needs_password && service.user.is_some() && service.password_file.is_none() {
            return fault("a user needs password_file");
        }
        if service.database.is_some() && kind != Kind::Postgres {
            return fault("only PostgreSQL servers have the setting database");
        }
    }
    Ok(())
}

/// The parsed address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerAddress {
    /// Host and port.
    Tcp(String, u16),
    /// The path of a socket, or of the folder with the socket.
    Path(PathBuf),
}

impl Service {
    /// Returns the address.
    pub(crate) fn server_address(&self, port: u16) -> ServerAddress {
        if self.address.starts_with('/') {
            return ServerAddress::Path(PathBuf::from(&self.address));
        }
        let host_and_port = self.address.rsplit_once(':').filter(|(host, _)| {
            // An IPv6 address without brackets has no port.
            !host.contains(':') || host.ends_with(']')
        });
        let parts = host_and_port.and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let (host, port) = parts.unwrap_or((&self.address, port));
        ServerAddress::Tcp(host.trim_matches(['[', ']']).to_owned(), port)
    }

    /// Reads the password, without the line end.
    pub(crate) fn password(&self) -> Result<Option<String>, String> {
        let Some(file) = &self.password_file else { return Ok(None) };
        password(file).map(Some)
    }
}

fn password(file: &Path) -> Result<String, String> {
    let text = String::from_utf8(read_small(file)?);
    let text = text.map_err(|_| format!("{}: not UTF-8", file.display()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
pub(crate) fn service_at(address: impl Into<String>) -> Service {
    Service {
        address: address.into(),
        user: None,
        password_file: None,
        database: None,
        interval: None,
        timeout: Duration::from_secs(20),
        host: None,
        tags: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_host_and_port_or_a_path() {
        let check = |address: &str, host: &str, port| {
            assert_eq!(
                service_at(address).server_address(7),
                ServerAddress::Tcp(host.to_owned(), port),
                "{address}"
            );
        };
        check("db1:6380", "db1", 6380);
        check("db1", "db1", 7);
        check("[::1]:5", "::1", 5);
        check("::1", "::1", 7);
        assert_eq!(
            service_at("/run/x.sock").server_address(7),
            ServerAddress::Path(PathBuf::from("/run/x.sock"))
        );
    }

    #[test]
    fn errors_name_the_address() {
        let fault = |services: &[Service]| check(Kind::Redis, services).unwrap_err();
        assert!(
            fault(&[service_at("a"), service_at("a")])
                .contains("\"a\": two servers have this address")
        );
        assert!(fault(&[service_at("")]).contains("address is needed"));
        assert!(
            fault(&[Service { timeout: Duration::ZERO, ..service_at("a") }]).contains("timeout")
        );
        let unknown = toml::from_str::<Service>("address = 'a'\npassword = 'x'").unwrap_err();
        assert!(unknown.to_string().contains("password"), "{unknown}");
        assert_eq!(
            check(Kind::Redis, &[service_at("a"), service_at("b"), service_at("/run/a@b")]),
            Ok(())
        );
    }

    #[test]
    fn settings_without_effect_are_rejected_and_no_password_is_shown() {
        let check = |kind, more: &str, expected: &str| {
            let service: Service =
                toml::from_str(&format!("address = 'http://db1/'\n{more}")).unwrap();
            let fault = check(kind, &[service]).err().unwrap_or_default();
            assert!(fault.contains(expected) && fault.is_empty() == expected.is_empty(), "{fault}");
        };
        check(Kind::Nginx, "user = 'a'", "password_file");
        check(Kind::Nginx, "user = 'a'\npassword_file = 'b'", "");
        check(Kind::Redis, "user = 'a'", "password_file");
        check(Kind::Postgres, "user = 'a'\ndatabase = 'b'", "");
        check(Kind::MySql, "database = 'b'", "PostgreSQL");
        for address in ["http://eve:s3cret@www/status", "eve:s3@cret@db1:6379"] {
            let fault = super::check(Kind::Nginx, &[service_at(address)]).unwrap_err();
            assert!(fault.contains("user and password_file"), "{fault}");
            assert!(!fault.contains("eve") && !fault.contains("cret@"), "{fault}");
        }
    }
}
