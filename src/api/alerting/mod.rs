//! Alerts and silences over HTTP: Alertmanager's API v2 (github.com/prometheus/alertmanager,
//! `api/v2/openapi.yaml`), acknowledgements, texts of rules and receivers, and tests of receivers.
//!
//! Must never know: how rules are evaluated, where silences are stored.

mod acknowledge;
mod alerts;
mod params;
mod posted;
mod receivers;
mod silences;
mod status;
mod texts;
mod trial;

use actix_web::{
    HttpResponse,
    http::{Method, StatusCode},
};

use super::{body::Bodies, scope::Scope};
use crate::{
    clock::TrustedClock,
    kept::{KnownPostedAlerts, KnownRules, KnownSilences},
    model::UnixMillis,
    notify::ReceiverTests,
};

/// The parts that the handlers of alerts need.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct AlertingParts {
    pub rules: KnownRules,
    pub silences: KnownSilences,
    pub posted: KnownPostedAlerts,
    pub clock: TrustedClock,
    pub bodies: Bodies,
    pub receiver_tests: ReceiverTests,
    /// The time at which the daemon started.
    pub started: UnixMillis,
}

/// The routes.
pub(super) fn routes(mut scope: Scope<'_, AlertingParts>) {
    scope.compressed(Method::GET, "/api/v2/alerts", alerts::list);
    scope.route(Method::POST, "/api/v2/alerts", posted::put);
    scope.compressed(Method::GET, "/api/v2/alerts/groups", alerts::groups);
    scope.compressed(Method::GET, "/api/v2/silences", silences::list);
    scope.route(Method::POST, "/api/v2/silences", silences::put);
    scope.route(Method::GET, "/api/v2/silence/{id}", silences::get);
    scope.route(Method::DELETE, "/api/v2/silence/{id}", silences::expire);
    scope.route(Method::GET, "/api/v2/status", status::status);
    scope.route(Method::GET, "/api/v2/receivers", status::receivers);
    scope.route(Method::POST, "/api/v1/alerts/ack", acknowledge::acknowledge);
    scope.route(Method::POST, "/api/v1/alerts/unack", acknowledge::withdraw);
    scope.route(Method::POST, "/api/v1/receivers/test", trial::test);
    scope.route(Method::GET, "/api/v1/rule-files", texts::list);
    scope.route(Method::POST, "/api/v1/rule-files/check", texts::check);
    scope.route(Method::GET, "/api/v1/rule-files/{name}", texts::get);
    scope.route(Method::PUT, "/api/v1/rule-files/{name}", texts::put);
    scope.route(Method::DELETE, "/api/v1/rule-files/{name}", texts::delete);
    scope.route(Method::POST, "/api/v1/notifications/check", receivers::check);
    scope.route(Method::GET, "/api/v1/notifications", receivers::get);
    scope.route(Method::PUT, "/api/v1/notifications", receivers::put);
    scope.route(Method::DELETE, "/api/v1/notifications", receivers::delete);
}

/// Returns an error as Alertmanager writes it: a JSON string.
fn fault(status: StatusCode, message: &impl ToString) -> HttpResponse {
    HttpResponse::build(status).json(message.to_string())
}

/// Formats a time as Alertmanager does: RFC 3339 with milliseconds.
fn time(at: UnixMillis) -> String {
    at.timestamp().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
