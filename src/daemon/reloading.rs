//! Reloads: the settings and the rules are read again, checked, and applied together.
//!
//! Must never know: what the roles do with a setting.

use std::convert::identity;

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    task::spawn_blocking,
};

use super::{parts::machine_name, systemd};
use crate::{
    api::ApiParts,
    clock::{Clock, SystemClock, TrustedClock},
    config::{Difference, LiveSettings, Settings, SettingsSource},
    kept::{KnownRules, LiveValue, ReadRules, ReloadAnswer, ReloadRequest, SettingsAnswer},
    model::with_causes,
    store::Store,
    telemetry::{Logging, Metrics, check_filter},
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

/// The parts that a reload changes beside the published settings.
pub(super) struct ReloadParts {
    rules: KnownRules,
    store: Store,
    clock: TrustedClock,
    metrics: Metrics,
}

impl ReloadParts {
    pub(super) fn new(parts: &ApiParts) -> Self {
        let admin = &parts.admin;
        let rules = admin.rules.clone();
        let (store, clock, metrics) =
            (admin.store.clone(), admin.clock.clone(), admin.metrics.clone());
        Self { rules, store, clock, metrics }
    }
}

/// The reloads of a daemon, one at a time.
pub(super) struct Reloader {
    settings: LiveSettings,
    source: SettingsSource,
    parts: ReloadParts,
    requests: mpsc::Receiver<ReloadRequest>,
    hangup: Option<Signal>,
}

impl Reloader {
    pub(super) fn new(
        mut settings: LiveSettings,
        sources: ReloadSources,
        parts: ReloadParts,
        requests: mpsc::Receiver<ReloadRequest>,
    ) -> Self {
        let ReloadSources { source, logging } = sources;
        settings.after_changes(move |settings| {
            logging.change(settings.log.format, &settings.log.filter);
        });
        parts.metrics.config_last_reload_successful.set(1);
        parts.metrics.config_last_reload_success.set(seconds());
        let hangup = signal(SignalKind::hangup()).ok();
        if hangup.is_none() {
            tracing::error!("cannot listen for SIGHUP; reload with POST /-/reload");
        }
        Self { settings, source, parts, requests, hangup }
    }

    /// Reloads at each SIGHUP since `new` and at each request; never returns.
    pub(super) async fn serve(&mut self) {
        loop {
            tokio::select! {
                () = next_signal(&mut self.hangup) => drop(self.reload().await),
                Some(request) = self.requests.recv() => {
                    let outcome = if request.is_trial {
                        self.read().await.map(|read| read.answer)
                    } else {
                        self.reload().await
                    };
                    // The client may have disconnected meanwhile.
                    drop(request.reply.send(outcome));
                }
            }
        }
    }

    async fn reload(&mut self) -> Result<ReloadAnswer, String> {
        systemd::notify_reloading();
        let outcome = self.apply().await;
        systemd::notify(&[sd_notify::NotifyState::Ready]);
        let metrics = &self.parts.metrics;
        metrics.config_last_reload_successful.set(i64::from(outcome.is_ok()));
        match &outcome {
            Ok(answer) => {
                metrics.config_last_reload_success.set(seconds());
                log_reload(answer);
            }
            Err(cause) => {
                metrics.config_reload_failures.inc();
                tracing::error!(cause, "the reload failed; the previous settings and rules stay");
            }
        }
        outcome
    }

    async fn apply(&mut self) -> Result<ReloadAnswer, String> {
        let CheckedReload { settings, rules, answer } = self.read().await?;
        let (store, now) = (self.parts.store.clone(), self.parts.clock.moment());
        let (set, of_series) = (settings.granularities.clone(), settings.retention_rules.clone());
        // A checkpoint may be running, which this change waits for.
        let changed = spawn_blocking(move || store.change_retentions(&set, &of_series, now));
        let changed = changed.await.map_err(|cause| cause.to_string())?;
        changed.map_err(|cause| format!("cannot change the retention: {}", with_causes(&cause)))?;
        self.settings.replace(settings);
        self.parts.rules.replace(rules);
        self.parts.rules.note_reload(None);
        Ok(answer)
    }

    /// Reads settings and rules, and checks them, without using them.
    async fn read(&self) -> Result<CheckedReload, String> {
        let source = self.source.clone();
        let read = spawn_blocking(move || source.load().map_err(|cause| cause.to_string()));
        let read = read.await.map_err(|cause| cause.to_string()).and_then(identity)?;
        let merged = self.settings.reloaded(&read).map_err(|cause| cause.to_string())?;
        let (settings, Difference { changed, kept }) = merged;
        check_filter(&settings.log.filter)?;
        let sources = settings.rule_sources(machine_name().as_deref());
        let (known, promql) = (self.parts.rules.clone(), settings.promql_settings());
        let rules = spawn_blocking(move || {
            known.read(sources, &promql).map_err(|cause| {
                let fault = with_causes(&cause);
                known.note_reload(Some(fault.clone()));
                fault
            })
        });
        let rules = rules.await.map_err(|cause| cause.to_string()).and_then(identity)?;
        let answer = ReloadAnswer { rules: rules.count(), changed, kept };
        Ok(CheckedReload { settings, rules, answer })
    }
}

/// Settings and rules that can be used.
struct CheckedReload {
    settings: Settings,
    rules: ReadRules,
    answer: ReloadAnswer,
}

/// Waits for the next signal; forever without a listener.
async fn next_signal(hangup: &mut Option<Signal>) {
    if let Some(hangup) = hangup
        && hangup.recv().await.is_some()
    {
        return;
    }
    std::future::pending::<()>().await;
}

fn log_reload(answer: &ReloadAnswer) {
    let changed: Vec<_> = answer.changed.iter().map(|change| change.key.as_str()).collect();
    tracing::info!(changed = changed.join(", "), "reloaded the settings and the rules");
    for kept in &answer.kept {
        let (setting, reason) = (&kept.change.key, &kept.reason);
        tracing::warn!(setting, reason, "the setting needs a restart; its previous value stays");
    }
}

fn seconds() -> i64 {
    SystemClock.now().0 / 1000
}
