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
/// The reason why other parts of granularities need a restart.
const GRANULARITIES_FIXED: &str = "granularities are added, removed and divided differently at a start; only their retention changes";

/// The setting, and the reason why it needs a restart; `None` when a reload applies it.
const SETTINGS: [(&str, Option<&str>); 46] = [
    ("server.listen", Some("the address is opened at the start")),
    ("server.workers", Some("the threads begin at the start")),
    ("server.connections_max", Some("the HTTP server begins with it")),
    ("server.client_timeout", Some("the HTTP server begins with it")),
    ("server.host_names", None),
    ("server.external_url", None),
    ("storage.data_dir", Some("the data directory is opened at the start")),
    ("storage.snapshot_dir", None),
    ("storage.checkpoint_interval", None),
    ("storage.catalog_bytes_max", None),
    ("storage.cache_bytes_max", None),
    ("storage.disk_max", None),
    ("storage.check_interval", Some("the checker begins with it")),
    ("ingest.future_skew", None),
    ("ingest.out_of_order_window", None),
    ("ingest.ha_senders", None),
    ("ingest.ha_failover", None),
    ("ingest.request_bytes_max", None),
    ("ingest.body_memory_max", None),
    ("graphite.listen", Some("the address is opened at the start")),
    ("graphite.pickle_listen", Some("the address is opened at the start")),
    ("graphite.templates", None),
    ("limits.series_max", None),
    ("limits.sender_series_max", None),
    ("limits.metric_series", None),
    ("limits.senders_max", None),
    ("limits.queries_max", None),
    ("limits.query_timeout", None),
    ("limits.query_series_max", None),
    ("limits.query_points_max", None),
    ("limits.query_memory_max", None),
    ("promql.lookback", None),
    ("promql.delayed_name_removal", None),
    ("alerts.rules", None),
    ("alerts.alertmanagers", None),
    ("alerts.external_labels", None),
    ("alerts.notifications", None),
    ("alerts.interval", None),
    ("preallocation.enabled", None),
    ("snapshots.bytes_max", None),
    ("snapshots.retention", None),
    ("log.format", None),
    ("log.filter", None),
    ("telemetry.interval", None),
    (
        RULES,
        Some(
            "rules are added, removed and selected differently at a start; only their retentions change",
        ),
    ),
    ("granularity", None),
];

/// The difference between the settings in use and others.
#[derive(Debug, Default)]
pub struct Difference {
    /// The settings that a reload applies.
    pub changed: Vec<SettingChange>,
    /// The settings that stay until a restart.
    pub kept: Vec<KeptSetting>,
}

impl Settings {
    /// Returns these settings with the values of others that can change while the daemon runs, and
    /// the difference.
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
            let Some(reason) = fixed(&change.key) else {
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
            self.keep_granularities(others, &mut merged, &mut found);
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

    fn keep_granularities(&self, others: &Self, merged: &mut toml::Table, found: &mut Difference) {
        let value = |settings: &Self| settings.raw.0.get(GRANULARITY).cloned();
        if let (Some(from), Some(to)) = (value(self), value(others))
            && from != to
        {
            let change = change(GRANULARITY.to_owned(), GRANULARITY, &from, &to);
            let reason = GRANULARITIES_FIXED.to_owned();
            found.kept.push(KeptSetting { change, reason });
            merged.insert(GRANULARITY.to_owned(), from);
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
    SETTINGS.iter().filter(|(_, reason)| reason.is_some()).map(|(key, _)| *key)
}

/// Returns the reason why a setting needs a restart; `None` when it can change.
fn fixed(key: &str) -> Option<&'static str> {
    SETTINGS.iter().find(|(known, _)| *known == key).and_then(|(_, reason)| *reason)
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
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{DEFAULTS, read};

    #[test]
    fn every_setting_either_changes_while_the_daemon_runs_or_has_a_reason() {
        let defaults: toml::Table = DEFAULTS.parse().unwrap();
        let keys = defaults.iter().map(|(section, keys)| match keys.as_table() {
            Some(keys) => keys.keys().map(|key| format!("{section}.{key}")).collect(),
            None => vec![section.clone()],
        });
        let keys: BTreeSet<_> = keys.flatten().collect();
        let classified: BTreeSet<_> = SETTINGS.iter().map(|(key, _)| (*key).to_owned()).collect();
        assert_eq!(classified, keys);
        assert_eq!(classified.len(), SETTINGS.len(), "a setting has two rows");
    }

    #[test]
    fn a_reload_changes_what_can_change_and_names_what_it_keeps() {
        let before = read("server.listen = '127.0.0.1:1'\nlimits.queries_max = 4").unwrap();
        let after = "server.listen = '127.0.0.1:2'\nlimits.queries_max = 5\n\
                     alerts.alertmanagers = ['http://a:b@c']";
        let (merged, found) = before.reloaded(&read(after).unwrap()).unwrap();
        assert_eq!((merged.server.listen, merged.limits.queries_max), (before.server.listen, 5));
        assert_eq!(merged.alertmanagers[0].url, "http://a:b@c");
        let change = |key: &str, from: &str, to: &str| SettingChange {
            key: key.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        };
        let expected = [
            change("alerts.alertmanagers", "[]", "[\"http://***@c\"]"),
            change("limits.queries_max", "4", "5"),
        ];
        assert_eq!(found.changed, expected);
        assert_eq!(found.kept.len(), 1);
        let kept = change("server.listen", "\"127.0.0.1:1\"", "\"127.0.0.1:2\"");
        assert_eq!(found.kept[0].change, kept);
        // A changed password is a change, and stays hidden.
        let other = read(&after.replace("a:b", "a:d")).unwrap();
        let (_, found) = merged.reloaded(&other).unwrap();
        assert_eq!(found.changed[0].key, "alerts.alertmanagers");
        assert!(!format!("{found:?}").contains("a:"), "{found:?}");
    }

    #[test]
    fn retentions_change_and_other_granularities_need_a_restart() {
        let with = |text: &str| read(&DEFAULTS.replace("retention = \"48h\"", text)).unwrap();
        let (before, longer) = (read("").unwrap(), with("retention = \"96h\""));
        let (merged, found) = before.reloaded(&longer).unwrap();
        assert_eq!(merged.granularities, longer.granularities);
        assert_eq!(found.changed.len(), 1);
        assert_eq!(found.changed[0].key, "granularity.1m.retention");
        let ruled = DEFAULTS.replace("[retention]", "").replace("rule = []", "")
            + "[[retention.rule]]\nname = 'x'\nselector = 'x'\nkeep = { 1m = '6h' }\n";
        let change = |from: &str, to: &str| {
            let (before, after) = (read(&ruled), read(&ruled.replace(from, to)));
            let (before, after) = (before.unwrap(), after.unwrap());
            let (merged, found) = before.reloaded(&after).unwrap();
            let is_new = merged.granularities == after.granularities
                && merged.retention_rules == after.retention_rules;
            let changed: Vec<_> = found.changed.into_iter().map(|change| change.key).collect();
            (is_new, changed, found.kept.len())
        };
        let of_rule = "retention.rule.x.1m.retention".to_owned();
        assert_eq!(change("1m = '6h'", "1m = '12h'"), (true, vec![of_rule], 0));
        let keys = ["granularity.1h.retention", "retention.rule.x.1h.retention"];
        assert_eq!(change("\"9w\"", "\"10w\""), (true, keys.map(str::to_owned).to_vec(), 0));
        assert_eq!(change("selector = 'x'", "selector = 'y'"), (false, vec![], 1));
        assert_eq!(change("1m = '6h'", "1m = 'none'"), (false, vec![], 1));
        let other = DEFAULTS.replace("partition = \"6h\"", "partition = \"12h\"");
        let (merged, found) = before.reloaded(&read(&other).unwrap()).unwrap();
        assert_eq!(merged.granularities, before.granularities);
        assert!(found.changed.is_empty() && found.kept[0].change.key == "granularity", "{found:?}");
    }
}
