//! Loading of settings: defaults, file, environment and flags, in this order.

use std::path::{Path, PathBuf};

use config::{Config, ConfigBuilder, Environment, File, FileFormat, Source, builder::DefaultState};

use super::{
    ConfigError, DEFAULTS, Settings, bounds,
    keys::{Keys, left_out},
    retention::shadowed,
    sections::Sections,
    settings::Raw,
};
use crate::model::without_password;

/// The values of flags, which override all other sources.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// The value of `--listen`.
    pub listen: Option<String>,
    /// The value of `--data-dir`.
    pub data_dir: Option<PathBuf>,
}

/// The sources of the settings, in addition to the environment.
#[derive(Debug, Clone, Default)]
pub struct SettingsSource {
    /// The settings file, if there is one.
    pub file: Option<PathBuf>,
    /// The values of flags.
    pub overrides: Overrides,
}

impl SettingsSource {
    /// Loads the settings from the sources.
    ///
    /// # Errors
    /// The errors of [`load`].
    pub fn load(&self) -> Result<Settings, ConfigError> {
        load(self.file.as_deref(), &self.overrides)
    }

    /// Returns the keys that flags set.
    pub fn flags(&self) -> Vec<String> {
        let Overrides { listen, data_dir } = &self.overrides;
        let flags = [("server.listen", listen.is_some()), ("storage.data_dir", data_dir.is_some())];
        flags.iter().filter(|(_, is_set)| *is_set).map(|(key, _)| (*key).to_owned()).collect()
    }
}

/// Loads the settings: defaults, then the file, then the environment, then the flags.
///
/// # Errors
/// When a source cannot be read, a key is unknown, or values are invalid.
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
        .with_list_parse_key("graphite.listen")
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

/// Reads settings from a text, over the defaults and without other sources.
///
/// # Errors
/// The errors of [`load`].
pub(crate) fn read(text: &str) -> Result<Settings, ConfigError> {
    let texts = [DEFAULTS, text].map(|text| File::from_str(text, FileFormat::Toml));
    checked(texts.into_iter().fold(Config::builder(), ConfigBuilder::<DefaultState>::add_source))
}

fn checked(builder: ConfigBuilder<DefaultState>) -> Result<Settings, ConfigError> {
    let read = |cause: config::ConfigError| ConfigError::Read(cause.to_string());
    let given = builder.build().and_then(|config| config.collect()).map_err(read)?;
    let defaults = File::from_str(DEFAULTS, FileFormat::Toml).collect().map_err(read)?;
    let keys = Keys::read(defaults.clone(), given);
    let given = keys.sections().map_err(read)?;
    let mut faults = keys.faults;
    match Settings::validate(given.clone()) {
        Ok(settings) if faults.is_empty() => described(settings, &given),
        Ok(_) => Err(ConfigError::Invalid(faults)),
        Err(ConfigError::Invalid(more)) => {
            faults.extend(more);
            Err(ConfigError::Invalid(faults))
        }
        Err(cause @ ConfigError::Read(_)) => Err(cause),
    }
}

/// Checks settings that were merged from valid ones.
///
/// # Errors
/// When values are invalid together.
pub(super) fn valid(raw: toml::Table) -> Result<Settings, ConfigError> {
    let read = |cause: toml::de::Error| ConfigError::Read(cause.to_string());
    let sections: Sections = raw.try_into().map_err(read)?;
    described(Settings::validate(sections.clone())?, &sections)
}

/// Adds the texts that describe settings.
fn described(mut settings: Settings, given: &Sections) -> Result<Settings, ConfigError> {
    let read = |cause: config::ConfigError| ConfigError::Read(cause.to_string());
    let defaults = File::from_str(DEFAULTS, FileFormat::Toml).collect().map_err(read)?;
    let by_default = Keys::read(defaults, config::Map::new()).sections().map_err(read)?;
    settings.raw = Raw(raw(given));
    let (all, defaults) = (shown(given), shown(&by_default));
    settings.as_toml = all.iter().map(|(name, section)| format!("{name} = {section}")).collect();
    settings.changed = changed(&all, &defaults);
    settings.shown = all.clone();
    settings.notes = left_out(given, &by_default).into_iter().collect();
    settings.notes.extend(shadowed(&settings.retention_rules));
    settings.notes.extend(bounds::small_memory(&settings));
    settings.notes.extend(settings.exposure().into_values());
    Ok(settings)
}

/// Returns the settings as TOML by section.
fn raw(sections: &Sections) -> toml::Table {
    match toml::Value::try_from(sections) {
        Ok(toml::Value::Table(sections)) => sections,
        _ => toml::Table::new(),
    }
}

/// Returns the settings as TOML by section, without secrets.
fn shown(sections: &Sections) -> toml::Table {
    let mut sections = raw(sections);
    sections.iter_mut().for_each(|(_, section)| hide_secrets(section));
    sections
}

/// Returns the keys that differ from their defaults, with their values.
fn changed(settings: &toml::Table, defaults: &toml::Table) -> Vec<String> {
    let mut changed = Vec::new();
    for (name, section) in settings {
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

pub(super) fn hide_secrets(value: &mut toml::Value) {
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
        // A path is no secret.
        let is_path = name.ends_with("_file");
        if !is_path && SECRET.iter().any(|word| name.split('_').any(|part| part == *word)) {
            hide(value);
        }
    }
}

/// Replaces a secret; a list of secrets stays a list, so that the settings can be read again.
fn hide(secret: &mut toml::Value) {
    if let toml::Value::Array(all) = secret {
        all.iter_mut().for_each(hide);
    } else {
        *secret = toml::Value::String("(hidden)".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effective_settings_have_a_line_per_section_and_can_be_loaded() {
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
    fn secrets_are_not_shown() {
        let text = "a = { api_key = 'x', key_file = '/k.pem', secrets = ['y', 'z'], keep_alive = '5s', urls = ['http://ann:pass@am:9093'] }";
        let mut value = text.parse::<toml::Table>().unwrap();
        value.iter_mut().for_each(|(_, section)| hide_secrets(section));
        assert_eq!(value["a"]["api_key"].as_str(), Some("(hidden)"));
        assert_eq!(value["a"]["key_file"].as_str(), Some("/k.pem"));
        assert_eq!(value["a"]["secrets"].as_array().unwrap().len(), 2);
        assert_eq!(value["a"]["secrets"][0].as_str(), Some("(hidden)"));
        assert_eq!(value["a"]["keep_alive"].as_str(), Some("5s"));
        assert_eq!(value["a"]["urls"][0].as_str(), Some("http://***@am:9093"));
    }
}
