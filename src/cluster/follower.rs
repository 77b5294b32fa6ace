//! The HTTP service of a node that does not hold the store: its own state, and the forwarding of
//! everything else.
//!
//! Must never know: what requests mean.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{self, ServiceConfig},
};
use serde_json::json;

use super::{
    answer,
    control::ClusterControl,
    forward::{self, Forwarder},
    metrics::NodeMetrics,
    node::Node,
    serving,
};
use crate::replication::{
    NodeName,
    runner::{StatusReader, now_ms},
};

/// The time without a read of the end of the log after which the node is not ready, in
/// milliseconds.
const LAG_MS_MAX: u64 = 6000;

/// The parts of the service. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Follower {
    /// This node.
    pub node: Node,
    /// The status of its replica.
    pub status: StatusReader,
    /// The answers to other nodes.
    pub control: ClusterControl,
    /// The client of requests to the holder.
    pub forwarder: Forwarder,
    /// The metrics of the node.
    pub metrics: NodeMetrics,
    /// True if metrics are only for this machine, because there is access control, and this node
    /// does not check keys.
    pub hides_metrics: bool,
}

/// Registers the routes for one HTTP worker.
pub fn routes(config: &mut ServiceConfig, follower: &Follower) {
    config.app_data(web::Data::new(follower.clone()));
    config.app_data(web::Data::new(follower.forwarder.clone()));
    for path in ["/healthz", "/-/healthy"] {
        config.route(path, web::get().to(healthz)).route(path, web::head().to(healthz));
    }
    for path in ["/readyz", "/-/ready"] {
        config.route(path, web::get().to(readyz)).route(path, web::head().to(readyz));
    }
    config.route("/metrics", web::get().to(metrics));
    serving::routes(config, &follower.control);
    config.default_service(web::to(forward::forward));
}

async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "status": "alive" }))
}

/// Reports whether requests are forwarded to a holder that answers.
async fn readyz(follower: web::Data<Follower>) -> HttpResponse {
    let status = follower.status.get();
    let lag_ms = status.caught_up_ms.map(|at| now_ms().saturating_sub(at));
    let mut cluster = json!({
        "role": "follower",
        "node": follower.node.parts().node.as_str(),
        "applied": status.applied,
        "lag_seconds": lag_ms.map(|lag| lag as f64 / 1e3),
    });
    let others = follower.node.nodes().with_other_rules(&follower.node.rules().lock());
    if !others.is_empty() {
        let names: Vec<_> = others.iter().map(NodeName::as_str).collect();
        cluster["nodes_with_other_rules"] = json!(names);
    }
    let reason = not_ready(&follower, &mut cluster, lag_ms).await;
    match reason {
        None => {
            let mut answer =
                json!({ "status": "ready", "pid": std::process::id(), "cluster": cluster });
            if let Some(reason) = follower.node.health().reason() {
                answer["status"] = json!("degraded");
                answer["reasons"] = json!({ "shards": reason });
            }
            HttpResponse::Ok().json(answer)
        }
        Some(reason) => {
            let reasons = json!({ "cluster": reason });
            let answer = json!({ "status": "not ready", "reasons": reasons, "cluster": cluster });
            HttpResponse::ServiceUnavailable().json(answer)
        }
    }
}

/// Returns the reason why requests cannot be forwarded at present; adds the holder to the state.
async fn not_ready(
    follower: &Follower,
    cluster: &mut serde_json::Value,
    lag_ms: Option<u64>,
) -> Option<String> {
    let status = follower.status.get();
    if let Some(foreign) = status.foreign {
        return Some(foreign);
    }
    if lag_ms.is_none_or(|lag_ms| lag_ms > LAG_MS_MAX) {
        let fault = status.last_fault.unwrap_or_else(|| "no fault was reported".to_owned());
        let seconds = LAG_MS_MAX / 1000;
        return Some(format!(
            "this node has not read the end of the log for {seconds} seconds; MongoDB may be away: \
             {fault}"
        ));
    }
    let Some((holder, address)) = follower.forwarder.holder() else {
        return Some("no node holds the store".to_owned());
    };
    cluster["holder"] = json!(holder.as_str());
    let reachable = follower.forwarder.is_reachable(address).await;
    (!reachable).then(|| format!("the holder {holder} does not answer"))
}

async fn metrics(request: HttpRequest, follower: web::Data<Follower>) -> HttpResponse {
    let is_local = request.peer_addr().is_some_and(|peer| peer.ip().to_canonical().is_loopback());
    if follower.hides_metrics && !is_local {
        let message = "a node that follows checks no keys: read its metrics from its own machine";
        return answer::error(StatusCode::FORBIDDEN, "forbidden", message);
    }
    // Metrics of held shards read their stores.
    let rendered = web::block(move || follower.metrics.shown.render()).await;
    match rendered {
        Ok(Ok(text)) => {
            HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text)
        }
        Ok(Err(cause)) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}
