//! Dashboards and annotations over HTTP.
//!
//! Must never know: the contents of objects, and how objects are stored.

mod annotations;
mod dashboards;

use actix_web::{
    HttpResponse,
    http::{Method, StatusCode},
    web,
};
use serde_json::json;

use super::{answer, body::Bodies, scope::Scope};
use crate::{
    clock::TrustedClock,
    kept::{Annotations, DashboardFiles, KnownHosts, ObjectFault},
    store::{ObjectRefusal, Store},
    telemetry::Metrics,
};

/// The parts that the handlers of dashboards and annotations need.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct ObjectsParts {
    pub store: Store,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub bodies: Bodies,
    pub hosts: KnownHosts,
    pub annotations: Annotations,
    pub dashboard_files: DashboardFiles,
}

/// The routes.
pub(super) fn routes(mut scope: Scope<'_, ObjectsParts>) {
    scope.route(Method::GET, "/api/v1/dashboards", dashboards::list);
    scope.route(Method::GET, "/api/v1/dashboards/{name}", dashboards::get);
    scope.route(Method::PUT, "/api/v1/dashboards/{name}", dashboards::put);
    scope.route(Method::DELETE, "/api/v1/dashboards/{name}", dashboards::delete);
    scope.route(Method::GET, "/api/v1/annotations", annotations::list);
    scope.route(Method::POST, "/api/v1/annotations", annotations::add);
    scope.route(Method::DELETE, "/api/v1/annotations/{id}", annotations::delete);
}

/// Runs work that waits for the disk outside of the HTTP worker, and answers with its result.
async fn respond<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ObjectFault> + Send + 'static,
    answer: impl FnOnce(T) -> HttpResponse,
) -> HttpResponse {
    match web::block(work).await {
        Ok(Ok(done)) => answer(done),
        Ok(Err(fault)) => refusal(&fault),
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}

pub(super) fn refusal(fault: &ObjectFault) -> HttpResponse {
    match fault {
        ObjectFault::Invalid(message) => answer::error(StatusCode::BAD_REQUEST, "invalid", message),
        ObjectFault::NotFound(message) => {
            answer::error(StatusCode::NOT_FOUND, "not_found", message)
        }
        // The response contains the version that the next save must name.
        ObjectFault::Refused(cause @ ObjectRefusal::Conflict { found, .. }) => {
            HttpResponse::Conflict().json(json!({
                "error": "conflict", "message": cause.to_string(), "version": found,
            }))
        }
        ObjectFault::Refused(cause @ ObjectRefusal::BadName(_)) => {
            answer::error(StatusCode::BAD_REQUEST, "invalid", cause)
        }
        ObjectFault::Refused(cause @ ObjectRefusal::TooLarge { .. }) => {
            answer::error(StatusCode::PAYLOAD_TOO_LARGE, "too_large", cause)
        }
        ObjectFault::Refused(cause @ ObjectRefusal::QuotaReached) => {
            answer::error(StatusCode::INSUFFICIENT_STORAGE, "no_room", cause)
        }
        ObjectFault::Store(cause) => answer::store_error(cause),
    }
}
