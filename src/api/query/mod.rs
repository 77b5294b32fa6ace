//! The store's own queries over HTTP: charts, documents, exports, series, search, hosts, senders,
//! pipelines and tails.
//!
//! Must never know: how an answer is computed.

mod cardinality;
mod endpoints;
mod hosts;
mod moved;
mod params;
mod senders;
mod series_search;
mod shards;
mod tail;

pub use hosts::SparklineCache;
pub(super) use moved::{MOVED, MovedQuestion};
pub(crate) use params::fuzz_query;
pub(super) use params::{range_between, selector};
pub(super) use senders::SenderSelection;
pub(super) use series_search::{FIND, FindParams};
pub(super) use shards::{
    CHART, ChartQuestion, DocumentsQuestion, FACETS, SERIES_LIST, SelectorQuestion,
};
pub use tail::Tails;

use std::time::Duration;

use actix_web::http::Method;
use tokio::sync::Semaphore;

use super::{body::Bodies, caller::AccessParts, scope::Scope};
use crate::{
    clock::TrustedClock,
    kept::{KnownCardinality, KnownHosts, KnownRules, KnownSilences, LiveValue},
    model::{UnixMillis, graphite::Template},
    query::{PromqlSettings, QueryLimits, QueryResources},
    store::Store,
    telemetry::Metrics,
};

/// The parts that the handlers of queries need, including Prometheus' API.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct QueryParts {
    pub access: AccessParts,
    pub store: Store,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub bodies: Bodies,
    pub hosts: KnownHosts,
    pub rules: KnownRules,
    pub silences: KnownSilences,
    /// The addresses of Alertmanagers that receive alerts.
    pub alertmanagers: LiveValue<Vec<String>>,
    /// The templates that split Graphite's paths.
    pub graphite_templates: LiveValue<Vec<Template>>,
    pub limits: LiveValue<QueryLimits>,
    pub promql: LiveValue<PromqlSettings>,
    pub resources: QueryResources,
    /// The permits of concurrent queries.
    pub permits: LiveValue<Semaphore>,
    /// The timeout of queries other than PromQL.
    pub timeout: LiveValue<Duration>,
    pub client_timeout: Duration,
    /// The time at which the daemon started.
    pub started: UnixMillis,
    /// The maximum time by which a sample may be ahead of the clock.
    pub future_skew: Duration,
    pub tails: Tails,
    pub cardinality: KnownCardinality,
    pub lines: SparklineCache,
}

/// The routes.
pub(super) fn routes(mut scope: Scope<'_, QueryParts>) {
    scope.compressed(Method::GET, "/api/v1/chart", endpoints::chart);
    scope.compressed(Method::GET, "/api/v1/documents", endpoints::documents);
    scope.compressed(Method::GET, "/api/v1/storage/document", endpoints::stored_document);
    scope.compressed(Method::POST, "/api/v1/aggregate", endpoints::aggregate);
    scope.compressed(Method::POST, "/api/v1/held", endpoints::series_coverage);
    scope.compressed(Method::GET, "/api/v1/series", endpoints::series);
    scope.compressed(Method::GET, "/api/v1/senders", senders::senders);
    scope.compressed(Method::GET, "/api/v1/cardinality", cardinality::cardinality);
    scope.compressed(Method::GET, "/api/v1/find", series_search::find);
    scope.compressed(Method::GET, "/api/v1/facets", series_search::facets);
    scope.compressed(Method::GET, "/api/v1/moved", moved::moved);
    scope.compressed(Method::GET, "/api/v1/hosts", hosts::hosts);
    scope.compressed(Method::GET, "/api/v1/hosts/sparklines", hosts::sparklines);
    // Exports and tails are not compressed: programs read exports as fast as they are written, and
    // compression would delay a tail's lines.
    scope.route(Method::GET, "/api/v1/export", endpoints::export);
    scope.route(Method::GET, "/api/v1/tail", tail::tail);
}
