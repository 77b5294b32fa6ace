//! The web page: a document for the path of each view, and the assets that documents load. All
//! documents are the same page, but each document lists the files of its view, so that the browser
//! loads these files at once.
//!
//! The page uses the public API. Must never know: what the page shows.

mod files;
mod respond;

use actix_web::{
    HttpRequest, HttpResponse, guard,
    guard::GuardContext,
    http::{
        Method, StatusCode,
        header::{self, HeaderMap},
    },
    web,
};

use super::{health, scope::Scope};
use crate::alerts::query_escaped;

/// The paths of the views, and the names of their files in src/web/src/views.
const VIEWS: [(&str, &str); 14] = [
    ("/hosts/{name}", "host"),
    ("/explore", "explore"),
    ("/moved", "moved"),
    ("/dashboards", "dashboards"),
    ("/dashboards/{name}", "dashboard"),
    ("/alerts", "alerts"),
    ("/alerts/receivers", "alert-file"),
    ("/alerts/rules", "alert-file"),
    ("/alerts/rules/{name}", "alert-file"),
    ("/storage", "storage"),
    ("/status", "status"),
    ("/access", "access"),
    ("/profile", "profile"),
    ("/login", "login"),
];

/// The maximum number of expressions in an address; see src/web/src/queries/address.ts.
const EXPRESSIONS_MAX: usize = 12;

/// Registers the routes, which must precede other areas' routes of the path `/`.
pub(super) fn routes(mut scope: Scope<'_, ()>) {
    for method in [Method::GET, Method::HEAD] {
        for (path, view) in VIEWS {
            let answer = move |request: HttpRequest| async move { document(&request, view) };
            scope.route(method.clone(), path, answer);
        }
        scope.route(method, "/assets/{name}", asset);
    }
    // Alerts, templates and Grafana link to expressions in Prometheus' format.
    scope.route(Method::GET, "/graph", async |request: HttpRequest| graph(request.query_string()));
    // Clients of Prometheus' API also request the root, but do not accept HTML.
    let reads_html = |context: &GuardContext<'_>| wants_html(&context.head().headers);
    let methods = guard::Any(guard::Get()).or(guard::Head());
    let root = scope.resource("/").guard(methods).guard(guard::fn_guard(reads_html));
    let root = root.route(web::to(async |request: HttpRequest| document(&request, "fleet")));
    scope.add(&Method::GET, "/", root);
}

/// Returns true when a client accepts HTML explicitly, as browsers do.
fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/html")
    })
}

fn document(request: &HttpRequest, view: &str) -> HttpResponse {
    respond::document(request, files::built_file, view)
}

/// Redirects to the page's view of the expressions in an address of Prometheus.
fn graph(query: &str) -> HttpResponse {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(query);
    let pairs = pairs.map(web::Query::into_inner).unwrap_or_default();
    let expressions = pairs.into_iter().filter_map(|(name, expression)| {
        let position: usize = name.strip_prefix('g')?.strip_suffix(".expr")?.parse().ok()?;
        (position < EXPRESSIONS_MAX).then_some((position, expression))
    });
    let mut expressions: Vec<_> = expressions.collect();
    expressions.sort();
    let parameters = expressions.into_iter().enumerate().map(|(index, (_, expression))| {
        let name = if index == 0 { String::new() } else { format!(".{}", index + 1) };
        format!("expression{name}={}", query_escaped(&expression))
    });
    let parameters: Vec<_> = parameters.collect();
    // A relative address, for proxies that serve the page below a path.
    let location = format!("explore?{}", parameters.join("&"));
    HttpResponse::Found().insert_header((header::LOCATION, location)).finish()
}

/// Answers an unknown path: browsers get the page with a way back, API clients get JSON.
pub(super) async fn unknown_path(request: HttpRequest) -> HttpResponse {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let folder = request.path().split('/').nth(1).unwrap_or_default();
    let is_page = is_read && !["api", "assets"].contains(&folder);
    if !is_page || !wants_html(request.headers()) {
        return health::not_found(&request);
    }
    let mut response = document(&request, "not-found");
    if response.status().is_success() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

async fn asset(request: HttpRequest, name: web::Path<String>) -> HttpResponse {
    match respond::asset(&request, files::built_file, &name) {
        Some(response) => response,
        None => health::not_found(&request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_links_redirect_to_the_same_expressions() {
        let location = |query: &str| {
            let response = graph(query);
            let location = response.headers().get(header::LOCATION).unwrap();
            location.to_str().unwrap().to_owned()
        };
        assert_eq!(location("g0.expr=up+%3D%3D+0&g0.tab=1"), "explore?expression=up+%3D%3D+0");
        assert_eq!(
            location("g1.expr=b&g0.expr=a%26c&g99.expr=no&g1.range_input=1h"),
            "explore?expression=a%26c&expression.2=b"
        );
        assert_eq!(location("g0.expr=%0d%0aX:y"), "explore?expression=%0D%0AX%3Ay");
        assert_eq!(location(""), "explore?");
    }

    #[test]
    fn only_clients_that_name_html_get_html() {
        let wants = |accepted: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accepted.parse().unwrap());
            wants_html(&headers)
        };
        assert!(wants("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(wants("application/json, Text/HTML;q=0.5"));
        for other in ["*/*", "application/json", "text/plain", "text/htmlx", ""] {
            assert!(!wants(other), "{other}");
        }
        assert!(!wants_html(&HeaderMap::new()));
    }
}
