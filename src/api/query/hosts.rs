//! `GET /api/v1/hosts` and `GET /api/v1/hosts/sparklines`.

use std::sync::Arc;

use actix_web::{
    HttpResponse,
    web::{self, Query},
};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::endpoints::respond;
use crate::{
    api::QueryParts,
    kept::KnownHosts,
    query::{HostsAnswer, QueryError, Sparklines, run_until_settled},
};

/// Which hosts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// One of them; all when it is left out.
    host: Option<String>,
}

pub(super) async fn hosts(
    params: Result<Query<Which>, actix_web::Error>,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let params =
        params.map(Query::into_inner).map_err(|cause| QueryError::Invalid(cause.to_string()));
    respond("hosts", params, parts, |which, parts, budget| {
        let (now, hosts) = parts.hosts.list(which.host.as_deref());
        budget.take(HostsAnswer::bytes(&hosts))?;
        let after = (KnownHosts::LATE_AFTER_MS, KnownHosts::DOWN_AFTER_MS);
        Ok(HostsAnswer::new(hosts, after, now))
    })
    .await
}

/// The lines of all hosts, which one request makes for all. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Lines(Arc<SharedLines>);

#[derive(Debug, Default)]
struct SharedLines {
    lines: Sparklines,
    /// Who makes the next answer: the others wait for it, and hold no thread meanwhile.
    turn: Mutex<()>,
}

impl Lines {
    /// Makes them ready for whoever asks next, as one more query.
    ///
    /// # Errors
    /// When the store cannot be read, or the budget is used up.
    pub fn refresh(&self, parts: &QueryParts) -> Result<(), QueryError> {
        let budget = parts.resources.budget(parts.timeout);
        let now = parts.clock.moment().earliest();
        let run = || self.0.lines.prepare(&parts.store, &budget, now);
        run_until_settled(&budget, run, QueryError::is_settled)
    }
}

/// `GET /api/v1/hosts/sparklines`.
pub(super) async fn sparklines(
    params: Result<Query<Nothing>, actix_web::Error>,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let params =
        params.map(Query::into_inner).map_err(|cause| QueryError::Invalid(cause.to_string()));
    let shared = parts.lines.0.clone();
    let is_there = shared.lines.latest(parts.clock.moment().earliest()).is_some();
    let _turn = if is_there { None } else { Some(shared.turn.lock().await) };
    respond("sparklines", params, parts, |_, parts, budget| {
        let now = parts.clock.moment().earliest();
        parts.lines.0.lines.answer(&parts.store, budget, now)
    })
    .await
}

/// No parameters.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}
