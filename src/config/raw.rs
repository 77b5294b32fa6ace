//! The settings as they are written.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use config::{Config, ConfigBuilder, Environment, File, FileFormat, Source, builder::DefaultState};
use serde::{Deserialize, Serialize};

use super::{
    ConfigError, DEFAULTS, Settings,
    keys::{Keys, left_out},
};
use crate::model::without_password;

/// What flags say, over everything else.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--listen`
    pub listen: Option<String>,
    /// `--data-dir`
    pub data_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    pub(crate) server: RawServer,
    pub(crate) storage: RawStorage,
    pub(crate) ingest: RawIngest,
    pub(crate) graphite: RawGraphite,
    pub(crate) limits: RawLimits,
    pub(crate) promql: RawPromql,
    pub(crate) alerts: RawAlerts,
    pub(crate) preallocation: RawPreallocation,
    pub(crate) retention: RawRetention,
    pub(crate) clock: RawClock,
    pub(crate) snapshots: RawSnapshots,
    pub(crate) log: RawLog,
    pub(crate) telemetry: RawTelemetry,
    pub(crate) granularity: Vec<RawGranularity>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawServer {
    pub(crate) listen: String,
    pub(crate) workers: usize,
    pub(crate) shutdown_timeout: String,
    pub(crate) connections_max: usize,
    pub(crate) client_timeout: String,
    pub(crate) keep_alive: String,
    pub(crate) host_names: Vec<String>,
    pub(crate) external_url: String,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStorage {
    pub(crate) data_dir: PathBuf,
    pub(crate) snapshot_dir: PathBuf,
    pub(crate) checkpoint_interval: String,
    pub(crate) catalog_bytes_max: usize,
    pub(crate) journal_bytes_max: usize,
    pub(crate) idle_after: String,
    pub(crate) seal_after: String,
    pub(crate) seal_bytes_per_second: usize,
    pub(crate) cache_bytes_max: usize,
    pub(crate) segment_documents_min: usize,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawIngest {
    pub(crate) future_skew: String,
    pub(crate) out_of_order_window: String,
    pub(crate) ha_senders: Vec<String>,
    pub(crate) ha_failover: String,
    pub(crate) request_bytes_max: usize,
    pub(crate) decompressed_bytes_max: usize,
    pub(crate) body_memory_max: usize,
    pub(crate) queue_bytes_max: usize,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawGraphite {
    pub(crate) listen: String,
    pub(crate) pickle_listen: String,
    pub(crate) udp_listen: String,
    pub(crate) connections_max: usize,
    pub(crate) idle_timeout: String,
    pub(crate) udp_buffer_bytes_max: usize,
    pub(crate) templates: Vec<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLimits {
    pub(crate) series_max: usize,
    pub(crate) sender_series_max: usize,
    pub(crate) senders_max: usize,
    pub(crate) sender_idle: String,
    pub(crate) request_series_max: usize,
    pub(crate) tags_max: usize,
    pub(crate) name_bytes_max: usize,
    pub(crate) value_bytes_max: usize,
    pub(crate) query_series_max: usize,
    pub(crate) query_points_max: usize,
    pub(crate) queries_max: usize,
    pub(crate) query_timeout: String,
    pub(crate) tails_max: usize,
    pub(crate) hosts_max: usize,
    pub(crate) annotations_max: usize,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPromql {
    pub(crate) timeout: String,
    pub(crate) lookback: String,
    pub(crate) delayed_name_removal: bool,
    pub(crate) series_max: usize,
    pub(crate) points_max: usize,
    pub(crate) query_bytes_max: usize,
    pub(crate) regex_bytes_max: usize,
    pub(crate) memory_max: usize,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAlerts {
    pub(crate) rules: Vec<String>,
    /// Addresses, and tables with an address.
    pub(crate) alertmanagers: Vec<toml::Value>,
    pub(crate) external_labels: BTreeMap<String, String>,
    pub(crate) notifications: PathBuf,
    pub(crate) interval: String,
    pub(crate) silences_kept: String,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPreallocation {
    pub(crate) enabled: bool,
    pub(crate) documents_per_second: u32,
    pub(crate) bytes_max: u64,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRetention {
    pub(crate) interval: String,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawClock {
    pub(crate) step_max: String,
    pub(crate) senders_min: usize,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSnapshots {
    pub(crate) count_max: usize,
    pub(crate) bytes_max: u64,
    pub(crate) retention: String,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLog {
    pub(crate) format: String,
    pub(crate) filter: String,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTelemetry {
    #[serde(rename = "self")]
    pub(crate) of_itself: bool,
    pub(crate) interval: String,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawGranularity {
    pub(crate) slot: String,
    pub(crate) document: String,
    pub(crate) partition: String,
    pub(crate) retention: String,
}

/// Reads the settings: defaults, then the file, then the environment, then the flags.
///
/// # Errors
/// When something cannot be read, is not known, or cannot work together.
pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Settings, ConfigError> {
    let read = |cause: config::ConfigError| ConfigError::Read(cause.to_string());
    let mut builder = Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
    if let Some(path) = file {
        builder = builder.add_source(File::from(path).format(FileFormat::Toml));
    }
    let environment = Environment::with_prefix("GRANARY")
        .prefix_separator("__")
        .separator("__")
        .list_separator(",")
        .with_list_parse_key("server.host_names")
        .with_list_parse_key("graphite.templates")
        .with_list_parse_key("alerts.rules")
        .with_list_parse_key("alerts.alertmanagers")
        .try_parsing(true);
    builder = builder.add_source(environment);
    if let Some(listen) = &overrides.listen {
        builder = builder.set_override("server.listen", listen.as_str()).map_err(read)?;
    }
    if let Some(data_dir) = &overrides.data_dir {
        let data_dir = data_dir.to_string_lossy().into_owned();
        builder = builder.set_override("storage.data_dir", data_dir).map_err(read)?;
    }
    checked(builder)
}

/// The settings of a file's text over the defaults, and of nothing else.
///
/// # Errors
/// See [`load`].
pub(crate) fn read(text: &str) -> Result<Settings, ConfigError> {
    let texts = [DEFAULTS, text].map(|text| File::from_str(text, FileFormat::Toml));
    checked(texts.into_iter().fold(Config::builder(), ConfigBuilder::<DefaultState>::add_source))
}

fn checked(builder: ConfigBuilder<DefaultState>) -> Result<Settings, ConfigError> {
    let read = |cause: config::ConfigError| ConfigError::Read(cause.to_string());
    let given = builder.build().and_then(|own| own.collect()).map_err(read)?;
    let defaults = File::from_str(DEFAULTS, FileFormat::Toml).collect().map_err(read)?;
    let keys = Keys::read(defaults.clone(), given);
    let raw = keys.raw().map_err(read)?;
    let by_default = Keys::read(defaults, config::Map::new()).raw().map_err(read)?;
    let mut faults = keys.faults;
    let mut settings = match Settings::validate(&raw) {
        Ok(settings) if faults.is_empty() => settings,
        Ok(_) => return Err(ConfigError::Invalid(faults)),
        Err(ConfigError::Invalid(more)) => {
            faults.extend(more);
            return Err(ConfigError::Invalid(faults));
        }
        Err(cause @ ConfigError::Read(_)) => return Err(cause),
    };
    let (own, defaults) = (sections(&raw), sections(&by_default));
    settings.as_toml = own.iter().map(|(name, section)| format!("{name} = {section}")).collect();
    settings.changed = changed(&own, &defaults);
    settings.notes = left_out(&raw, &by_default).into_iter().collect();
    Ok(settings)
}

/// The settings as TOML, by section; what is secret is not shown.
fn sections(raw: &Raw) -> toml::Table {
    let Ok(toml::Value::Table(mut sections)) = toml::Value::try_from(raw) else {
        return toml::Table::new();
    };
    sections.iter_mut().for_each(|(_, section)| hide_secrets(section));
    sections
}

/// The keys that differ from their defaults, with their values.
fn changed(own: &toml::Table, defaults: &toml::Table) -> Vec<String> {
    let mut changed = Vec::new();
    for (name, section) in own {
        let default = defaults.get(name);
        match (section, default) {
            (toml::Value::Table(keys), Some(toml::Value::Table(known))) => {
                let differ = keys.iter().filter(|(key, value)| known.get(*key) != Some(value));
                changed.extend(differ.map(|(key, value)| format!("{name}.{key} = {value}")));
            }
            _ if default == Some(section) => {}
            _ => changed.push(format!("{name} = {section}")),
        }
    }
    changed
}

fn hide_secrets(value: &mut toml::Value) {
    const SECRET: [&str; 6] = ["password", "secret", "secrets", "token", "key", "credentials"];
    let table = match value {
        toml::Value::Table(table) => table,
        toml::Value::Array(all) => return all.iter_mut().for_each(hide_secrets),
        toml::Value::String(text) => {
            if text.contains("://") {
                *text = without_password(text);
            }
            return;
        }
        toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => return,
    };
    for (_, value) in table.iter_mut() {
        hide_secrets(value);
    }
    for (name, value) in table {
        if SECRET.iter().any(|word| name.split('_').any(|part| part == *word)) {
            *value = toml::Value::String("(hidden)".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_in_effect_are_a_line_a_section_and_settings_again() {
        let overrides = Overrides { listen: Some("127.0.0.1:9".to_owned()), data_dir: None };
        let settings = load(None, &overrides).unwrap();
        assert_eq!(settings.changed, ["server.listen = \"127.0.0.1:9\""]);
        assert_eq!(settings.notes, [""; 0]);
        let server = settings.as_toml.iter().find(|line| line.starts_with("server = ")).unwrap();
        assert!(server.contains("listen = \"127.0.0.1:9\""), "{server}");
        assert!(settings.as_toml.iter().all(|line| !line.contains('\n')), "{settings:?}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("granary.toml");
        std::fs::write(&path, settings.as_toml.join("\n")).unwrap();
        let again = load(Some(&path), &Overrides::default()).unwrap();
        assert_eq!(again.as_toml, settings.as_toml);
    }

    #[test]
    fn what_is_secret_is_not_shown() {
        let text = "a = { api_key = 'x', keep_alive = '5s', urls = ['http://ann:pass@am:9093'] }";
        let mut value = text.parse::<toml::Table>().unwrap();
        value.iter_mut().for_each(|(_, section)| hide_secrets(section));
        assert_eq!(value["a"]["api_key"].as_str(), Some("(hidden)"));
        assert_eq!(value["a"]["keep_alive"].as_str(), Some("5s"));
        assert_eq!(value["a"]["urls"][0].as_str(), Some("http://***@am:9093"));
    }
}
