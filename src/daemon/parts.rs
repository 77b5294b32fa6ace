//! The parts that the handlers of the HTTP API need, created from settings and roles.
//!
//! Must never know: routes, and the order of start and stop.

use std::sync::Arc;

use anyhow::Context;

use super::querying::{promql_settings, query_limits, query_permits, query_resources};
use crate::{
    actors::{PublishedState, WriterHandle},
    alerts::Alertmanager,
    api::{
        AccessParts, AdminParts, AlertingParts, ApiParts, Bodies, BodyLimits, ClusterParts,
        HostNames, KeyFailures, Logins, ObjectsParts, OverviewLimits, OverviewParts,
        ProviderLogins, QueryParts, ShardRouter, SparklineCache, Tails,
    },
    clock::{Clock, SystemClock, TrustedClock},
    config::{LiveSettings, Settings, bounds},
    ingest::memory::IngestMemory,
    kept::{
        Annotations, Audit, DashboardFiles, KnownCodes, KnownHosts, KnownKeys, KnownPeople,
        KnownPostedAlerts, KnownRules, KnownSettings, KnownSilences, SnapshotSettings, Snapshots,
    },
    model::{ProjectName, SeriesLimits},
    notify::ReceiverTests,
    oidc::Provider,
    query::ShardsOfProject,
    store::{SnapshotFolder, Store, StoreLimits},
    telemetry::Metrics,
};

/// The shared state of hosts, rules, silences, keys, codes and users.
pub(super) struct SharedState {
    pub(super) hosts: KnownHosts,
    pub(super) rules: KnownRules,
    pub(super) silences: KnownSilences,
    pub(super) keys: KnownKeys,
    pub(super) codes: KnownCodes,
    pub(super) people: KnownPeople,
    pub(super) provider_logins: ProviderLogins,
    pub(super) settings: KnownSettings,
    pub(super) cluster: ClusterParts,
    pub(super) others: Option<Arc<ShardRouter>>,
}

/// The shared state that exists before the roles, and the operation of the cluster.
type Known = (KnownKeys, KnownPeople, KnownSettings, ClusterParts, Option<Arc<ShardRouter>>);

impl SharedState {
    pub(super) fn open(
        settings: &mut LiveSettings,
        store: &Store,
        clock: &TrustedClock,
        metrics: &Metrics,
        (keys, people, known_settings, cluster, others): Known,
    ) -> anyhow::Result<Self> {
        let hosts = known_hosts(settings, store, clock)?;
        let sources = settings.rule_sources(machine_name().as_deref());
        let rules = KnownRules::open(store, sources, &settings.promql_settings(), metrics.clone());
        let rules = rules.context("read the saved texts of rules")?;
        let silences = known_silences(store)?;
        let codes = KnownCodes::open(store).context("read the codes")?;
        let known = people.clone();
        settings.follow(move |settings| {
            known.set_provider_rules(settings.provider.as_ref().map(|provider| &provider.rules));
        });
        let provider = settings.derive(|settings| settings.provider.clone().map(Provider::new));
        let provider_logins = ProviderLogins::new(provider).context("make the secret of logins")?;
        Ok(Self {
            hosts,
            rules,
            silences,
            keys,
            codes,
            people,
            provider_logins,
            settings: known_settings,
            cluster,
            others,
        })
    }
}

/// Returns the hosts of a project, whose number follows the settings.
pub(super) fn known_hosts(
    settings: &mut LiveSettings,
    store: &Store,
    clock: &TrustedClock,
) -> anyhow::Result<KnownHosts> {
    let hosts_max = |settings: &Settings| bounds::store_limits(settings).senders_max;
    let hosts = KnownHosts::open(store, hosts_max(settings), clock.clone())
        .context("read the known hosts")?;
    let known = hosts.clone();
    settings.after_changes(move |settings| known.set_hosts_max(hosts_max(settings)));
    Ok(hosts)
}

/// Returns the silences of a project.
pub(super) fn known_silences(store: &Store) -> anyhow::Result<KnownSilences> {
    KnownSilences::open(store, bounds::SILENCES_KEPT).context("read the silences")
}

pub(super) fn api_parts(
    settings: &mut LiveSettings,
    store: Store,
    writer: &WriterHandle,
    clock: TrustedClock,
    metrics: Metrics,
    published: PublishedState,
    shared: SharedState,
) -> ApiParts {
    let default = ProjectName::of_default();
    let others =
        shared.others.clone().map(|others| ShardsOfProject::new(others, &default.to_string()));
    let SharedState { hosts, rules, silences, settings: known_settings, cluster, .. } = shared;
    let bodies = bodies(settings);
    let audit = Audit::new(&store, &metrics);
    let who = (shared.keys, shared.codes, shared.people, shared.provider_logins);
    let access = access_parts(settings, who, audit, &clock, &metrics, &bodies);
    let limits = query_limits(settings, default);
    let query = QueryParts {
        access: access.clone(),
        store: store.clone(),
        clock: clock.clone(),
        metrics: metrics.clone(),
        bodies: bodies.clone(),
        hosts: hosts.clone(),
        rules: rules.clone(),
        silences: silences.clone(),
        alertmanagers: settings.derive(|settings| alertmanager_urls(&settings.alertmanagers)),
        graphite_templates: settings.derive(|settings| settings.graphite_templates.clone()),
        limits: limits.clone(),
        promql: promql_settings(settings, default),
        resources: query_resources(settings).with_others(others),
        permits: query_permits(settings, default),
        timeout: settings.derive(|settings| settings.limits.query_timeout),
        client_timeout: settings.server.client_timeout,
        started: SystemClock.now(),
        future_skew: bounds::FUTURE_SKEW,
        tails: Tails::new(bounds::TAILS_MAX),
        cardinality: published.cardinality.clone(),
        lines: SparklineCache::default(),
    };
    let objects = objects_parts(&store, &hosts, &metrics, &clock, &bodies);
    objects.dashboard_files.load(&settings.server.dashboards_dir, &metrics);
    let alerting = alerting_parts(&rules, silences, &metrics, &clock, &bodies);
    let snapshots = snapshots(settings, &store, &clock, &metrics);
    let admin = AdminParts {
        access: access.clone(),
        store,
        writer: writer.clone(),
        clock,
        of_rules: metrics.clone(),
        metrics,
        health: published.health.clone(),
        others: Vec::new(),
        budget: published.budget.clone(),
        near_names: published.near_names.clone(),
        hosts,
        rules,
        snapshots,
        bodies: bodies.clone(),
        series_limits: SeriesLimits::default(),
        query_limits: limits,
        settings: known_settings,
        cluster,
    };
    let host_names = settings.derive(host_names);
    let proxies = settings.derive(|settings| settings.trusted_proxies.clone());
    let overview = OverviewParts {
        query: query.clone(),
        admin: admin.clone(),
        published,
        data_dir: settings.storage.data_dir.clone(),
        bounds: bounds::CHECKPOINT_BOUNDS,
        preallocation_enabled: settings.derive(|settings| settings.preallocation.enabled),
        limits: settings.derive(overview_limits),
        started: SystemClock.now(),
    };
    ApiParts { host_names, proxies, access, bodies, query, objects, alerting, admin, overview }
}

fn access_parts(
    settings: &mut LiveSettings,
    (keys, codes, people, provider_logins): (KnownKeys, KnownCodes, KnownPeople, ProviderLogins),
    audit: Audit,
    clock: &TrustedClock,
    metrics: &Metrics,
    bodies: &Bodies,
) -> AccessParts {
    let others = settings.projects.iter().map(|project| project.name.clone());
    AccessParts {
        is_on: settings.security.access,
        projects: std::iter::once(ProjectName::default()).chain(others).collect(),
        exposure: settings.derive(Settings::exposure),
        keys,
        codes,
        clients: settings.derive(|settings| settings.client_scopes.clone()),
        people,
        audit,
        clock: clock.clone(),
        metrics: metrics.clone(),
        bodies: bodies.clone(),
        logins: Logins::new(clock.clone(), metrics.clone()),
        totp_role: settings.derive(|settings| settings.security.totp_role),
        provider_logins,
        failures: KeyFailures::default(),
    }
}

pub(super) fn objects_parts(
    store: &Store,
    hosts: &KnownHosts,
    metrics: &Metrics,
    clock: &TrustedClock,
    bodies: &Bodies,
) -> ObjectsParts {
    ObjectsParts {
        store: store.clone(),
        clock: clock.clone(),
        metrics: metrics.clone(),
        bodies: bodies.clone(),
        hosts: hosts.clone(),
        annotations: Annotations::new(store, bounds::ANNOTATIONS_MAX),
        dashboard_files: DashboardFiles::default(),
    }
}

pub(super) fn alerting_parts(
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

fn snapshots(
    settings: &mut LiveSettings,
    store: &Store,
    clock: &TrustedClock,
    metrics: &Metrics,
) -> Snapshots {
    let followed = settings.derive(snapshot_settings);
    Snapshots::new(store.clone(), Arc::new(clock.clone()), metrics.clone(), followed)
}

fn snapshot_settings(settings: &Settings) -> SnapshotSettings {
    SnapshotSettings {
        folder: SnapshotFolder::new(settings.storage.data_dir.join(&settings.storage.snapshot_dir)),
        policy: bounds::snapshot_policy(settings),
        reserve_bytes: 2 * bounds::CHECKPOINT_BOUNDS.journal_bytes_max as u64,
    }
}

fn bodies(settings: &mut LiveSettings) -> Bodies {
    let limits = settings.derive(|settings| BodyLimits {
        request_bytes_max: bounds::request_bytes_max(settings),
        decompressed_bytes_max: bounds::decompressed_bytes_max(settings),
        packed_bytes_max: bounds::packed_bytes_max(settings),
    });
    let memory = IngestMemory::default();
    let shared = memory.clone();
    settings.follow(move |settings| shared.set_total(settings.ingest.body_memory_max));
    Bodies::new(limits, memory, settings.server.client_timeout)
}

pub(super) fn alertmanager_urls(alertmanagers: &[Alertmanager]) -> Vec<String> {
    alertmanagers.iter().map(|alertmanager| alertmanager.url.clone()).collect()
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
        queries_max: bounds::queries_max(settings),
        tails_max: bounds::TAILS_MAX,
    }
}

/// Returns the names of the daemon, including the host name of its external address.
fn host_names(settings: &Settings) -> HostNames {
    let external = settings.rules.external.host().map(str::to_owned);
    let configured: Vec<_> = settings.server.host_names.iter().cloned().chain(external).collect();
    let names = HostNames::new(&configured, machine_name());
    // Without the setting, the URL contains this machine's name, which clients may also use with
    // plain HTTP.
    let is_https = settings.rules.external.url.starts_with("https://");
    match settings.rules.external.host().filter(|_| is_https) {
        Some(host) => names.over_https(host),
        None => names,
    }
}

/// Returns the name of this machine.
pub(super) fn machine_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}
