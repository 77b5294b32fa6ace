//! The store, and the roles that maintain it.
//!
//! Must never know: the other roles, and when they end.

use std::sync::Arc;

use actix::Recipient;
use anyhow::Context;
use tokio::task::spawn_blocking;

use super::{certificates::ReadCertificate, first_key, parts::machine_name};
use crate::{
    actors::{
        Checker, CheckpointNow, Checkpointer, CheckpointerParts, DiskBudget, Lifelines,
        Preallocator, PreallocatorParts, PublishedState, Publisher, PublisherParts, Retention,
        Sealer, SpaceKeeper, SpaceKeeperParts, StopFlag, WriterHandle, WriterParts,
    },
    clock::{Clock, Stopwatch, SystemClock, TrustedClock},
    cluster::{Membership, UpkeepSettings},
    config::{LiveSettings, ProjectSettings, Settings, bounds},
    kept::{KnownCardinality, KnownCodes, KnownKeys, KnownPeople},
    model::UnixMillis,
    store::{Appender, Folder, Replica, Store, StoreError},
    telemetry::{Health, Metrics},
};

/// The settings of a start, and the certificate that they name.
pub(super) struct CheckedSettings {
    pub(super) settings: Settings,
    pub(super) certificate: ReadCertificate,
}

impl CheckedSettings {
    /// Reads the certificate.
    pub(super) fn read(settings: Settings) -> anyhow::Result<Self> {
        let certificate = ReadCertificate::read(settings.tls_files())
            .context("turn on TLS, as the settings of [tls] say")?;
        Ok(Self { settings, certificate })
    }
}

/// An open store, and the settings with which it was opened.
pub(super) struct Opened {
    pub(super) settings: LiveSettings,
    pub(super) certificate: ReadCertificate,
    pub(super) keys: KnownKeys,
    pub(super) people: KnownPeople,
    pub(super) store: Store,
    pub(super) appender: Appender,
    /// The latest time that the last run of the store knew.
    pub(super) last_run: Option<UnixMillis>,
}

/// Opens the store on another thread, while the caller's thread feeds the watchdog.
pub(super) async fn open_store(checked: CheckedSettings) -> anyhow::Result<Opened> {
    let CheckedSettings { settings, certificate } = checked;
    let folder = settings.storage.data_dir.clone();
    let (set, rules) = (settings.granularities.clone(), settings.retention_rules.clone());
    let open = move || {
        let medium = Folder::new(&folder)
            .with_context(|| format!("create the data directory {}", folder.display()))?;
        let watch = Stopwatch::start();
        let (store, appender, report) =
            Store::open_with_rules(Arc::new(medium), set, Some(&rules), SystemClock.now())
                .map_err(with_remedy)
                .with_context(|| format!("open the store in {}", folder.display()))?;
        tracing::info!(
            data_dir = %folder.display(),
            series = store.all_series().len(),
            partitions = store.partitions().len(),
            replayed_records = report.records,
            replayed_samples = report.samples,
            resumes_checkpoint = report.resumes_checkpoint,
            elapsed_ms = watch.millis(),
            "opened the store"
        );
        Ok::<_, anyhow::Error>((store, appender, report.last_run))
    };
    let opened = spawn_blocking(open).await.context("open the store")??;
    with_settings(CheckedSettings { settings, certificate }, opened)
}

/// Applies the settings to an open store.
pub(super) fn with_settings(
    CheckedSettings { settings, certificate }: CheckedSettings,
    (store, mut appender, last_run): (Store, Appender, Option<UnixMillis>),
) -> anyhow::Result<Opened> {
    let mut settings = LiveSettings::new(settings);
    let keys = KnownKeys::open(&store).context("read the keys")?;
    let people = KnownPeople::open(&store, SystemClock.now()).context("read the users")?;
    if settings.security.access {
        let codes = KnownCodes::open(&store).context("read the codes")?;
        let url = settings.rule_sources(machine_name().as_deref()).external.url.clone();
        let data_dir = &settings.storage.data_dir;
        first_key::provide((&keys, &codes, &people), data_dir, &url, SystemClock.now())?;
    }
    appender.set_limits(bounds::store_limits(&settings));
    let of_project =
        |project: &ProjectSettings| Some((project.name.clone(), project.settings.series_max?));
    appender.set_project_limits(settings.projects.iter().filter_map(of_project).collect());
    if settings.publishing.is_some() {
        // Changes are followed from now on, so that the publisher does not miss those of the first
        // checkpoint.
        store.follow_documents();
    }
    let cached = store.clone();
    settings.follow(move |settings| cached.set_cache_bytes_max(settings.storage.cache_bytes_max));
    Ok(Opened { settings, certificate, keys, people, store, appender, last_run })
}

/// Makes the store of a shard the one that appends, with the levels of its log.
pub(super) async fn lead(
    settings: &Settings,
    membership: &Arc<Membership>,
) -> anyhow::Result<(Store, Appender)> {
    let (set, rules) = (settings.granularities.clone(), settings.retention_rules.clone());
    let membership = membership.clone();
    let lead = move || {
        let first = Replica::first_record(&set, &rules, SystemClock.now());
        let (store, mut appender) = membership.lead(&first)?;
        if store.has_levels_of(&set, &rules) {
            appender
                .change_retentions(&set, &rules, SystemClock.moment())
                .context("change the retentions of all replicas")?;
        }
        Ok::<_, anyhow::Error>((store, appender))
    };
    let (store, appender) = spawn_blocking(lead).await??;
    if !store.has_levels_of(&settings.granularities, &settings.retention_rules) {
        tracing::warn!(
            "the granularities or rules of retention in the settings differ from those of the \
             cluster, which stay"
        );
    }
    Ok((store, appender))
}

/// Returns the settings for the upkeep of a replica.
pub(super) fn upkeep(settings: &Settings) -> UpkeepSettings {
    UpkeepSettings {
        checkpoint_interval: settings.storage.checkpoint_interval,
        bounds: bounds::CHECKPOINT_BOUNDS,
    }
}

/// Adds the remedy to the error of a damaged journal. Damaged partitions need none, because they do
/// not prevent a start.
fn with_remedy(cause: StoreError) -> anyhow::Error {
    let damaged = cause.is_damage();
    let error = anyhow::Error::new(cause);
    if damaged {
        return error.context(
            "the journal is damaged and nothing was changed; create a new data directory from a \
             snapshot with `granary restore`, or check the remaining files with `granary verify`",
        );
    }
    error
}

pub(super) fn checkpointer(
    settings: &mut LiveSettings,
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
        interval: settings.derive(|settings| settings.storage.checkpoint_interval),
        idle_after: Some(bounds::IDLE_AFTER),
        bounds: bounds::CHECKPOINT_BOUNDS,
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

pub(super) fn writer_parts(
    settings: &mut LiveSettings,
    store: &Store,
    appender: Appender,
    clock: &Arc<dyn Clock>,
    (metrics, published): (&Metrics, &PublishedState),
    lifelines: &Lifelines,
    checkpointer: Recipient<CheckpointNow>,
) -> WriterParts {
    WriterParts {
        store: store.clone(),
        appender,
        clock: clock.clone(),
        metrics: metrics.clone(),
        health: published.health.clone(),
        lifeline: lifelines.for_role("writer"),
        checkpointer,
        queue_bytes_max: bounds::QUEUE_BYTES_MAX,
        bounds: bounds::CHECKPOINT_BOUNDS,
        limits: settings.derive(bounds::store_limits),
        metric_limits: settings.derive(|settings| settings.metric_limits.clone()),
    }
}

pub(super) fn preallocator(
    settings: &mut LiveSettings,
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
        is_enabled: settings.derive(|settings| settings.preallocation.enabled),
    })
}

pub(super) fn retention(
    settings: &mut LiveSettings,
    store: &Store,
    clock: &TrustedClock,
    (metrics, published): (&Metrics, &PublishedState),
    cardinality: &[(Store, KnownCardinality)],
    writer: &WriterHandle,
    lifelines: &Lifelines,
) -> Retention {
    let budget = DiskBudget {
        max: settings.derive(|settings| settings.storage.disk_max),
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
        interval: settings.derive(bounds::retention_interval),
        writer: writer.clone(),
        budget,
        near_names: published.near_names.clone(),
        cardinality: cardinality.to_vec(),
        metrics: metrics.clone(),
        looks_for_series: true,
        looked_for_series: Stopwatch::start(),
    }
}

pub(super) fn sealer(
    settings: &mut LiveSettings,
    store: &Store,
    clock: &TrustedClock,
    health: &Health,
    stop_flag: &StopFlag,
    lifelines: &Lifelines,
) -> Sealer {
    Sealer {
        stop_flag: stop_flag.clone(),
        store: store.clone(),
        clock: clock.clone(),
        health: health.clone(),
        lifeline: lifelines.for_role("sealer"),
        after: settings.derive(|settings| settings.storage.checkpoint_interval),
    }
}

/// Starts the publisher; `None` when documents are not published.
pub(super) fn publisher(
    settings: &Settings,
    store: &Store,
    clock: &TrustedClock,
    (metrics, published): (&Metrics, &PublishedState),
    stop_flag: &StopFlag,
    lifelines: &Lifelines,
) -> anyhow::Result<Option<Publisher>> {
    let Some(publishing) = &settings.publishing else { return Ok(None) };
    let others = settings.projects.iter().map(|project| store.for_project(&project.name));
    let publisher = Publisher::start(PublisherParts {
        stores: std::iter::once(store.clone()).chain(others).collect(),
        clock: clock.clone(),
        metrics: metrics.clone(),
        health: published.health.clone(),
        lifeline: lifelines.for_role("publisher"),
        stop_flag: stop_flag.clone(),
        uri: publishing.uri.clone(),
        database: publishing.database.clone(),
        forms: publishing.forms.clone(),
    });
    publisher.context("start the publisher's thread").map(Some)
}

/// Returns the checker; `None` when it is turned off.
pub(super) fn checker(
    settings: &Settings,
    store: &Store,
    clock: &TrustedClock,
    stop_flag: &StopFlag,
    lifelines: &Lifelines,
) -> Option<Checker> {
    settings.storage.check_interval.map(|pass_duration| Checker {
        store: store.clone(),
        clock: clock.clone(),
        lifeline: lifelines.for_role("checker"),
        stop_flag: stop_flag.clone(),
        pass_duration,
        pass: None,
    })
}
