//! The headers of forwarded requests and responses.
//!
//! Must never know: bodies.

use actix_web::{
    HttpRequest,
    http::header::{self, HeaderMap, HeaderName},
};
use ureq::http;

use crate::cluster::secret::ClusterSecret;

/// The header of a forwarded request, with the node that forwarded it. Nodes forward it no further.
pub(super) const FORWARDED: HeaderName = HeaderName::from_static("x-granary-forwarded-by");
/// The header of a forwarded request with the secret of the cluster.
pub const FORWARDED_SECRET: HeaderName = HeaderName::from_static("x-granary-cluster");
const X_FORWARDED_FOR: &str = "x-forwarded-for";
const X_FORWARDED_PROTO: &str = "x-forwarded-proto";
/// The headers of one connection (RFC 9110, 7.6.1), and those that the client sets itself.
const HOP_BY_HOP: [&str; 12] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "x-granary-forwarded-by",
    "x-granary-cluster",
];

/// Returns the length of a body that the headers announce.
pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// Returns true if a header belongs to one connection, given the values of `Connection`.
fn is_hop_by_hop(name: &str, connection: &str) -> bool {
    HOP_BY_HOP.contains(&name)
        || connection.split(',').any(|named| named.trim().eq_ignore_ascii_case(name))
}

/// Returns the head of the request to the holder, which names the node that forwards it and has the
/// secret of the cluster.
pub(super) fn outgoing(
    request: &HttpRequest,
    address: &str,
    (node, is_encrypted, secret): (&str, bool, &ClusterSecret),
) -> http::request::Builder {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let mut outgoing = http::Request::builder()
        .method(request.method().as_str())
        .uri(format!("{address}{target}"));
    let connection: Vec<_> = request
        .headers()
        .get_all(header::CONNECTION)
        .filter_map(|value| value.to_str().ok())
        .collect();
    let connection = connection.join(",");
    for (name, value) in request.headers() {
        if !is_hop_by_hop(name.as_str(), &connection) && name.as_str() != X_FORWARDED_FOR {
            outgoing = outgoing.header(name.as_str(), value.as_bytes());
        }
    }
    // Each proxy appends the address of its own client.
    let forwarded = request.headers().get_all(X_FORWARDED_FOR);
    let forwarded = forwarded.filter_map(|value| value.to_str().ok().map(str::to_owned));
    let peer = request.peer_addr().map(|peer| peer.ip().to_canonical().to_string());
    let clients: Vec<_> = forwarded.chain(peer).collect();
    if is_encrypted && !request.headers().contains_key(X_FORWARDED_PROTO) {
        outgoing = outgoing.header(X_FORWARDED_PROTO, "https");
    }
    outgoing
        .header(X_FORWARDED_FOR, clients.join(", "))
        .header(FORWARDED.as_str(), node)
        .header(FORWARDED_SECRET.as_str(), secret.authorization())
}

/// Returns the headers of a response that belong to no connection.
pub(super) fn of_response(headers: &http::HeaderMap) -> Vec<(String, Vec<u8>)> {
    let connection: Vec<_> = headers
        .get_all(http::header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let connection = connection.join(",");
    let passes = |name: &str| name != "content-length" && !is_hop_by_hop(name, &connection);
    let passing = headers.iter().filter(|(name, _)| passes(name.as_str()));
    passing.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_connection_do_not_pass() {
        for (name, expected) in [
            ("transfer-encoding", true),
            ("x-of-this-hop", true),
            ("x-granary-forwarded-by", true),
            ("x-granary-cluster", true),
            ("authorization", false),
            ("host", false),
            ("cookie", false),
        ] {
            assert_eq!(is_hop_by_hop(name, "close, X-Of-This-Hop"), expected, "{name}");
        }
    }
}
