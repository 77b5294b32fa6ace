//! An alert between evaluations: its labels, its state and the times of its changes.
//!
//! Must never know: the causes of its changes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::UnixMillis;

/// The label of the alert that represents all alerts of its rule beyond the limit.
pub const LEFT_OUT: &str = "left_out";

/// Labels by name.
pub type LabelSet = BTreeMap<String, String>;

/// Returns the fingerprint by which Alertmanager's API identifies an alert: FNV-1a of the labels,
/// as `model.LabelSet` computes it (<http://www.isthe.com/chongo/tech/comp/fnv>).
pub fn fingerprint(labels: &LabelSet) -> String {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    /// The separator after each name and value.
    const END: &[u8] = &[255];
    let texts =
        labels.iter().flat_map(|(name, value)| [name.as_bytes(), END, value.as_bytes(), END]);
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    format!("{:016x}", texts.flatten().fold(BASIS, step))
}

/// An acknowledgement: somebody is working on an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// The name of the person.
    pub by: String,
    /// The comment of that person.
    pub comment: String,
    /// The time of the acknowledgement, Unix milliseconds.
    pub at: i64,
    /// The time at which it expires; `None`: when the alert ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

impl Acknowledgement {
    /// Returns whether the acknowledgement has expired.
    pub fn is_expired(&self, now: UnixMillis) -> bool {
        self.until.is_some_and(|until| until <= now.0)
    }
}

/// The state of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// The alert has ended, or its series is only watched for missing samples.
    Inactive,
    /// The alert is active, but not for long enough.
    Pending,
    /// The alert is active, and receivers are notified.
    Firing,
    /// The samples are missing, and receivers are notified of the missing samples.
    NoData,
}

impl AlertState {
    /// Returns the word for the state in labels and responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Pending => "pending",
            Self::Firing => "firing",
            Self::NoData => "no_data",
        }
    }

    /// Returns whether receivers are notified in this state.
    pub fn is_notified(self) -> bool {
        matches!(self, Self::Firing | Self::NoData)
    }
}

/// An alert. Times are those of evaluations, in Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// The labels, which identify the alert within its rule.
    pub labels: LabelSet,
    /// The expanded annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: LabelSet,
    /// The state.
    pub state: AlertState,
    /// The value at the last evaluation at which it was active.
    #[serde(with = "value")]
    pub value: f64,
    /// The time since which it has been pending or firing, or samples have been missing.
    pub active_at: i64,
    /// The time since which it has been firing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired_at: Option<i64>,
    /// The time of its last end, if receivers were notified of the alert.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<i64>,
    /// The time since which it only fires because of `keep_firing_for`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_firing_since: Option<i64>,
    /// The time since which samples have been missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<i64>,
    /// The acknowledgement, until the alert ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledgement>,
}

impl Alert {
    /// Creates an inactive alert.
    pub(super) fn inactive(labels: LabelSet) -> Self {
        Self {
            labels,
            annotations: LabelSet::new(),
            state: AlertState::Inactive,
            value: f64::NAN,
            active_at: 0,
            fired_at: None,
            resolved_at: None,
            keep_firing_since: None,
            missing_since: None,
            acknowledged: None,
        }
    }

    /// Returns whether the alert is pending, firing, or reports missing samples.
    pub fn is_active(&self) -> bool {
        self.state != AlertState::Inactive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_equal_those_of_alertmanager() {
        // This is the fingerprint that amtool prints for an alert with this label.
        let labels = [("alertname".to_owned(), "High".to_owned())].into();
        assert_eq!(fingerprint(&labels), "abb9751eae083d8c");
        assert_eq!(fingerprint(&LabelSet::new()), "cbf29ce484222325");
    }
}

/// Values are stored as texts, because JSON has neither infinity nor NaN.
pub(super) mod value {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(in super::super) fn serialize<S: Serializer>(
        value: &f64,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<f64, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}
