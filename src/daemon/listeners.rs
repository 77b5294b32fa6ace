//! The HTTP service, the Graphite listeners, and the roles that collect samples for them.
//!
//! Must never know: the other roles, and the order of the stop.

use std::{collections::HashSet, net::TcpListener, sync::Arc};

use actix::{Actor, Addr, Arbiter};
use actix_server::ServerHandle;
use actix_web::{
    App,
    middleware::{Condition, from_fn},
    web,
};
use anyhow::Context;

use super::{notice_changes, parts::machine_name, serving::Serving};
use crate::{
    access::Scope,
    actors::{
        AuditKeeper, Collector, CollectorParts, CollectorSettings, GraphiteClients,
        GraphiteListeners, GraphiteSockets, GraphiteTimeouts, GraphiteTls, IngestTally, Lifeline,
        Lifelines, SelfSampler, SelfSamplerParts, SharedDiskQuota, SharedQuota, SparklineRefresher,
        WriterHandle,
    },
    api::{self, ApiParts, Collectors, HeldShards, OverviewParts, ProjectApi, ShardRouter},
    clock::{Clock, SystemClock, TrustedClock},
    cluster::{self, Lease},
    config::{LiveSettings, Settings, bounds},
    ingest::remote_write::Families,
    kept::LiveValue,
    model::SeriesLimits,
    store::{Store, StoreLimits},
    telemetry::Metrics,
    tls::ServerTls,
};

/// The values that all listeners and collectors use, also after a reload changes them.
pub(super) struct ReceivingParts {
    collectors: LiveValue<CollectorSettings>,
    tls: LiveValue<Option<ServerTls>>,
    /// The clients that may send Graphite's protocol over TLS.
    graphite_clients: LiveValue<Option<HashSet<String>>>,
    /// The other shards of the store, if it has several.
    others: Option<Arc<ShardRouter>>,
}

impl ReceivingParts {
    pub(super) fn new(
        settings: &mut LiveSettings,
        tls: LiveValue<Option<ServerTls>>,
        others: Option<Arc<ShardRouter>>,
    ) -> Self {
        let graphite_clients = settings.derive(graphite_clients);
        Self { collectors: settings.derive(collector_settings), tls, graphite_clients, others }
    }
}

/// Returns the role that writes refusals to the audit.
pub(super) fn audit_keeper(
    parts: &ApiParts,
    clock: &Arc<dyn Clock>,
    lifelines: &Lifelines,
) -> AuditKeeper {
    AuditKeeper::new(parts.access.audit.clone(), clock.clone(), lifelines.for_role("audit keeper"))
}

/// Returns the names of the clients that may send Graphite's protocol over TLS. `None` allows all
/// clients: without access control, or when clients need no certificate.
fn graphite_clients(settings: &Settings) -> Option<HashSet<String>> {
    let is_asked = !settings.tls.client_ca_file.as_os_str().is_empty();
    (settings.security.access && is_asked).then(|| settings.client_scopes.with(Scope::Ingest))
}

/// Returns the settings of all collectors.
fn collector_settings(settings: &Settings) -> CollectorSettings {
    let StoreLimits { series_max, sender_series_max, .. } = bounds::store_limits(settings);
    CollectorSettings {
        sender_series_max,
        series_max,
        future_skew: bounds::FUTURE_SKEW,
        out_of_order_window: settings.ingest.out_of_order_window,
        graphite_templates: settings.graphite_templates.clone().into(),
        ha_senders: settings.ingest.ha_senders.clone(),
        distributions: settings.distributions.clone(),
    }
}

fn collector_parts(
    receiving: &ReceivingParts,
    parts: &OverviewParts,
    (quota, disk): (Option<SharedQuota>, Option<SharedDiskQuota>),
) -> CollectorParts {
    let (parts, tally) = (&parts.admin, parts.published.ingest.clone());
    CollectorParts {
        tally,
        store: parts.store.clone(),
        writer: parts.writer.clone(),
        clock: parts.clock.clone(),
        metrics: parts.metrics.clone(),
        series_limits: SeriesLimits::default(),
        request_series_max: bounds::REQUEST_SERIES_MAX,
        settings: receiving.collectors.clone(),
        families: Families::default(),
        quota,
        disk,
        others: receiving.others.clone().map(|others| others as _),
    }
}

/// Returns the parts of the collector of a shard after the first one.
pub(super) fn shard_collector_parts(
    settings: &mut LiveSettings,
    store: Store,
    writer: WriterHandle,
    (clock, metrics, tally): (&TrustedClock, &Metrics, IngestTally),
) -> CollectorParts {
    CollectorParts {
        tally,
        store,
        writer,
        clock: clock.clone(),
        metrics: metrics.clone(),
        series_limits: SeriesLimits::default(),
        request_series_max: bounds::REQUEST_SERIES_MAX,
        settings: settings.derive(collector_settings),
        families: Families::default(),
        quota: None,
        disk: None,
        others: None,
    }
}

/// Starts a collector on its own thread, so that no other role waits while it reads large messages.
fn start_collector(
    parts: CollectorParts,
    lifeline: Lifeline,
    arbiters: &mut Vec<Arbiter>,
) -> Addr<Collector> {
    let arbiter = Arbiter::new();
    let collector =
        Collector::start_in_arbiter(&arbiter.handle(), move |_| Collector::new(parts, lifeline));
    arbiters.push(arbiter);
    collector
}

pub(super) fn start_graphite(
    sockets: &GraphiteSockets,
    settings: &Settings,
    receiving: &ReceivingParts,
    parts: &ApiParts,
    lifelines: &Lifelines,
    arbiters: &mut Vec<Arbiter>,
) -> anyhow::Result<GraphiteListeners> {
    if sockets.is_empty() {
        return Ok(GraphiteListeners::default());
    }
    let lifeline = lifelines.for_role("Graphite collector");
    let collector = collector_parts(receiving, &parts.overview, (None, None));
    let collector = start_collector(collector, lifeline, arbiters);
    let timeouts = GraphiteTimeouts {
        first: settings.server.client_timeout,
        handshake: bounds::handshake_timeout(settings),
    };
    let metrics = parts.admin.metrics.clone();
    let clients = GraphiteClients {
        names: receiving.graphite_clients.clone(),
        clock: parts.admin.clock.clone(),
        metrics: metrics.clone(),
    };
    let tls = GraphiteTls { server: receiving.tls.clone(), clients };
    GraphiteListeners::start(sockets, timeouts, tls, collector, metrics)
        .context("start the Graphite listeners")
}

/// Starts the role that samples the daemon itself.
pub(super) fn start_self_sampler(
    settings: &mut LiveSettings,
    receiving: &ReceivingParts,
    parts: &ApiParts,
    lifelines: &Lifelines,
    arbiters: &mut Vec<Arbiter>,
) -> Addr<SelfSampler> {
    let lifeline = lifelines.for_role("collector of the daemon's own samples");
    let admin = parts.admin.clone();
    let sampler = SelfSampler::new(SelfSamplerParts {
        collector: start_collector(
            collector_parts(receiving, &parts.overview, (None, None)),
            lifeline,
            arbiters,
        ),
        read: Box::new(move || admin.readings()),
        health: parts.admin.health.clone(),
        lifeline: lifelines.for_role("self-sampler"),
        host: machine_name().unwrap_or_else(|| "localhost".to_owned()),
        interval: settings.derive(|settings| settings.telemetry.interval),
        started: SystemClock.now(),
    });
    let sampler = sampler.start();
    notice_changes(settings, "the self-sampler", sampler.clone().recipient());
    sampler
}

/// Returns the role that keeps the sparklines of all hosts of all projects up to date.
pub(super) fn sparkline_refresher(
    projects: &[ApiParts],
    lifelines: &Lifelines,
) -> SparklineRefresher {
    let all: Vec<_> = projects.iter().map(|parts| parts.query.clone()).collect();
    let refresh = move || {
        let refreshed = all.iter().map(|query| query.lines.refresh(query));
        // After a failure in one project, the remaining projects wait for the next turn, too.
        refreshed.collect::<Result<(), _>>().map_err(|cause| cause.to_string())
    };
    SparklineRefresher::new(refresh, lifelines.for_role("sparkline refresher"))
}

/// Returns the maximum number of blocking threads of an HTTP worker: all queries and tails may run
/// on the same worker, in addition to one thread for each other kind of work. Threads begin when
/// they are needed.
const fn blocking_threads() -> usize {
    // One thread each for metrics, a snapshot, a change, the clock, a large body, a host, pings, a
    // dashboard or annotation, storage, status, rules.
    const OTHERS: usize = 11;
    bounds::QUERIES_MAX + bounds::TAILS_MAX + OTHERS
}

/// The parts of a project's API, from which each HTTP worker starts a collector.
#[derive(Clone)]
struct CollectingParts {
    parts: ApiParts,
    collector: CollectorParts,
    large: Addr<Collector>,
}

impl CollectingParts {
    fn start(
        settings: &Settings,
        receiving: &ReceivingParts,
        parts: &ApiParts,
        lifelines: &Lifelines,
        arbiters: &mut Vec<Arbiter>,
    ) -> Self {
        let lifeline = lifelines.for_role("collector of large bodies");
        let project = settings.project(parts.admin.store.project());
        let disk = project.disk_bytes_max().map(SharedDiskQuota::new);
        let quotas = (project.samples_per_second.map(SharedQuota::new), disk);
        let collector = collector_parts(receiving, &parts.overview, quotas);
        let large = start_collector(collector.clone(), lifeline, arbiters);
        Self { parts: parts.clone(), collector, large }
    }

    fn for_worker(&self, lifelines: &Lifelines) -> ProjectApi {
        let lifeline = lifelines.for_role("collector");
        let worker = Collector::new(self.collector.clone(), lifeline).start();
        let collectors = Collectors { worker, large: self.large.clone() };
        ProjectApi { parts: self.parts.clone(), collectors }
    }
}

pub(super) fn start_server(
    settings: &Settings,
    receiving: &ReceivingParts,
    listener: &TcpListener,
    projects: &[ApiParts],
    lease: Option<(Lease, HeldShards)>,
    (lifelines, arbiters): (&Lifelines, &mut Vec<Arbiter>),
) -> anyhow::Result<ServerHandle> {
    let collecting: Vec<_> = projects
        .iter()
        .map(|parts| CollectingParts::start(settings, receiving, parts, lifelines, arbiters))
        .collect();
    let parts = projects.first().context("the project default is missing")?;
    let collector_lifelines = lifelines.clone();
    let (is_held, is_split) = (lease.is_some(), receiving.others.is_some());
    let lease = lease.map(|(lease, held)| (web::Data::new(lease), held));
    let app = move || {
        let projects = collecting.iter().map(|parts| parts.for_worker(&collector_lifelines));
        let projects: Vec<_> = projects.collect();
        let while_held = Condition::new(is_held, from_fn(cluster::lease::while_held));
        let of_all_shards = Condition::new(is_split, from_fn(api::of_all_shards));
        let app = App::new().wrap(of_all_shards).wrap(while_held).wrap(from_fn(api::receive));
        app.configure(|config| {
            if let Some((lease, held)) = &lease {
                config.app_data(lease.clone());
                api::shard_routes(config, held);
            }
            if let Some((default, others)) = projects.split_first() {
                api::routes(config, default, others);
            }
        })
    };
    let (tls, metrics) = (receiving.tls.clone(), parts.admin.metrics.clone());
    let serving = Serving { tls, metrics, threads: blocking_threads() };
    serving.start(settings, listener, app, lifelines.for_role("HTTP server"))
}
