//! The rules and states of tests.

use std::{sync::Arc, time::Duration};

use super::{GroupStatus, KnownRules, RuleSources};
use crate::{
    alerts::{Alert, GroupState, RuleState},
    model::{GranularitySet, UnixMillis},
    query::PromqlSettings,
    store::{Folder, Store},
    telemetry::Metrics,
};

/// Returns rules without files and without results.
pub(super) fn empty_rules() -> KnownRules {
    let dir = tempfile::tempdir().unwrap();
    let medium = Arc::new(Folder::new(dir.path()).unwrap());
    let opened = Store::open(medium, GranularitySet::default(), UnixMillis(0)).unwrap();
    open_rules(&opened.0, RuleSources::default())
}

/// Opens the rules of a store.
pub(super) fn open_rules(store: &Store, sources: RuleSources) -> KnownRules {
    KnownRules::open(store, sources, &promql(), Metrics::new().unwrap()).unwrap()
}

/// Returns the settings of queries.
pub(super) fn promql() -> PromqlSettings {
    PromqlSettings {
        timeout: Duration::from_secs(120),
        lookback: Duration::from_secs(300),
        series_max: 1000,
        points_max: 1000,
        memory_max: 1 << 20,
    }
}

/// Returns an alert with a state, and with further fields in JSON.
pub(super) fn alert(state: &str, mut fields: serde_json::Value) -> Alert {
    fields["state"] = state.into();
    fields["active_at"] = 1000.into();
    serde_json::from_value(fields).unwrap()
}

/// Returns the state of a group whose only rule has these alerts.
pub(super) fn state_with(alerts: Vec<Alert>) -> GroupState {
    let rules = [("r".to_owned(), RuleState { alerts, ..RuleState::default() })].into();
    GroupState { rules, ..GroupState::default() }
}

/// Returns the result of an evaluation after which a group has these alerts.
pub(super) fn status_with(alerts: Vec<Alert>) -> GroupStatus {
    GroupStatus { state: state_with(alerts), ..GroupStatus::default() }
}
