//! Prometheus' HTTP API (prometheus.io/docs/prometheus/latest/querying/api), under `/api/v1/` and
//! `/prometheus/api/v1/`, with `/federate`, the root, and the extensions `rules/check` and
//! `alerts/history`.
//!
//! Must never know: how an expression is evaluated.

mod answer;
mod answer_writer;
mod fault;
mod federate;
mod history;
mod json;
mod metadata;
mod params;
mod query;
mod read_answer;
mod read_messages;
mod receive;
mod remote_read;
mod rules;
mod series;
mod status;
mod text_names;
mod times;

use actix_web::{
    Handler, HttpResponse, Resource, Responder,
    guard::GuardContext,
    http::{Method, StatusCode, header},
    middleware::Compress,
    web,
};

pub(in crate::api) use fault::Fault;
pub(in crate::api) use params::Params;
pub(crate) use params::fuzz_params;
pub(in crate::api) use query::fault;
pub(in crate::api) use receive::{Received, run_in_turn};

use super::{answer as own_answer, query::QueryParts, scope::Scope, shards::has_match};

/// Registers the routes. `/api/v1/series` belongs to Prometheus' API when the request is a
/// POST or has `match[]`, else to the store's own API, which is registered later.
pub(super) fn routes(mut scope: Scope<'_, QueryParts>) {
    for prefix in ["/api/v1", "/prometheus/api/v1"] {
        let mut api = PrefixedScope { scope: &mut scope, prefix };
        api.get_or_post("query", query::instant);
        api.get_or_post("query_range", query::range);
        api.get_or_post("format_query", query::format);
        api.get_or_post("parse_query", query::parse);
        api.get_or_post("labels", series::labels);
        api.get_or_post("query_exemplars", status::empty_list);
        api.get("label/{name}/values", series::values);
        api.get("metadata", metadata::metadata);
        api.get("status/buildinfo", status::build);
        api.get("rules", rules::rules);
        api.post("rules/check", rules::check);
        api.get("alerts", rules::alerts);
        api.get("alerts/history", history::history);
        api.get("alertmanagers", status::alertmanagers);
        api.get("targets", status::targets);
        api.get("targets/metadata", status::empty_list);
        api.get("status/tsdb", status::tsdb);
        api.get("status/flags", status::flags);
        api.get("status/runtimeinfo", status::runtime);
        api.get("status/config", status::config);
        let path = format!("{prefix}/series");
        let matched = scope
            .resource(&path)
            .guard(actix_web::guard::fn_guard(move |context| {
                prefix != "/api/v1" || is_prometheus(context)
            }))
            .wrap(Compress::default())
            .route(web::get().to(series::series))
            .route(web::post().to(series::series));
        scope.add(&Method::GET, &path, matched);
    }
    for path in ["/api/v1/read", "/prometheus/api/v1/read"] {
        scope.route(Method::POST, path, remote_read::read);
    }
    for path in ["/federate", "/prometheus/federate"] {
        scope.compressed(Method::GET, path, federate::federate);
    }
    for root in ["/", "/prometheus", "/prometheus/"] {
        scope.route(Method::GET, root, status::root);
    }
}

/// Returns true when a request to a path of both APIs is meant for Prometheus' API.
fn is_prometheus(context: &GuardContext<'_>) -> bool {
    let head = context.head();
    let query = head.uri.query().unwrap_or_default();
    head.method == Method::POST || has_match(query)
}

async fn rules_check_needs_post() -> HttpResponse {
    let message = "use POST with a form whose field rules contains the rules";
    let mut response = own_answer::error(StatusCode::METHOD_NOT_ALLOWED, "bad_method", message);
    response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("POST"));
    response
}

/// Registers routes below a prefix. Responses are compressed for clients that accept compression.
struct PrefixedScope<'s, 'a> {
    scope: &'s mut Scope<'a, QueryParts>,
    prefix: &'static str,
}

impl PrefixedScope<'_, '_> {
    fn get<F, R>(&mut self, path: &str, handler: F)
    where
        F: Handler<(Received,), Output = R>,
        R: Responder + 'static,
    {
        self.add(&Method::GET, path, |resource| resource.route(web::get().to(handler)));
    }

    /// Registers a route for POST with a form as its body, so that a link cannot call it.
    fn post<F, R>(&mut self, path: &str, handler: F)
    where
        F: Handler<(Received,), Output = R>,
        R: Responder + 'static,
    {
        self.add(&Method::POST, path, |resource| {
            resource.route(web::post().to(handler)).default_service(web::to(rules_check_needs_post))
        });
    }

    /// Registers a route for GET, and for POST with a form as its body.
    fn get_or_post<F, R>(&mut self, path: &str, handler: F)
    where
        F: Handler<(Received,), Output = R>,
        R: Responder + 'static,
    {
        let (get, post) = (web::get().to(handler.clone()), web::post().to(handler));
        self.add(&Method::GET, path, |resource| resource.route(get).route(post));
    }

    fn add(&mut self, method: &Method, path: &str, routes: impl FnOnce(Resource) -> Resource) {
        let path = format!("{}/{path}", self.prefix);
        let resource = routes(self.scope.resource(&path));
        self.scope.add(method, &path, resource.wrap(Compress::default()));
    }
}
