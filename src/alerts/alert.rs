//! An alert, as it is remembered between evaluations.
//!
//! Must never know: what makes it change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::UnixMillis;

/// Names and values of labels, in order of the names.
pub type LabelSet = BTreeMap<String, String>;

/// By what Alertmanager's API tells alerts apart: FNV-1a of the labels, as `model.LabelSet` there
/// has it (<http://www.isthe.com/chongo/tech/comp/fnv>).
pub fn fingerprint(labels: &LabelSet) -> String {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    /// Stands behind each name and value.
    const END: &[u8] = &[255];
    let texts =
        labels.iter().flat_map(|(name, value)| [name.as_bytes(), END, value.as_bytes(), END]);
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    format!("{:016x}", texts.flatten().fold(BASIS, step))
}

/// Somebody looks after an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// Who.
    pub by: String,
    /// What that person says.
    pub comment: String,
    /// Since when, Unix milliseconds.
    pub at: i64,
    /// The time at which it ends; `None`: with the alert.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

impl Acknowledgement {
    /// Whether its time is over.
    pub fn is_over(&self, now: UnixMillis) -> bool {
        self.until.is_some_and(|until| until <= now.0)
    }
}

/// What an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// It was active, or may be missed.
    Inactive,
    /// It is active, and not for long enough.
    Pending,
    /// It is told to people.
    Firing,
    /// Nothing is measured, and that is told to people.
    NoData,
}

impl AlertState {
    /// The word in labels and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Pending => "pending",
            Self::Firing => "firing",
            Self::NoData => "no_data",
        }
    }

    /// Whether people are told of it.
    pub fn is_told(self) -> bool {
        matches!(self, Self::Firing | Self::NoData)
    }
}

/// An alert. Times are Unix milliseconds, of evaluations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// Which alert of its rule it is.
    pub labels: LabelSet,
    /// What people are told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: LabelSet,
    /// What it is.
    pub state: AlertState,
    /// The value when it was active last.
    #[serde(with = "value")]
    pub value: f64,
    /// Since when it is pending or fires, or nothing is measured.
    pub active_at: i64,
    /// Since when it is told to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired_at: Option<i64>,
    /// When it ended last, if it was told to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<i64>,
    /// Since when it fires on though its series is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_firing_since: Option<i64>,
    /// Since when nothing is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<i64>,
    /// Who looks after it, while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledgement>,
}

impl Alert {
    /// One that is not active.
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

    /// Whether it is more than remembered.
    pub fn is_active(&self) -> bool {
        self.state != AlertState::Inactive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_alertmanagers() {
        // As amtool prints it of an alert with this label.
        let labels = [("alertname".to_owned(), "High".to_owned())].into();
        assert_eq!(fingerprint(&labels), "abb9751eae083d8c");
        assert_eq!(fingerprint(&LabelSet::new()), "cbf29ce484222325");
    }
}

/// JSON has no infinity and no NaN: values are texts.
pub(super) mod value {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
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
