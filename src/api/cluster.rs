//! The operation of a cluster: its state, hand-over, and the removal and copy of replicas.
//!
//! Must never know: how a node does it.

use actix_web::{
    HttpResponse,
    http::{Method, StatusCode},
    web::{self, Query},
};
use serde::Deserialize;
use serde_json::json;

use super::{answer, scope::Scope};
use crate::cluster::{ClusterControl, OrderRefusal};

/// The operation of the cluster; `None` for an embedded daemon.
#[derive(Debug, Clone, Default)]
pub struct ClusterParts(pub Option<ClusterControl>);

/// The parameters of a change.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    #[serde(default)]
    node: String,
    #[serde(default)]
    shard: u16,
}

/// The routes.
pub(super) fn routes(mut scope: Scope<'_, ClusterParts>) {
    scope.route(Method::GET, "/api/v1/cluster/status", status);
    scope.route(Method::POST, "/api/v1/cluster/hand-over", hand_over);
    scope.route(Method::POST, "/api/v1/cluster/strike", strike);
    scope.route(Method::POST, "/api/v1/cluster/seed", seed);
}

fn no_cluster() -> HttpResponse {
    let message = "this daemon is no node of a cluster (cluster.uri is not set)";
    answer::error(StatusCode::NOT_FOUND, "no_cluster", message)
}

fn response(outcome: Result<(), OrderRefusal>, node: &str) -> HttpResponse {
    match outcome {
        Ok(()) => HttpResponse::Accepted().json(json!({ "node": node })),
        Err(refusal) => answer::error(StatusCode::CONFLICT, "refused", refusal),
    }
}

async fn status(parts: web::Data<ClusterParts>) -> HttpResponse {
    match &parts.get_ref().0 {
        Some(control) => HttpResponse::Ok().json(control.status().await),
        None => no_cluster(),
    }
}

type Params = Result<Query<Target>, actix_web::Error>;

fn invalid(cause: impl std::fmt::Display) -> HttpResponse {
    let message = format!("{cause}: pass the name of a node, as in ?node=node1-7117");
    answer::error(StatusCode::BAD_REQUEST, "invalid", message)
}

/// Carries out an order outside of the HTTP worker: it may be sent to another node.
async fn carry_out(
    parts: &ClusterParts,
    params: Params,
    order: impl FnOnce(&ClusterControl, &Target) -> Result<(), OrderRefusal> + Send + 'static,
) -> HttpResponse {
    let (control, target) = match (parts.0.clone(), params) {
        (Some(control), Ok(target)) => (control, target.into_inner()),
        (Some(_), Err(cause)) => return invalid(cause),
        (None, _) => return no_cluster(),
    };
    let node = match target.node.as_str() {
        "" => control.name().to_string(),
        node => node.to_owned(),
    };
    match web::block(move || order(&control, &target)).await {
        Ok(outcome) => response(outcome, &node),
        Err(cause) => answer::error(StatusCode::SERVICE_UNAVAILABLE, "busy", cause),
    }
}

async fn hand_over(params: Params, parts: web::Data<ClusterParts>) -> HttpResponse {
    carry_out(&parts, params, |control, target| control.hand_over(target.shard)).await
}

async fn strike(params: Params, parts: web::Data<ClusterParts>) -> HttpResponse {
    carry_out(&parts, params, |control, target| control.strike(target.shard, &target.node)).await
}

async fn seed(params: Params, parts: web::Data<ClusterParts>) -> HttpResponse {
    carry_out(&parts, params, |control, target| control.seed(target.shard, &target.node)).await
}
