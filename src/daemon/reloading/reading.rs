//! The first step of a reload: settings, rules and the certificate are read and checked.
//!
//! Must never know: how they are applied.

use std::convert::identity;

use tokio::task::spawn_blocking;

use super::Reloader;
use crate::{
    config::{Difference, Settings},
    daemon::{certificates::ReadCertificate, parts::machine_name},
    kept::{ReadRules, ReloadAnswer},
    model::with_causes,
    telemetry::check_filter,
};

/// Settings and rules that can be used.
pub(super) struct CheckedReload {
    pub(super) settings: Settings,
    pub(super) rules: ReadRules,
    pub(super) of_projects: Vec<ReadRules>,
    pub(super) certificate: ReadCertificate,
    pub(super) answer: ReloadAnswer,
}

impl Reloader {
    /// Reads settings and rules, and checks them, without using them.
    pub(super) async fn read(&self) -> Result<CheckedReload, String> {
        let source = self.source.clone();
        let read = spawn_blocking(move || source.load().map_err(|cause| cause.to_string()));
        let read = read.await.map_err(|cause| cause.to_string()).and_then(identity)?;
        let merged = self.settings.reloaded(&read).map_err(|cause| cause.to_string())?;
        let (settings, Difference { changed, reopens, kept }) = merged;
        check_filter(&settings.log.filter)?;
        if reopens && self.parts.snapshots.is_creating() {
            return Err("a snapshot is being created, which needs the open store: reload when it \
                        is complete"
                .to_owned());
        }
        if reopens {
            let (set, rules) = (&settings.granularities, &settings.retention_rules);
            let checked = self.parts.store.check_rules(set, rules, self.parts.clock.now());
            checked.map_err(|cause| format!("retention.rule: {}", with_causes(&cause)))?;
        }
        let tls_files = settings.tls_files();
        let certificate = spawn_blocking(move || ReadCertificate::read(tls_files));
        let certificate = certificate.await.map_err(|cause| cause.to_string())?;
        let certificate = certificate.map_err(|cause| with_causes(&cause))?;
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
        let of_projects = self.read_of_projects(&settings).await?;
        let answer = ReloadAnswer { rules: rules.count(), changed, reopens, kept };
        Ok(CheckedReload { settings, rules, of_projects, certificate, answer })
    }

    /// Reads the rules of the projects other than `default`.
    async fn read_of_projects(&self, settings: &Settings) -> Result<Vec<ReadRules>, String> {
        let machine = machine_name();
        let mut all = Vec::new();
        for (name, known) in &self.parts.of_projects {
            let sources = settings.rule_sources_of(name, machine.as_deref());
            all.push((name.clone(), known.clone(), sources));
        }
        let promql = settings.promql_settings();
        let read = move || {
            let read = all.into_iter().map(|(name, known, sources)| {
                known
                    .read(sources, &promql)
                    .map_err(|cause| format!("security.projects.{name}: {}", with_causes(&cause)))
            });
            read.collect()
        };
        spawn_blocking(read).await.map_err(|cause| cause.to_string())?
    }
}
