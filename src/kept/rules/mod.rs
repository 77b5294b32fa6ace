//! The loaded rules and the results of their evaluation, for the alerter and for queries.
//!
//! Must never know: HTTP, the evaluation of rules.

mod acknowledging;
mod destination;
mod editing;
mod fault;
mod firing;
#[cfg(test)]
mod fixtures;
mod loading;
mod notified;
mod routing;
mod set;
mod sources;
mod status;
mod texts;

pub(crate) use acknowledging::{ACKNOWLEDGEMENTS_MAX, AcknowledgeResult};
pub use acknowledging::{Acknowledge, AcknowledgeFault};
pub use editing::{
    CheckedText, SavedText, TEXT_BYTES_MAX, TextAnswer, TextFault, TextFaultAnswer, TextsAnswer,
};
pub use fault::SourceFault;
pub(crate) use loading::LoadedRules;
pub use loading::ReadRules;
pub use notified::NotifiedGroup;
pub use routing::read_routing;
pub use set::RuleSet;
pub use sources::RuleSources;
pub use status::GroupStatus;
pub use texts::AlertText;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};

use acknowledging::AcknowledgementQueue;
use loading::fault_text;
use status::notified;

use crate::{
    alerts::{
        Alert, AlertDeliveries, AlertState, ExternalIdentity, GroupHistory, GroupState, Routing,
        RuleGroup,
    },
    model::with_noun,
    query::PromqlSettings,
    store::{Store, StoreError},
    telemetry::Metrics,
};

/// The loaded rules. Clones are cheap.
#[derive(Debug, Clone)]
pub struct KnownRules(Arc<SharedRules>);

#[derive(Debug)]
struct SharedRules {
    metrics: Metrics,
    store: Store,
    /// The lock of changes of texts and of loads. True while the stored texts may differ from those
    /// in use.
    text_changes: Mutex<bool>,
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
    /// The reason why the last load of files failed.
    fault: Mutex<Option<String>>,
    acknowledgements: AcknowledgementQueue,
}

impl KnownRules {
    /// Loads the rules of files and of a store's texts. An unusable file or text is skipped: a typo
    /// must not stop a store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open(
        store: &Store,
        sources: RuleSources,
        promql: &PromqlSettings,
        metrics: Metrics,
    ) -> Result<Self, StoreError> {
        let (loaded, fault) = LoadedRules::open(store, sources, promql)?;
        metrics.rules.set(loaded.count() as i64);
        let known = Self(Arc::new(SharedRules {
            fault: Mutex::default(),
            metrics,
            store: store.clone(),
            text_changes: Mutex::default(),
            loaded: RwLock::new(loaded),
            statuses: RwLock::default(),
            unread: RwLock::default(),
            notified_changes: AtomicU64::default(),
            unlisted: AtomicUsize::default(),
            deliveries: RwLock::default(),
            acknowledgements: AcknowledgementQueue::default(),
        }));
        known.warn_without_destination();
        known.note_reload(fault_text(fault));
        Ok(known)
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

    /// Returns the address and the labels that messages contain.
    pub fn external(&self) -> Arc<ExternalIdentity> {
        self.0.loaded.read().parts.sources.external.clone()
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
