//! Reloads: the settings, the rules and the files of dashboards are read again and applied
//! together.
//!
//! Must never know: what the roles do with a setting.

mod reading;

use std::{net::SocketAddr, path::PathBuf};

use reading::CheckedReload;

use tokio::{
    sync::{mpsc, oneshot},
    task::spawn_blocking,
    time::interval,
};

use super::{
    certificates::{CHECK_INTERVAL, Certificate, ReadCertificate},
    signals::ReloadSignal,
    storing::CheckedSettings,
    systemd,
};
use crate::{
    api::ApiParts,
    clock::{Clock, SystemClock, TrustedClock},
    config::{LiveSettings, Settings, SettingsSource},
    kept::{
        Audit, DashboardFiles, KnownRules, LiveValue, ReloadAnswer, ReloadRequest, SettingsAnswer,
        Snapshots,
    },
    model::{AuditRecord, ProjectName, with_causes},
    store::Store,
    telemetry::{Logging, Metrics},
    tls::ServerTls,
};

/// The sources of the settings, and the log that follows them.
#[derive(Debug, Clone)]
pub struct ReloadSources {
    /// The sources of the settings.
    pub source: SettingsSource,
    /// The log.
    pub logging: Logging,
}

impl ReloadSources {
    /// Returns the settings in use, as the API shows them.
    pub(super) fn shown(&self, settings: &mut LiveSettings) -> LiveValue<SettingsAnswer> {
        let flags = self.source.flags();
        settings.derive(move |settings| SettingsAnswer {
            settings: serde_json::to_value(&settings.shown).unwrap_or_default(),
            flags: flags.clone(),
        })
    }
}

/// The parts that a reload changes in addition to the published settings.
pub(super) struct ReloadParts {
    rules: KnownRules,
    /// The rules of the projects other than `default`.
    of_projects: Vec<(ProjectName, KnownRules)>,
    store: Store,
    clock: TrustedClock,
    metrics: Metrics,
    snapshots: Snapshots,
    audit: Audit,
    certificate: Certificate,
    dashboard_files: DashboardFiles,
}

impl ReloadParts {
    pub(super) fn new(
        projects: &[ApiParts],
        parts: &ApiParts,
        certificate: ReadCertificate,
    ) -> Self {
        let admin = &parts.admin;
        let of_project =
            |parts: &ApiParts| (parts.admin.store.project().clone(), parts.admin.rules.clone());
        let of_projects = projects.iter().skip(1).map(of_project).collect();
        let certificate = Certificate::new(certificate, &admin.metrics, &admin.health);
        let rules = admin.rules.clone();
        let (store, clock, metrics) =
            (admin.store.clone(), admin.clock.clone(), admin.metrics.clone());
        let (snapshots, audit) = (admin.snapshots.clone(), admin.access.audit.clone());
        let dashboard_files = parts.objects.dashboard_files.clone();
        Self {
            rules,
            of_projects,
            store,
            clock,
            metrics,
            snapshots,
            audit,
            certificate,
            dashboard_files,
        }
    }

    /// Reads the files of dashboards again if one of them has changed.
    async fn check_dashboards(&self) {
        if !self.dashboard_files.has_folder() {
            return;
        }
        let (files, metrics) = (self.dashboard_files.clone(), self.metrics.clone());
        if spawn_blocking(move || files.load_changed(&metrics)).await.is_err() {
            tracing::error!("the daemon is stopping; the files of dashboards are not read");
        }
    }

    /// Reads the files of dashboards of a folder.
    async fn load_dashboards(&self, folder: PathBuf) -> Result<(), String> {
        let (files, metrics) = (self.dashboard_files.clone(), self.metrics.clone());
        let load = spawn_blocking(move || files.load(&folder, &metrics));
        load.await.map_err(|cause| cause.to_string())
    }

    /// Returns the certificate for new connections.
    pub(super) fn tls(&self) -> LiveValue<Option<ServerTls>> {
        self.certificate.in_use()
    }
}

/// The reloads of a daemon, one at a time.
pub(super) struct Reloader {
    settings: LiveSettings,
    source: SettingsSource,
    parts: ReloadParts,
    requests: mpsc::Receiver<ReloadRequest>,
}

/// A reload for which the store is opened again.
pub(super) struct Reopening {
    /// The new settings.
    pub(super) settings: CheckedSettings,
    /// The settings in use until then.
    pub(super) before: CheckedSettings,
    answer: Option<(Reply, ReloadAnswer)>,
}

/// The channel for the answer to a request.
type Reply = oneshot::Sender<Result<ReloadAnswer, String>>;

impl Reopening {
    /// Answers the request, if there is one.
    pub(super) fn answer(&mut self) {
        if let Some((reply, answer)) = self.answer.take() {
            // The client may have disconnected meanwhile.
            drop(reply.send(Ok(answer)));
        }
    }
}

impl Reloader {
    pub(super) fn new(
        mut settings: LiveSettings,
        sources: &ReloadSources,
        parts: ReloadParts,
        requests: mpsc::Receiver<ReloadRequest>,
    ) -> Self {
        let ReloadSources { source, logging } = sources.clone();
        settings.follow(move |settings| {
            logging.change(settings.log.format, &settings.log.filter);
        });
        parts.metrics.config_last_reload_successful.set(1);
        parts.metrics.config_last_reload_success.set(seconds());
        Self { settings, source, parts, requests }
    }

    /// Returns the address of the HTTP server.
    pub(super) fn listen(&self) -> SocketAddr {
        self.settings.server.listen
    }

    /// Notes that the store could not be opened with the settings of a reload.
    pub(super) fn note_failure(&self, cause: &anyhow::Error) {
        self.count_failure(&format!("{cause:#}"));
    }

    /// Reloads at each signal and at each request, until a reload for which the store is opened
    /// again; reads the certificate when its files change.
    pub(super) async fn serve(&mut self, signal: &mut ReloadSignal) -> Reopening {
        let mut checks = interval(CHECK_INTERVAL);
        loop {
            let request = tokio::select! {
                _ = checks.tick() => {
                    self.parts.certificate.check().await;
                    self.parts.check_dashboards().await;
                    continue;
                }
                () = signal.next() => None,
                Some(request) = self.requests.recv() => Some(request),
            };
            let reply = match request {
                Some(ReloadRequest { is_trial: true, reply }) => {
                    let outcome = self.read().await.map(|read| read.answer);
                    // The client may have disconnected meanwhile.
                    drop(reply.send(outcome));
                    continue;
                }
                request => request.map(|request| request.reply),
            };
            let outcome = self.reload().await;
            if reply.is_none() {
                self.record(&outcome).await;
            }
            match (outcome, reply) {
                (Ok((answer, Some(settings))), reply) => {
                    let before = CheckedSettings {
                        settings: Settings::clone(&self.settings),
                        certificate: self.parts.certificate.read_last(),
                    };
                    let answer = reply.map(|reply| (reply, answer));
                    return Reopening { settings, before, answer };
                }
                (outcome, Some(reply)) => drop(reply.send(outcome.map(|(answer, _)| answer))),
                (_, None) => {}
            }
        }
    }

    /// Writes the record of a reload by a signal to the audit. Reloads by requests have records
    /// already.
    async fn record(&self, outcome: &Result<(ReloadAnswer, Option<CheckedSettings>), String>) {
        let changed = outcome.as_ref().map_or(String::new(), |(answer, _)| changed_keys(answer));
        let (audit, now) = (self.parts.audit.clone(), self.parts.clock.now());
        let record = AuditRecord::of_machine("", "SIGHUP", &changed, outcome.is_ok(), now);
        if spawn_blocking(move || audit.write_other(record)).await.is_err() {
            tracing::error!("the daemon is stopping; a reload has no record in the audit");
        }
    }

    /// Reloads settings and rules. When the store must be opened again to apply the settings,
    /// nothing changes yet, and the result contains the settings.
    async fn reload(&mut self) -> Result<(ReloadAnswer, Option<CheckedSettings>), String> {
        systemd::notify_reloading();
        let outcome = self.apply().await;
        // If the store is opened again, the daemon is ready after that.
        if !matches!(outcome, Ok((_, Some(_)))) {
            systemd::notify(&[sd_notify::NotifyState::Ready]);
        }
        match &outcome {
            Ok((answer, _)) => {
                self.parts.metrics.config_last_reload_successful.set(1);
                self.parts.metrics.config_last_reload_success.set(seconds());
                log_reload(answer);
            }
            Err(cause) => {
                self.count_failure(cause);
                // Faulty files of the certificate in use are reported at once.
                self.parts.certificate.check().await;
            }
        }
        outcome
    }

    fn count_failure(&self, cause: &str) {
        self.parts.metrics.config_last_reload_successful.set(0);
        self.parts.metrics.config_reload_failures.inc();
        tracing::error!(cause, "the reload failed; the previous settings and rules stay");
    }

    async fn apply(&mut self) -> Result<(ReloadAnswer, Option<CheckedSettings>), String> {
        let CheckedReload { settings, rules, of_projects, certificate, answer } =
            self.read().await?;
        if answer.reopens {
            return Ok((answer, Some(CheckedSettings { settings, certificate })));
        }
        let (store, now) = (self.parts.store.clone(), self.parts.clock.moment());
        let (set, of_series) = (settings.granularities.clone(), settings.retention_rules.clone());
        // This change waits for a running checkpoint.
        let changed = spawn_blocking(move || store.change_retentions(&set, &of_series, now));
        let changed = changed.await.map_err(|cause| cause.to_string())?;
        changed.map_err(|cause| format!("cannot change the retention: {}", with_causes(&cause)))?;
        self.parts.load_dashboards(settings.server.dashboards_dir.clone()).await?;
        self.settings.replace(settings);
        let others = self.parts.of_projects.iter().map(|(_, known)| known.clone());
        let replaced = [(self.parts.rules.clone(), rules)].into_iter();
        let replaced: Vec<_> = replaced.chain(others.zip(of_projects)).collect();
        let replace = spawn_blocking(move || {
            for (known, read) in replaced {
                known.replace(read);
                known.note_reload(None);
            }
        });
        replace.await.map_err(|cause| cause.to_string())?;
        self.parts.certificate.replace(certificate);
        Ok((answer, None))
    }
}

/// Returns the settings that a reload changes.
fn changed_keys(answer: &ReloadAnswer) -> String {
    let changed: Vec<_> = answer.changed.iter().map(|change| change.key.as_str()).collect();
    changed.join(", ")
}

fn log_reload(answer: &ReloadAnswer) {
    tracing::info!(changed = changed_keys(answer), "reloaded the settings and the rules");
    for kept in &answer.kept {
        let (setting, reason) = (&kept.change.key, &kept.reason);
        tracing::warn!(setting, reason, "the setting needs a restart; its previous value stays");
    }
}

fn seconds() -> i64 {
    SystemClock.now().0 / 1000
}
