//! Protection against requests of foreign web pages.
//!
//! A web page can make its reader's browser send requests to every address that the reader can
//! reach, including loopback. Therefore, a request must name this daemon as its host: a page that
//! points its own name at this machine (DNS rebinding) sends that name instead. A change from a
//! browser must come from the daemon's own page, which sends no forms. Requests to the APIs must
//! not come from pages of other sites, which could not read the answers anyway. Senders, scrapers
//! and scripts send no `Origin`, no `Referer`, and no headers of forms.

use std::net::IpAddr;

use actix_web::{
    HttpResponse,
    dev::RequestHead,
    http::{
        Method, StatusCode,
        header::{self, HeaderName, HeaderValue},
        uri::Authority,
    },
};

use super::answer;

/// Domains that are not in the public DNS (RFC 6762, RFC 6761, RFC 8375, and ICANN's reserved
/// `internal`).
const PRIVATE_ENDINGS: [&str; 5] = ["localhost", "local", "internal", "home.arpa", "lan"];

/// Headers with which browsers describe the origin and the purpose of a request
/// (w3.org/TR/fetch-metadata). Browsers send them only to trustworthy origins.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The paths of the APIs. The other paths are the page and two cheap health checks.
const APIS: [&str; 7] =
    ["/api", "/prometheus", "/metrics", "/federate", "/render", "/tags", "/graphite"];

/// The stand-in for a header that is not text; it matches no name.
const NOT_TEXT: &str = "?.?";

/// The names of the daemon. IP addresses, names without a dot and names in private domains are
/// always accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNames {
    /// Names in lower case; `*` accepts any name.
    names: Vec<String>,
    /// The name for which browsers must use https from their first response over TLS on.
    https_only: Option<String>,
}

/// The time for which a browser then uses https only: a year (RFC 6797).
const STRICT_TRANSPORT_SECURITY: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// The reason why a request is refused before it is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForeignRequest {
    /// The request names another host.
    Host,
    /// The request comes from a page of another site or port.
    Origin,
}

impl HostNames {
    /// Creates the list from `configured` names and the name of this machine.
    pub fn new(configured: &[String], machine: Option<String>) -> Self {
        let names = configured.iter().cloned().chain(machine);
        let names = names.map(|name| name.trim_end_matches('.').to_lowercase()).collect();
        Self { names, https_only: None }
    }

    /// Tells browsers to use https only for a name, on all ports of its host.
    pub fn over_https(self, name: &str) -> Self {
        Self { https_only: Some(name.to_lowercase()), ..self }
    }

    /// Returns the header that tells a browser to use https only, for a response over TLS to a
    /// request for this host.
    pub(super) fn strict_transport(&self, head: &RequestHead) -> Option<HeaderValue> {
        let name = without_port(head.headers.get(header::HOST)?.to_str().ok()?);
        let is_named = self.https_only.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(name));
        is_named.then_some(STRICT_TRANSPORT_SECURITY)
    }

    fn contains(&self, authority: &str) -> bool {
        let name = without_port(authority).trim_end_matches('.').to_lowercase();
        let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_private = |ending: &&str| {
            name.strip_suffix(*ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        address.unwrap_or(&name).parse::<IpAddr>().is_ok()
            || !name.contains('.')
            || PRIVATE_ENDINGS.iter().any(is_private)
            || self.names.iter().any(|known| known == "*" || *known == name)
    }

    /// Checks the head of a request; `path` is the decoded path that routes match.
    pub(super) fn check(&self, head: &RequestHead, path: &str) -> Result<(), ForeignRequest> {
        let (method, headers) = (&head.method, &head.headers);
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(NOT_TEXT));
        let host = text(header::HOST);
        // A target with a host replaces `Host` (RFC 9112, section 3.2.2).
        let target = head.uri.authority().map(Authority::as_str);
        if host.into_iter().chain(target).any(|host| !self.contains(host)) {
            return Err(ForeignRequest::Host);
        }
        let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if is_read && !APIS.iter().any(|api| path.starts_with(api)) {
            return Ok(());
        }
        let is_this_daemon = |address: &str| {
            let rest = address.split_once("://").map(|(_, rest)| rest);
            let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
            authority.zip(host).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host))
        };
        // Another port of the same site may be another server on this machine.
        let site = text(SEC_FETCH_SITE);
        let is_foreign = text(header::ORIGIN).is_some_and(|origin| !is_this_daemon(origin))
            || site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
        if is_read {
            // A `Referer` may differ: a proxy in front of the page may have another name.
            return if is_foreign { Err(ForeignRequest::Origin) } else { Ok(()) };
        }
        // The daemon's own page sends changes by scripts, never by navigation or forms.
        let is_form = headers.contains_key(header::UPGRADE_INSECURE_REQUESTS)
            || text(SEC_FETCH_MODE).is_some_and(|mode| mode == "navigate");
        if is_foreign || is_form || text(header::REFERER).is_some_and(|page| !is_this_daemon(page))
        {
            Err(ForeignRequest::Origin)
        } else {
            Ok(())
        }
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        // The last colon of an IPv6 address in brackets is inside the brackets.
        Some((name, port)) if !port.contains(']') => name,
        _ => authority,
    }
}

impl ForeignRequest {
    /// Returns the value of the label `reason`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Origin => "origin",
        }
    }

    pub(super) fn response(self, RequestHead { headers, uri, .. }: &RequestHead) -> HttpResponse {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("?");
        match self {
            Self::Host => {
                let host = uri.host().unwrap_or_else(|| without_port(text(header::HOST)));
                let message = format!(
                    "{host:?} is not a name of this daemon: use an address, or add the name to \
                     server.host_names"
                );
                answer::error(StatusCode::MISDIRECTED_REQUEST, "unknown_host", message)
            }
            Self::Origin => {
                let known = headers.get(header::ORIGIN).and_then(|value| value.to_str().ok());
                let message = format!(
                    "requests from pages of {} are refused: only the daemon's own page may use \
                     the APIs; programs must not send Origin or Sec-Fetch-Site",
                    known.unwrap_or("another site")
                );
                answer::error(StatusCode::FORBIDDEN, "foreign_origin", message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn check(method: Method, headers: &[(&'static str, &str)]) -> Result<(), ForeignRequest> {
        check_at("/api/v1/tail", method, headers)
    }

    fn check_at(
        path: &str,
        method: Method,
        headers: &[(&'static str, &str)],
    ) -> Result<(), ForeignRequest> {
        let names = HostNames::new(&["granary.example.com".to_owned()], Some("Web1.x.org".into()));
        let request = TestRequest::default().method(method);
        let with = |request: TestRequest, pair: &(&'static str, &str)| request.insert_header(*pair);
        let request = headers.iter().fold(request, with).to_http_request();
        names.check(request.head(), path)
    }

    #[test]
    fn a_host_must_be_an_address_or_a_name_of_this_daemon() {
        for host in [
            "127.0.0.1:7117",
            "[::1]:7117",
            "[::1]",
            "10.1.2.3",
            "localhost:7117",
            "granary",
            "granary.monitoring.svc.cluster.local:7117",
            "GRANARY.example.com.",
            "web1.x.org",
        ] {
            assert_eq!(check(Method::GET, &[("host", host)]), Ok(()), "{host}");
        }
        for host in ["evil.example", "granary.example.com.evil.org", "127.0.0.1.evil.org", "é.org"]
        {
            assert_eq!(check(Method::GET, &[("host", host)]), Err(ForeignRequest::Host), "{host}");
            assert_eq!(check(Method::POST, &[("host", host)]), Err(ForeignRequest::Host), "{host}");
        }
        assert_eq!(check(Method::POST, &[]), Ok(()));
        let any = HostNames::new(&["*".to_owned()], None);
        assert!(any.contains("evil.example"));
    }

    #[test]
    fn the_host_of_a_target_must_be_a_name_of_this_daemon_too() {
        let names = HostNames::new(&[], None);
        let check = |target: &str| {
            let request = TestRequest::with_uri(target).insert_header(("host", "localhost"));
            names.check(request.to_http_request().head(), "/healthz")
        };
        assert_eq!(check("http://localhost:7117/healthz"), Ok(()));
        for target in ["http://evil.example/healthz", "http://evil.example:80/"] {
            assert_eq!(check(target), Err(ForeignRequest::Host), "{target}");
        }
    }

    #[test]
    fn browsers_use_https_only_for_the_configured_name() {
        let names = HostNames::new(&["other.example.org".to_owned()], None);
        let strict = |names: &HostNames, host: &str| {
            let request = TestRequest::default().insert_header(("host", host)).to_http_request();
            names.strict_transport(request.head()).is_some()
        };
        assert!(!strict(&names, "granary.example.org"));
        let names = names.over_https("Granary.example.org");
        assert!(
            strict(&names, "granary.example.org:7117") && strict(&names, "GRANARY.EXAMPLE.ORG")
        );
        assert!(!strict(&names, "other.example.org") && !strict(&names, "127.0.0.1:7117"));
    }

    #[test]
    fn pages_of_other_sites_cannot_change_anything() {
        let host = ("host", "127.0.0.1:7117");
        let own_page = ("origin", "http://127.0.0.1:7117");
        assert_eq!(check(Method::DELETE, &[host, own_page]), Ok(()));
        assert_eq!(check(Method::POST, &[host, ("sec-fetch-site", "same-origin")]), Ok(()));
        let page = [host, own_page, ("referer", "http://127.0.0.1:7117/explore?metric=a#b")];
        assert_eq!(check(Method::PUT, &page), Ok(()));
        // The headers of fetch in Node scripts.
        let script = [host, ("sec-fetch-mode", "cors"), ("accept-language", "*")];
        assert_eq!(check(Method::POST, &script), Ok(()));
        for foreign in [
            ("origin", "http://evil.example"),
            ("origin", "http://127.0.0.1:8080"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            // Browsers that omit `Origin`, at least for forms.
            ("referer", "http://evil.example/127.0.0.1:7117"),
            ("referer", "http://127.0.0.1:7117.evil.example/"),
            ("referer", "about:client"),
            ("sec-fetch-mode", "navigate"),
            ("upgrade-insecure-requests", "1"),
        ] {
            assert_eq!(
                check(Method::POST, &[host, foreign]),
                Err(ForeignRequest::Origin),
                "{foreign:?}"
            );
            // Links and forms of other sites may open the page.
            assert_eq!(check_at("/explore", Method::GET, &[host, foreign]), Ok(()), "{foreign:?}");
        }
    }

    #[test]
    fn pages_of_other_sites_cannot_query() {
        let host = ("host", "localhost:7117");
        let paths = [
            "/api/v1/tail",
            "/api/v1/rules",
            "/prometheus/api/v1/query",
            "/metrics",
            "/metrics/find",
            "/federate",
            "/render",
            "/tags/findSeries",
            "/graphite/render",
        ];
        for path in paths {
            for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
                let check = |headers: &[_]| check_at(path, method.clone(), headers);
                for foreign in [
                    ("origin", "http://evil.example"),
                    ("origin", "http://localhost:3000"),
                    ("origin", "null"),
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-site", "same-site"),
                ] {
                    assert_eq!(check(&[host, foreign]), Err(ForeignRequest::Origin), "{foreign:?}");
                }
                // Allowed: the page itself, a typed address, and a proxy that passes on a
                // `Referer`.
                let own_page = ("origin", "http://localhost:7117");
                assert_eq!(check(&[host, own_page, ("sec-fetch-site", "same-origin")]), Ok(()));
                assert_eq!(check(&[host, ("sec-fetch-site", "none")]), Ok(()));
                let page = ("referer", "http://grafana.example:3000/d/1");
                assert_eq!(check(&[host, page]), Ok(()));
                assert_eq!(check(&[host]), Ok(()));
            }
        }
    }
}
