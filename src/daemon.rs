//! The daemon's life: start, run, and the one ordered stop.

use std::{path::Path, sync::Arc, time::Duration};

use actix::{Actor, Addr, Arbiter, Handler, System, dev::ToEnvelope};
use actix_web::{App, HttpServer, dev::ServerHandle};
use anyhow::Context;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::Semaphore,
    time::timeout,
};

use crate::{
    actors::{
        Checkpointer, Collector, CollectorParts, Condition, Death, GraphiteListeners, Health,
        Lifelines, Preallocator, Retention, Stop, Watcher, Writer, WriterHandle, WriterParts,
        lifelines,
    },
    api::{self, ApiParts, BodyLimits, BodyMemory, Connections, QueryMemory, Tails, Turns},
    config::Settings,
    model::{Clock, SystemClock, time::Stopwatch},
    query::QueryLimits,
    store::{Folder, Store, StoreError},
    telemetry::Metrics,
};

/// Why the daemon stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// SIGTERM or SIGINT.
    Asked,
    /// A role died; the process should be started again.
    RoleDied(Death),
}

/// Runs the daemon until it is asked to stop.
///
/// # Errors
/// When it cannot start.
pub fn run(settings: Settings) -> anyhow::Result<ExitReason> {
    System::new().block_on(async move {
        let daemon = Daemon::start(settings)?;
        Ok(daemon.run_until_stopped().await)
    })
}

struct Daemon {
    settings: Settings,
    server: ServerHandle,
    graphite: GraphiteListeners,
    writer: Writer,
    writer_handle: WriterHandle,
    checkpointer: Addr<Checkpointer>,
    preallocator: Option<Addr<Preallocator>>,
    retention: Addr<Retention>,
    arbiters: Vec<Arbiter>,
    health: Health,
    watcher: Watcher,
    tails: Tails,
}

impl Daemon {
    fn start(settings: Settings) -> anyhow::Result<Self> {
        let watch = Stopwatch::start();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let health = Health::default();
        health.raise(Condition::Lifecycle, "starting");
        let (store, mut appender) = open_store(&settings, &*clock)?;
        appender.set_limits(settings.store_limits);
        let metrics = Metrics::new().context("register metrics")?;
        let (lifelines, watcher) = lifelines();
        let mut arbiters = Vec::new();
        let checkpointer = start_on_arbiter(
            &mut arbiters,
            Checkpointer {
                store: store.clone(),
                clock: clock.clone(),
                metrics: metrics.clone(),
                health: health.clone(),
                lifeline: lifelines.for_role("checkpointer"),
                interval: settings.checkpoint_interval,
                bounds: settings.checkpoint_bounds,
            },
        );
        let (writer, writer_handle) = Writer::start(WriterParts {
            store: store.clone(),
            appender,
            clock: clock.clone(),
            metrics: metrics.clone(),
            health: health.clone(),
            lifeline: lifelines.for_role("writer"),
            checkpointer: checkpointer.clone().recipient(),
            queue_bytes_max: settings.queue_bytes_max,
            bounds: settings.checkpoint_bounds,
        })
        .context("start the writer thread")?;
        let preallocator = settings.preallocation_enabled.then(|| {
            let line = lifelines.for_role("preallocator");
            let per_second = settings.preallocation_per_second;
            let (store, clock, health) = (store.clone(), clock.clone(), health.clone());
            let role = Preallocator::new(store, clock, health, line, per_second);
            start_on_arbiter(&mut arbiters, role)
        });
        let retention = start_on_arbiter(
            &mut arbiters,
            Retention {
                store: store.clone(),
                clock: clock.clone(),
                health: health.clone(),
                lifeline: lifelines.for_role("retention"),
                interval: settings.retention_interval,
            },
        );
        let parts = api_parts(&settings, store, writer_handle.clone(), clock, metrics, &health);
        let tails = parts.tails.clone();
        let graphite = start_graphite(&settings, &parts, &lifelines)?;
        let server = start_server(&settings, parts, &lifelines)?;
        say_ready(&health);
        tracing::info!(listen = %settings.listen, elapsed_ms = watch.millis(), "ready");
        Ok(Self {
            settings,
            server,
            graphite,
            writer,
            writer_handle,
            checkpointer,
            preallocator,
            retention,
            arbiters,
            health,
            watcher,
            tails,
        })
    }

    async fn run_until_stopped(mut self) -> ExitReason {
        let reason = tokio::select! {
            () = stop_signal() => ExitReason::Asked,
            death = self.watcher.death() => {
                tracing::error!(role = death.role, "a role died; stopping, to be started again");
                ExitReason::RoleDied(death)
            }
        };
        self.stop().await;
        reason
    }

    /// The one ordered stop. What is acknowledged is in the journal before any of this; each step
    /// only saves work for the next start.
    async fn stop(self) {
        notify(&[sd_notify::NotifyState::Stopping]);
        self.health.raise(Condition::Lifecycle, "stopping");
        tracing::info!("stopping");
        // The server and the roles share the time; the last checkpoint gets the larger part.
        let step = self.settings.shutdown_timeout / 4;
        // 1. No new requests, and no more live tails; requests under way are answered.
        self.graphite.stop();
        self.tails.end();
        within("the HTTP server", step, self.server.stop(true)).await;
        // 2. What waits for the journal is committed.
        within("the writer", step, self.writer_handle.stop()).await;
        // 3. The roles that write in the background end.
        if let Some(preallocator) = &self.preallocator {
            within("the preallocator", step, preallocator.send(Stop)).await;
        }
        within("retention", step, self.retention.send(Stop)).await;
        // 4. A checkpoint, so that the next start has nothing to replay.
        within("the last checkpoint", step * 2, self.checkpointer.send(Stop)).await;
        let writer = self.writer;
        within("the writer's thread", step, tokio::task::spawn_blocking(|| writer.join())).await;
        for arbiter in &self.arbiters {
            arbiter.stop();
        }
        tracing::info!("stopped");
        System::current().stop();
    }
}

fn open_store(
    settings: &Settings,
    clock: &dyn Clock,
) -> anyhow::Result<(Store, crate::store::Appender)> {
    let folder: &Path = &settings.data_dir;
    let medium = Folder::new(folder)
        .with_context(|| format!("create the data directory {}", folder.display()))?;
    let watch = Stopwatch::start();
    let (store, appender, report) =
        Store::open(Arc::new(medium), settings.granularities.clone(), clock.now())
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
    Ok((store, appender))
}

/// Damaged partitions are set aside; what stops a start is damage to the journal.
fn with_remedy(cause: StoreError) -> anyhow::Error {
    let damaged = cause.is_damage();
    let error = anyhow::Error::new(cause);
    if damaged {
        return error.context(
            "the journal is damaged and nothing was changed; make a new data directory of a \
             snapshot with `granary restore`, or see what is left with `granary verify`",
        );
    }
    error
}

fn api_parts(
    settings: &Settings,
    store: Store,
    writer: WriterHandle,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    health: &Health,
) -> ApiParts {
    ApiParts {
        store,
        writer,
        clock,
        metrics,
        health: health.clone(),
        query_limits: QueryLimits {
            series_max: settings.query_series_max,
            points_max: settings.query_points_max,
        },
        queries: Arc::new(Semaphore::new(settings.queries_max)),
        promql: settings.promql,
        query_memory: QueryMemory::new(settings.promql.memory_max),
        turns: Turns::for_this_machine(),
        body_limits: BodyLimits {
            request_bytes_max: settings.request_bytes_max,
            decompressed_bytes_max: settings.decompressed_bytes_max,
        },
        body_memory: BodyMemory::new(settings.body_memory_max),
        client_timeout: settings.client_timeout,
        snapshot_dir: settings.data_dir.join(&settings.snapshot_dir),
        snapshots: Arc::new(Semaphore::new(1)),
        series_limits: settings.series_limits,
        future_skew: settings.future_skew,
        tails: Tails::new(settings.tails_max),
    }
}

fn collector_parts(settings: &Settings, parts: &ApiParts) -> CollectorParts {
    CollectorParts {
        store: parts.store.clone(),
        writer: parts.writer.clone(),
        clock: parts.clock.clone(),
        metrics: parts.metrics.clone(),
        series_limits: settings.series_limits,
        sender_series_max: settings.store_limits.sender_series_max,
        series_max: settings.store_limits.series_max,
        request_series_max: settings.request_series_max,
        future_skew: settings.future_skew,
        out_of_order_window: settings.out_of_order_window,
        graphite_templates: settings.graphite_templates.clone().into(),
    }
}

fn start_graphite(
    settings: &Settings,
    parts: &ApiParts,
    lifelines: &Lifelines,
) -> anyhow::Result<GraphiteListeners> {
    let line = lifelines.for_role("Graphite collector");
    let collector = Collector::new(collector_parts(settings, parts), line).start();
    GraphiteListeners::start(&settings.graphite, collector, parts.metrics.clone())
        .with_context(|| format!("listen for Graphite on {:?}", settings.graphite))
}

fn start_server(
    settings: &Settings,
    parts: ApiParts,
    lifelines: &Lifelines,
) -> anyhow::Result<ServerHandle> {
    let collector = collector_parts(settings, &parts);
    let mut server_line = lifelines.for_role("HTTP server");
    let collector_lines = lifelines.clone();
    let connections = Connections::new(&parts.metrics, settings.client_timeout);
    let server = HttpServer::new(move || {
        let line = collector_lines.for_role("collector");
        let collector = Collector::new(collector.clone(), line).start();
        let parts = parts.clone();
        App::new().configure(|config| api::routes(config, parts, collector))
    })
    .workers(settings.worker_threads())
    .max_connections(settings.connections_max.div_ceil(settings.worker_threads()))
    .on_connect(move |connection, data| connections.note(connection, data))
    // Else the end of an answer may wait 40 ms for the client to acknowledge its beginning.
    .tcp_nodelay(true)
    .client_request_timeout(settings.client_timeout)
    .keep_alive(settings.keep_alive)
    .shutdown_timeout((settings.shutdown_timeout / 4).as_secs())
    .disable_signals()
    .bind(settings.listen)
    .with_context(|| format!("listen on {}", settings.listen))?
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

fn start_on_arbiter<A>(arbiters: &mut Vec<Arbiter>, actor: A) -> Addr<A>
where
    A: Actor<Context = actix::Context<A>> + Handler<Stop> + Send,
    actix::Context<A>: ToEnvelope<A, Stop>,
{
    let arbiter = Arbiter::new();
    let addr = A::start_in_arbiter(&arbiter.handle(), |_| actor);
    arbiters.push(arbiter);
    addr
}

/// Waits for a step of the stop; says who is late.
async fn within<T>(step: &'static str, limit: Duration, work: impl Future<Output = T>) {
    if timeout(limit, work).await.is_err() {
        tracing::warn!(step, ?limit, "is late; going on without it");
    }
}

async fn stop_signal() {
    let (Ok(mut term), Ok(mut int)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("cannot listen for signals; stop the daemon with SIGKILL");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => tracing::info!(signal = "SIGTERM", "asked to stop"),
        _ = int.recv() => tracing::info!(signal = "SIGINT", "asked to stop"),
    }
}

fn say_ready(health: &Health) {
    health.clear(Condition::Lifecycle);
    notify(&[sd_notify::NotifyState::Ready]);
    feed_watchdog();
}

/// Tells systemd that the event loop runs, twice as often as it asks for.
fn feed_watchdog() {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    actix::spawn(async move {
        loop {
            notify(&[sd_notify::NotifyState::Watchdog]);
            tokio::time::sleep(limit / 2).await;
        }
    });
}

fn notify(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(states) {
        tracing::debug!(%cause, "systemd was not told");
    }
}
