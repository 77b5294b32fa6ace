//! The parts that the handlers of the HTTP API need, created from settings and roles.
//!
//! Must never know: routes, and the order of start and stop.

use std::sync::Arc;

use anyhow::Context;
use tokio::sync::Semaphore;

use crate::{
    actors::{PublishedState, WriterHandle},
    api::{
        AdminParts, AlertingParts, ApiParts, Bodies, BodyLimits, HostNames, ObjectsParts,
        OverviewLimits, OverviewParts, QueryParts, SparklineCache, Tails,
    },
    clock::{Clock, SystemClock, TrustedClock},
    config::{Limits, Settings, bounds},
    ingest::memory::IngestMemory,
    kept::{
        Annotations, KnownHosts, KnownPostedAlerts, KnownRules, KnownSilences, SnapshotSettings,
        Snapshots,
    },
    model::SeriesLimits,
    notify::ReceiverTests,
    query::{QueryLimits, QueryResources, Scheduler},
    store::{SnapshotFolder, Store, StoreLimits},
    telemetry::Metrics,
};

/// The shared state of hosts, rules and silences.
pub(super) struct SharedState {
    pub(super) hosts: KnownHosts,
    pub(super) rules: KnownRules,
    pub(super) silences: KnownSilences,
}

impl SharedState {
    pub(super) fn open(
        settings: &Settings,
        store: &Store,
        clock: &TrustedClock,
        metrics: &Metrics,
    ) -> anyhow::Result<Self> {
        let hosts = KnownHosts::open(store, settings.limits.senders_max, clock.clone())
            .context("read the known hosts")?;
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
    published: PublishedState,
    SharedState { hosts, rules, silences }: SharedState,
) -> ApiParts {
    let snapshots = SnapshotSettings {
        folder: SnapshotFolder::new(settings.storage.data_dir.join(&settings.storage.snapshot_dir)),
        policy: bounds::snapshot_policy(settings),
        reserve_bytes: 2 * settings.checkpoint_bounds().journal_bytes_max as u64,
    };
    let bodies = bodies(settings);
    let Limits { query_series_max, query_points_max, query_memory_max, .. } = settings.limits;
    let limits = QueryLimits::new(query_series_max, query_points_max);
    let query = QueryParts {
        store: store.clone(),
        clock: clock.clone(),
        metrics: metrics.clone(),
        bodies: bodies.clone(),
        hosts: hosts.clone(),
        rules: rules.clone(),
        silences: silences.clone(),
        alertmanagers: settings
            .alertmanagers
            .iter()
            .map(|alertmanager| alertmanager.url.clone())
            .collect(),
        graphite_templates: settings.graphite_templates.clone().into(),
        limits,
        promql: settings.promql_settings(),
        resources: QueryResources::new(Scheduler::for_this_machine(), query_memory_max),
        permits: Arc::new(Semaphore::new(settings.limits.queries_max)),
        timeout: settings.limits.query_timeout,
        client_timeout: settings.server.client_timeout,
        started: SystemClock.now(),
        future_skew: settings.ingest.future_skew,
        tails: Tails::new(bounds::TAILS_MAX),
        lines: SparklineCache::default(),
    };
    let objects = ObjectsParts {
        store: store.clone(),
        clock: clock.clone(),
        metrics: metrics.clone(),
        bodies: bodies.clone(),
        hosts: hosts.clone(),
        annotations: Annotations::new(&store, bounds::ANNOTATIONS_MAX),
    };
    let alerting = alerting_parts(&rules, silences, &metrics, &clock, &bodies);
    let snapshots =
        Snapshots::new(store.clone(), Arc::new(clock.clone()), metrics.clone(), snapshots);
    let admin = AdminParts {
        store,
        writer: writer.clone(),
        clock,
        metrics,
        health: published.health.clone(),
        budget: published.budget.clone(),
        hosts,
        rules,
        snapshots,
        bodies: bodies.clone(),
        series_limits: SeriesLimits::default(),
        query_limits: limits,
    };
    let overview = OverviewParts {
        query: query.clone(),
        admin: admin.clone(),
        published,
        data_dir: settings.storage.data_dir.clone(),
        bounds: settings.checkpoint_bounds(),
        preallocation_enabled: settings.preallocation.enabled,
        limits: overview_limits(settings),
        started: SystemClock.now(),
    };
    let host_names = Arc::new(host_names(settings));
    ApiParts { host_names, bodies, query, objects, alerting, admin, overview }
}

fn alerting_parts(
    rules: &KnownRules,
    silences: KnownSilences,
    metrics: &Metrics,
    clock: &TrustedClock,
    bodies: &Bodies,
) -> AlertingParts {
    let posted = KnownPostedAlerts::new(metrics.clone());
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

/// Returns the names of the daemon, including the host name of its external address.
fn host_names(settings: &Settings) -> HostNames {
    let external = settings.rules.external.host().map(str::to_owned);
    let configured: Vec<_> = settings.server.host_names.iter().cloned().chain(external).collect();
    HostNames::new(&configured, machine_name())
}

/// Returns the name of this machine.
pub(super) fn machine_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}
