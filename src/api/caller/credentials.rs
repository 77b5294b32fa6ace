//! The key in a request: a Bearer token, `InfluxDB`'s `Token`, the password of Basic, `?api_key=`,
//! or in requests with samples also `InfluxDB`'s `?p=`.
//!
//! A key is copied into a buffer of fixed length, so that reading it allocates nothing.

use actix_web::{
    dev::RequestHead,
    http::{
        Uri,
        header::{self, HeaderValue},
        uri::{Parts, PathAndQuery},
    },
};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::refusal::AccessRefusal;

/// The size of the buffer, larger than that of a key. A longer text is cut, and is not a valid key.
const TEXT_BYTES: usize = 80;
/// The largest decoded pair of user and password.
const PAIR_BYTES_MAX: usize = 768;
const API_KEY: &str = "api_key";

/// A text that may be a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SentKey {
    bytes: [u8; TEXT_BYTES],
    length: usize,
}

impl SentKey {
    fn new(text: &[u8]) -> Self {
        let (mut bytes, length) = ([0; TEXT_BYTES], text.len().min(TEXT_BYTES));
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = *from;
        }
        Self { bytes, length }
    }

    pub(super) fn text(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Returns the key that a request contains, if there is one.
///
/// # Errors
/// The request contains several keys that differ.
pub(super) fn read(
    head: &RequestHead,
    reads_samples: bool,
) -> Result<Option<SentKey>, AccessRefusal> {
    let mut headers = head.headers.get_all(header::AUTHORIZATION);
    let (first, second) = (headers.next(), headers.next());
    if second.is_some() {
        return Err(AccessRefusal::Ambiguous);
    }
    let mut found = first.map(in_header);
    for (name, value) in pairs(&head.uri) {
        if name == API_KEY || (name == "p" && reads_samples) {
            let sent = SentKey::new(value.as_bytes());
            if found.is_some_and(|found| found != sent) {
                return Err(AccessRefusal::Ambiguous);
            }
            found = Some(sent);
        }
    }
    Ok(found)
}

/// Returns the key in the header `Authorization`. For another scheme, the result is an empty text,
/// which the check refuses like a wrong key.
fn in_header(value: &HeaderValue) -> SentKey {
    let value = value.as_bytes().trim_ascii();
    let end = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
    let (scheme, rest) = value.split_at(end);
    let rest = rest.trim_ascii();
    let is = |name: &str| scheme.eq_ignore_ascii_case(name.as_bytes());
    if is("bearer") || is("token") {
        SentKey::new(rest)
    } else if is("basic") {
        password(rest)
    } else {
        SentKey::new(b"")
    }
}

/// Returns the password in the credentials of Basic; users may have any name.
fn password(encoded: &[u8]) -> SentKey {
    let mut pair = [0; PAIR_BYTES_MAX];
    let length = STANDARD.decode_slice(encoded, &mut pair).unwrap_or(0);
    let pair = pair.get(..length).unwrap_or_default();
    let colon = pair.iter().position(|byte| *byte == b':');
    SentKey::new(colon.and_then(|at| pair.get(at + 1..)).unwrap_or_default())
}

fn pairs(uri: &Uri) -> impl Iterator<Item = (&str, &str)> {
    let pairs = uri.query().unwrap_or_default().split('&');
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Removes `api_key` from the address of a request, so that handlers do not refuse the parameter,
/// and nothing later shows it.
pub(super) fn remove_from_address(head: &mut RequestHead) {
    if !pairs(&head.uri).any(|(name, _)| name == API_KEY) {
        return;
    }
    let query = head.uri.query().unwrap_or_default().split('&');
    let is_kept = |pair: &&str| pair.split('=').next() != Some(API_KEY);
    let query: Vec<_> = query.filter(is_kept).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    let text = format!("{}{mark}{}", head.uri.path(), query.join("&"));
    let mut parts: Parts = head.uri.clone().into_parts();
    // A part of a valid address is valid.
    parts.path_and_query = text.parse::<PathAndQuery>().ok().or(parts.path_and_query);
    if let Ok(uri) = Uri::from_parts(parts) {
        head.uri = uri;
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn sent(path: &str, headers: &[&str]) -> Result<Option<String>, AccessRefusal> {
        let with = |request: TestRequest, value: &&str| {
            request.append_header((header::AUTHORIZATION, *value))
        };
        let request = headers.iter().fold(TestRequest::with_uri(path), with).to_http_request();
        let found = read(request.head(), path.starts_with("/write"))?;
        Ok(found.map(|sent| String::from_utf8(sent.text().to_vec()).unwrap()))
    }

    #[test]
    fn a_key_is_found_in_each_place_that_clients_use() {
        let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        for (path, header) in [
            ("/x", "Bearer gry_a".to_owned()),
            ("/x", "bearer  gry_a ".to_owned()),
            ("/x", "Token gry_a".to_owned()),
            ("/x", basic("anyone:gry_a")),
            ("/x", basic(":gry_a")),
            ("/x?b=1&api_key=gry_a", "Bearer gry_a".to_owned()),
        ] {
            assert_eq!(sent(path, &[&header]), Ok(Some("gry_a".to_owned())), "{path} {header}");
        }
        assert_eq!(sent("/x?b=1&api_key=gry_a", &[]), Ok(Some("gry_a".to_owned())));
        assert_eq!(sent("/write?u=me&p=gry_a", &[]), Ok(Some("gry_a".to_owned())));
        assert_eq!(sent("/render?p=gry_a", &[]), Ok(None));
        assert_eq!(sent("/x", &[]), Ok(None));
    }

    #[test]
    fn other_credentials_are_no_key_and_two_keys_are_refused() {
        let long = format!("Bearer {}", "g".repeat(5000));
        let basic = format!("Basic {}", STANDARD.encode("a".repeat(2000)));
        for header in ["Digest gry_a", "gry_a", "Basic ?", "Basic Z3J5X2E=", &basic, "", "Bearer"] {
            assert_eq!(sent("/x", &[header]), Ok(Some(String::new())), "{header}");
        }
        assert_eq!(sent("/x", &[&long]), Ok(Some("g".repeat(TEXT_BYTES))));
        let two = Err(AccessRefusal::Ambiguous);
        assert_eq!(sent("/x", &["Bearer gry_a", "Bearer gry_a"]), two);
        assert_eq!(sent("/x?api_key=gry_b", &["Bearer gry_a"]), two);
        assert_eq!(sent("/x?api_key=gry_b&api_key=gry_a", &[]), two);
    }

    #[test]
    fn reading_a_key_allocates_nothing() {
        let key = "g".repeat(69);
        let basic = format!("Basic {}", STANDARD.encode(format!("anyone:{key}")));
        for header in [format!("Bearer {key}"), format!("Token {key}"), basic] {
            let request = TestRequest::with_uri("/x?a=1&b=%20")
                .append_header((header::AUTHORIZATION, header));
            let request = request.to_http_request();
            let mut found = None;
            let counted = allocation_counter::measure(|| {
                found = read(request.head(), true).ok().flatten();
            });
            assert_eq!(counted.count_total, 0);
            assert_eq!(found.unwrap().text(), key.as_bytes());
        }
    }

    #[test]
    fn the_key_is_removed_from_the_address() {
        for (given, expected) in [
            ("/x?api_key=a", "/x"),
            ("/x?b=1&api_key=a&c=%20d&api_key", "/x?b=1&c=%20d"),
            ("/x?api_keys=a", "/x?api_keys=a"),
            ("/x", "/x"),
        ] {
            let mut request = TestRequest::with_uri(given).to_srv_request();
            remove_from_address(request.head_mut());
            assert_eq!(request.uri(), expected);
        }
    }
}
