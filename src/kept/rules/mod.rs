//! The loaded rules and the results of their evaluation, for the alerter and for queries.
//!
//! Must never know: HTTP, the evaluation of rules.

mod acknowledging;
mod firing;
#[cfg(test)]
mod fixtures;
mod notified;
mod routing;
mod sources;
mod status;

pub(crate) use acknowledging::{ACKNOWLEDGEMENTS_MAX, AcknowledgeResult};
pub use acknowledging::{Acknowledge, AcknowledgeFault};
pub use notified::NotifiedGroup;
pub use routing::read_routing;
pub use sources::{RuleSet, RuleSources, SourceFault};
pub use status::GroupStatus;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};

use acknowledging::AcknowledgementQueue;
use status::notified;

use crate::{
    alerts::{
        Action, Alert, AlertDeliveries, AlertState, ExternalIdentity, GroupHistory, GroupState,
        Routing, RuleGroup,
    },
    clock::{Clock, SystemClock},
    model::{UnixMillis, with_causes, with_noun},
    query::PromqlSettings,
    telemetry::Metrics,
};

/// The loaded rules. Clones are cheap.
#[derive(Debug, Clone)]
pub struct KnownRules(Arc<SharedRules>);

#[derive(Debug)]
struct SharedRules {
    metrics: Metrics,
    loaded: RwLock<LoadedRules>,
    /// The results by the groups' IDs.
    statuses: RwLock<BTreeMap<String, Arc<GroupStatus>>>,
    /// The states of groups whose files could not be loaded; `None` until they are read.
    unread: RwLock<Option<Vec<Arc<GroupStatus>>>>,
    /// The number of changes of notified alerts.
    notified_changes: AtomicU64,
    /// The number of firing alerts that no message lists.
    unlisted: AtomicUsize,
    /// The deliveries of firing alerts.
    deliveries: RwLock<Arc<AlertDeliveries>>,
    /// The reason why the last load failed.
    fault: Mutex<Option<String>>,
    acknowledgements: AcknowledgementQueue,
}

/// Rules that were read and can be used.
#[derive(Debug)]
pub struct ReadRules {
    sources: Arc<RuleSources>,
    set: Arc<RuleSet>,
}

impl ReadRules {
    /// Returns the number of rules.
    pub fn count(&self) -> usize {
        count(&self.set) as usize
    }
}

/// The rules of the last load.
#[derive(Debug, Clone)]
pub(crate) struct LoadedRules {
    pub(crate) set: Arc<RuleSet>,
    sources: Arc<RuleSources>,
    /// A number that changes with each load.
    pub(crate) generation: u64,
    /// The time of the load.
    read_at: UnixMillis,
}

impl KnownRules {
    /// Loads the rules. An unusable file is skipped: a typo must not stop a store.
    pub fn open(sources: RuleSources, promql: &PromqlSettings, metrics: Metrics) -> Self {
        let (set, fault) = sources.read_usable(promql);
        if let Some(cause) = &fault {
            let cause: &dyn std::error::Error = cause;
            tracing::error!(cause, "cannot use all rule files; the others are used");
        }
        warn_without_destination(&sources, &set);
        let set = Arc::new(set);
        metrics.rules_reload_failed.set(i64::from(fault.is_some()));
        metrics.rules.set(count(&set));
        let fault = Mutex::new(fault.map(|cause| with_causes(&cause)));
        let loaded = RwLock::new(LoadedRules {
            set,
            sources: Arc::new(sources),
            generation: 1,
            read_at: SystemClock.now(),
        });
        Self(Arc::new(SharedRules {
            fault,
            metrics,
            loaded,
            statuses: RwLock::default(),
            unread: RwLock::default(),
            notified_changes: AtomicU64::default(),
            unlisted: AtomicUsize::default(),
            deliveries: RwLock::default(),
            acknowledgements: AcknowledgementQueue::default(),
        }))
    }

    /// Reads the rules of the sources without using them.
    ///
    /// # Errors
    /// The rules are unusable.
    pub fn read(
        &self,
        sources: RuleSources,
        promql: &PromqlSettings,
    ) -> Result<ReadRules, SourceFault> {
        let set = sources.read(promql)?;
        Ok(ReadRules { sources: Arc::new(sources), set: Arc::new(set) })
    }

    /// Notes the outcome of the last reload: the reason why it failed, if it did.
    pub fn note_reload(&self, fault: Option<String>) {
        self.0.metrics.rules_reload_failed.set(i64::from(fault.is_some()));
        *self.0.fault.lock() = fault;
    }

    /// Replaces the rules with those that were read.
    pub fn replace(&self, read: ReadRules) {
        let ReadRules { sources, set } = read;
        let rules = count(&set);
        self.0.metrics.rules.set(rules);
        tracing::info!(groups = set.groups.len(), rules, "loaded the rules");
        warn_without_destination(&sources, &set);
        let mut loaded = self.0.loaded.write();
        let (generation, read_at) = (loaded.generation + 1, SystemClock.now());
        *loaded = LoadedRules { set, sources, generation, read_at };
        drop(loaded);
        self.note_change();
    }

    /// Returns the reason why firing alerts notify nobody, if there is one.
    pub fn no_receiver(&self) -> Option<String> {
        let loaded = self.loaded();
        no_receiver(&loaded.sources, &loaded.set)
    }

    /// Records the number of firing alerts that messages only count.
    pub fn note_unlisted(&self, alerts: usize) {
        self.0.unlisted.store(alerts, Ordering::Relaxed);
    }

    /// Returns the reason why messages do not list each alert, if there is one.
    pub fn left_out(&self) -> Option<String> {
        let unlisted = self.0.unlisted.load(Ordering::Relaxed);
        let left_out = self.count_left_out();
        if left_out > 0 {
            return Some(format!(
                "{} above the limit of a rule are only counted: change expressions to return fewer series",
                with_noun(left_out, "alert")
            ));
        }
        (unlisted > 0).then(|| {
            format!(
                "{} exceed the limits of messages and are only counted: group alerts by a label \
                 with fewer values",
                with_noun(unlisted, "alert")
            )
        })
    }

    /// Returns the number of firing or pending alerts above the limits of their rules.
    fn count_left_out(&self) -> usize {
        let statuses = self.0.statuses.read();
        let reports = statuses.values().flat_map(|status| &status.reports);
        reports.map(|(report, _)| report.left_out).sum()
    }

    /// Returns the reason why some rule files are not in use, if there is one.
    pub fn fault(&self) -> Option<String> {
        self.0.fault.lock().clone()
    }

    /// Returns the time at which the current rules were loaded.
    pub fn read_at(&self) -> UnixMillis {
        self.0.loaded.read().read_at
    }

    /// Returns the address and the labels that messages contain.
    pub fn external(&self) -> Arc<ExternalIdentity> {
        self.0.loaded.read().sources.external.clone()
    }

    pub(crate) fn loaded(&self) -> LoadedRules {
        self.0.loaded.read().clone()
    }

    /// Acknowledges alerts, durably; returns the number of alerts with the labels.
    ///
    /// # Errors
    /// No alert has the labels, or the request cannot be executed now.
    pub async fn acknowledge(&self, request: Acknowledge) -> Result<usize, AcknowledgeFault> {
        self.0.acknowledgements.submit(request).await
    }

    pub(crate) fn acknowledgements(&self) -> &AcknowledgementQueue {
        &self.0.acknowledgements
    }

    /// Returns true when an alert of a group met a condition at its last evaluation.
    pub(crate) fn has_alert(&self, id: &str, meets: impl Fn(&Alert) -> bool) -> bool {
        let status = self.0.statuses.read().get(id).cloned();
        let rules = status.iter().flat_map(|status| status.state.rules.values());
        rules.flat_map(|rule| &rule.alerts).any(meets)
    }

    /// Publishes the state of a group's alerts between its evaluations.
    pub(crate) fn note_state(&self, id: &str, state: &GroupState) {
        let mut statuses = self.0.statuses.write();
        if let Some(status) = statuses.get_mut(id) {
            *status = Arc::new(GroupStatus { state: state.clone(), ..GroupStatus::clone(status) });
        }
        drop(statuses);
        self.note_change();
    }

    /// Counts a change of notified alerts; must be called after the change.
    fn note_change(&self) {
        self.0.notified_changes.fetch_add(1, Ordering::Release);
    }

    /// Publishes the past alerts of a group.
    pub(crate) fn note_history(&self, id: &str, history: &Arc<GroupHistory>) {
        let mut statuses = self.0.statuses.write();
        if let Some(status) = statuses.get_mut(id) {
            let history = history.clone();
            *status = Arc::new(GroupStatus { history, ..GroupStatus::clone(status) });
        }
    }

    /// Publishes the result of a group's evaluation.
    pub(crate) fn note_status(&self, id: &str, status: GroupStatus) {
        let status = Arc::new(status);
        let before = self.0.statuses.write().insert(id.to_owned(), status.clone());
        if before.is_none_or(|before| !notified(&before.state).eq(notified(&status.state))) {
            self.note_change();
        }
    }

    /// Publishes the states of groups whose files could not be loaded.
    pub(crate) fn note_unread(&self, states: Vec<GroupState>) {
        let status = |state| Arc::new(GroupStatus { state, ..GroupStatus::default() });
        *self.0.unread.write() = Some(states.into_iter().map(status).collect());
        self.note_change();
    }

    /// Removes all groups for which `is_kept` returns false.
    pub(crate) fn retain(&self, is_kept: impl Fn(&str) -> bool) {
        self.0.statuses.write().retain(|id, _| is_kept(id));
    }

    /// Updates the metrics of alerts by state, once a round.
    pub(crate) fn count_alerts(&self) {
        let statuses = self.0.statuses.read();
        let rules = statuses.values().flat_map(|status| status.state.rules.values());
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

    /// Returns the routing tree of the last load.
    pub fn routing(&self) -> Option<Arc<Routing>> {
        self.loaded().set.routing.clone()
    }

    /// Returns the groups in order of their files and positions, with their results.
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

/// Returns the reason why firing alerts of these rules notify nobody, if there is one.
fn no_receiver(sources: &RuleSources, set: &RuleSet) -> Option<String> {
    let rules = set.groups.iter().flat_map(|group| &group.rules);
    let alerting = rules.filter(|rule| matches!(rule.action, Action::Alert(_))).count();
    let has_integrations = set.routing.as_ref().is_some_and(|routing| routing.has_integrations());
    (alerting > 0 && !has_integrations && !sources.has_alertmanagers).then(|| {
        let remedy = match (&sources.notifications, &set.routing) {
            (Some(_), None) => "fix the file in alerts.notifications",
            (Some(_), Some(_)) => {
                "add an integration to the receivers in the file in alerts.notifications"
            }
            (None, _) => {
                "name receivers in a file, as in deploy/notifications.yml, set \
                 alerts.notifications to its path and reload; or name Alertmanagers \
                 in alerts.alertmanagers"
            }
        };
        let rules = if alerting == 1 { "rule has alerts" } else { "rules have alerts" };
        format!("{alerting} {rules}, but notifications have no destination: {remedy}")
    })
}

fn warn_without_destination(sources: &RuleSources, set: &RuleSet) {
    if let Some(reason) = no_receiver(sources, set) {
        tracing::warn!(reason, "firing alerts notify nobody");
    }
}
