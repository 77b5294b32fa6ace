//! The limits, the memory and the permits of queries, which follow the settings.
//!
//! Must never know: who queries.

use std::cell::Cell;

use tokio::sync::Semaphore;

use crate::{
    config::{LiveSettings, Settings, bounds},
    kept::LiveValue,
    model::ProjectName,
    query::{PromqlSettings, QueryLimits, QueryResources, Scheduler},
};

/// Returns the limits of a project's queries.
pub(super) fn query_limits(
    settings: &mut LiveSettings,
    project: &ProjectName,
) -> LiveValue<QueryLimits> {
    let project = project.clone();
    settings.derive(move |settings| {
        QueryLimits::new(settings.query_series_max(), points_max(settings, &project))
    })
}

/// Returns the settings of a project's queries in `PromQL`.
pub(super) fn promql_settings(
    settings: &mut LiveSettings,
    project: &ProjectName,
) -> LiveValue<PromqlSettings> {
    let project = project.clone();
    settings.derive(move |settings| PromqlSettings {
        points_max: points_max(settings, &project),
        ..settings.promql_settings()
    })
}

/// Returns the lower one of the daemon's limit of points and that of a project.
fn points_max(settings: &Settings, project: &ProjectName) -> usize {
    let own = settings.project(project).query_points_max.unwrap_or(usize::MAX);
    settings.limits.query_points_max.min(own)
}

pub(super) fn query_resources(settings: &mut LiveSettings) -> QueryResources {
    let memory_max = settings.limits.query_memory_max;
    let resources = QueryResources::new(Scheduler::for_this_machine(), memory_max);
    let shared = resources.clone();
    settings.after_changes(move |settings| shared.set_memory_max(settings.limits.query_memory_max));
    resources
}

/// Returns the permits of a project's running queries. When the number of permits changes, running
/// queries keep the permits that they hold.
pub(super) fn query_permits(
    settings: &mut LiveSettings,
    project: &ProjectName,
) -> LiveValue<Semaphore> {
    let own = settings.project(project).queries_max.unwrap_or(usize::MAX);
    let queries_max = move |settings: &Settings| bounds::queries_max(settings).min(own);
    let count = Cell::new(queries_max(settings));
    let permits = LiveValue::new(Semaphore::new(count.get()));
    let shared = permits.clone();
    settings.after_changes(move |settings| {
        let queries_max = queries_max(settings);
        if count.replace(queries_max) != queries_max {
            shared.set(Semaphore::new(queries_max));
        }
    });
    permits
}
