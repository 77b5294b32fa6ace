//! The daemon's life: start, run, and the clean stop.

mod accepting;
mod alerting;
mod binding;
mod certificates;
mod clustering;
mod data_dir;
mod first_key;
mod listeners;
mod parts;
mod projects;
mod querying;
mod reloading;
mod serving;
mod shards;
mod signals;
mod store_roles;
mod storing;
mod systemd;

use std::{sync::Arc, time::Duration};

use actix::{Actor, Addr, Arbiter, Handler, Recipient, System, dev::ToEnvelope};
use actix_server::ServerHandle;
use anyhow::Context;
use tokio::{task::spawn_blocking, time::timeout};

use crate::{
    actors::{
        AuditKeeper, Death, GraphiteListeners, PublishedState, SelfSampler, SettingsChanged, Stop,
        Watcher, lifelines,
    },
    api::Tails,
    clock::{Clock, Stopwatch, TrustedClock},
    config::{LiveSettings, Settings, bounds},
    kept::KnownSettings,
    telemetry::{Condition, Health, Metrics},
};
use binding::Addresses;
use clustering::Holding;
pub use data_dir::{DataDir, process_using};
use listeners::{ReceivingParts, audit_keeper, start_graphite, start_self_sampler, start_server};
use parts::{SharedState, api_parts};
use projects::{ProjectRoles, all_projects, cardinality};
pub use reloading::ReloadSources;
use reloading::{ReloadParts, Reloader, Reopening};
use signals::Signals;
use store_roles::StoreRoles;
use storing::{CheckedSettings, Opened, open_store};

/// The time for which a node that stops holding the store waits for slow clients.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(2);

/// The reason why the daemon stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// SIGTERM or SIGINT.
    Signal,
    /// A role died; the service manager should restart the process.
    RoleDied(Death),
    /// A thread still used the store when a reload had to open it again; the service manager should
    /// restart the process.
    StoreInUse,
}

/// The end of a run.
enum End {
    Stopped(ExitReason),
    /// A reload opens the store again.
    Reopening(Box<Reopening>),
    /// Another node of the cluster holds the store.
    Lost,
}

/// The number of threads of the main runtime for blocking work: joining the roles' threads.
const BLOCKING_THREADS: usize = 4;

/// Runs the daemon until it is stopped.
///
/// # Errors
/// When it cannot start.
pub fn run(settings: Settings, sources: ReloadSources) -> anyhow::Result<ExitReason> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()
        .context("start the main thread's runtime")?;
    System::with_tokio_rt(move || runtime).block_on(async move {
        let reason = match settings.cluster_settings.clone() {
            None => Box::pin(serve(settings, &sources)).await,
            Some(cluster) => Box::pin(clustering::serve(settings, cluster, &sources)).await,
        };
        System::current().stop();
        reason
    })
}

/// Runs the daemon until it is stopped: after a reload that opens the store again, with the new
/// settings, and on the same addresses.
async fn serve(settings: Settings, sources: &ReloadSources) -> anyhow::Result<ExitReason> {
    let mut watch = Stopwatch::start();
    // Nothing is created when an address cannot be bound or the certificate cannot be used.
    let addresses = Addresses::bind(&settings)?;
    let checked = CheckedSettings::read(settings)?;
    let _data_dir = DataDir::claim(&checked.settings.storage.data_dir)?;
    let mut opened = open_store(checked).await?;
    let (mut signals, mut fault) = (None, None);
    loop {
        let closed = opened.store.closed();
        let daemon = Daemon::start(opened, sources, &addresses, None)?;
        if let Some(cause) = fault.take() {
            daemon.reloader.note_failure(&cause);
        }
        if signals.is_none() {
            systemd::feed_watchdog();
        }
        // Programs that wait for "ready" may send signals from then on.
        let signals = signals.get_or_insert_with(Signals::new);
        daemon.announce_ready(watch);
        let reopening = match Box::pin(daemon.run(signals)).await {
            End::Stopped(reason) => return Ok(reason),
            End::Reopening(reopening) => reopening,
            End::Lost => return Ok(ExitReason::StoreInUse),
        };
        watch = Stopwatch::start();
        if !spawn_blocking(move || closed.wait(bounds::SHUTDOWN_TIMEOUT)).await? {
            tracing::error!(
                "a thread still uses the store; the daemon stops so that it can be restarted"
            );
            return Ok(ExitReason::StoreInUse);
        }
        opened = match open_store(reopening.settings).await {
            Ok(opened) => opened,
            Err(cause) => {
                fault = Some(cause);
                open_store(reopening.before).await?
            }
        };
    }
}

struct Daemon {
    server: ServerHandle,
    graphite: GraphiteListeners,
    store_roles: StoreRoles,
    of_projects: ProjectRoles,
    audit_keeper: Addr<AuditKeeper>,
    reloader: Reloader,
    self_sampler: Addr<SelfSampler>,
    arbiters: Vec<Arbiter>,
    health: Health,
    watcher: Watcher,
    /// The lease of a node of a cluster.
    holding: Option<Holding>,
}

impl Daemon {
    fn start(
        opened: Opened,
        sources: &ReloadSources,
        addresses: &Addresses,
        holding: Option<Holding>,
    ) -> anyhow::Result<Self> {
        let Opened { settings: mut live, certificate, keys, people, store, appender, last_run } =
            opened;
        let settings = &mut live;
        let published = PublishedState::default();
        let health = published.health.clone();
        health.raise(Condition::Lifecycle, "starting");
        let trusted = TrustedClock::new(bounds::trust_rules(), last_run);
        let clock: Arc<dyn Clock> = Arc::new(trusted.clone());
        let metrics = Metrics::new().context("register metrics")?;
        let lease = holding.as_ref().map(|holding| holding.begin(&metrics));
        if let Some(holding) = &holding {
            holding.follow(settings);
        }
        let lease = lease.zip(Holding::held(holding.as_ref()));
        let router = Holding::router(holding.as_ref());
        let ((lifelines, watcher), mut arbiters) = (lifelines(), Vec::new());
        let cardinality = cardinality(settings, &store, &published);
        let reports = (&metrics, &published);
        let parts = (&store, appender);
        let store_roles =
            StoreRoles::start(settings, parts, &trusted, reports, &cardinality, &lifelines)?;
        let (known_settings, requests) = KnownSettings::new(sources.shown(settings));
        let cluster = Holding::parts(holding.as_ref());
        let known = (keys, people, known_settings, cluster, router.clone());
        let shared = SharedState::open(settings, &store, &trusted, &metrics, known)?;
        let writer = store_roles.writer().clone();
        let parts = api_parts(settings, store, &writer, trusted, metrics, published, shared);
        let projects = all_projects(settings, &parts, cardinality)?;
        let role = audit_keeper(&parts, &clock, &lifelines);
        let audit_keeper = start_on_arbiter(&mut arbiters, role);
        let reload_parts = ReloadParts::new(&projects, &parts, certificate);
        let receiving = ReceivingParts::new(settings, reload_parts.tls(), router);
        let (http, sockets) = (&addresses.http, &addresses.graphite);
        let graphite =
            start_graphite(sockets, settings, &receiving, &parts, &lifelines, &mut arbiters)?;
        let of_projects = ProjectRoles::start(settings, &projects, &lifelines, &mut arbiters);
        let self_sampler =
            start_self_sampler(settings, &receiving, &parts, &lifelines, &mut arbiters);
        let roles = (&lifelines, &mut arbiters);
        let server = start_server(settings, &receiving, http, &projects, lease, roles)?;
        let reloader = Reloader::new(live, sources, reload_parts, requests);
        Ok(Self {
            server,
            graphite,
            store_roles,
            of_projects,
            audit_keeper,
            reloader,
            self_sampler,
            arbiters,
            health,
            watcher,
            holding,
        })
    }

    fn announce_ready(&self, watch: Stopwatch) {
        self.health.clear(Condition::Lifecycle);
        systemd::notify(&[sd_notify::NotifyState::Ready]);
        tracing::info!(listen = %self.reloader.listen(), elapsed_ms = watch.millis(), "ready");
    }

    async fn run(mut self, signals: &mut Signals) -> End {
        let mut end = tokio::select! {
            () = signals.stop.next() => End::Stopped(ExitReason::Signal),
            reopening = self.reloader.serve(&mut signals.reload) => End::Reopening(Box::new(reopening)),
            () = Holding::lost(&mut self.holding) => End::Lost,
            death = self.watcher.death() => {
                tracing::error!(role = death.role, "a role died; the daemon stops so that it can be restarted");
                End::Stopped(ExitReason::RoleDied(death))
            }
        };
        self.stop(&mut end).await;
        end
    }

    /// Stops everything in order. Acknowledged samples are already in the journal; each step only
    /// saves work for the next start.
    async fn stop(mut self, end: &mut End) {
        match end {
            End::Stopped(_) => systemd::notify(&[sd_notify::NotifyState::Stopping]),
            End::Reopening(_) => tracing::info!("the store is opened again with other settings"),
            End::Lost => tracing::info!("the store is opened again as a replica"),
        }
        self.health.raise(Condition::Lifecycle, "stopping");
        tracing::info!("stopping");
        // The server and the roles share the timeout; the last checkpoint gets the largest part.
        let step = bounds::SHUTDOWN_TIMEOUT / 4;
        // 1. The daemon accepts no new requests and ends live tails; it answers running requests.
        self.graphite.stop();
        self.of_projects.tails.iter().for_each(Tails::end);
        // Requests for further reloads fail.
        drop(self.reloader);
        if !matches!(end, End::Stopped(_)) {
            // Later connections wait for the next server.
            self.server.pause().await;
        }
        if let End::Reopening(reopening) = end {
            reopening.answer();
        }
        // Slow clients must not keep a store from its next holder.
        let drained = if self.holding.is_some() { HANDED_OVER_WITHIN } else { step };
        within("the HTTP server", drained, self.server.stop(true)).await;
        within("the self-sampler", step, self.self_sampler.send(Stop)).await;
        for alerting in &self.of_projects.alerting {
            alerting.stop(step).await;
        }
        // 2. The writer commits the batches that wait for the journal.
        self.store_roles.commit(step).await;
        if let Some(holding) = self.holding {
            // The next holder need not wait for the end of the other steps.
            within("the hand-over of the store", step, holding.hand_over()).await;
        }
        // 3. The roles that write in the background end.
        self.store_roles.end_background(step).await;
        for host_keeper in &self.of_projects.host_keepers {
            within("a host keeper", step, host_keeper.send(Stop)).await;
        }
        within("the audit keeper", step, self.audit_keeper.send(Stop)).await;
        within("the sparkline refresher", step, self.of_projects.sparkline_refresher.send(Stop))
            .await;
        // 4. A checkpoint leaves nothing to replay for the next start.
        self.store_roles.finish(step).await;
        for arbiter in &self.arbiters {
            arbiter.stop();
        }
        tracing::info!("stopped");
    }
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

/// Waits for a step of the stop, and logs when it is late.
async fn within<T>(step: &'static str, limit: Duration, work: impl Future<Output = T>) {
    if timeout(limit, work).await.is_err() {
        tracing::warn!(step, ?limit, "the step is late; continuing without it");
    }
}

/// Notifies a role of each change of the settings. A busy role sees the change at its next turn.
fn notice_changes(
    settings: &mut LiveSettings,
    role: &'static str,
    recipient: Recipient<SettingsChanged>,
) {
    settings.after_changes(move |_| {
        if recipient.try_send(SettingsChanged).is_err() {
            tracing::debug!(role, "the role is busy and will see the settings at its next turn");
        }
    });
}
