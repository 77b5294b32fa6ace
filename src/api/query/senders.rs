//! `GET /api/v1/senders`: the senders that number their batches.

use std::collections::BTreeSet;

use actix_web::{
    HttpResponse,
    web::{self, Query},
};
use serde::Deserialize;

use super::{QueryParts, endpoints::respond};
use crate::{
    model::Span,
    query::{QueryError, SENDERS, SendersRequest, ask_all},
};

/// A selection of senders by name, prefix and idle time.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct SenderSelection {
    /// The name of a sender.
    agent: Option<String>,
    /// More names of senders.
    #[serde(default)]
    agents: BTreeSet<String>,
    /// A prefix of the senders' names.
    prefix: Option<String>,
    /// The minimum time since the sender's last batch, such as `7d`.
    idle: Option<String>,
    /// True when a removal changes nothing.
    #[serde(default)]
    pub(in crate::api) dry_run: bool,
}

impl SenderSelection {
    /// Returns true when the selection names senders or an idle time, as a removal must.
    pub(in crate::api) fn selects(&self) -> bool {
        self.agent.is_some() || !self.agents.is_empty() || self.idle.is_some()
    }

    /// Returns the request for a list.
    pub(in crate::api) fn request(&self) -> Result<SendersRequest, QueryError> {
        let idle_ms = match self.idle.as_deref().map(str::parse::<Span>) {
            None => None,
            Some(Ok(Span::Fixed(idle_ms))) => Some(idle_ms),
            Some(Ok(Span::Months(_)) | Err(_)) => {
                return Err(QueryError::Invalid(
                    "idle must be a duration such as 12h or 7d".into(),
                ));
            }
        };
        let names = self.agents.iter().chain(&self.agent).cloned().collect();
        let prefix = self.prefix.clone().unwrap_or_default();
        Ok(SendersRequest { names, prefix, idle_ms })
    }
}

pub(super) async fn senders(
    params: Result<Query<SenderSelection>, actix_web::Error>,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let params = params.map_err(|cause| QueryError::Invalid(cause.to_string()));
    let request = params.and_then(|selection| selection.request());
    respond("senders", request, parts, |request, parts, budget| {
        // The earliest time that the clock allows, as for a removal.
        let now = parts.clock.moment().earliest();
        if budget.others().is_none() {
            return Ok(request.list(&parts.store, now));
        }
        let own = || request.part(&parts.store, budget);
        request.join(ask_all(budget, (SENDERS, request), own)?, budget, now)
    })
    .await
}
