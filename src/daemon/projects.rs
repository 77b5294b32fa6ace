//! The parts, roles and tails of each project.
//!
//! Must never know: routes, callers, and the order of start and stop.

use actix::{Addr, Arbiter};
use anyhow::Context;

use super::{
    alerting::AlertingRoles,
    listeners::sparkline_refresher,
    parts::{
        alerting_parts, alertmanager_urls, known_hosts, known_silences, machine_name, objects_parts,
    },
    querying::{promql_settings, query_limits, query_permits},
    start_on_arbiter,
};
use crate::{
    actors::{HostKeeper, Lifelines, PublishedState, SparklineRefresher},
    api::{ApiParts, SparklineCache, Tails},
    config::{LiveSettings, Settings, bounds},
    kept::{KnownCardinality, KnownRules, LiveValue},
    model::ProjectName,
    store::Store,
};

/// Returns the numbers of series at the beginnings of days, for each project.
pub(super) fn cardinality(
    settings: &Settings,
    store: &Store,
    published: &PublishedState,
) -> Vec<(Store, KnownCardinality)> {
    let others = settings.projects.iter().map(|project| store.for_project(&project.name));
    let others = others.map(|store| (store, KnownCardinality::default()));
    let default = (store.clone(), published.cardinality.clone());
    std::iter::once(default).chain(others).collect()
}

/// Returns the parts of the API for each project, the first of them `default`.
pub(super) fn all_projects(
    settings: &mut LiveSettings,
    default: &ApiParts,
    cardinality: Vec<(Store, KnownCardinality)>,
) -> anyhow::Result<Vec<ApiParts>> {
    let mut projects = vec![default.clone()];
    for (store, cardinality) in cardinality.into_iter().skip(1) {
        projects.push(project_parts(settings, default, (store.project(), cardinality))?);
    }
    let rules = |parts: &ApiParts| (parts.admin.store.project().clone(), parts.admin.rules.clone());
    let others: Vec<_> = projects.iter().skip(1).map(rules).collect();
    projects[0].admin.others.clone_from(&others);
    projects[0].overview.admin.others = others;
    Ok(projects)
}

/// Returns the parts of the API for a project other than `default`: state that belongs to one
/// project is separate, all else is shared.
fn project_parts(
    settings: &mut LiveSettings,
    default: &ApiParts,
    (name, cardinality): (&ProjectName, KnownCardinality),
) -> anyhow::Result<ApiParts> {
    let mut parts = default.clone();
    let store = default.admin.store.for_project(name);
    let (metrics, clock) = (&default.admin.metrics, &default.admin.clock);
    let hosts = known_hosts(settings, &store, clock)?;
    let sources = settings.rule_sources_of(name, machine_name().as_deref());
    let own_metrics = default.admin.metrics.for_project().context("register metrics")?;
    let rules = KnownRules::open(&store, sources, &settings.promql_settings(), own_metrics.clone());
    let rules = rules.context("read the saved texts of rules")?;
    let silences = known_silences(&store)?;
    let limits = query_limits(settings, name);
    let query = &mut parts.query;
    query.store = store.clone();
    query.hosts = hosts.clone();
    query.rules = rules.clone();
    query.silences = silences.clone();
    let alertmanagers = &settings.project_settings(name).alertmanagers;
    query.alertmanagers = LiveValue::new(alertmanager_urls(alertmanagers));
    query.limits = limits.clone();
    query.promql = promql_settings(settings, name);
    query.resources = default.query.resources.of_project(&name.to_string());
    query.permits = query_permits(settings, name);
    query.tails = Tails::new(bounds::TAILS_MAX);
    query.cardinality = cardinality;
    query.lines = SparklineCache::default();
    parts.objects = objects_parts(&store, &hosts, metrics, clock, &default.bodies);
    parts.alerting = alerting_parts(&rules, silences, &own_metrics, clock, &default.bodies);
    let admin = &mut parts.admin;
    admin.writer = default.admin.writer.for_project(name);
    admin.store = store;
    admin.hosts = hosts;
    admin.rules = rules;
    admin.query_limits = limits;
    admin.health = admin.health.for_project(name);
    admin.of_rules = own_metrics;
    parts.overview.query = parts.query.clone();
    parts.overview.admin = parts.admin.clone();
    parts.overview.published.ingest = default.overview.published.ingest.for_project(name);
    Ok(parts)
}

/// The roles and tails that each project has.
pub(super) struct ProjectRoles {
    pub(super) host_keepers: Vec<Addr<HostKeeper>>,
    pub(super) alerting: Vec<AlertingRoles>,
    pub(super) sparkline_refresher: Addr<SparklineRefresher>,
    pub(super) tails: Vec<Tails>,
}

impl ProjectRoles {
    pub(super) fn start(
        settings: &mut LiveSettings,
        projects: &[ApiParts],
        lifelines: &Lifelines,
        arbiters: &mut Vec<Arbiter>,
    ) -> Self {
        let mut host_keepers = Vec::new();
        for ApiParts { admin, .. } in projects {
            let role = HostKeeper::new(admin.hosts.clone(), lifelines.for_role("host keeper"));
            host_keepers.push(start_on_arbiter(arbiters, role));
        }
        let alerting = AlertingRoles::start(settings, projects, lifelines, arbiters);
        let role = sparkline_refresher(projects, lifelines);
        let sparkline_refresher = start_on_arbiter(arbiters, role);
        let tails = projects.iter().map(|project| project.query.tails.clone()).collect();
        Self { host_keepers, alerting, sparkline_refresher, tails }
    }
}
