//! A command's requests to the daemon, with errors that say what to do. Knows nothing of what is
//! asked.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use granary_protocol::ErrorAnswer;
use serde::de::DeserializeOwned;
use ureq::http::Response;

use super::screen;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of an answer, at most.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// Where a daemon listens by default.
const DEFAULT_URL: &str = "http://127.0.0.1:7117";

/// A daemon's address as it is typed: the scheme may be left out, and a slash at its end too.
///
/// # Errors
/// When it is no address of a web server.
fn url(text: &str) -> Result<String, String> {
    let text = text.trim();
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let full = full.trim_end_matches('/').to_owned();
    let uri: ureq::http::Uri =
        full.parse().map_err(|cause| format!("{cause}; write http://127.0.0.1:7117"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(full),
        _ => Err("it is no address of a daemon; write http://127.0.0.1:7117".to_owned()),
    }
}

/// A parameter of a query: its name and value.
pub(super) type Pair = (&'static str, String);

/// The daemon that a command asks.
#[derive(Debug, Args)]
pub(super) struct Daemon {
    /// Where the daemon listens
    #[arg(long, env = "GRANARY_URL", default_value = DEFAULT_URL, value_parser = url, global = true)]
    pub(super) url: String,
}

impl Daemon {
    /// Gets what lies directly below the address.
    pub(super) fn get_path(&self, path: &str) -> anyhow::Result<String> {
        self.body(agent(Some(TIMEOUT)).get(format!("{}/{path}", self.url)).call())
    }

    /// Gets an answer's body.
    pub(super) fn get(&self, path: &str, pairs: &[Pair]) -> anyhow::Result<String> {
        let mut request = agent(Some(TIMEOUT)).get(self.endpoint(path));
        for (name, value) in pairs {
            request = request.query(*name, value);
        }
        self.body(request.call())
    }

    /// Sends a text and gets an answer's body.
    pub(super) fn send(&self, path: &str, text: &str) -> anyhow::Result<String> {
        let request = agent(Some(TIMEOUT)).post(self.endpoint(path));
        self.body(request.content_type("application/json").send(text))
    }

    /// Asks for something to be done, however long it takes; returns the answer's body.
    pub(super) fn post(&self, path: &str) -> anyhow::Result<String> {
        self.body(agent(None).post(self.endpoint(path)).send_empty())
    }

    /// The same with a JSON body.
    pub(super) fn post_json(
        &self,
        path: &str,
        content: &serde_json::Value,
    ) -> anyhow::Result<String> {
        let request = agent(None).post(self.endpoint(path));
        self.body(request.content_type("application/json").send(content.to_string()))
    }

    /// The same, directly below the address.
    pub(super) fn post_path_json(
        &self,
        path: &str,
        content: &serde_json::Value,
    ) -> anyhow::Result<String> {
        let request = agent(Some(TIMEOUT)).post(format!("{}/{path}", self.url));
        self.body(request.content_type("application/json").send(content.to_string()))
    }

    /// Deletes what lies directly below the address.
    pub(super) fn delete_path(&self, path: &str) -> anyhow::Result<String> {
        self.body(agent(Some(TIMEOUT)).delete(format!("{}/{path}", self.url)).call())
    }

    /// Gets an answer's body as it comes.
    pub(super) fn stream(
        &self,
        path: &str,
        pairs: &[Pair],
    ) -> anyhow::Result<impl std::io::Read + use<>> {
        let request = agent(None).get(self.endpoint(path));
        let request =
            pairs.iter().fold(request, |request, (name, value)| request.query(*name, value));
        match request.call() {
            Ok(response) if response.status().is_success() => {
                Ok(response.into_body().into_reader())
            }
            refused => match self.body(refused) {
                Err(cause) => Err(cause),
                Ok(_) => bail!("{} does not stream; is it a granary?", self.url),
            },
        }
    }

    fn endpoint(&self, path: &str) -> String {
        format!("{}/api/v1/{path}", self.url)
    }

    fn body(&self, answer: Result<Response<ureq::Body>, ureq::Error>) -> anyhow::Result<String> {
        let url = &self.url;
        let mut response = answer.with_context(|| {
            format!(
                "cannot reach granary at {url}; is the daemon running? --url says where it listens"
            )
        })?;
        let status = response.status();
        let body = response
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_string()
            .context("read the answer")?;
        if status.is_success() {
            return Ok(body);
        }
        match message(&body) {
            Some(message) => bail!("{}", screen::text(&message)),
            None => bail!("{url} answered {status}; is it a granary?"),
        }
    }
}

/// Reads the daemon's JSON.
pub(super) fn read<T: DeserializeOwned>(answer: &str) -> anyhow::Result<T> {
    serde_json::from_str(answer).context("read the answer")
}

fn agent(timeout: Option<Duration>) -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    config.timeout_global(timeout).build().into()
}

/// What an error says: the daemon's own, one of Prometheus' API, or of Alertmanager's.
fn message(body: &str) -> Option<String> {
    let own = serde_json::from_str(body).map(|answer: ErrorAnswer| answer.message);
    own.ok().or_else(|| {
        let answer: serde_json::Value = serde_json::from_str(body).ok()?;
        Some(answer.get("error").unwrap_or(&answer).as_str()?.to_owned())
    })
}
