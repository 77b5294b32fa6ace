//! The settings that can change while the daemon runs, and the comparison of two sets of settings.
//!
//! Must never know: how a change is applied.

use super::{
    ConfigError, Settings,
    load::{self, hide_secrets},
};
use crate::{
    kept::{KeptSetting, SettingChange},
    model::GranularitySet,
};

/// The section of granularities.
const GRANULARITY: &str = "granularity";
/// The setting with the rules of retention.
const RULES: &str = "retention.rule";

/// The way in which a change of a setting is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Applied {
    /// A reload applies it at once.
    Live,
    /// A reload applies it by opening the store and starting the HTTP server again.
    Reopening,
    /// A restart applies it, for a reason.
    Restart(&'static str),
}
use Applied::{Live, Reopening, Restart};

/// The settings whose changes a reload does not apply at once.
const SETTINGS: [(&str, Applied); 17] = [
    ("server.listen", Restart("the address is opened at the start")),
    ("server.connections_max", Reopening),
    ("server.client_timeout", Reopening),
    ("security.access", Reopening),
    ("security.open", Reopening),
    ("security.projects", Reopening),
    ("storage.data_dir", Restart("the data directory is opened at the start")),
    ("storage.check_interval", Reopening),
    ("graphite.listen", Restart("the addresses are opened at the start")),
    ("publish.uri", Reopening),
    ("publish.collections", Reopening),
    ("cluster.uri", Restart("the node joins its cluster at the start")),
    ("cluster.replicas", Restart("the node joins its cluster at the start")),
    ("cluster.shards", Restart("the number is fixed when the database is made")),
    ("cluster.advertise", Restart("the node joins its cluster at the start")),
    (RULES, Reopening),
    (GRANULARITY, Reopening),
];

/// The difference between the settings in use and other settings.
#[derive(Debug, Default)]
pub struct Difference {
    /// The settings that a reload applies.
    pub changed: Vec<SettingChange>,
    /// True when the store must be opened again to apply some of them.
    pub reopens: bool,
    /// The settings that stay until a restart.
    pub kept: Vec<KeptSetting>,
}

impl Settings {
    /// Returns these settings with those values of `others` that can change while the daemon runs,
    /// and the difference.
    ///
    /// # Errors
    /// The combination is invalid.
    pub fn reloaded(&self, others: &Self) -> Result<(Self, Difference), ConfigError> {
        let (mut merged, mut found) = (others.raw.0.clone(), Difference::default());
        let has_same_levels = self.has_same_levels(others);
        let keys = |raw: &toml::Table| -> Vec<(String, String)> {
            let sections = raw.iter().filter_map(|(name, keys)| Some((name, keys.as_table()?)));
            let keys = sections
                .flat_map(|(section, keys)| keys.keys().map(|key| (section.clone(), key.clone())));
            keys.collect()
        };
        for (section, key) in keys(&self.raw.0) {
            let value = |raw: &toml::Table| raw.get(&section)?.get(&key).cloned();
            let (Some(from), Some(to)) = (value(&self.raw.0), value(&others.raw.0)) else {
                continue;
            };
            let path = format!("{section}.{key}");
            if from == to || (has_same_levels && path == RULES) {
                continue;
            }
            let change = change(path, &key, &from, &to);
            let Restart(reason) = applied(&change.key) else {
                found.reopens |= applied(&change.key) == Reopening;
                found.changed.push(change);
                continue;
            };
            found.kept.push(KeptSetting { change, reason: reason.to_owned() });
            if let Some(table) = merged.get_mut(&section).and_then(toml::Value::as_table_mut) {
                table.insert(key, from);
            }
        }
        if has_same_levels {
            self.compare_retentions(others, &mut found);
        } else {
            self.compare_granularities(others, &mut found);
        }
        let mut settings = load::valid(merged)?;
        settings.notes.clone_from(&others.notes);
        Ok((settings, found))
    }

    /// Returns true when granularities and rules of retention differ in retentions at most.
    fn has_same_levels(&self, others: &Self) -> bool {
        let rules = self.retention_rules.iter().zip(&others.retention_rules);
        self.granularities.differs_in_retention_only(&others.granularities)
            && self.retention_rules.len() == others.retention_rules.len()
            && rules.clone().all(|(ours, theirs)| ours.differs_in_retention_only(theirs))
    }

    fn compare_retentions(&self, others: &Self, found: &mut Difference) {
        let mut compare = |prefix: &str, ours: &GranularitySet, theirs: &GranularitySet| {
            for (ours, theirs) in ours.iter().zip(theirs) {
                let (from, to) = (ours.retention().to_string(), theirs.retention().to_string());
                if from != to {
                    let key = format!("{prefix}.{}.retention", ours.name);
                    found.changed.push(SettingChange { key, from, to });
                }
            }
        };
        compare(GRANULARITY, &self.granularities, &others.granularities);
        for (ours, theirs) in self.retention_rules.iter().zip(&others.retention_rules) {
            compare(&format!("{RULES}.{}", ours.name), &ours.levels, &theirs.levels);
        }
    }

    fn compare_granularities(&self, others: &Self, found: &mut Difference) {
        let value = |settings: &Self| settings.raw.0.get(GRANULARITY).cloned();
        if let (Some(from), Some(to)) = (value(self), value(others))
            && from != to
        {
            found.changed.push(change(GRANULARITY.to_owned(), GRANULARITY, &from, &to));
            found.reopens = true;
        }
    }
}

/// Compares settings that a daemon shows, without secrets, with others. Keys that flags set are
/// equal, because flags override the file.
///
/// # Errors
/// The settings are of another version.
pub fn compare(
    in_use: serde_json::Value,
    others: &Settings,
    flags: &[String],
) -> Result<Difference, ConfigError> {
    let in_use = table(in_use)?;
    let mut others = others.shown.clone();
    for (section, key) in flags.iter().filter_map(|flag| flag.split_once('.')) {
        let value = in_use.get(section).and_then(|section| section.get(key)).cloned();
        let section = others.get_mut(section).and_then(toml::Value::as_table_mut);
        if let (Some(section), Some(value)) = (section, value) {
            section.insert(key.to_owned(), value);
        }
    }
    let (in_use, others) = (load::valid(in_use)?, load::valid(others)?);
    in_use.reloaded(&others).map(|(_, found)| found)
}

fn table(shown: serde_json::Value) -> Result<toml::Table, ConfigError> {
    serde_json::from_value(shown).map_err(|cause| ConfigError::Read(cause.to_string()))
}

/// Reads settings that a daemon shows, without secrets.
///
/// # Errors
/// The settings are of another version.
pub fn from_shown(shown: serde_json::Value) -> Result<Settings, ConfigError> {
    load::valid(table(shown)?)
}

/// Returns the settings that need a restart.
pub fn restart_settings() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().filter(|(_, applied)| matches!(applied, Restart(_))).map(|(key, _)| *key)
}

/// Returns the settings for which a reload opens the store again.
pub fn reopening_settings() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().filter(|(_, applied)| *applied == Reopening).map(|(key, _)| *key)
}

fn applied(key: &str) -> Applied {
    SETTINGS.iter().find(|(known, _)| *known == key).map_or(Live, |(_, applied)| *applied)
}

/// Describes a change without its secrets.
fn change(path: String, key: &str, from: &toml::Value, to: &toml::Value) -> SettingChange {
    let shown = |value: &toml::Value| {
        let mut table = toml::Table::from_iter([(key.to_owned(), value.clone())]);
        table.iter_mut().for_each(|(_, value)| hide_secrets(value));
        table.get(key).map_or_else(String::new, toml::Value::to_string)
    };
    let (from, mut to) = (shown(from), shown(to));
    if from == to {
        to.push_str(" (a hidden part differs)");
    }
    SettingChange { key: path, from, to }
}

#[cfg(test)]
mod tests;
