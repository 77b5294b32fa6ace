//! `GET /api/v1/hosts` and `GET /api/v1/hosts/sparklines`.

use std::{sync::Arc, time::Duration};

use actix_web::{
    HttpResponse,
    web::{self, Query},
};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::endpoints::respond;
use crate::{
    api::QueryParts,
    kept::{KnownHosts, ListedHosts},
    query::{HostAlerts, HostsAnswer, QueryError, Sparklines, run_with_retries},
};

/// The time for which a refresh waits for other shards. Requests for sparklines wait meanwhile.
const REFRESH_SHARDS_MAX: Duration = Duration::from_secs(20);

/// The parameters of `GET /api/v1/hosts`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostsParams {
    /// The name of a host; all hosts without it.
    host: Option<String>,
    /// The version of an earlier answer: the changes since then.
    since: Option<String>,
}

pub(super) async fn hosts(
    params: Result<Query<HostsParams>, actix_web::Error>,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let params =
        params.map(Query::into_inner).map_err(|cause| QueryError::Invalid(cause.to_string()));
    respond("hosts", params, parts, |params, parts, budget| {
        if params.host.is_some() && params.since.is_some() {
            let message = "host and since: use one of them".to_owned();
            return Err(QueryError::Invalid(message));
        }
        let since = params.since.as_deref().map(str::parse).transpose();
        let since = since.map_err(QueryError::Invalid)?;
        let ListedHosts { at, version, totals, changed } =
            parts.hosts.listed(params.host.as_deref(), since);
        budget.reserve(HostsAnswer::bytes(&changed.hosts))?;
        let after = (KnownHosts::LATE_AFTER_MS, KnownHosts::DOWN_AFTER_MS);
        let listed = HostsAnswer::new(changed.hosts, after, at);
        let alerts = match &params.host {
            None => firing_alerts(parts),
            Some(_) => HostAlerts::new(),
        };
        budget.reserve(HostsAnswer::bytes_beside_hosts(&changed.pings, &alerts))?;
        Ok(HostsAnswer {
            is_partial: totals.is_some(),
            totals: totals.unwrap_or(listed.totals),
            version: version.to_string(),
            pings: changed.pings,
            alerts,
            ..listed
        })
    })
    .await
}

/// Counts the firing alerts of hosts that are not silenced.
fn firing_alerts(parts: &QueryParts) -> HostAlerts {
    let (silences, external) = (parts.silences.current(), parts.rules.external());
    let now = parts.clock.now();
    parts.rules.firing_by_host(&|labels| {
        // Silences match alerts with their external labels.
        !silences.silencing(&external.add_labels(labels), now).is_empty()
    })
}

/// The sparklines of all hosts, which concurrent requests share. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct SparklineCache(Arc<SharedLines>);

#[derive(Debug, Default)]
struct SharedLines {
    lines: Sparklines,
    /// The turn to compute the next answer; other requests wait without holding a thread.
    turn: Mutex<()>,
}

impl SparklineCache {
    /// Computes the sparklines for the next request, as a query.
    ///
    /// # Errors
    /// When the store cannot be read, or the budget is exceeded.
    pub fn refresh(&self, parts: &QueryParts) -> Result<(), QueryError> {
        let budget = parts.resources.budget(*parts.timeout.get());
        let budget = budget.waiting_for_shards(REFRESH_SHARDS_MAX);
        let now = parts.clock.moment().earliest();
        let run = || self.0.lines.prepare(&parts.store, &budget, now);
        run_with_retries(&budget, run, QueryError::is_transient)
    }
}

/// `GET /api/v1/hosts/sparklines`.
pub(super) async fn sparklines(
    params: Result<Query<NoParams>, actix_web::Error>,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let params =
        params.map(Query::into_inner).map_err(|cause| QueryError::Invalid(cause.to_string()));
    let shared = parts.lines.0.clone();
    let is_cached = shared.lines.latest(parts.clock.moment().earliest()).is_some();
    let _turn = if is_cached { None } else { Some(shared.turn.lock().await) };
    respond("sparklines", params, parts, |_, parts, budget| {
        let now = parts.clock.moment().earliest();
        parts.lines.0.lines.answer(&parts.store, budget, now)
    })
    .await
}

/// The parameters of a request without parameters.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParams {}
