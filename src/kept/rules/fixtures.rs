//! The rules and states of tests.

use std::time::Duration;

use super::{GroupStatus, KnownRules, RuleSources};
use crate::{
    alerts::{Alert, GroupState, RuleState},
    query::PromqlSettings,
    telemetry::Metrics,
};

/// Returns rules without files and without results.
pub(super) fn empty_rules() -> KnownRules {
    let settings = PromqlSettings {
        timeout: Duration::from_secs(120),
        lookback: Duration::from_secs(300),
        series_max: 1000,
        points_max: 1000,
        memory_max: 1 << 20,
    };
    KnownRules::open(RuleSources::default(), &settings, Metrics::new().unwrap())
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
