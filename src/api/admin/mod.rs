//! Changes to the store as a whole, over HTTP: series, senders, hosts, the clock, snapshots,
//! preallocation, and the settings.
//!
//! Must never know: how a change is made.

mod audit;
mod clock;
mod erasure;
mod hosts;
mod log;
mod preallocation;
mod senders;
mod series;
mod settings;
mod snapshot;

use actix_web::http::Method;

use super::{body::Bodies, caller::AccessParts, cluster::ClusterParts, scope::Scope};
use crate::{
    actors::{BudgetReport, WriterHandle},
    clock::TrustedClock,
    kept::{KnownHosts, KnownRules, KnownSettings, LiveValue, NearNames, Snapshots},
    model::{ProjectName, SeriesLimits},
    query::QueryLimits,
    store::Store,
    telemetry::{Health, Metrics},
};

/// The parts that the handlers of changes and of the daemon's health need.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct AdminParts {
    pub access: AccessParts,
    pub store: Store,
    pub writer: WriterHandle,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    /// The metrics of the project's rules and alerts.
    pub of_rules: Metrics,
    pub health: Health,
    /// The rules of other projects, whose faults the daemon's health includes.
    pub others: Vec<(ProjectName, KnownRules)>,
    pub budget: BudgetReport,
    pub near_names: NearNames,
    pub hosts: KnownHosts,
    pub rules: KnownRules,
    pub snapshots: Snapshots,
    pub bodies: Bodies,
    pub series_limits: SeriesLimits,
    pub query_limits: LiveValue<QueryLimits>,
    pub settings: KnownSettings,
    pub cluster: ClusterParts,
}

/// The routes.
pub(super) fn routes(mut scope: Scope<'_, AdminParts>) {
    scope.route(Method::DELETE, "/api/v1/series", series::delete_matching);
    scope.route(Method::DELETE, "/api/v1/hosts", hosts::remove);
    scope.route(Method::POST, "/api/v1/admin/hosts/remove", hosts::remove_several);
    scope.route(Method::DELETE, "/api/v1/senders", senders::remove_matching);
    scope.route(Method::POST, "/api/v1/admin/senders/remove", senders::remove);
    scope.route(Method::POST, "/api/v1/admin/series/delete", series::delete);
    scope.route(Method::POST, "/api/v1/admin/series/rename", series::rename);
    scope.route(Method::POST, "/api/v1/admin/series/merge", series::merge);
    scope.route(Method::POST, "/api/v1/admin/preallocate", preallocation::preallocate);
    scope.route(Method::GET, "/api/v1/admin/clock", clock::show);
    scope.route(Method::POST, "/api/v1/admin/clock/confirm", clock::confirm);
    scope.route(Method::POST, "/api/v1/admin/snapshot", snapshot::snapshot);
    scope.route(Method::GET, "/api/v1/admin/log", log::show);
    scope.route(Method::GET, "/api/v1/admin/audit", audit::show);
    scope.route(Method::GET, "/api/v1/admin/settings", settings::show);
    scope.route(Method::POST, "/-/reload", settings::reload);
    scope.route(Method::PUT, "/-/reload", settings::reload);
}
