//! The rules that are evaluated, and what became of them: what the alerter works by, and others
//! ask.
//!
//! Must never know: HTTP, how a rule is evaluated.

mod acknowledging;
mod routing;
mod sources;
mod status;
mod told;

pub use acknowledging::{Acknowledge, AcknowledgeFault};
pub(crate) use acknowledging::{Acknowledged, WAITING_MAX};
pub use routing::read_routing;
pub use sources::{RuleSet, RuleSources, SourceFault};
pub use status::GroupStatus;
pub use told::ToldGroup;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};

use acknowledging::Waiting;
use status::told;

use crate::{
    alerts::{Action, Alert, AlertState, External, GroupHistory, GroupState, Routing, RuleGroup},
    clock::{Clock, SystemClock},
    model::{UnixMillis, chain, counted},
    query::PromqlSettings,
    telemetry::Metrics,
};

/// The rules. Cheap to clone.
#[derive(Debug, Clone)]
pub struct KnownRules(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sources: RuleSources,
    promql: PromqlSettings,
    metrics: Metrics,
    loaded: RwLock<Loaded>,
    /// By the groups' ids.
    statuses: RwLock<BTreeMap<String, Arc<GroupStatus>>>,
    /// The states of groups whose files were left out; `None` until they are read.
    unread: RwLock<Option<Vec<Arc<GroupStatus>>>>,
    /// The number of changes of notified alerts.
    told_changes: AtomicU64,
    /// Alerts that fire and are listed in no message.
    unlisted: AtomicUsize,
    /// Held while files are read: the last to begin is the last to end.
    reading: Mutex<()>,
    /// Why they could not be read last.
    fault: Mutex<Option<String>>,
    acknowledgements: Waiting,
}

/// The rules as they were read last.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) set: Arc<RuleSet>,
    /// Another one each time they are read.
    pub(crate) generation: u64,
    /// The time at which the rules were read.
    read_at: UnixMillis,
}

impl KnownRules {
    /// Reads the rules. A file that cannot be used is left out: a store must not stop for a typo.
    pub fn open(sources: RuleSources, promql: PromqlSettings, metrics: Metrics) -> Self {
        let (set, fault) = sources.read_usable(&promql);
        if let Some(cause) = &fault {
            let cause: &dyn std::error::Error = cause;
            tracing::error!(cause, "cannot use all rule files; the others are used");
        }
        warn_untold(&sources, &set);
        let set = Arc::new(set);
        metrics.rules_reload_failed.set(i64::from(fault.is_some()));
        metrics.rules.set(count(&set));
        let fault = Mutex::new(fault.map(|cause| chain(&cause)));
        let loaded = RwLock::new(Loaded { set, generation: 1, read_at: SystemClock.now() });
        Self(Arc::new(Inner {
            sources,
            fault,
            promql,
            metrics,
            loaded,
            statuses: RwLock::default(),
            unread: RwLock::default(),
            told_changes: AtomicU64::default(),
            unlisted: AtomicUsize::default(),
            reading: Mutex::default(),
            acknowledgements: Waiting::default(),
        }))
    }

    /// Reads the rules again; when they cannot be used, those of before stay. Returns how many
    /// there are.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn reload(&self) -> Result<usize, SourceFault> {
        let _reading = self.0.reading.lock();
        let read = self.0.sources.read(&self.0.promql);
        self.0.metrics.rules_reload_failed.set(i64::from(read.is_err()));
        *self.0.fault.lock() = read.as_ref().err().map(|cause| chain(cause));
        let set = Arc::new(read.inspect_err(|cause| {
            let cause: &dyn std::error::Error = cause;
            tracing::error!(cause, "cannot use the rule files; the rules of before stay");
        })?);
        let rules = count(&set);
        self.0.metrics.rules.set(rules);
        tracing::info!(groups = set.groups.len(), rules, "read the rules");
        warn_untold(&self.0.sources, &set);
        let mut loaded = self.0.loaded.write();
        let (generation, read_at) = (loaded.generation + 1, SystemClock.now());
        *loaded = Loaded { set, generation, read_at };
        drop(loaded);
        self.note_change();
        Ok(rules as usize)
    }

    /// Why nobody is told when an alert fires, if that is so.
    pub fn untold(&self) -> Option<String> {
        untold(&self.0.sources, &self.loaded().set)
    }

    /// Notes how many alerts that fire receivers are only told the number of.
    pub fn note_unlisted(&self, alerts: usize) {
        self.0.unlisted.store(alerts, Ordering::Relaxed);
    }

    /// Why people are not told of each alert by name, if that is so.
    pub fn left_out(&self) -> Option<String> {
        let unlisted = self.0.unlisted.load(Ordering::Relaxed);
        let left_out = self.count_left_out();
        if left_out > 0 {
            return Some(format!(
                "{} beyond what a rule may have, only counted: let expressions have fewer series",
                counted(left_out, "alert")
            ));
        }
        (unlisted > 0).then(|| {
            format!(
                "{} beyond what messages list, only counted: group alerts by a label with fewer \
                 values",
                counted(unlisted, "alert")
            )
        })
    }

    /// Alerts that fire or are pending beyond the limits of their rules.
    fn count_left_out(&self) -> usize {
        let statuses = self.0.statuses.read();
        let reports = statuses.values().flat_map(|own| &own.reports);
        reports.map(|(report, _)| report.left_out).sum()
    }

    /// Why some rule files are not used as they are now.
    pub fn fault(&self) -> Option<String> {
        self.0.fault.lock().clone()
    }

    /// The time at which the rules in use were read.
    pub fn read_at(&self) -> UnixMillis {
        self.0.loaded.read().read_at
    }

    /// The address and the labels by which alerts go out.
    pub fn external(&self) -> &External {
        &self.0.sources.external
    }

    pub(crate) fn loaded(&self) -> Loaded {
        self.0.loaded.read().clone()
    }

    /// Says who looks after alerts, durably; returns how many have the labels.
    ///
    /// # Errors
    /// When none has, or it cannot be done now.
    pub async fn acknowledge(&self, asked: Acknowledge) -> Result<usize, AcknowledgeFault> {
        self.0.acknowledgements.ask(asked).await
    }

    pub(crate) fn acknowledgements(&self) -> &Waiting {
        &self.0.acknowledgements
    }

    /// True when an alert of a group met a condition at its last evaluation.
    pub(crate) fn has_alert(&self, id: &str, is_so: impl Fn(&Alert) -> bool) -> bool {
        let status = self.0.statuses.read().get(id).cloned();
        let rules = status.iter().flat_map(|own| own.state.rules.values());
        rules.flat_map(|rule| &rule.alerts).any(is_so)
    }

    /// Notes what a group's alerts are now, between its evaluations.
    pub(crate) fn note_state(&self, id: &str, state: &GroupState) {
        let mut statuses = self.0.statuses.write();
        if let Some(status) = statuses.get_mut(id) {
            *status = Arc::new(GroupStatus { state: state.clone(), ..GroupStatus::clone(status) });
        }
        drop(statuses);
        self.note_change();
    }

    /// Only after the change.
    fn note_change(&self) {
        self.0.told_changes.fetch_add(1, Ordering::Release);
    }

    /// Notes what is known now of what a group's alerts were.
    pub(crate) fn note_history(&self, id: &str, history: &Arc<GroupHistory>) {
        let mut statuses = self.0.statuses.write();
        if let Some(status) = statuses.get_mut(id) {
            let history = history.clone();
            *status = Arc::new(GroupStatus { history, ..GroupStatus::clone(status) });
        }
    }

    /// Notes what became of a group.
    pub(crate) fn note(&self, id: &str, status: GroupStatus) {
        let status = Arc::new(status);
        let before = self.0.statuses.write().insert(id.to_owned(), status.clone());
        if before.is_none_or(|before| !told(&before.state).eq(told(&status.state))) {
            self.note_change();
        }
    }

    /// Notes what is remembered of groups whose files were left out.
    pub(crate) fn note_unread(&self, states: Vec<GroupState>) {
        let status = |state| Arc::new(GroupStatus { state, ..GroupStatus::default() });
        *self.0.unread.write() = Some(states.into_iter().map(status).collect());
        self.note_change();
    }

    /// Forgets all groups but those for which `keep` says so.
    pub(crate) fn retain(&self, keep: impl Fn(&str) -> bool) {
        self.0.statuses.write().retain(|id, _| keep(id));
    }

    /// Counts the alerts in each state, once a round.
    pub(crate) fn count_alerts(&self) {
        let statuses = self.0.statuses.read();
        let rules = statuses.values().flat_map(|own| own.state.rules.values());
        let mut counts = BTreeMap::new();
        for alert in rules.flat_map(|rule| &rule.alerts) {
            *counts.entry(alert.state.as_str()).or_insert(0) += 1;
        }
        drop(statuses);
        for state in [AlertState::Pending, AlertState::Firing, AlertState::NoData] {
            let count = counts.get(state.as_str()).copied().unwrap_or(0);
            self.0.metrics.alerts.with_label_values(&[state.as_str()]).set(count);
        }
        self.0.metrics.rule_alerts_left_out.set(self.count_left_out() as i64);
    }

    /// Who is told of alerts, as it was read last.
    pub fn routing(&self) -> Option<Arc<Routing>> {
        self.loaded().set.routing.clone()
    }

    /// The groups in order of their files and places, and what became of them.
    pub fn groups(&self) -> (Arc<RuleSet>, Vec<Arc<GroupStatus>>) {
        let set = self.loaded().set;
        let statuses = self.0.statuses.read();
        let status = |group: &RuleGroup| statuses.get(&group.id()).cloned().unwrap_or_default();
        let found = set.groups.iter().map(status).collect();
        drop(statuses);
        (set, found)
    }
}

fn count(set: &RuleSet) -> i64 {
    set.groups.iter().map(|group| group.rules.len() as i64).sum()
}

/// Why nobody is told when an alert of these rules fires, if that is so.
fn untold(sources: &RuleSources, set: &RuleSet) -> Option<String> {
    let rules = set.groups.iter().flat_map(|group| &group.rules);
    let alerting = rules.filter(|rule| matches!(rule.action, Action::Alert(_))).count();
    let has_ways = set.routing.as_ref().is_some_and(|routing| routing.has_ways());
    (alerting > 0 && !has_ways && !sources.has_alertmanagers).then(|| {
        let remedy = match (&sources.notifications, &set.routing) {
            (Some(_), None) => "mend the file that alerts.notifications names",
            (Some(_), Some(_)) => "give receivers of the file in alerts.notifications a way",
            (None, _) => {
                "name receivers in a file, as in deploy/notifications.yml, set \
                 alerts.notifications to its path and restart the daemon; or name Alertmanagers \
                 in alerts.alertmanagers"
            }
        };
        let rules = if alerting == 1 { "rule has alerts" } else { "rules have alerts" };
        format!("{alerting} {rules}, and nobody is told when one fires: {remedy}")
    })
}

fn warn_untold(sources: &RuleSources, set: &RuleSet) {
    if let Some(reason) = untold(sources, set) {
        tracing::warn!(reason, "alerts that fire are told to nobody");
    }
}
