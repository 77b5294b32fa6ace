//! Who may ask: a browser that was led here by another site may not.
//!
//! A web page that somebody visits can send requests to every address that its reader reaches,
//! loopback included. So a request must name this daemon as its host, which a name of the page's
//! own that was pointed here (DNS rebinding) does not; what a page sends to change something
//! must come from the daemon's own page, which sends no forms; and what makes the daemon work, all
//! of its APIs, is not for pages of other sites either, which could not read the answers anyway.
//! Senders, scrapers and scripts send no `Origin`, no `Referer`, and nothing that browsers send
//! with a form.

use std::net::IpAddr;

use actix_web::{
    HttpResponse,
    http::{
        Method, StatusCode,
        header::{self, HeaderMap, HeaderName},
    },
};

use super::answer;

/// Endings of names that the public name service cannot give to anybody (RFC 6762, RFC 6761,
/// RFC 8375, and `internal` as ICANN reserved it).
const PRIVATE_ENDINGS: [&str; 5] = ["localhost", "local", "internal", "home.arpa", "lan"];

/// What browsers say of where a request comes from, and of what it is for
/// (w3.org/TR/fetch-metadata). They say it to hosts that they take for safe only.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Where the APIs are; the rest is the page, and two checks that cost nothing.
const APIS: [&str; 3] = ["/api", "/prometheus", "/metrics"];

/// Stands for a header that is no text, and is nobody's name.
const NOT_TEXT: &str = "?.?";

/// The names under which the daemon may be asked, besides addresses, names without a dot and
/// names that are private by their ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNames {
    /// In lower case; `*` stands for any.
    names: Vec<String>,
}

/// Why a request is refused before it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stranger {
    /// It names a host that this is not.
    Host,
    /// It comes from a page of another site, or of another port.
    Origin,
}

impl HostNames {
    /// `configured` with the name of this machine.
    pub fn new(configured: &[String], machine: Option<String>) -> Self {
        let names = configured.iter().cloned().chain(machine);
        Self { names: names.map(|name| name.trim_end_matches('.').to_lowercase()).collect() }
    }

    fn has(&self, authority: &str) -> bool {
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

    /// Judges a request by its head; the path is as routes match it, decoded.
    pub(super) fn check(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<(), Stranger> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(NOT_TEXT));
        let host = text(header::HOST);
        if host.is_some_and(|host| !self.has(host)) {
            return Err(Stranger::Host);
        }
        let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if is_read && !APIS.iter().any(|api| path.starts_with(api)) {
            return Ok(());
        }
        let is_own = |address: &str| {
            let behind = address.split_once("://").map(|(_, behind)| behind);
            let authority = behind.and_then(|behind| behind.split(['/', '?', '#']).next());
            authority.zip(host).is_some_and(|(own, host)| own.eq_ignore_ascii_case(host))
        };
        // An address of the same site may be another server on this machine.
        let site = text(SEC_FETCH_SITE);
        let is_led = text(header::ORIGIN).is_some_and(|origin| !is_own(origin))
            || site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
        if is_read {
            // People type addresses, and a proxy before the page may have another name than it.
            return if is_led { Err(Stranger::Origin) } else { Ok(()) };
        }
        // The daemon's own page changes nothing by going to another address, as forms do.
        let is_form = headers.contains_key(header::UPGRADE_INSECURE_REQUESTS)
            || text(SEC_FETCH_MODE).is_some_and(|mode| mode == "navigate");
        if is_led || is_form || text(header::REFERER).is_some_and(|page| !is_own(page)) {
            Err(Stranger::Origin)
        } else {
            Ok(())
        }
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        // The last colon of an IPv6 address in brackets is inside of them.
        Some((name, port)) if !port.contains(']') => name,
        _ => authority,
    }
}

impl Stranger {
    /// The value of the label `reason`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Origin => "origin",
        }
    }

    pub(super) fn response(self, headers: &HeaderMap) -> HttpResponse {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("?");
        match self {
            Self::Host => {
                let message = format!(
                    "{:?} is not a name of this daemon: ask by address, or add the name to \
                     server.host_names",
                    without_port(text(header::HOST))
                );
                answer::error(StatusCode::MISDIRECTED_REQUEST, "unknown_host", message)
            }
            Self::Origin => {
                let known = headers.get(header::ORIGIN).and_then(|value| value.to_str().ok());
                let message = format!(
                    "a page of {} may neither ask nor change anything here: only the daemon's own \
                     pages may; programs send neither Origin nor Sec-Fetch-Site",
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

    fn check(method: Method, headers: &[(&'static str, &str)]) -> Result<(), Stranger> {
        check_at("/api/v1/tail", method, headers)
    }

    fn check_at(
        path: &str,
        method: Method,
        headers: &[(&'static str, &str)],
    ) -> Result<(), Stranger> {
        let names = HostNames::new(&["granary.example.com".to_owned()], Some("Web1.x.org".into()));
        let request = TestRequest::default().method(method);
        let with = |request: TestRequest, pair: &(&'static str, &str)| request.insert_header(*pair);
        let request = headers.iter().fold(request, with).to_http_request();
        names.check(request.method(), path, request.headers())
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
            assert_eq!(check(Method::GET, &[("host", host)]), Err(Stranger::Host), "{host}");
            assert_eq!(check(Method::POST, &[("host", host)]), Err(Stranger::Host), "{host}");
        }
        assert_eq!(check(Method::POST, &[]), Ok(()));
        let any = HostNames::new(&["*".to_owned()], None);
        assert!(any.has("evil.example"));
    }

    #[test]
    fn pages_of_other_sites_change_nothing() {
        let host = ("host", "127.0.0.1:7117");
        let own = ("origin", "http://127.0.0.1:7117");
        assert_eq!(check(Method::DELETE, &[host, own]), Ok(()));
        assert_eq!(check(Method::POST, &[host, ("sec-fetch-site", "same-origin")]), Ok(()));
        let page = [host, own, ("referer", "http://127.0.0.1:7117/explore?metric=a#b")];
        assert_eq!(check(Method::PUT, &page), Ok(()));
        // As Node's fetch says it in a script.
        let script = [host, ("sec-fetch-mode", "cors"), ("accept-language", "*")];
        assert_eq!(check(Method::POST, &script), Ok(()));
        for strange in [
            ("origin", "http://evil.example"),
            ("origin", "http://127.0.0.1:8080"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            // Browsers that leave out `Origin`, or send none with forms.
            ("referer", "http://evil.example/127.0.0.1:7117"),
            ("referer", "http://127.0.0.1:7117.evil.example/"),
            ("referer", "about:client"),
            ("sec-fetch-mode", "navigate"),
            ("upgrade-insecure-requests", "1"),
        ] {
            assert_eq!(check(Method::POST, &[host, strange]), Err(Stranger::Origin), "{strange:?}");
            // Links and forms of others lead to the page.
            assert_eq!(check_at("/explore", Method::GET, &[host, strange]), Ok(()), "{strange:?}");
        }
    }

    #[test]
    fn pages_of_other_sites_have_the_daemon_work_for_nothing() {
        let host = ("host", "localhost:7117");
        let paths = ["/api/v1/tail", "/api/v1/rules", "/prometheus/api/v1/query", "/metrics"];
        for path in paths {
            for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
                let check = |own: &[_]| check_at(path, method.clone(), own);
                for strange in [
                    ("origin", "http://evil.example"),
                    ("origin", "http://localhost:3000"),
                    ("origin", "null"),
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-site", "same-site"),
                ] {
                    assert_eq!(check(&[host, strange]), Err(Stranger::Origin), "{strange:?}");
                }
                // The page itself, an address that was typed, and a proxy that passes on a `Referer`.
                let own = ("origin", "http://localhost:7117");
                assert_eq!(check(&[host, own, ("sec-fetch-site", "same-origin")]), Ok(()));
                assert_eq!(check(&[host, ("sec-fetch-site", "none")]), Ok(()));
                let page = ("referer", "http://grafana.example:3000/d/1");
                assert_eq!(check(&[host, page]), Ok(()));
                assert_eq!(check(&[host]), Ok(()));
            }
        }
    }
}
