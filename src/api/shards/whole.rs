//! Requests that a store with several shards cannot answer yet: they would be answered for the
//! first shard alone.
//!
//! Must never know: handlers.

use actix_web::{
    Error,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{Method, StatusCode},
    middleware::Next,
    web::Query,
};

use crate::api::answer;

/// The paths below `/api/v1`, or below Prometheus' or Graphite's prefix.
const PATHS: [&str; 8] = [
    "/storage",
    "/aggregate",
    "/held",
    "/tail",
    "/admin/preallocate",
    "/admin/snapshot",
    "/update",
    "/storage/document",
];
/// The beginnings of such paths.
const BELOW: [&str; 2] = ["/admin/series/", "/admin/senders/"];

fn is_of_first_shard(method: &Method, path: &str) -> bool {
    let prefixes = ["/graphite", "/prometheus", "/api/v1"];
    let path = prefixes.iter().fold(path, |path, prefix| path.strip_prefix(prefix).unwrap_or(path));
    (matches!(path, "/series" | "/senders") && *method == Method::DELETE)
        || PATHS.contains(&path)
        || BELOW.iter().any(|below| path.starts_with(below))
}

/// Returns true when a query string has `match[]`, which the requests of Prometheus' API have.
pub(in crate::api) fn has_match(query: &str) -> bool {
    Query::<Vec<(String, String)>>::from_query(query)
        .is_ok_and(|pairs| pairs.iter().any(|(name, _)| name == "match[]"))
}

/// Refuses requests that only the first shard would answer.
///
/// # Errors
/// The errors of the route.
pub async fn of_all_shards<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if is_of_first_shard(request.method(), request.path()) {
        let message = "this request is not available in a cluster with several shards yet, because \
                       only shard 0 would answer: use PromQL or charts, or a cluster with \
                       cluster.shards = 1, a new database in cluster.uri and empty data \
                       directories";
        let response = answer::error(StatusCode::NOT_IMPLEMENTED, "several_shards", message);
        return Ok(request.into_response(response));
    }
    Ok(next.call(request).await?.map_into_boxed_body())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_that_all_shards_answer_pass() {
        for (method, path, is_refused) in [
            (Method::GET, "/api/v1/query", false),
            (Method::GET, "/prometheus/api/v1/query_range", false),
            (Method::GET, "/api/v1/series", false),
            (Method::GET, "/api/v1/facets", false),
            (Method::GET, "/api/v1/metadata", false),
            (Method::DELETE, "/api/v1/series", true),
            (Method::GET, "/prometheus/federate", false),
            (Method::GET, "/graphite/render", false),
            (Method::GET, "/graphite/tags/host", false),
            (Method::POST, "/api/v1/admin/series/rename", true),
            (Method::GET, "/api/v1/chart", false),
            (Method::GET, "/api/v1/find", false),
            // Pings are in the first shard.
            (Method::GET, "/api/v1/hosts", false),
            (Method::GET, "/api/v1/hosts/sparklines", false),
            (Method::GET, "/api/v1/moved", false),
            (Method::GET, "/api/v1/cardinality", false),
            (Method::POST, "/prometheus/api/v1/read", false),
            (Method::GET, "/prometheus/api/v1/status/tsdb", false),
            (Method::GET, "/api/v1/senders", false),
            (Method::DELETE, "/api/v1/senders", true),
            (Method::POST, "/api/v1/admin/senders/remove", true),
            (Method::GET, "/api/v1/export", false),
            (Method::GET, "/api/v1/documents", false),
            (Method::GET, "/api/v1/tail", true),
            (Method::POST, "/api/v1/ingest", false),
            (Method::GET, "/api/v1/cluster/status", false),
        ] {
            assert_eq!(is_of_first_shard(&method, path), is_refused, "{method} {path}");
        }
    }
}
