//! The deliveries of each alert, for readers: which receivers were notified, and when.
//!
//! Must never know: how notifications are decided or sent.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Groups, settings};
use crate::alerts::routing::Routing;

/// The delivery of an alert to an integration of a receiver. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertDelivery {
    /// The receiver's name.
    pub receiver: String,
    /// The key of the integration, such as `webhook/0`.
    pub integration: String,
    /// The time of the last notification with this alert that the integration confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// The time since which a notification with this alert is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_since: Option<i64>,
    /// True when the integration refused the pending notification.
    pub is_refused: bool,
}

/// The deliveries by the alerts' fingerprints.
pub type AlertDeliveries = BTreeMap<String, Vec<AlertDelivery>>;

impl Groups {
    /// Returns the deliveries of the firing alerts. There are at most as many as stored
    /// fingerprints, whose number the limit of members bounds.
    pub fn deliveries(&self, routing: &Routing) -> AlertDeliveries {
        let mut found = AlertDeliveries::new();
        for group in self.all.values() {
            let Some((_, receiver)) = settings(routing, group) else { continue };
            for (key, delivery) in &group.deliveries {
                let (confirmed, pending) = (&delivery.confirmed, &delivery.pending);
                for (alert, _) in group.members.iter().filter(|(_, member)| member.is_firing()) {
                    let has_confirmed =
                        confirmed.as_ref().filter(|sent| sent.firing.contains(alert));
                    let is_pending = pending.as_ref().filter(|sent| sent.alerts.contains(alert));
                    if has_confirmed.is_none() && is_pending.is_none() {
                        continue;
                    }
                    found.entry(alert.clone()).or_default().push(AlertDelivery {
                        receiver: receiver.name.clone(),
                        integration: key.clone(),
                        at: has_confirmed.map(|sent| sent.at),
                        pending_since: is_pending.map(|pending| pending.since),
                        is_refused: is_pending.is_some_and(|pending| pending.is_refused),
                    });
                }
            }
        }
        found
    }
}
