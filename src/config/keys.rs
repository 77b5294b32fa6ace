//! Merging of settings key by key over the defaults, so that all unknown keys and wrong types are
//! reported together.
//!
//! Must never know: what a value means.

use config::{Map, Value, ValueKind};

use super::sections::Sections;

type Table = Map<String, Value>;

/// The only list of tables.
const GRANULARITY: &str = "granularity";
/// Keys of builds before the first release, and what to use in their place.
const REPLACED: [(&str, &str); 12] = [
    ("server.workers", "remove it: there is one worker for each core"),
    (
        "ingest.request_bytes_max",
        "remove it: it follows from body_memory_max, a 32nd, at least 1 MiB",
    ),
    ("ingest.ha_failover", "name the time in ha_senders, such as { \"statsd-\" = \"30s\" }"),
    ("limits.sender_series_max", "remove it: a sender may define a fifth of series_max"),
    ("limits.senders_max", "remove it: it follows from series_max, a 50th, at least 10,000"),
    ("limits.query_series_max", "remove it: it follows from query_points_max, a 40th"),
    ("limits.queries_max", "remove it: one query may run for every 32 MiB of query_memory_max"),
    ("graphite.pickle_listen", "name it in graphite.listen, such as \"pickle://127.0.0.1:2004\""),
    ("graphite.tls_listen", "name it in graphite.listen, such as \"tls://0.0.0.0:2005\""),
    ("alerts.interval", "remove it: groups without an interval are evaluated every minute"),
    ("publish.database", "name it in publish.uri: mongodb://.../DATABASE?authSource=admin"),
    ("cluster.database", "name it in cluster.uri: mongodb://.../DATABASE?authSource=admin"),
];
/// The maximum edit distance at which a key is suggested.
const DISTANCE_MAX: usize = 3;

/// Settings merged over the defaults, with the faults of the keys that could not be used.
#[derive(Debug)]
pub(super) struct Keys {
    defaults: Table,
    valid: Table,
    pub(super) faults: Vec<String>,
}

impl Keys {
    /// Merges the given settings over the defaults.
    pub(super) fn read(defaults: Table, given: Table) -> Self {
        let mut keys = Self { valid: defaults.clone(), defaults, faults: Vec::new() };
        let mut given: Vec<_> = given.into_iter().collect();
        given.sort_by(|first, second| first.0.cmp(&second.0));
        for (section, value) in given {
            let Some(default) = keys.defaults.get(&section).cloned() else {
                keys.unknown("section", &section, &section, &value);
                continue;
            };
            match (value.kind, default.kind) {
                (ValueKind::Table(values), ValueKind::Table(known)) => {
                    keys.section(&section, values, &known);
                }
                (ValueKind::Array(entries), ValueKind::Array(known)) => {
                    keys.entries(&section, entries, &known);
                }
                (_, ValueKind::Array(_)) => {
                    keys.faults.push(format!("{section} is a list: use [[{section}]]"));
                }
                _ => keys.faults.push(format!("{section} is a section: use [{section}]")),
            }
        }
        keys
    }

    /// Returns the valid settings, with the defaults of all other keys.
    pub(super) fn sections(&self) -> Result<Sections, config::ConfigError> {
        typed(self.valid.clone())
    }

    fn section(&mut self, section: &str, values: Table, known: &Table) {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(|first, second| first.0.cmp(&second.0));
        for (key, value) in values {
            let path = format!("{section}.{key}");
            match known.get(&key) {
                None => self.unknown("key", &path, &key, &value),
                Some(default) if default.kind == value.kind => {}
                Some(_) => self.apply(&path, |table| {
                    if let Some(ValueKind::Table(keys)) =
                        table.get_mut(section).map(|section| &mut section.kind)
                    {
                        keys.insert(key, value);
                    }
                }),
            }
        }
    }

    /// Checks the entries of a list one by one, and replaces the list as a whole.
    fn entries(&mut self, list: &str, entries: Vec<Value>, known: &[Value]) {
        let pattern = known.first().and_then(|entry| entry.clone().into_table().ok());
        let pattern = pattern.unwrap_or_default();
        let before = self.faults.len();
        for (index, entry) in entries.iter().enumerate() {
            let entry_path = format!("{list}[{index}]");
            let Ok(given) = entry.clone().into_table() else {
                self.faults.push(format!("{entry_path} is not a table: use [[{list}]]"));
                continue;
            };
            let mut names: Vec<_> = given.iter().collect();
            names.sort_by(|first, second| first.0.cmp(second.0));
            for (key, value) in names.into_iter().filter(|(key, _)| !pattern.contains_key(*key)) {
                self.unknown_among("key", &format!("{entry_path}.{key}"), key, value, &pattern);
            }
            let mut missing: Vec<_> =
                pattern.keys().filter(|key| !given.contains_key(*key)).collect();
            missing.sort_unstable();
            self.faults.extend(missing.iter().map(|key| format!("{entry_path}.{key} is missing")));
        }
        if self.faults.len() == before {
            let key = list.to_owned();
            let value = Value::from(ValueKind::Array(entries));
            self.apply(list, |table| drop(table.insert(key, value)));
        }
    }

    /// Applies a change if the settings stay valid; otherwise, adds a fault.
    fn apply(&mut self, path: &str, change: impl FnOnce(&mut Table)) {
        let mut changed = self.valid.clone();
        change(&mut changed);
        match typed(changed.clone()) {
            Ok(_) => self.valid = changed,
            Err(cause) => {
                let cause = cause.to_string().replace(&format!(" for key `{path}`"), "");
                self.faults.push(format!("{path}: {cause}"));
            }
        }
    }

    fn unknown(&mut self, noun: &str, path: &str, key: &str, value: &Value) {
        let known = match path.strip_suffix(key).and_then(|section| section.strip_suffix('.')) {
            Some(section) => {
                self.defaults.get(section).and_then(|section| section.clone().into_table().ok())
            }
            None => Some(self.defaults.clone()),
        };
        self.unknown_among(noun, path, key, value, &known.unwrap_or_default());
    }

    fn unknown_among(&mut self, noun: &str, path: &str, key: &str, value: &Value, known: &Table) {
        let replaced = REPLACED.iter().find(|(name, _)| *name == path);
        let by_distance = known.keys().map(|name| (strsim::osa_distance(key, name), name));
        let nearest = by_distance.min().filter(|(distance, _)| *distance <= DISTANCE_MAX);
        let remedy = match (replaced, nearest) {
            (Some((_, remedy)), _) => format!("; {remedy}"),
            (None, Some((_, name))) => format!("; did you mean {name}?"),
            (None, None) => format!("; remove it: docs/settings.md lists each {noun}"),
        };
        let origin = value.origin().map_or(String::new(), |origin| format!(" in {origin}"));
        self.faults.push(format!("unknown {noun} {path}{origin}{remedy}"));
    }
}

fn typed(table: Table) -> Result<Sections, config::ConfigError> {
    Value::from(ValueKind::Table(table)).try_deserialize()
}

/// Returns a note on the default granularities that a list of granularities leaves out.
pub(super) fn left_out(given: &Sections, defaults: &Sections) -> Option<String> {
    let is_given = |slot: &str| given.granularity.iter().any(|level| level.slot == slot);
    let missing = defaults.granularity.iter().map(|level| level.slot.as_str());
    let missing: Vec<_> = missing.filter(|slot| !is_given(slot)).collect();
    let kept: Vec<_> = given.granularity.iter().map(|level| level.slot.as_str()).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "[[{GRANULARITY}]] replaces the whole default list: samples are kept at {}, but not at \
             {}; to keep them there, too, add these granularities",
            kept.join(", "),
            missing.join(", ")
        )
    })
}
