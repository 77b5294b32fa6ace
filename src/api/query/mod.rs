//! The store's own queries over HTTP: charts, documents, pages of exports, series, what there is to
//! ask for, pipelines, tails.
//!
//! Must never know: how an answer is found.

mod endpoints;
mod finding;
mod hosts;
mod params;
mod tail;

pub use hosts::Lines;
pub(crate) use params::fuzz_query;
pub(super) use params::selector;
pub use tail::Tails;

use std::{sync::Arc, time::Duration};

use actix_web::http::Method;
use tokio::sync::Semaphore;

use super::{body::Bodies, scope::Scope};
use crate::{
    clock::TrustedClock,
    kept::{KnownHosts, KnownRules, KnownSilences},
    model::UnixMillis,
    query::{PromqlSettings, QueryLimits, QueryResources},
    store::Store,
    telemetry::Metrics,
};

/// What the handlers of queries need, those of Prometheus' API included.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types say it")]
pub struct QueryParts {
    pub store: Store,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub bodies: Bodies,
    pub hosts: KnownHosts,
    pub rules: KnownRules,
    pub silences: KnownSilences,
    /// Alertmanagers that are told of alerts.
    pub alertmanagers: Arc<[String]>,
    pub limits: QueryLimits,
    pub promql: PromqlSettings,
    pub resources: QueryResources,
    /// Queries under way, at most.
    pub places: Arc<Semaphore>,
    /// How long a query may take that is none of PromQL's.
    pub timeout: Duration,
    pub client_timeout: Duration,
    /// The time at which the daemon was started.
    pub started: UnixMillis,
    pub future_skew: Duration,
    pub tails: Tails,
    pub lines: Lines,
}

/// The routes.
pub(super) fn routes(mut scope: Scope<'_, QueryParts>) {
    scope.compressed(Method::GET, "/api/v1/chart", endpoints::chart);
    scope.compressed(Method::GET, "/api/v1/documents", endpoints::documents);
    scope.compressed(Method::GET, "/api/v1/storage/document", endpoints::stored);
    scope.compressed(Method::POST, "/api/v1/aggregate", endpoints::aggregate);
    scope.compressed(Method::POST, "/api/v1/held", endpoints::held);
    scope.compressed(Method::GET, "/api/v1/series", endpoints::series);
    scope.compressed(Method::GET, "/api/v1/find", finding::find);
    scope.compressed(Method::GET, "/api/v1/facets", finding::facets);
    scope.compressed(Method::GET, "/api/v1/hosts", hosts::hosts);
    scope.compressed(Method::GET, "/api/v1/hosts/sparklines", hosts::sparklines);
    // As they are: what is exported is read by programs as fast as it is made, and a tail's lines
    // must not wait for more of them.
    scope.route(Method::GET, "/api/v1/export", endpoints::export);
    scope.route(Method::GET, "/api/v1/tail", tail::tail);
}
