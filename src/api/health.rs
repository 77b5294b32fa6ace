//! `/metrics`, `/healthz` and `/readyz`, the last two also as `/-/healthy` and `/-/ready`.

use std::collections::BTreeMap;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, StatusCode},
    web,
};
use serde_json::json;

use super::{AdminParts, answer, scope::Scope};
use crate::{
    cluster::ClusterControl,
    kept::KnownRules,
    model::{HostState, ProjectName, with_noun},
    telemetry::SelfReading,
};

/// The status of a daemon that does not accept samples.
const NOT_READY: &str = "not ready";

/// The routes.
pub(super) fn routes(mut scope: Scope<'_, AdminParts>) {
    scope.route(Method::GET, "/metrics", metrics);
    scope.route(Method::GET, "/healthz", healthz);
    scope.route(Method::GET, "/readyz", readyz);
    // The paths of Prometheus and Alertmanager.
    for method in [Method::GET, Method::HEAD] {
        scope.route(method.clone(), "/-/healthy", healthz);
        scope.route(method, "/-/ready", readyz);
    }
}

impl AdminParts {
    /// Updates the metrics whose values are counted elsewhere.
    fn refresh_metrics(&self) {
        let metrics = &self.metrics;
        metrics.body_memory_bytes.set(self.bodies.used_bytes() as i64);
        let hosts = self.hosts.totals();
        for state in HostState::ALL {
            metrics.hosts.with_label_values(&[state.as_str()]).set(hosts.of(*state) as i64);
        }
        let forgotten = &metrics.hosts_forgotten;
        forgotten.inc_by(self.hosts.forgotten().saturating_sub(forgotten.get()));
        let clock = self.clock.report();
        metrics.clock_doubted.set(i64::from(clock.doubted));
        metrics.clock_ahead_seconds.set(clock.ahead_ms / 1000);
    }

    /// Returns the daemon's own metrics as samples.
    pub fn readings(&self) -> Vec<SelfReading> {
        self.refresh_metrics();
        self.metrics.readings(&self.store)
    }
}

async fn metrics(parts: web::Data<AdminParts>) -> HttpResponse {
    parts.refresh_metrics();
    let rendered = web::block(move || parts.metrics.render(&parts.store)).await;
    match rendered {
        Ok(Ok(text)) => {
            HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text)
        }
        Ok(Err(cause)) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}

/// Reports that the process answers, and nothing else.
async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "status": "alive" }))
}

/// Reports whether requests are served and samples accepted, with the reasons if not.
/// Without the right to see the daemon's state, a caller gets neither reasons nor warnings.
async fn readyz(request: HttpRequest, parts: web::Data<AdminParts>) -> HttpResponse {
    let (status, mut reasons) = health(&parts);
    let shows_state = parts.access.shows_state(&request);
    if !shows_state {
        reasons.clear();
    }
    if status == NOT_READY {
        let answer = json!({ "status": status, "reasons": reasons });
        return HttpResponse::ServiceUnavailable().json(answer);
    }
    // A script recognizes the daemon that it started by the PID.
    let mut answer = json!({ "status": status, "pid": std::process::id() });
    if !reasons.is_empty() {
        answer["reasons"] = json!(reasons);
    }
    let warnings = warnings(&parts);
    if shows_state && !warnings.is_empty() {
        answer["warnings"] = json!(warnings);
    }
    HttpResponse::Ok().json(answer)
}

/// Returns warnings about settings that work but are seldom intended, and about partitions that the
/// disk budget will drop, about metrics that may be typos, and about addresses without keys or
/// encryption, by topic.
pub(super) fn warnings(parts: &AdminParts) -> BTreeMap<&'static str, String> {
    let no_receiver = of_projects(parts, KnownRules::no_receiver);
    let no_receiver = no_receiver.map(|reason| ("no_receiver", reason));
    let budget = parts.budget.warning().map(|reason| ("disk_max", reason));
    let names = parts.near_names.warning(parts.clock.now());
    let names = names.map(|reason| ("near_names", reason));
    let exposure = BTreeMap::clone(&parts.access.exposure.get());
    no_receiver.into_iter().chain(budget).chain(names).chain(exposure).collect()
}

/// Returns the daemon's status and its problems.
pub(super) fn health(parts: &AdminParts) -> (&'static str, BTreeMap<&'static str, String>) {
    let conditions = parts.health.reasons();
    let mut is_refusing = conditions.iter().any(|(condition, _)| condition.stops_ingest());
    let named = conditions.into_iter().map(|(condition, reason)| (condition.as_str(), reason));
    let mut reasons: BTreeMap<_, _> = named.collect();
    if parts.writer.is_full() {
        let reason =
            "the checkpoint's backlog is full; batches are refused until the checkpoint completes";
        reasons.insert("backlog", reason.to_owned());
        is_refusing = true;
    }
    if is_refusing {
        return (NOT_READY, reasons);
    }
    // Batches are accepted and queries answered, so the daemon is ready, but degraded.
    let damaged = parts.store.damaged_partitions();
    if !damaged.is_empty() {
        reasons.insert("damaged", format!("set aside in damaged/: {}", damaged.join(", ")));
    }
    let documents = parts.store.damaged_documents();
    if documents > 0 {
        let reason =
            format!("documents or head rows: {documents}; see the log, or `granary verify`");
        reasons.insert("damaged_documents", reason);
    }
    let (rows, count) = parts.store.damaged_journal_rows();
    if let Some(row) = rows.first() {
        let reason = format!("{}, see the log: {row}", with_noun(count, "row"));
        reasons.insert("damaged_journal_rows", reason);
    }
    let shortfalls = parts.health.shortfalls().into_iter();
    reasons.extend(shortfalls.map(|(shortfall, reason)| (shortfall.as_str(), reason)));
    let fault = of_projects(parts, KnownRules::fault);
    reasons.extend(fault.map(|fault| ("rules", format!("alerts.rules: {fault}"))));
    let unread = parts.access.keys.unread().filter(|_| parts.access.is_on);
    reasons.extend(unread.map(|file| ("keys", format!("{file} is damaged; see docs/security.md"))));
    let left_out = of_projects(parts, KnownRules::left_out);
    reasons.extend(left_out.map(|reason| ("alerts", reason)));
    let shards = parts.cluster.0.as_ref().and_then(ClusterControl::fault_of_shards);
    reasons.extend(shards.map(|reason| ("shards", reason)));
    reasons.extend(parts.clock.report().reason().map(|reason| ("clock", reason)));
    (if reasons.is_empty() { "ready" } else { "degraded" }, reasons)
}

/// Returns the first problem of rules, those of `default` first. The problems of other projects
/// contain the project.
fn of_projects(
    parts: &AdminParts,
    problem: impl Fn(&KnownRules) -> Option<String>,
) -> Option<String> {
    let of_other = |(project, rules): &(ProjectName, KnownRules)| {
        Some(format!("project {project}: {}", problem(rules)?))
    };
    problem(&parts.rules).or_else(|| parts.others.iter().find_map(of_other))
}

pub(super) fn not_found(request: &HttpRequest) -> HttpResponse {
    let message = format!("{} {} is not a path of this API", request.method(), request.path());
    answer::error(StatusCode::NOT_FOUND, "not_found", message)
}
