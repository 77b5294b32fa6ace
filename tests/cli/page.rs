//! The web page as browsers, attackers and other clients receive it.

use std::path::Path;

use ureq::{Body, http::Response};

use crate::daemon::{Daemon, client};

/// The media types that a browser accepts.
const BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
/// The headers of all answers of the page.
const HEADERS: [(&str, &str); 6] = [
    ("x-frame-options", "DENY"),
    ("content-security-policy", "script-src 'self'"),
    ("content-security-policy", "frame-ancestors 'none'"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// Sends a request, and returns the answer unchanged.
fn send_raw(daemon: &Daemon, method: &str, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
    let request = ureq::http::Request::builder().method(method);
    let request = request.uri(format!("{}{path}", daemon.url));
    let with =
        |request: ureq::http::request::Builder, pair: &(&str, &str)| request.header(pair.0, pair.1);
    client().run(headers.iter().fold(request, with).body(()).unwrap()).unwrap()
}

fn body_text(mut response: Response<Body>) -> String {
    response.body_mut().read_to_string().unwrap()
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// Returns the folder of the built page, or `None` if the page is not built.
fn built_page() -> Option<&'static Path> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/web/dist"));
    folder.join("index.html").exists().then_some(folder)
}

#[test]
fn the_page_is_at_the_paths_of_its_views_and_nowhere_else() {
    let daemon = Daemon::start("");
    let page_mark = if built_page().is_some() { "<div id=\"page\">" } else { "npm run build" };
    for path in [
        "/",
        "/?range=6h",
        "/hosts/web1",
        "/hosts/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
        "/hosts/a%2Fb",
        "/explore",
        "/dashboards",
        "/dashboards/hosts",
        "/alerts/receivers",
        "/alerts/rules",
        "/alerts/rules/shop",
        "/storage",
        "/status",
        "/access",
        "/profile",
        "/login",
    ] {
        let response = send_raw(&daemon, "GET", path, &[BROWSER]);
        assert_eq!(response.status().as_u16(), 200, "{path}");
        assert_eq!(header(&response, "content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!(header(&response, "cache-control"), "no-cache", "{path}");
        for (name, part) in HEADERS {
            assert!(header(&response, name).contains(part), "{path}: {name}");
        }
        let body = body_text(response);
        assert!(body.contains(page_mark) && !body.contains("onerror"), "{path}: {body}");
    }
    for path in ["/hosts", "/hosts/a/b", "/index.html", "/nonsense"] {
        let response = send_raw(&daemon, "GET", path, &[BROWSER]);
        assert_eq!(response.status().as_u16(), 404, "{path}");
        assert!(body_text(response).contains(page_mark), "{path}");
        let response = send_raw(&daemon, "GET", path, &[("Accept", "*/*")]);
        assert_eq!(response.status().as_u16(), 404, "{path}");
        assert!(body_text(response).contains("not_found"), "{path}");
    }
    for path in ["/assets/", "/assets/none.js", "/api/v1/x"] {
        let response = send_raw(&daemon, "GET", path, &[BROWSER]);
        assert_eq!(response.status().as_u16(), 404, "{path}");
        assert_eq!(header(&response, "x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header(&response, "x-frame-options"), "DENY", "{path}");
        assert_eq!(header(&response, "cross-origin-resource-policy"), "same-origin", "{path}");
        let policy = header(&response, "content-security-policy");
        for part in ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert_eq!(header(&response, "cache-control"), "no-store", "{path}");
        assert!(body_text(response).contains("not_found"), "{path}");
    }
    // Clients of Prometheus' API get plain text at the root.
    for headers in [&[][..], &[("Accept", "*/*")], &[("Accept", "application/json")]] {
        let response = send_raw(&daemon, "GET", "/", headers);
        assert_eq!(header(&response, "content-type"), "text/plain; charset=utf-8");
        assert!(body_text(response).contains("Prometheus' HTTP API"));
    }
    let post = send_raw(&daemon, "POST", "/explore", &[BROWSER]);
    assert_eq!(post.status().as_u16(), 404);
}

#[test]
fn a_head_request_gets_the_same_headers_and_no_body() {
    let daemon = Daemon::start("");
    for path in ["/", "/explore"] {
        let (get, head) = (
            send_raw(&daemon, "GET", path, &[BROWSER]),
            send_raw(&daemon, "HEAD", path, &[BROWSER]),
        );
        assert_eq!(head.status().as_u16(), 200, "{path}");
        for name in ["content-type", "content-length", "etag", "content-security-policy"] {
            assert_eq!(header(&head, name), header(&get, name), "{path}: {name}");
        }
        assert_eq!(body_text(head), "", "{path}");
    }
}

#[test]
fn assets_are_cached_forever_and_the_document_is_revalidated() {
    let daemon = Daemon::start("");
    let Some(folder) = built_page() else {
        eprintln!("SKIPPED: the page is not built; npm ci && npm run build in src/web");
        return;
    };
    let document = body_text(send_raw(&daemon, "GET", "/", &[BROWSER]));
    let asset_paths = |ending: &str| {
        let paths = document.split('"').filter(|part| part.starts_with("/assets/"));
        paths.filter(|path| path.ends_with(ending)).map(str::to_owned).collect::<Vec<_>>()
    };
    let (scripts, styles) = (asset_paths(".js"), asset_paths(".css"));
    assert!(!scripts.is_empty() && !styles.is_empty(), "{document}");
    for path in scripts.iter().chain(&styles) {
        let file = std::fs::read(folder.join(path.trim_start_matches('/'))).unwrap();
        for (accepted, encoding) in [("gzip, deflate, br", "br"), ("gzip", "gzip"), ("", "")] {
            let headers = [("Accept-Encoding", accepted)];
            let response = send_raw(&daemon, "GET", path, &headers);
            assert_eq!(response.status().as_u16(), 200, "{path}");
            assert!(header(&response, "cache-control").contains("immutable"), "{path}");
            assert_eq!(header(&response, "content-encoding"), encoding, "{path}");
            let tag = header(&response, "etag").to_owned();
            let length: usize = header(&response, "content-length").parse().unwrap();
            let ending = match encoding {
                "br" => ".br",
                "gzip" => ".gz",
                _ => "",
            };
            let form = folder.join(format!("{}{ending}", path.trim_start_matches('/')));
            assert_eq!(length as u64, std::fs::metadata(form).unwrap().len(), "{path}{ending}");
            assert!(encoding.is_empty() || length < file.len(), "{path}{ending}");
            let again = [("Accept-Encoding", accepted), ("If-None-Match", &tag)];
            let again = send_raw(&daemon, "GET", path, &again);
            assert_eq!(again.status().as_u16(), 304, "{path}");
            assert_eq!(body_text(again), "", "{path}");
        }
        let compressed = send_raw(&daemon, "GET", &format!("{path}.br"), &[]);
        assert_eq!(compressed.status().as_u16(), 404, "{path}.br");
    }
    // Each view has its own document, which names the files of the view.
    let tag = header(&send_raw(&daemon, "GET", "/", &[BROWSER]), "etag").to_owned();
    for (path, status) in [("/", 304), ("/explore", 200)] {
        let again = send_raw(&daemon, "GET", path, &[BROWSER, ("If-None-Match", &tag)]);
        assert_eq!(again.status().as_u16(), status, "{path}");
    }
}
