//! One membership of a node: it follows the log, and may hold the store after that.
//!
//! Must never know: the protocol of the log.

use std::{sync::Arc, time::Duration};

use actix_server::ServerHandle;
use actix_web::{App, middleware::from_fn};
use anyhow::Context;
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::sleep,
};

use super::Holding;
use crate::{
    actors::lifelines,
    api::{self, ShardRouter},
    clock::Stopwatch,
    cluster::{
        self, ClusterControl, Follower, ForwardLimits, Forwarder, Membership, Node, Phase,
        forward::FORWARDED_MAX, shards::FIRST,
    },
    config::{Settings, bounds},
    daemon::{
        Daemon, End, ExitReason,
        binding::Addresses,
        certificates::{CHECK_INTERVAL, Certificate},
        reloading::ReloadSources,
        serving::Serving,
        shards::OtherShards,
        signals::Signals,
        storing::{CheckedSettings, Opened, lead, upkeep, with_settings},
        systemd,
    },
    telemetry::{Health, Metrics},
};

/// The wait before a replica that cannot apply the log is opened again.
const DAMAGED_PAUSE: Duration = Duration::from_secs(10);
/// The interval between reads of the rule files.
const DIGEST_PAUSE: Duration = Duration::from_secs(10);
/// The wait after a take that failed.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The time by which a response may begin later than a query may take.
const RESPONSE_MARGIN: Duration = Duration::from_secs(10);

/// The end of a time in which the node follows.
enum Followed {
    Holds,
    Stopped,
    /// The membership begins again, perhaps with other settings.
    Again(Option<Box<CheckedSettings>>),
}

/// One membership: the node follows the log, and may hold the store after that.
pub(super) struct Turn<'a> {
    pub(super) node: &'a Node,
    pub(super) addresses: &'a Addresses,
    pub(super) sources: &'a ReloadSources,
    pub(super) others: &'a OtherShards,
}

impl Turn<'_> {
    /// Returns the settings of the next turn, or the reason why the daemon stops.
    pub(super) async fn run(
        &self,
        checked: CheckedSettings,
        signals: &mut Signals,
    ) -> anyhow::Result<Result<CheckedSettings, ExitReason>> {
        let digesting = self.digest_rules(&checked.settings);
        let (node, upkeep) = (self.node.clone(), upkeep(&checked.settings));
        let membership = spawn_blocking(move || node.join(FIRST, upkeep)).await??;
        let membership = Arc::new(membership);
        let next = match self.follow(&checked, &membership, signals).await {
            Ok(Followed::Stopped) => Ok(Err(ExitReason::Signal)),
            Ok(Followed::Again(None)) => Ok(Ok(checked)),
            Ok(Followed::Again(Some(settings))) => Ok(Ok(*settings)),
            Ok(Followed::Holds) => Box::pin(self.hold(checked, &membership, signals)).await,
            Err(cause) => Err(cause),
        };
        digesting.abort();
        if matches!(next, Ok(Err(ExitReason::Signal)) | Err(_)) {
            membership.hand_over();
        }
        let membership = Arc::into_inner(membership);
        let ended = match membership {
            Some(membership) => spawn_blocking(move || membership.end()).await?,
            None => false,
        };
        let next = next?;
        if !ended && next.is_ok() {
            tracing::error!(
                "a thread still uses the store; the daemon stops so that it can be restarted"
            );
            return Ok(Err(ExitReason::StoreInUse));
        }
        Ok(next)
    }

    /// Starts the task that follows changes of the rule files, as a take would read them.
    fn digest_rules(&self, settings: &Settings) -> JoinHandle<()> {
        let (sources, digest) = (settings.rule_sources(None), self.node.rules().clone());
        tokio::spawn(async move {
            loop {
                let sources = sources.clone();
                if let Ok(found) = spawn_blocking(move || sources.digest()).await {
                    *digest.lock() = found;
                }
                sleep(DIGEST_PAUSE).await;
            }
        })
    }

    /// Follows the log until this node holds the store.
    async fn follow(
        &self,
        checked: &CheckedSettings,
        membership: &Membership,
        signals: &mut Signals,
    ) -> anyhow::Result<Followed> {
        let settings = &checked.settings;
        let (metrics, health) = (Metrics::new().context("register metrics")?, Health::default());
        let (lines, mut watcher) = lifelines();
        let mut certificate = Certificate::new(checked.certificate.clone(), &metrics, &health);
        let tls = certificate.in_use();
        let limits = forward_limits(settings);
        let (node, is_encrypted) = (self.node.clone(), settings.tls_files().is_some());
        let forwarder = Forwarder::new(node, membership.status(), is_encrypted, limits);
        let forwarder = forwarder.map_err(anyhow::Error::msg)?;
        let follower = Follower {
            node: self.node.clone(),
            status: membership.status(),
            forwarder,
            control: ClusterControl::of(self.node),
            metrics: self.node.metrics().clone(),
            hides_metrics: settings.security.access,
        };
        let held = self.others.held().clone();
        let app = move || {
            let configure = |config: &mut _| {
                api::shard_routes(config, &held);
                cluster::follower::routes(config, &follower);
            };
            App::new().wrap(from_fn(api::receive)).configure(configure)
        };
        let serving = Serving { tls, metrics, threads: FORWARDED_MAX };
        let lifeline = lines.for_role("HTTP server");
        let server = serving.start(settings, &self.addresses.http, app, lifeline)?;
        systemd::notify(&[sd_notify::NotifyState::Ready]);
        tracing::info!(listen = %settings.server.listen, "following");
        let mut phase = membership.phase();
        let mut checks = tokio::time::interval(CHECK_INTERVAL);
        let followed = loop {
            tokio::select! {
                () = signals.stop.next() => break Followed::Stopped,
                () = signals.reload.next() => match self.reloaded(settings).await {
                    Ok(checked) => break Followed::Again(Some(Box::new(checked))),
                    Err(cause) => {
                        let cause = format!("{cause:#}");
                        tracing::error!(cause, "the reload failed; the previous settings stay");
                    }
                },
                _ = checks.tick() => certificate.check().await,
                changed = phase.changed() => {
                    let now = phase.borrow_and_update().clone();
                    match now {
                        Phase::Holds(_) => break Followed::Holds,
                        Phase::Follows if changed.is_ok() => {}
                        Phase::Follows | Phase::Lost => break Followed::Again(None),
                        Phase::Damaged(_) => {
                            tokio::select! {
                                () = signals.stop.next() => break Followed::Stopped,
                                () = sleep(DAMAGED_PAUSE) => break Followed::Again(None),
                            }
                        }
                    }
                }
                reason = self.node.refused() => anyhow::bail!(reason),
                death = watcher.death() => anyhow::bail!("the {} ended", death.role),
            }
        };
        end_following(&server, &followed).await;
        Ok(followed)
    }

    /// Reads the settings again.
    async fn reloaded(&self, settings: &Settings) -> anyhow::Result<CheckedSettings> {
        let source = self.sources.source.clone();
        let read = spawn_blocking(move || source.load()).await??;
        let (settings, difference) = settings.reloaded(&read)?;
        for kept in &difference.kept {
            let (setting, reason) = (&kept.change.key, &kept.reason);
            tracing::warn!(
                setting,
                reason,
                "the setting needs a restart; its previous value stays"
            );
        }
        let (format, filter) = (settings.log.format, settings.log.filter.clone());
        let checked = CheckedSettings::read(settings)?;
        self.sources.logging.change(format, &filter);
        tracing::info!("reloaded the settings");
        Ok(checked)
    }

    /// Holds the store until another node can hold it.
    async fn hold(
        &self,
        checked: CheckedSettings,
        membership: &Arc<Membership>,
        signals: &mut Signals,
    ) -> anyhow::Result<Result<CheckedSettings, ExitReason>> {
        let watch = Stopwatch::start();
        let settings = CheckedSettings {
            settings: checked.settings.clone(),
            certificate: checked.certificate.clone(),
        };
        let opened = match self.lead(settings, membership).await {
            Ok(opened) => opened,
            Err(cause) => return Ok(Ok(self.gave_up(&cause, checked, membership).await)),
        };
        let count = tokio::select! {
            count = self.node.shards().known() => count,
            reason = self.node.refused() => anyhow::bail!(reason),
        };
        anyhow::ensure!(
            count == 1 || checked.settings.publishing.is_none(),
            "publish.uri: documents cannot be published from a cluster with several shards, and \
             this one has {count}: remove publish.uri"
        );
        let router = (count > 1).then(|| {
            ShardRouter::new(ClusterControl::of(self.node), self.others.held().clone(), count)
        });
        let router = match router.transpose() {
            Ok(router) => router.map(Arc::new),
            Err(cause) => {
                let cause = anyhow::Error::msg(cause);
                return Ok(Ok(self.gave_up(&cause, checked, membership).await));
            }
        };
        let holding = Holding {
            node: self.node.clone(),
            held: self.others.held().clone(),
            settings: self.others.settings().clone(),
            router,
            membership: membership.clone(),
            phase: membership.phase(),
        };
        let started = Daemon::start(opened, self.sources, self.addresses, Some(holding));
        let daemon = match started {
            Ok(daemon) => daemon,
            Err(cause) => return Ok(Ok(self.gave_up(&cause, checked, membership).await)),
        };
        daemon.announce_ready(watch);
        Ok(match Box::pin(daemon.run(signals)).await {
            End::Stopped(reason) => Err(reason),
            End::Reopening(reopening) => Ok(reopening.settings),
            End::Lost => Ok(checked),
        })
    }

    /// Hands the store over after a start that failed; returns the settings of the next turn.
    async fn gave_up(
        &self,
        cause: &anyhow::Error,
        checked: CheckedSettings,
        membership: &Membership,
    ) -> CheckedSettings {
        let cause = format!("{cause:#}");
        tracing::error!(cause, "cannot hold the store; following again");
        membership.hand_over();
        sleep(RETRY_PAUSE).await;
        checked
    }

    /// Makes the store the one that appends, with the levels of its log.
    async fn lead(
        &self,
        mut checked: CheckedSettings,
        membership: &Arc<Membership>,
    ) -> anyhow::Result<Opened> {
        let (store, appender) = lead(&checked.settings, membership).await?;
        checked.settings.granularities = store.granularities().clone();
        with_settings(checked, (store, appender, None))
    }
}

/// Ends the server of a node that followed.
async fn end_following(server: &ServerHandle, followed: &Followed) {
    if !matches!(followed, Followed::Stopped) {
        // Later connections wait for the next server.
        server.pause().await;
    }
    // Forwarded requests end by themselves when the holder changes. A take does not wait for
    // clients: the server ends in the background, and a forwarded request uses no store.
    let stop = server.stop(true);
    if !matches!(followed, Followed::Holds) {
        stop.await;
    }
}

fn forward_limits(settings: &Settings) -> ForwardLimits {
    ForwardLimits {
        body_bytes_max: bounds::request_bytes_max(settings),
        client_timeout: settings.server.client_timeout,
        response_timeout: settings.limits.query_timeout + RESPONSE_MARGIN,
    }
}
