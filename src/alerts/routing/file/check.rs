//! The conversion of a notification file to routes, inhibition rules and time intervals; each fault
//! is recorded with its location.
//!
//! Must never know: YAML.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::raw::{
    RawEscalation, RawFile, RawGlobal, RawInhibition, RawNamedInterval, RawRoute, TextMap,
};
use crate::{
    alerts::{
        FileFault, LabelMatcher,
        routing::{Escalation, Receiver, Route, Routing, TimeInterval, inhibition::Inhibition},
    },
    model::parse_duration_ms,
};

/// The maximum number of routes, of inhibition rules, and of named time intervals.
const ENTRIES_MAX: usize = 1000;
/// The greatest depth of nested routes.
const DEPTH_MAX: usize = 32;
/// The maximum number of receivers.
const RECEIVERS_MAX: usize = 200;
/// The maximum number of integrations of all receivers: each may be busy at the same time.
const INTEGRATIONS_MAX: usize = 100;
/// The default of Alertmanager's `resolve_timeout`, in milliseconds.
pub const RESOLVE_TIMEOUT_MS: i64 = 300_000;
/// The keyword for all labels.
const ALL_LABELS: &str = "...";

/// Checks one file.
pub(super) struct FileChecker<'a> {
    file: &'a str,
    /// The folder of the file; `None` for a text that may not name files or commands.
    folder: Option<&'a Path>,
    pub(super) global: RawGlobal,
    faults: Vec<FileFault>,
    pub(super) location: String,
    intervals: BTreeMap<String, Vec<TimeInterval>>,
    receivers: Vec<Receiver>,
    routes: Vec<Route>,
    keys: BTreeMap<String, usize>,
}

impl<'a> FileChecker<'a> {
    pub(super) fn new(file: &'a str, folder: Option<&'a Path>) -> Self {
        Self {
            file,
            folder,
            global: RawGlobal::default(),
            faults: Vec::new(),
            location: String::new(),
            intervals: BTreeMap::new(),
            receivers: Vec::new(),
            routes: Vec::new(),
            keys: BTreeMap::new(),
        }
    }

    pub(super) fn into_faults(self) -> Vec<FileFault> {
        self.faults
    }

    pub(super) fn fault(&mut self, problem: impl Into<String>) {
        let location = self.location.clone();
        self.faults.push(FileFault { location, ..FileFault::of_file(self.file, problem) });
    }

    /// Returns the path of a file that the value of a key names.
    pub(super) fn named_file(&mut self, key: &str, file: &Path) -> PathBuf {
        self.check_is_file(key, "name files of the daemon's machine");
        self.folder.map(|folder| folder.join(file)).unwrap_or_default()
    }

    /// Adds a fault when the text is not a file, whose author could otherwise act as the operator
    /// of the machine.
    pub(super) fn check_is_file(&mut self, key: &str, forbidden: &str) {
        if self.folder.is_none() {
            self.fault(format!(
                "{key}: receivers that are edited on the page cannot {forbidden}: use a file, \
                 which alerts.notifications names"
            ));
        }
    }

    fn check_count(&mut self, count: usize, items: &str, limit: usize) {
        if count > limit {
            self.fault(format!("{count} {items} exceed the limit of {limit}"));
        }
    }

    pub(super) fn routing(&mut self, raw: RawFile) -> Routing {
        "global".clone_into(&mut self.location);
        let resolve_timeout =
            self.positive_duration("resolve_timeout", raw.global.resolve_timeout.as_deref());
        self.global = raw.global;
        for interval in raw.time_intervals.iter().chain(&raw.mute_time_intervals) {
            self.interval(interval);
        }
        self.location = String::new();
        if !raw.templates.is_empty() {
            self.check_is_file("templates", "name files of the daemon's machine");
        }
        let intervals = self.intervals.len();
        self.check_count(intervals, "time intervals", ENTRIES_MAX);
        self.check_count(raw.receivers.len(), "receivers", RECEIVERS_MAX);
        let mut names = BTreeSet::new();
        for raw_receiver in raw.receivers {
            self.location = format!("receiver {:?}", raw_receiver.name);
            if raw_receiver.name.is_empty() || !names.insert(raw_receiver.name.clone()) {
                self.fault("the name of a receiver is empty or appears twice");
            }
            let receiver = self.receiver(raw_receiver);
            self.receivers.push(receiver);
        }
        self.location = String::new();
        let integrations = self.receivers.iter().map(|receiver| receiver.integrations.len()).sum();
        self.check_count(integrations, "integrations of all receivers", INTEGRATIONS_MAX);
        self.root(raw.route);
        self.location = String::new();
        let routes = self.routes.len();
        self.check_count(routes, "routes", ENTRIES_MAX);
        self.check_count(raw.inhibit_rules.len(), "inhibition rules", ENTRIES_MAX);
        let inhibitions = raw.inhibit_rules.into_iter().enumerate();
        let inhibitions = inhibitions.map(|(at, rule)| self.inhibition(at, rule)).collect();
        let route_indexes = self.routes.iter().enumerate();
        let route_indexes =
            route_indexes.map(|(index, route)| (route.key.clone(), index)).collect();
        Routing {
            routes: std::mem::take(&mut self.routes),
            route_indexes,
            receivers: std::mem::take(&mut self.receivers),
            inhibitions,
            templates: raw.templates,
            external_url: String::new(),
            resolve_timeout_ms: resolve_timeout.unwrap_or(RESOLVE_TIMEOUT_MS),
        }
    }

    fn interval(&mut self, raw: &RawNamedInterval) {
        self.location = format!("time interval {:?}", raw.name);
        let read: Result<Vec<_>, _> = raw.time_intervals.iter().map(TimeInterval::new).collect();
        let read = read.unwrap_or_else(|problem| {
            self.fault(problem);
            Vec::new()
        });
        if raw.name.is_empty() || self.intervals.insert(raw.name.clone(), read).is_some() {
            self.fault("the name of a time interval is empty or appears twice");
        }
    }

    fn root(&mut self, raw: RawRoute) {
        "route".clone_into(&mut self.location);
        if raw.receiver.is_none() {
            self.fault("the first route has no receiver");
        }
        if !(raw.match_equal.is_empty() && raw.match_re.is_empty() && raw.matchers.is_empty()) {
            self.fault("the first route accepts all alerts: remove its matchers");
        }
        if !(raw.mute_time_intervals.is_empty() && raw.active_time_intervals.is_empty()) {
            self.fault("the first route cannot have time intervals: add a child route");
        }
        if raw.continues {
            self.fault("continue: the first route has no siblings: remove the key");
        }
        let parent = Route {
            key: String::new(),
            matchers: Vec::new(),
            receiver: 0,
            group_by: Some(Vec::new()),
            group_wait_ms: 30_000,
            group_interval_ms: 300_000,
            repeat_interval_ms: 4 * 3_600_000,
            continues: false,
            escalations: Vec::new(),
            children: Vec::new(),
            muted_in: Vec::new(),
            active_in: None,
        };
        self.route(raw, &parent, 0);
    }

    /// Adds a route with its child routes; returns its index.
    fn route(&mut self, raw: RawRoute, parent: &Route, depth: usize) -> usize {
        let matchers = self.matchers(&raw.match_equal, &raw.match_re, &raw.matchers);
        let receiver =
            raw.receiver.as_deref().map_or(parent.receiver, |name| self.receiver_named(name));
        let group_by = raw.group_by.map(|names| self.group_by(names));
        let wait = self.duration("group_wait", raw.group_wait.as_deref());
        let interval = self.positive_duration("group_interval", raw.group_interval.as_deref());
        let repeat = self.positive_duration("repeat_interval", raw.repeat_interval.as_deref());
        let muted_in = self.times("mute_time_intervals", &raw.mute_time_intervals);
        let active_in = (!raw.active_time_intervals.is_empty())
            .then(|| self.times("active_time_intervals", &raw.active_time_intervals));
        let escalations =
            raw.escalate.iter().map(|escalation| self.escalation(escalation)).collect();
        let route = Route {
            key: self.key(parent, &matchers),
            matchers,
            receiver,
            group_by: group_by.unwrap_or_else(|| parent.group_by.clone()),
            group_wait_ms: wait.unwrap_or(parent.group_wait_ms),
            group_interval_ms: interval.unwrap_or(parent.group_interval_ms),
            repeat_interval_ms: repeat.unwrap_or(parent.repeat_interval_ms),
            continues: raw.continues,
            escalations,
            children: Vec::new(),
            muted_in,
            active_in,
        };
        let index = self.routes.len();
        self.routes.push(route.clone());
        if depth == DEPTH_MAX && !raw.routes.is_empty() {
            self.fault(format!("routes are nested deeper than {DEPTH_MAX} levels"));
            return index;
        }
        let route_location = self.location.clone();
        for (at, child) in raw.routes.into_iter().enumerate() {
            self.location = format!("{route_location}.routes[{at}]");
            let child_index = self.route(child, &route, depth + 1);
            if let Some(parent) = self.routes.get_mut(index) {
                parent.children.push(child_index);
            }
        }
        self.location = route_location;
        index
    }

    /// Returns Alertmanager's key for a route; a number distinguishes routes with the same key.
    fn key(&mut self, parent: &Route, matchers: &[LabelMatcher]) -> String {
        let texts: Vec<_> = matchers.iter().map(ToString::to_string).collect();
        let slash = if parent.key.is_empty() { "" } else { "/" };
        let key = format!("{}{slash}{{{}}}", parent.key, texts.join(","));
        let count = self.keys.entry(key.clone()).or_insert(0);
        *count += 1;
        if *count == 1 { key } else { format!("{key}#{count}") }
    }

    fn escalation(&mut self, raw: &RawEscalation) -> Escalation {
        let after = self.positive_duration("escalate: after", Some(&raw.after));
        let receiver = self.receiver_named(&raw.receiver);
        Escalation { after_ms: after.unwrap_or(0), receiver }
    }

    /// Returns the label names of `group_by`; `None`: all of them.
    fn group_by(&mut self, mut names: Vec<String>) -> Option<Vec<String>> {
        if names.iter().any(|name| name == ALL_LABELS) {
            if names.len() > 1 {
                self.fault("group_by: ... stands for all labels: remove the other names");
            }
            return None;
        }
        names.sort();
        let count = names.len();
        names.dedup();
        if names.len() < count {
            self.fault("group_by names a label twice");
        }
        Some(names)
    }

    fn times(&mut self, key: &str, names: &[String]) -> Vec<TimeInterval> {
        let mut times = Vec::new();
        for name in names {
            match self.intervals.get(name) {
                Some(interval) => times.extend(interval.iter().cloned()),
                None => self.fault(format!("{key}: no time interval is named {name:?}")),
            }
        }
        times
    }

    fn receiver_named(&mut self, name: &str) -> usize {
        let found = self.receivers.iter().position(|receiver| receiver.name == name);
        if found.is_none() {
            self.fault(format!("no receiver is named {name:?}"));
        }
        found.unwrap_or(0)
    }

    fn inhibition(&mut self, at: usize, raw: RawInhibition) -> Inhibition {
        self.location = format!("inhibit_rules[{at}]");
        Inhibition {
            source: self.matchers(&raw.source_match, &raw.source_match_re, &raw.source_matchers),
            target: self.matchers(&raw.target_match, &raw.target_match_re, &raw.target_matchers),
            equal: raw.equal,
        }
    }

    /// Compiles the matchers, in Alertmanager's order.
    fn matchers(
        &mut self,
        match_equal: &TextMap,
        patterns: &TextMap,
        texts: &[String],
    ) -> Vec<LabelMatcher> {
        let equal =
            match_equal.iter().map(|(name, value)| LabelMatcher::new(name, value, false, true));
        let patterns = patterns.iter().map(|(name, value)| {
            // In Alertmanager's keys, these patterns have anchors.
            LabelMatcher::new(name, &format!("^(?:{value})$"), true, true)
        });
        let texts = texts.iter().flat_map(|text| match LabelMatcher::parse_all(text) {
            Ok(all) => all.into_iter().map(Ok).collect(),
            Err(problem) => vec![Err(problem)],
        });
        let mut matchers = Vec::new();
        for read in equal.chain(patterns).chain(texts) {
            match read {
                Ok(matcher) => matchers.push(matcher),
                Err(problem) => self.fault(problem),
            }
        }
        let order = |matcher: &LabelMatcher| {
            let kind = (matcher.is_pattern(), !matcher.is_equal());
            (matcher.name().to_owned(), matcher.value().to_owned(), kind)
        };
        matchers.sort_by_key(order);
        matchers
    }

    pub(super) fn duration(&mut self, key: &str, text: Option<&str>) -> Option<i64> {
        let text = text?;
        let found = parse_duration_ms(text);
        if found.is_none() {
            self.fault(format!("{key}: {text:?} is not a duration; write 30s, 5m or 1h30m"));
        }
        found
    }

    pub(super) fn positive_duration(&mut self, key: &str, text: Option<&str>) -> Option<i64> {
        let found = self.duration(key, text);
        if found == Some(0) {
            self.fault(format!("{key} must be longer than 0s"));
        }
        found
    }
}
