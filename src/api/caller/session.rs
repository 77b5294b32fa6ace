//! The cookie of a session, and the header that requests for changes must have when they are sent
//! with it.
//!
//! Over https, the cookie's name begins with `__Host-`: a browser then accepts it only with
//! `Secure`, for this host only, and for all of its paths.

use actix_web::{
    HttpRequest,
    http::{
        Method,
        header::{self, HeaderMap, HeaderName},
    },
};

use crate::{
    access::{PROVIDER_LOGIN_MS_MAX, SESSION_AGE_MAX_MS, is_csrf_of},
    api::connection::IsEncrypted,
};

/// The header with the text that only the daemon's own page knows.
const CSRF: HeaderName = HeaderName::from_static("x-granary-csrf");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const SECURE_NAME: &str = "__Host-granary";
const PLAIN_NAME: &str = "granary";
/// The names of the cookie that binds a login at a provider to its browser.
const SECURE_LOGIN_NAME: &str = "__Host-granary-login";
const PLAIN_LOGIN_NAME: &str = "granary-login";

/// Returns true for https, also when a proxy terminates it. A client that only pretends to use
/// https gets a cookie with more restrictions, so the header needs no trust.
fn is_https(request: &HttpRequest) -> bool {
    let forwarded = request.headers().get(X_FORWARDED_PROTO);
    request.conn_data::<IsEncrypted>().is_some_and(|encrypted| encrypted.0)
        || forwarded.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"https"))
}

fn cookie_name(request: &HttpRequest) -> &'static str {
    if is_https(request) { SECURE_NAME } else { PLAIN_NAME }
}

/// Returns the value of the session's cookie. When several cookies have its name, the value is
/// empty, which fits no session: another site of the same domain may have set one of them.
pub(super) fn cookie(request: &HttpRequest) -> Option<&[u8]> {
    value(request.headers(), cookie_name(request))
}

fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    let lines = headers.get_all(header::COOKIE).map(header::HeaderValue::as_bytes);
    let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';'));
    let mut values = pairs
        .filter_map(|pair| pair.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    let first = values.next();
    if values.next().is_some() { Some(b"") } else { first }
}

/// Returns true if a request with a cookie is allowed: it only reads, or it repeats the text of its
/// session.
pub(super) fn may_change(request: &HttpRequest, cookie: &[u8]) -> bool {
    let sent = request.headers().get(CSRF).map_or(&b""[..], |value| value.as_bytes());
    matches!(*request.method(), Method::GET | Method::HEAD) || is_csrf_of(cookie, sent)
}

/// Returns the header that sets the cookie of a session, or removes it when the text is empty.
pub(in crate::api) fn set_cookie(request: &HttpRequest, text: &str) -> String {
    set_named(request, cookie_name(request), text, SESSION_AGE_MAX_MS)
}

fn login_cookie_name(request: &HttpRequest) -> &'static str {
    if is_https(request) { SECURE_LOGIN_NAME } else { PLAIN_LOGIN_NAME }
}

/// Returns the value of the cookie of a login at a provider.
pub(in crate::api) fn login_cookie(request: &HttpRequest) -> Option<&[u8]> {
    value(request.headers(), login_cookie_name(request))
}

/// Returns the header that sets the cookie of a login at a provider, or removes it when the text is
/// empty.
pub(in crate::api) fn set_login_cookie(request: &HttpRequest, text: &str) -> String {
    set_named(request, login_cookie_name(request), text, PROVIDER_LOGIN_MS_MAX)
}

fn set_named(request: &HttpRequest, name: &str, text: &str, ms: i64) -> String {
    let secure = if is_https(request) { "; Secure" } else { "" };
    let seconds = if text.is_empty() { 0 } else { ms / 1000 };
    format!("{name}={text}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn cookie_of(lines: &[&str], is_https: bool) -> Option<String> {
        let mut request = TestRequest::default();
        for line in lines {
            request = request.append_header((header::COOKIE, *line));
        }
        if is_https {
            request = request.append_header((X_FORWARDED_PROTO, "https"));
        }
        let request = request.to_http_request();
        cookie(&request).map(|value| String::from_utf8(value.to_vec()).unwrap())
    }

    #[test]
    fn the_cookie_is_found_among_others_and_two_of_its_name_are_none() {
        assert_eq!(cookie_of(&["a=b; granary=x; c"], false).unwrap(), "x");
        assert_eq!(cookie_of(&["a=b", "c=d;granary=x"], false).unwrap(), "x");
        assert_eq!(cookie_of(&["granary=x; granary=y"], false).unwrap(), "");
        assert_eq!(cookie_of(&["granary=x", "granary=x"], false).unwrap(), "");
        assert_eq!(cookie_of(&["granaryx=x; xgranary=y; granary"], false), None);
        assert_eq!(cookie_of(&[], false), None);
        // Over https, a cookie that a plain connection could set has no effect.
        assert_eq!(cookie_of(&["granary=x; __Host-granary=y"], true).unwrap(), "y");
        assert_eq!(cookie_of(&["granary=x"], true), None);
    }

    #[test]
    fn the_cookie_is_restricted() {
        let plain = TestRequest::default().to_http_request();
        let expected = "granary=x; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax";
        assert_eq!(set_cookie(&plain, "x"), expected);
        let https = TestRequest::default().insert_header((X_FORWARDED_PROTO, "https"));
        let expected = "__Host-granary=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(set_cookie(&https.to_http_request(), ""), expected);
        let https = TestRequest::default().insert_header((X_FORWARDED_PROTO, "https"));
        let expected =
            "__Host-granary-login=x; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(set_login_cookie(&https.to_http_request(), "x"), expected);
    }
}
