//! The roles of alerts: evaluation of rules, and notifications.
//!
//! Must never know: the other roles, and when they end.

use std::{sync::Arc, time::Duration};

use actix::{Addr, Arbiter};
use tokio::signal::unix::{SignalKind, signal};

use super::{start_on_arbiter, within};
use crate::{
    actors::{
        Alerter, AlerterParts, Lifelines, Messenger, MessengerParts, Notifier, NotifierParts, Stop,
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
    /// The notifiers, one for each Alertmanager.
    notifiers: Vec<Addr<Notifier>>,
    messenger: Addr<Messenger>,
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
        let notifier = |alertmanager: &Alertmanager| {
            let parts = NotifierParts {
                rules: admin.rules.clone(),
                clock: admin.clock.clone(),
                metrics: admin.metrics.clone(),
                alertmanager: alertmanager.clone(),
                lifeline: lifelines.for_role("notifier"),
            };
            start_on_arbiter(arbiters, Notifier::new(parts))
        };
        let notifiers = settings.alertmanagers.iter().map(notifier).collect();
        let silences = parts.alerting.silences.clone();
        let messenger = Messenger::new(MessengerParts {
            rules: admin.rules.clone(),
            posted: parts.alerting.posted.clone(),
            store: admin.store.clone(),
            clock: admin.clock.clone(),
            metrics: admin.metrics.clone(),
            health: admin.health.clone(),
            is_muted: Arc::new(move |labels, at| silences.is_silenced(labels, at)),
            lifeline: lifelines.for_role("messenger"),
        });
        let messenger = start_on_arbiter(arbiters, messenger);
        Self { alerter, notifiers, messenger, rules: admin.rules.clone() }
    }

    pub(super) async fn stop(&self, step: Duration) {
        within("the alerter", step, self.alerter.send(Stop)).await;
        for notifier in &self.notifiers {
            within("a notifier", step, notifier.send(Stop)).await;
        }
        within("the messenger", step, self.messenger.send(Stop)).await;
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
