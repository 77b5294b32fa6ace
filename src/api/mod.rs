//! HTTP: routes, requests and responses.
//!
//! Must never know: how anything is computed or stored. `daemon` binds the address. The API has
//! areas by what a caller may do, each with a scope for its routes and with the parts that its
//! handlers need: `ingest` (samples), `query` (the store's own queries), `prometheus` and
//! `graphite` (queries by these APIs), `overview` (the daemon's state), `objects` (dashboards and
//! annotations), `alerting` (alerts and silences), `admin` (changes to the whole store), `access`
//! (keys and codes), `people` (users and sessions), `cluster` (the operation of a cluster),
//! `shards` (parts of the work, between nodes), and `health` and `page`, which are mostly open to
//! all. All areas share the other files: connections, `guard`, bodies, answers. `scope` lets
//! `caller` check the key, session or certificate of each request and record changes.

mod access;
mod admin;
mod alerting;
mod answer;
mod body;
mod caller;
mod cluster;
mod connection;
mod decompress;
mod graphite;
mod guard;
mod health;
mod ingest;
mod middleware;
mod objects;
mod overview;
mod page;
mod people;
mod prometheus;
mod query;
mod refusal;
mod scope;
mod shards;

pub use admin::AdminParts;
pub use alerting::AlertingParts;
pub use body::{Bodies, BodyLimits};
pub use caller::{AccessParts, KeyFailures, Logins, ProviderLogins};
pub use cluster::ClusterParts;
pub use connection::{Connections, OneAtATime};
pub(crate) use decompress::fuzz_decompress;
pub use guard::HostNames;
pub use ingest::{Collectors, IngestParts};
pub use middleware::receive;
pub use objects::ObjectsParts;
pub use overview::{OverviewLimits, OverviewParts};
pub(crate) use prometheus::fuzz_params;
pub(crate) use query::fuzz_query;
pub use query::{QueryParts, SparklineCache, Tails};
pub use shards::{HeldShard, HeldShards, ShardRouter, of_all_shards, routes as shard_routes};

use actix_web::web::{self, ServiceConfig};

use crate::{access::TrustedProxies, kept::LiveValue};
use scope::Scope;

/// The parts that the handlers of each area need. Clones are cheap.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct ApiParts {
    pub host_names: LiveValue<HostNames>,
    pub proxies: LiveValue<TrustedProxies>,
    pub access: AccessParts,
    pub bodies: Bodies,
    pub query: QueryParts,
    pub objects: ObjectsParts,
    pub alerting: AlertingParts,
    pub admin: AdminParts,
    pub overview: OverviewParts,
}

/// The API of one project for one HTTP worker.
#[derive(Debug, Clone)]
pub struct ProjectApi {
    /// The parts that the handlers need.
    pub parts: ApiParts,
    /// The collectors of the worker.
    pub collectors: Collectors,
}

impl ProjectApi {
    fn ingest(&self) -> IngestParts {
        let ApiParts { bodies, admin, .. } = &self.parts;
        IngestParts {
            collectors: self.collectors.clone(),
            bodies: bodies.clone(),
            hosts: admin.hosts.clone(),
            metrics: admin.metrics.clone(),
        }
    }
}

/// Registers the routes for one HTTP worker, with the APIs of the project `default` and of others.
pub fn routes(config: &mut ServiceConfig, default: &ProjectApi, others: &[ProjectApi]) {
    let ApiParts { host_names, proxies, access, admin, .. } = &default.parts;
    config
        .app_data(web::Data::new(host_names.clone()))
        .app_data(web::Data::new(proxies.clone()))
        .app_data(web::Data::new(admin.metrics.clone()))
        .default_service(web::to(page::unknown_path));
    let ingest = (default.ingest(), others.iter().map(ProjectApi::ingest).collect());
    ingest::routes(Scope::new(config, access, ingest));
    // The first matching route counts: routes of the page precede routes of Prometheus' API, which
    // precede routes of the store's own API.
    page::routes(Scope::new(config, access, ((), Vec::new())));
    macro_rules! of_projects {
        ($area:ident) => {
            (
                default.parts.$area.clone(),
                others.iter().map(|project| project.parts.$area.clone()).collect(),
            )
        };
    }
    prometheus::routes(Scope::new(config, access, of_projects!(query)));
    graphite::routes(Scope::new(config, access, of_projects!(query)));
    query::routes(Scope::new(config, access, of_projects!(query)));
    objects::routes(Scope::new(config, access, of_projects!(objects)));
    alerting::routes(Scope::new(config, access, of_projects!(alerting)));
    overview::routes(Scope::new(config, access, of_projects!(overview)));
    health::routes(Scope::new(config, access, of_projects!(admin)));
    admin::routes(Scope::new(config, access, of_projects!(admin)));
    if let ClusterParts(Some(control)) = &admin.cluster {
        config.app_data(web::Data::new(control.clone()));
        crate::cluster::serving::routes(config, control);
    }
    cluster::routes(Scope::new(config, access, (admin.cluster.clone(), Vec::new())));
    people::routes(Scope::new(config, access, (access.clone(), Vec::new())));
    access::routes(Scope::new(config, access, (access.clone(), Vec::new())));
}
