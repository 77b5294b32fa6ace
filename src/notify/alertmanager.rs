//! Posts alerts to the API of an Alertmanager, several per request.
//!
//! Must never know: which alerts are due, when a request is sent again.

use super::{
    http::{PostSettings, client_of, post_with},
    outcome::DeliveryOutcome,
};
use crate::alerts::{Alertmanager, ExternalIdentity, OutgoingAlert};

/// A client of one Alertmanager for several requests in a row. Certificates are read when the
/// client is created.
pub(crate) struct AlertmanagerClient<'a> {
    alertmanager: &'a Alertmanager,
    client: Result<ureq::Agent, DeliveryOutcome>,
}

impl<'a> AlertmanagerClient<'a> {
    pub(crate) fn new(alertmanager: &'a Alertmanager) -> Self {
        let client = client_of(&PostSettings::of(&alertmanager.http));
        Self { alertmanager, client }
    }

    /// Posts alerts with the external labels.
    pub(crate) fn send(
        &self,
        alerts: &[OutgoingAlert],
        external: &ExternalIdentity,
    ) -> DeliveryOutcome {
        let client = match &self.client {
            Ok(client) => client,
            Err(outcome) => return outcome.clone(),
        };
        let alerts: Vec<_> =
            alerts.iter().map(|alert| alert.with_external_labels(external)).collect();
        // Keys of maps are strings, so the serialization cannot fail.
        let body = serde_json::to_string(&alerts).unwrap_or_default();
        let Alertmanager { url, http } = self.alertmanager;
        let response =
            post_with(client, &PostSettings::of(http), &format!("{url}/api/v2/alerts"), body);
        response
            .map_or_else(|outcome| outcome, |response| DeliveryOutcome::Confirmed(response.summary))
    }
}
