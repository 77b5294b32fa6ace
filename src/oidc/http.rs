//! Requests to a provider, with limits of time and size.
//!
//! Must never know: what is requested.

use std::time::Duration;

use granary_https::{Https, RequestFailure, TrustOptions};
use openidconnect::{HttpRequest, HttpResponse, SyncHttpClient, http::Method};

use super::{ProviderFault, ProviderSettings};

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// The maximum size of a response.
const RESPONSE_BYTES_MAX: u64 = 512 << 10;

/// A client for the requests of one login.
#[derive(Debug)]
pub(super) struct HttpClient(ureq::Agent);

/// The reason why a request has no response.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct HttpFault(String);

impl HttpClient {
    /// Creates a client. It follows no redirects, and a provider with https is never contacted
    /// without it.
    pub(super) fn new(settings: &ProviderSettings) -> Result<Self, ProviderFault> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .https_only(settings.issuer.starts_with("https:"))
            .user_agent(concat!("granary/", env!("CARGO_PKG_VERSION")));
        Https::default().agent(config).map(Self).map_err(ProviderFault::Unavailable)
    }
}

impl SyncHttpClient for HttpClient {
    type Error = HttpFault;

    fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFault> {
        let uri = request.uri().to_string();
        let fault = |cause: &ureq::Error| {
            let cause = RequestFailure::of(cause, TrustOptions::System).text;
            HttpFault(format!("{uri}: {cause}"))
        };
        let sent = if *request.method() == Method::GET {
            self.0.run(request.map(|_| ()))
        } else {
            self.0.run(request)
        };
        let (head, body) = sent.map_err(|cause| fault(&cause))?.into_parts();
        let body = body.into_with_config().limit(RESPONSE_BYTES_MAX).read_to_vec();
        Ok(HttpResponse::from_parts(head, body.map_err(|cause| fault(&cause))?))
    }
}
