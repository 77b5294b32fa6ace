//! The settings of servers, from flags or a file. Errors and debug output contain no password.

use std::{collections::BTreeMap, fmt, fs, path::Path, time::Duration};

use granary_agent_kit::{fault_in, hosts_of};
use serde::{Deserialize, Deserializer, de::Error as _};

/// The maximum number of servers.
const TARGETS_MAX: usize = 900;
/// The maximum size of a file of targets.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The maximum number of collections with series.
const COLLECTIONS_SERIES_MAX: usize = 2_000;
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// The settings of all servers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The servers.
    #[serde(rename = "target")]
    pub targets: Vec<TargetSettings>,
    /// The time limit of a server's round, for all commands together.
    #[serde(default = "timeout", deserialize_with = "span")]
    pub timeout: Duration,
    /// The interval of database sweeps; zero disables them.
    #[serde(default = "databases_every", deserialize_with = "span")]
    pub databases_every: Duration,
    /// The number of collections with series, the largest ones of each server; zero disables them.
    #[serde(default = "collections_max")]
    pub collections_max: usize,
}

/// One server, or several with the same credentials.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSettings {
    /// The URI, `mongodb://...` or `mongodb+srv://...`, as in MongoDB's tools; each of its hosts is
    /// sampled separately.
    pub uri: String,
    /// The tag `host`, for a URI with one host (default: host and port).
    #[serde(default)]
    pub host: Option<String>,
    /// Additional tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// True to sample all servers of the replica set or the sharded cluster as well.
    #[serde(default)]
    pub discover: bool,
}

impl TargetSettings {
    /// Creates a target with only a URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), host: None, tags: BTreeMap::new(), discover: false }
    }
}

impl fmt::Debug for TargetSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uri = hosts_of(&self.uri);
        let Self { uri: _, host, tags, discover } = self;
        let mut shown = f.debug_struct("TargetSettings");
        shown.field("uri", &uri).field("host", host).field("tags", tags);
        shown.field("discover", discover).finish()
    }
}

/// A fault in the settings.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub(crate) String);

fn timeout() -> Duration {
    Duration::from_secs(5)
}

fn databases_every() -> Duration {
    Duration::from_secs(20 * 60)
}

fn collections_max() -> usize {
    200
}

/// Parses a duration such as `5s`, or `off`.
///
/// # Errors
/// The text is neither a duration nor `off`.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    if text == "off" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(text).map_err(|cause| format!("{cause}; use 20m, or off"))
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parse_span(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            targets: vec![],
            timeout: timeout(),
            databases_every: databases_every(),
            collections_max: collections_max(),
        }
    }
}

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// The file is unreadable, too long, or invalid. The message contains no secrets.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let fault =
            |cause: &dyn fmt::Display| SettingsError(format!("{}: {cause}", path.display()));
        let bytes = fs::metadata(path).map_err(|cause| fault(&cause))?.len();
        if bytes > FILE_BYTES_MAX {
            return Err(fault(&format!("{bytes} bytes exceed the limit of {FILE_BYTES_MAX}")));
        }
        let text = fs::read_to_string(path).map_err(|cause| fault(&cause))?;
        // The full error would quote the line, which may contain a password.
        let settings: Self = toml::from_str(&text).map_err(|cause| {
            fault(&fault_in(&text, cause.span().map(|span| span.start), cause.message()))
        })?;
        Ok(settings)
    }

    /// Checks the values.
    ///
    /// # Errors
    /// There is no target, there are too many, or the timeout is zero or too long.
    pub fn check(&self) -> Result<(), SettingsError> {
        let fault = |message: String| Err(SettingsError(message));
        if self.targets.is_empty() {
            return fault(
                "name a server, with --target mongodb://... or --targets FILE".to_owned(),
            );
        }
        if self.targets.len() > TARGETS_MAX {
            return fault(format!(
                "{} targets exceed the limit of {TARGETS_MAX}",
                self.targets.len()
            ));
        }
        if self.timeout.is_zero() || self.timeout > TIMEOUT_MAX {
            return fault(format!("the timeout must be more than 0s and at most {TIMEOUT_MAX:?}"));
        }
        if self.collections_max > COLLECTIONS_SERIES_MAX {
            return fault(format!("collections_max must be at most {COLLECTIONS_SERIES_MAX}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(text: &str) -> Result<Settings, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let settings = Settings::read(file.path()).map_err(|cause| cause.to_string())?;
        settings.check().map_err(|cause| cause.to_string())?;
        Ok(settings)
    }

    #[test]
    fn a_file_names_servers_with_their_tags() {
        let settings = read(
            "databases_every = \"off\"\ntimeout = \"3s\"\n\
             [[target]]\nuri = \"mongodb://u:p@db1,db2:27018\"\ntags = { cluster = \"orders\" }\n\
             [[target]]\nuri = \"mongodb://db3\"\nhost = \"db3\"\n",
        )
        .unwrap();
        assert_eq!((settings.databases_every, settings.timeout.as_secs()), (Duration::ZERO, 3));
        assert_eq!(settings.targets[0].tags["cluster"], "orders");
        assert_eq!(settings.targets[1].host.as_deref(), Some("db3"));
    }

    #[test]
    fn faults_are_reported_without_secrets() {
        for (text, part) in [
            ("", "missing field `target`"),
            ("target = []", "name a server"),
            ("timeout = \"0s\"\n[[target]]\nuri = \"mongodb://u:s3cret@db1\"", "the timeout"),
            ("[[target]]\nuri = \"mongodb://u:s3cret@db1\"\nx = \"s3cret\"", "line 3"),
            ("[[target]]\nuri = s3cret", "line 2"),
            ("databases_every = \"s3cret\"\n[[target]]\nuri = \"mongodb://db1\"", "line 1"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
            assert!(!message.contains("s3cret"), "{message}");
        }
    }

    #[test]
    fn debug_output_of_a_target_contains_no_password() {
        for uri in ["mongodb://u:s3@cret@db1/", "mongodb://u:s3/cret@db1/", "s3cret@db1"] {
            assert!(!format!("{:?}", TargetSettings::new(uri)).contains("s3"), "{uri}");
        }
    }
}
