//! The HTTP server, the Graphite listeners, and the roles that collect samples for them.
//!
//! Must never know: the other roles, and the order of the stop.

use std::{net::TcpListener, sync::Arc};

use actix::{Actor, Addr, Arbiter};
use actix_http::{HttpService, Protocol, error::DispatchError};
use actix_server::{Server, ServerHandle};
use actix_service::{IntoServiceFactory, ServiceFactoryExt, fn_service, map_config};
use actix_web::{App, dev::AppConfig, middleware::from_fn};
use anyhow::Context;
use tokio::{net::TcpStream, sync::Semaphore};

use super::binding::cannot_listen;
use crate::{
    actors::{
        CannotListen, Collector, CollectorParts, GraphiteListeners, GraphiteSettings, Lifeline,
        Lifelines, LineKeeper, Observed, SelfSampler, SelfSamplerParts, WriterHandle,
    },
    api::{
        self, AdminParts, AlertingParts, ApiParts, Bodies, BodyLimits, Collectors, Connections,
        HostNames, Lines, ObjectsParts, OneAtATime, OverviewLimits, OverviewParts, QueryParts,
        Tails,
    },
    clock::{Clock, SystemClock, TrustedClock},
    config::{Limits, Settings, bounds},
    ingest::memory::IngestMemory,
    kept::{
        Annotations, KnownHosts, KnownPosted, KnownRules, KnownSilences, SnapshotSettings,
        Snapshots,
    },
    model::SeriesLimits,
    notify::ReceiverTests,
    query::{QueryLimits, QueryResources, Scheduler},
    store::{SnapshotFolder, Store, StoreLimits},
    telemetry::Metrics,
};

/// The shared state of hosts, rules and silences.
pub(super) struct Known {
    pub(super) hosts: KnownHosts,
    pub(super) rules: KnownRules,
    pub(super) silences: KnownSilences,
}

impl Known {
    pub(super) fn open(
        settings: &Settings,
        store: &Store,
        clock: &TrustedClock,
        metrics: &Metrics,
    ) -> anyhow::Result<Self> {
        let hosts = KnownHosts::open(store, settings.limits.hosts_max, clock.clone())
            .context("read the hosts that are known")?;
        let sources = settings.rule_sources(machine_name().as_deref());
        let rules = KnownRules::open(sources, settings.promql_settings(), metrics.clone());
        let silences =
            KnownSilences::open(store, bounds::SILENCES_KEPT).context("read the silences")?;
        Ok(Self { hosts, rules, silences })
    }
}

pub(super) fn api_parts(
    settings: &Settings,
    store: Store,
    writer: &WriterHandle,
    clock: TrustedClock,
    metrics: Metrics,
    observed: Observed,
    Known { hosts, rules, silences }: Known,
) -> ApiParts {
    let snapshots = SnapshotSettings {
        folder: SnapshotFolder::new(settings.storage.data_dir.join(&settings.storage.snapshot_dir)),
        policy: bounds::snapshot_policy(settings),
        reserve_bytes: 2 * settings.storage.journal_bytes_max as u64,
    };
    let bodies = bodies(settings);
    let Limits { query_series_max, query_points_max, query_memory_max, .. } = settings.limits;
    let limits = QueryLimits::new(query_series_max, query_points_max);
    let scheduler = Scheduler::for_this_machine();
    let query = QueryParts {
        store: store.clone(),
        clock: clock.clone(),
        metrics: metrics.clone(),
        bodies: bodies.clone(),
        hosts: hosts.clone(),
        rules: rules.clone(),
        silences: silences.clone(),
        alertmanagers: settings.alertmanagers.iter().map(|own| own.url.clone()).collect(),
        limits,
        promql: settings.promql_settings(),
        resources: QueryResources::new(scheduler, query_memory_max),
        places: Arc::new(Semaphore::new(settings.limits.queries_max)),
        timeout: settings.limits.query_timeout,
        client_timeout: settings.server.client_timeout,
        started: SystemClock.now(),
        future_skew: settings.ingest.future_skew,
        tails: Tails::new(bounds::TAILS_MAX),
        lines: Lines::default(),
    };
    let objects = ObjectsParts {
        store: store.clone(),
        clock: clock.clone(),
        metrics: metrics.clone(),
        bodies: bodies.clone(),
        hosts: hosts.clone(),
        annotations: Annotations::new(&store, bounds::ANNOTATIONS_MAX),
    };
    let posted = KnownPosted::new(metrics.clone());
    let alerting = alerting_parts(&rules, silences, posted, &clock, &bodies);
    let snapshots =
        Snapshots::new(store.clone(), Arc::new(clock.clone()), metrics.clone(), snapshots);
    let admin = AdminParts {
        store,
        writer: writer.clone(),
        clock,
        metrics,
        health: observed.health.clone(),
        hosts,
        rules,
        snapshots,
        bodies: bodies.clone(),
        series_limits: SeriesLimits::default(),
        query_limits: limits,
    };
    let host_names = Arc::new(host_names(settings));
    let overview = OverviewParts {
        query: query.clone(),
        admin: admin.clone(),
        observed,
        data_dir: settings.storage.data_dir.clone(),
        bounds: settings.checkpoint_bounds(),
        preallocation_enabled: settings.preallocation.enabled,
        limits: overview_limits(settings),
        started: SystemClock.now(),
    };
    ApiParts { host_names, bodies, query, objects, alerting, admin, overview }
}

fn alerting_parts(
    rules: &KnownRules,
    silences: KnownSilences,
    posted: KnownPosted,
    clock: &TrustedClock,
    bodies: &Bodies,
) -> AlertingParts {
    let (rules, clock, bodies) = (rules.clone(), clock.clone(), bodies.clone());
    let (receiver_tests, started) = (ReceiverTests::default(), SystemClock.now());
    AlertingParts { rules, silences, posted, clock, bodies, receiver_tests, started }
}

fn bodies(settings: &Settings) -> Bodies {
    let limits = BodyLimits {
        request_bytes_max: settings.ingest.request_bytes_max,
        decompressed_bytes_max: settings.decompressed_bytes_max(),
    };
    Bodies::new(
        limits,
        IngestMemory::new(settings.ingest.body_memory_max),
        settings.server.client_timeout,
    )
}

fn overview_limits(settings: &Settings) -> OverviewLimits {
    let StoreLimits { series_max, sender_series_max, senders_max, .. } =
        bounds::store_limits(settings);
    OverviewLimits {
        series_max,
        sender_series_max,
        senders_max,
        queue_bytes_max: bounds::QUEUE_BYTES_MAX,
        connections_max: settings.server.connections_max,
        body_memory_max: settings.ingest.body_memory_max,
        queries_max: settings.limits.queries_max,
        tails_max: bounds::TAILS_MAX,
    }
}

/// Returns the names of the daemon, including that of its external address.
fn host_names(settings: &Settings) -> HostNames {
    let external = settings.rules.external.host().map(str::to_owned);
    let configured: Vec<_> = settings.server.host_names.iter().cloned().chain(external).collect();
    HostNames::new(&configured, machine_name())
}

/// Returns the name of this machine.
fn machine_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

fn collector_parts(settings: &Settings, parts: &OverviewParts) -> CollectorParts {
    let (parts, tally) = (&parts.admin, parts.observed.ingest.clone());
    CollectorParts {
        tally,
        store: parts.store.clone(),
        writer: parts.writer.clone(),
        clock: parts.clock.clone(),
        metrics: parts.metrics.clone(),
        series_limits: SeriesLimits::default(),
        sender_series_max: settings.limits.sender_series_max,
        series_max: settings.limits.series_max,
        request_series_max: bounds::REQUEST_SERIES_MAX,
        future_skew: settings.ingest.future_skew,
        out_of_order_window: settings.ingest.out_of_order_window,
        graphite_templates: settings.graphite_templates.clone().into(),
        ha_senders: settings.ingest.ha_senders.clone().into(),
    }
}

/// Starts a collector on its own thread, so that no other role waits while it reads large messages.
fn collector_of_its_own(
    settings: &Settings,
    parts: &OverviewParts,
    line: Lifeline,
    arbiters: &mut Vec<Arbiter>,
) -> Addr<Collector> {
    let own = collector_parts(settings, parts);
    let arbiter = Arbiter::new();
    let collector =
        Collector::start_in_arbiter(&arbiter.handle(), move |_| Collector::new(own, line));
    arbiters.push(arbiter);
    collector
}

pub(super) fn start_graphite(
    settings: &Settings,
    parts: &ApiParts,
    lifelines: &Lifelines,
    arbiters: &mut Vec<Arbiter>,
) -> anyhow::Result<GraphiteListeners> {
    let graphite = GraphiteSettings {
        listen: settings.graphite.listen,
        pickle_listen: settings.graphite.pickle_listen,
        udp_listen: settings.graphite.udp_listen,
        first_timeout: settings.server.client_timeout,
    };
    if !graphite.listens() {
        return Ok(GraphiteListeners::default());
    }
    let line = lifelines.for_role("Graphite collector");
    let collector = collector_of_its_own(settings, &parts.overview, line, arbiters);
    GraphiteListeners::start(&graphite, collector, parts.admin.metrics.clone())
        .map_err(|CannotListen { setting, address, cause }| cannot_listen(address, setting, cause))
}

/// Starts the role that samples the daemon itself, unless it is disabled.
pub(super) fn start_self_sampler(
    settings: &Settings,
    parts: &ApiParts,
    lifelines: &Lifelines,
    arbiters: &mut Vec<Arbiter>,
) -> Option<Addr<SelfSampler>> {
    if !settings.telemetry.of_itself {
        return None;
    }
    let line = lifelines.for_role("collector of the daemon's own samples");
    let admin = parts.admin.clone();
    let sampler = SelfSampler::new(SelfSamplerParts {
        collector: collector_of_its_own(settings, &parts.overview, line, arbiters),
        read: Box::new(move || admin.readings()),
        health: parts.admin.health.clone(),
        lifeline: lifelines.for_role("self-sampler"),
        host: machine_name().unwrap_or_else(|| "localhost".to_owned()),
        interval: settings.telemetry.interval,
        started: SystemClock.now(),
    });
    Some(sampler.start())
}

/// Returns the role that keeps the sparklines of all hosts up to date.
pub(super) fn line_keeper(parts: &ApiParts, lifelines: &Lifelines) -> LineKeeper {
    let query = parts.query.clone();
    let refresh = move || query.lines.refresh(&query).map_err(|cause| cause.to_string());
    LineKeeper::new(refresh, lifelines.for_role("line keeper"))
}

/// Returns the number of blocking threads of an HTTP worker: all queries and tails may run on the
/// same worker, in addition to one thread for each other kind of work.
fn blocking_threads(settings: &Settings) -> usize {
    // Metrics, a snapshot, a change, the clock, a large body, a host, pings, a dashboard or
    // annotation, storage, status, rules.
    const OTHERS: usize = 11;
    settings.limits.queries_max + bounds::TAILS_MAX + OTHERS
}

pub(super) fn start_server(
    settings: &Settings,
    listener: TcpListener,
    parts: ApiParts,
    lifelines: &Lifelines,
    arbiters: &mut Vec<Arbiter>,
) -> anyhow::Result<ServerHandle> {
    let line = lifelines.for_role("collector of large bodies");
    let large = collector_of_its_own(settings, &parts.overview, line, arbiters);
    let collector = collector_parts(settings, &parts.overview);
    let mut server_line = lifelines.for_role("HTTP server");
    let collector_lines = lifelines.clone();
    let connections = Connections::new(&parts.admin.metrics, settings.server.client_timeout);
    let (client_timeout, keep_alive) = (settings.server.client_timeout, bounds::KEEP_ALIVE);
    let app = move || {
        let line = collector_lines.for_role("collector");
        let worker = Collector::new(collector.clone(), line).start();
        let (parts, collectors) = (parts.clone(), Collectors { worker, large: large.clone() });
        App::new()
            .wrap(from_fn(api::receive))
            .configure(|config| api::routes(config, parts, collectors))
    };
    let server = Server::build();
    let stop = server.graceful_shutdown_signal();
    let server = server
        .workers(settings.worker_threads())
        .worker_max_blocking_threads(blocking_threads(settings))
        .max_concurrent_connections(
            settings.server.connections_max.div_ceil(settings.worker_threads()),
        )
        .shutdown_timeout((bounds::SHUTDOWN_TIMEOUT / 4).as_secs())
        .disable_signals()
        .listen("http", listener, move || {
            let (stop, connections) = (stop.clone(), connections.clone());
            let http = HttpService::build()
                .graceful_shutdown_signal(move || {
                    let stop = stop.clone();
                    async move { stop.notified().await }
                })
                .keep_alive(keep_alive)
                .client_request_timeout(client_timeout)
                // Work for a client that has left ends.
                .h1_allow_half_closed(false)
                .on_connect_ext(move |connection: &OneAtATime<TcpStream>, data| {
                    connections.note(connection, data);
                })
                .finish(map_config(app().into_factory(), |()| AppConfig::default()))
                .map_err(note_fault);
            fn_service(|stream: TcpStream| async move {
                // Without this, the end of an answer may wait 40 ms until the client acknowledges
                // its beginning.
                stream.set_nodelay(true)?;
                let peer = stream.peer_addr().ok();
                Ok::<_, DispatchError>((OneAtATime::new(stream), Protocol::Http1, peer))
            })
            .and_then(http)
        })
        .with_context(|| format!("listen on {}", settings.server.listen))?
        .run();
    let handle = server.handle();
    actix::spawn(async move {
        if let Err(cause) = server.await {
            tracing::error!(%cause, "the HTTP server failed");
        } else {
            server_line.release();
        }
    });
    Ok(handle)
}

/// Logs why a connection ended. The cause is the client unless the server itself failed.
fn note_fault(fault: DispatchError) -> DispatchError {
    if matches!(fault, DispatchError::InternalError | DispatchError::HandlerDroppedPayload) {
        tracing::error!(%fault, "a connection failed");
    } else {
        tracing::debug!(%fault, "closed a connection: its request cannot be read or answered");
    }
    fault
}
