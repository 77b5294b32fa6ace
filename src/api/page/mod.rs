//! The web page: a document for the paths of each view, and the assets that they load. All documents
//! are the same page; each says what its view is made of, so that the browser asks for it at once.
//!
//! The page asks the same API as everybody else. Must never know: what the page shows.

mod files;
mod respond;

use actix_web::{
    HttpRequest, HttpResponse, guard,
    guard::GuardContext,
    http::{
        Method,
        header::{self, HeaderMap},
    },
    web,
};

use super::{operations, scope::Scope};

/// Where views are, and what their files in src/web/src/views are called.
const VIEWS: [(&str, &str); 7] = [
    ("/hosts/{name}", "host"),
    ("/explore", "explore"),
    ("/dashboards", "dashboards"),
    ("/dashboards/{name}", "dashboard"),
    ("/alerts", "alerts"),
    ("/storage", "storage"),
    ("/status", "status"),
];

/// The routes. They come before those of other rooms that have the path `/`, too.
pub(super) fn routes(mut scope: Scope<'_, ()>) {
    for method in [Method::GET, Method::HEAD] {
        for (path, view) in VIEWS {
            let answer = move |request: HttpRequest| async move { document(&request, view) };
            scope.route(method.clone(), path, answer);
        }
        scope.route(method, "/assets/{name}", asset);
    }
    // Clients of Prometheus' API look at the root, too, and do not ask for HTML.
    let reads_html = |context: &GuardContext<'_>| wants_html(&context.head().headers);
    let methods = guard::Any(guard::Get()).or(guard::Head());
    let root = scope.resource("/").guard(methods).guard(guard::fn_guard(reads_html));
    scope.add(root.route(web::to(async |request: HttpRequest| document(&request, "fleet"))));
}

/// Whether a client says that it reads HTML, as browsers do.
fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/html")
    })
}

fn document(request: &HttpRequest, view: &str) -> HttpResponse {
    respond::document(request, files::built, view)
}

async fn asset(request: HttpRequest, name: web::Path<String>) -> HttpResponse {
    match respond::asset(&request, files::built, &name) {
        Some(response) => response,
        None => operations::not_found(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_names_html_reads_html() {
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
