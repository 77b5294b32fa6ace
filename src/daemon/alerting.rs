//! The roles of alerts: evaluation of rules, and notifications.
//!
//! Must never know: the other roles, and when they end.

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};

use actix::{Actor, Addr, Arbiter};

use super::{start_on_arbiter, within};
use crate::{
    actors::{
        AlertForwarder, AlertForwarderParts, Alerter, AlerterParts, Lifelines, Notifier,
        NotifierParts, Stop,
    },
    alerts::Alertmanager,
    api::ApiParts,
    clock::TrustedClock,
    config::{LiveSettings, Settings},
    kept::KnownRules,
    model::SeriesLimits,
    telemetry::Metrics,
};

/// The roles of alerts.
pub(super) struct AlertingRoles {
    alerter: Addr<Alerter>,
    forwarders: Rc<RefCell<ForwarderSet>>,
    notifier: Addr<Notifier>,
}

/// The forwarders, one for each Alertmanager, and the parts from which further forwarders are
/// created.
struct ForwarderSet {
    running: Vec<Forwarder>,
    rules: KnownRules,
    clock: TrustedClock,
    metrics: Metrics,
    lifelines: Lifelines,
}

struct Forwarder {
    alertmanager: Alertmanager,
    role: Addr<AlertForwarder>,
    arbiter: Arbiter,
}

impl ForwarderSet {
    /// Stops the forwarders of Alertmanagers that are not in the list, and starts the missing ones.
    fn follow_alertmanagers(&mut self, alertmanagers: &[Alertmanager]) {
        let (kept, former): (Vec<_>, Vec<_>) = std::mem::take(&mut self.running)
            .into_iter()
            .partition(|forwarder| alertmanagers.contains(&forwarder.alertmanager));
        self.running = kept;
        for Forwarder { role, arbiter, .. } in former {
            actix::spawn(async move {
                if role.send(Stop).await.is_err() {
                    tracing::debug!("a former alert forwarder has ended");
                }
                arbiter.stop();
            });
        }
        for alertmanager in alertmanagers {
            let is_known = |forwarder: &Forwarder| forwarder.alertmanager == *alertmanager;
            if !self.running.iter().any(is_known) {
                self.running.push(self.start(alertmanager));
            }
        }
    }

    fn start(&self, alertmanager: &Alertmanager) -> Forwarder {
        let role = AlertForwarder::new(AlertForwarderParts {
            rules: self.rules.clone(),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            alertmanager: alertmanager.clone(),
            lifeline: self.lifelines.for_role("alert forwarder"),
        });
        let arbiter = Arbiter::new();
        let role = AlertForwarder::start_in_arbiter(&arbiter.handle(), |_| role);
        Forwarder { alertmanager: alertmanager.clone(), role, arbiter }
    }
}

impl AlertingRoles {
    /// Starts the roles of each project.
    pub(super) fn start(
        settings: &mut LiveSettings,
        projects: &[ApiParts],
        lifelines: &Lifelines,
        arbiters: &mut Vec<Arbiter>,
    ) -> Vec<Self> {
        let mut start = |parts| Self::start_project(settings, parts, lifelines, arbiters);
        projects.iter().map(&mut start).collect()
    }

    fn start_project(
        settings: &mut LiveSettings,
        parts: &ApiParts,
        lifelines: &Lifelines,
        arbiters: &mut Vec<Arbiter>,
    ) -> Self {
        let (admin, query) = (&parts.admin, &parts.query);
        let (project, metrics) = (admin.store.project(), &admin.of_rules);
        let alerter = Alerter::new(AlerterParts {
            rules: admin.rules.clone(),
            hosts: admin.hosts.clone(),
            store: admin.store.clone(),
            writer: admin.writer.clone(),
            clock: admin.clock.clone(),
            metrics: metrics.clone(),
            resources: query.resources.clone(),
            promql: query.promql.clone(),
            series_limits: SeriesLimits::default(),
            health: admin.health.clone(),
            lifeline: lifelines.for_role("alerter"),
        });
        let alerter = start_on_arbiter(arbiters, alerter);
        let forwarders = Rc::new(RefCell::new(ForwarderSet {
            running: Vec::new(),
            rules: admin.rules.clone(),
            clock: admin.clock.clone(),
            metrics: metrics.clone(),
            lifelines: lifelines.clone(),
        }));
        let shared = forwarders.clone();
        if project.is_default() {
            settings.follow(move |settings: &Settings| {
                shared.borrow_mut().follow_alertmanagers(&settings.alertmanagers);
            });
        } else {
            // A reload that changes projects starts all roles again.
            let alertmanagers = &settings.project_settings(project).alertmanagers;
            shared.borrow_mut().follow_alertmanagers(alertmanagers);
        }
        let silences = parts.alerting.silences.clone();
        let notifier = Notifier::new(NotifierParts {
            rules: admin.rules.clone(),
            posted: parts.alerting.posted.clone(),
            store: admin.store.clone(),
            clock: admin.clock.clone(),
            metrics: metrics.clone(),
            health: admin.health.clone(),
            is_silenced: Arc::new(move |labels, at| silences.is_silenced(labels, at)),
            lifeline: lifelines.for_role("notifier"),
        });
        let notifier = start_on_arbiter(arbiters, notifier);
        Self { alerter, forwarders, notifier }
    }

    pub(super) async fn stop(&self, step: Duration) {
        within("the alerter", step, self.alerter.send(Stop)).await;
        let running = std::mem::take(&mut self.forwarders.borrow_mut().running);
        for Forwarder { role, arbiter, .. } in running {
            within("an alert forwarder", step, role.send(Stop)).await;
            arbiter.stop();
        }
        within("the notifier", step, self.notifier.send(Stop)).await;
    }
}
