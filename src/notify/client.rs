//! HTTP requests to receivers and Alertmanagers, with their secrets, proxies and certificates.
//!
//! Secrets and certificates in files are read for each request, so that a change takes effect at
//! once. Must never know: the contents of messages, the handling of responses.

use std::{io, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use granary_https::Https;
use ureq::{RequestBuilder, typestate::WithBody};

use super::secret;
use crate::alerts::{Http, Tls};

/// The timeout of a connection. It is short, so that a receiver that is back is notified soon.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// Returns a client for one server. Every status counts as a response, and redirects are not
/// followed.
///
/// # Errors
/// When the proxy or the certificates cannot be used.
pub(super) fn client(http: &Http, timeout: Duration) -> Result<ureq::Agent, String> {
    let proxy = http.proxy.as_deref().map(ureq::Proxy::new).transpose();
    let proxy = proxy.map_err(|cause| format!("proxy_url: {cause}"))?;
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .timeout_connect(Some(CONNECT_TIMEOUT.min(timeout)))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .proxy(proxy)
        .user_agent(concat!("granary/", env!("CARGO_PKG_VERSION")));
    let Tls { ca_file, insecure_skip_verify } = http.tls.clone();
    let https =
        Https { ca_file, accepts_any_certificate: insecure_skip_verify, ..Https::default() };
    https.agent(config)
}

/// Returns a POST request for JSON, with all configured headers.
///
/// # Errors
/// When a secret cannot be read.
pub(super) fn json_request(
    client: &ureq::Agent,
    http: &Http,
    url: &str,
) -> io::Result<RequestBuilder<WithBody>> {
    let mut request = client.post(url).content_type("application/json");
    if let Some((scheme, token)) = &http.authorization {
        request = request.header("Authorization", format!("{scheme} {}", secret::read(token)?));
    }
    if let Some((name, password)) = &http.basic {
        request = request.header("Authorization", basic(name, &secret::read(password)?));
    }
    for (name, value) in &http.headers {
        request = request.header(name, secret::read(value)?);
    }
    Ok(request)
}

/// Returns true when a status means that the request is wrong and would be rejected again.
pub(super) fn is_refusal(status: u16) -> bool {
    matches!(status, 400..=407 | 409..=428 | 430..=499)
}

/// Returns the header value of basic authentication (RFC 7617).
fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{password}")))
}
