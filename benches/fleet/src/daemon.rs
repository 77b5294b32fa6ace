//! The measured daemon: its address, and requests without samples.

use std::time::Duration;

use anyhow::{Context, bail};
use granary_https::{Https, RequestFailure, TrustOptions};

/// The time limit of a request; deleting the series of a large fleet takes minutes.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The address of the measured daemon.
#[derive(Debug, Clone)]
pub(crate) struct Daemon {
    pub(crate) url: String,
    pub(crate) https: Https,
}

impl Daemon {
    /// Returns the address of a path.
    pub(crate) fn url_of(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Returns the text of `/metrics`.
    pub(crate) fn metrics(&self) -> anyhow::Result<String> {
        self.text(self.agent(TIMEOUT)?.get(self.url_of("/metrics")).call())
    }

    /// Posts JSON to a path below `/api/v1`.
    pub(crate) fn post_json(&self, path: &str, content: &serde_json::Value) -> anyhow::Result<()> {
        let request = self.agent(TIMEOUT)?.post(self.url_of(&format!("/api/v1/{path}")));
        self.text(request.content_type("application/json").send(content.to_string()))?;
        Ok(())
    }

    /// Returns an HTTP client that reports statuses as responses, not as errors.
    ///
    /// # Errors
    /// A file of the options of https cannot be used.
    pub(crate) fn agent(&self, timeout: Duration) -> anyhow::Result<ureq::Agent> {
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        self.https.agent(config.timeout_global(Some(timeout))).map_err(anyhow::Error::msg)
    }

    fn text(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> anyhow::Result<String> {
        let mut answer = answer.map_err(|cause| {
            let cause = RequestFailure::of(&cause, TrustOptions::Flags).text;
            anyhow::Error::msg(cause)
                .context(format!("cannot reach granary at {}; is the daemon running?", self.url))
        })?;
        let status = answer.status();
        let text = answer.body_mut().read_to_string().context("read the response")?;
        if !status.is_success() {
            bail!("{} answered {status}: {text}", self.url);
        }
        Ok(text)
    }
}
