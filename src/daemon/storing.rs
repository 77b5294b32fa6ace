//! The store, and the roles that maintain it.
//!
//! Must never know: the other roles, and when they end.

use std::{path::Path, sync::Arc};

use anyhow::Context;

use crate::{
    actors::{
        Checker, Checkpointer, CheckpointerParts, DiskBudget, Lifelines, Preallocator,
        PreallocatorParts, PublishedState, Retention, Sealer, SealingEnd, SpaceKeeper,
        SpaceKeeperParts, WriterHandle,
    },
    clock::{Clock, Stopwatch, SystemClock, TrustedClock},
    config::{Settings, bounds},
    model::UnixMillis,
    store::{Appender, Folder, Store, StoreError},
    telemetry::{Health, Metrics},
};

/// Opens the store, and returns it with the latest time that its last run knew.
pub(super) fn open_store(
    settings: &Settings,
) -> anyhow::Result<(Store, Appender, Option<UnixMillis>)> {
    let folder: &Path = &settings.storage.data_dir;
    let medium = Folder::new(folder)
        .with_context(|| format!("create the data directory {}", folder.display()))?;
    let watch = Stopwatch::start();
    let (store, mut appender, report) = Store::open_with_rules(
        Arc::new(medium),
        settings.granularities.clone(),
        Some(&settings.retention_rules),
        SystemClock.now(),
    )
    .map_err(with_remedy)
    .with_context(|| format!("open the store in {}", folder.display()))?;
    tracing::info!(
        data_dir = %folder.display(),
        series = store.dictionary().len(),
        partitions = store.partitions().len(),
        replayed_records = report.records,
        replayed_samples = report.samples,
        resumes_checkpoint = report.resumes_checkpoint,
        elapsed_ms = watch.millis(),
        "opened the store"
    );
    appender.set_limits(bounds::store_limits(settings));
    store.set_cache_bytes_max(settings.storage.cache_bytes_max);
    Ok((store, appender, report.last_run))
}

/// Adds the remedy to an error of a damaged journal. Damaged partitions do not prevent a start.
fn with_remedy(cause: StoreError) -> anyhow::Error {
    let damaged = cause.is_damage();
    let error = anyhow::Error::new(cause);
    if damaged {
        return error.context(
            "the journal is damaged and nothing was changed; create a new data directory from a \
             snapshot with `granary restore`, or check what is left with `granary verify`",
        );
    }
    error
}

pub(super) fn checkpointer(
    settings: &Settings,
    store: &Store,
    clock: &Arc<dyn Clock>,
    metrics: &Metrics,
    published: &PublishedState,
    lifelines: &Lifelines,
) -> Checkpointer {
    Checkpointer::new(CheckpointerParts {
        store: store.clone(),
        clock: clock.clone(),
        metrics: metrics.clone(),
        health: published.health.clone(),
        lifeline: lifelines.for_role("checkpointer"),
        interval: settings.storage.checkpoint_interval,
        idle_after: Some(bounds::IDLE_AFTER),
        bounds: settings.checkpoint_bounds(),
        history: published.checkpoints.clone(),
        space: Some(SpaceKeeper::new(SpaceKeeperParts {
            store: store.clone(),
            data_dir: settings.storage.data_dir.clone(),
            metrics: metrics.clone(),
            health: published.health.clone(),
            forecast: published.forecast.clone(),
        })),
    })
}

pub(super) fn preallocator(
    store: &Store,
    clock: &Arc<dyn Clock>,
    health: &Health,
    lifelines: &Lifelines,
) -> Preallocator {
    Preallocator::new(PreallocatorParts {
        store: store.clone(),
        clock: clock.clone(),
        health: health.clone(),
        lifeline: lifelines.for_role("preallocator"),
    })
}

pub(super) fn retention(
    settings: &Settings,
    store: &Store,
    clock: &TrustedClock,
    (metrics, published): (&Metrics, &PublishedState),
    writer: &WriterHandle,
    lifelines: &Lifelines,
) -> Retention {
    let budget = |max| DiskBudget {
        max,
        data_dir: settings.storage.data_dir.clone(),
        metrics: metrics.clone(),
        health: published.health.clone(),
        report: published.budget.clone(),
    };
    Retention {
        store: store.clone(),
        clock: clock.clone(),
        health: published.health.clone(),
        lifeline: lifelines.for_role("retention"),
        interval: bounds::retention_interval(settings),
        writer: writer.clone(),
        budget: settings.storage.disk_max.map(budget),
        looks_for_series: true,
        looked_for_series: Stopwatch::start(),
    }
}

pub(super) fn sealer(
    settings: &Settings,
    store: &Store,
    clock: &TrustedClock,
    health: &Health,
    end: &SealingEnd,
    lifelines: &Lifelines,
) -> Sealer {
    Sealer {
        end: end.clone(),
        store: store.clone(),
        clock: clock.clone(),
        health: health.clone(),
        lifeline: lifelines.for_role("sealer"),
        after: settings.storage.checkpoint_interval,
    }
}

/// Returns the checker; `None` when it is turned off.
pub(super) fn checker(
    settings: &Settings,
    store: &Store,
    clock: &TrustedClock,
    end: &SealingEnd,
    lifelines: &Lifelines,
) -> Option<Checker> {
    settings.storage.check_interval.map(|length| Checker {
        store: store.clone(),
        clock: clock.clone(),
        lifeline: lifelines.for_role("checker"),
        end: end.clone(),
        length,
        pass: None,
    })
}
