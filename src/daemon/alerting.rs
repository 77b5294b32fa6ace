//! The roles of alerts: evaluation of rules, and notifications.
//!
//! Must never know: the other roles, and when they end.

use std::{sync::Arc, time::Duration};

use actix::{Addr, Arbiter};
use tokio::signal::unix::{SignalKind, signal};

use super::{start_on_arbiter, within};
use crate::{
    actors::{
        AlertForwarder, AlertForwarderParts, Alerter, AlerterParts, Lifelines, Notifier,
        NotifierParts, Stop,
    },
    alerts::Alertmanager,
    api::ApiParts,
    config::Settings,
    kept::KnownRules,
    model::SeriesLimits,
};

/// The roles of alerts.
pub(super) struct Alerting {
    alerter: Addr<Alerter>,
    /// The forwarders, one for each Alertmanager.
    forwarders: Vec<Addr<AlertForwarder>>,
    notifier: Addr<Notifier>,
    /// The rules under evaluation.
    pub(super) rules: KnownRules,
}

impl Alerting {
    pub(super) fn start(
        settings: &Settings,
        parts: &ApiParts,
        lifelines: &Lifelines,
        arbiters: &mut Vec<Arbiter>,
    ) -> Self {
        let (admin, query) = (&parts.admin, &parts.query);
        let alerter = Alerter::new(AlerterParts {
            rules: admin.rules.clone(),
            hosts: admin.hosts.clone(),
            store: admin.store.clone(),
            writer: admin.writer.clone(),
            clock: admin.clock.clone(),
            metrics: admin.metrics.clone(),
            resources: query.resources.clone(),
            promql: query.promql,
            series_limits: SeriesLimits::default(),
            health: admin.health.clone(),
            lifeline: lifelines.for_role("alerter"),
        });
        let alerter = start_on_arbiter(arbiters, alerter);
        let forwarder = |alertmanager: &Alertmanager| {
            let parts = AlertForwarderParts {
                rules: admin.rules.clone(),
                clock: admin.clock.clone(),
                metrics: admin.metrics.clone(),
                alertmanager: alertmanager.clone(),
                lifeline: lifelines.for_role("alert forwarder"),
            };
            start_on_arbiter(arbiters, AlertForwarder::new(parts))
        };
        let forwarders = settings.alertmanagers.iter().map(forwarder).collect();
        let silences = parts.alerting.silences.clone();
        let notifier = Notifier::new(NotifierParts {
            rules: admin.rules.clone(),
            posted: parts.alerting.posted.clone(),
            store: admin.store.clone(),
            clock: admin.clock.clone(),
            metrics: admin.metrics.clone(),
            health: admin.health.clone(),
            is_silenced: Arc::new(move |labels, at| silences.is_silenced(labels, at)),
            lifeline: lifelines.for_role("notifier"),
        });
        let notifier = start_on_arbiter(arbiters, notifier);
        Self { alerter, forwarders, notifier, rules: admin.rules.clone() }
    }

    pub(super) async fn stop(&self, step: Duration) {
        within("the alerter", step, self.alerter.send(Stop)).await;
        for forwarder in &self.forwarders {
            within("an alert forwarder", step, forwarder.send(Stop)).await;
        }
        within("the notifier", step, self.notifier.send(Stop)).await;
    }
}

/// Reloads the rules at each SIGHUP; never returns.
pub(super) async fn reload_on_signal(rules: KnownRules) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else {
        tracing::error!("cannot listen for SIGHUP; reload rules with POST /-/reload");
        return std::future::pending().await;
    };
    while hangup.recv().await.is_some() {
        let rules = rules.clone();
        // The reload itself logs errors.
        drop(tokio::task::spawn_blocking(move || rules.reload().is_ok()).await);
    }
    std::future::pending::<()>().await;
}
