//! The commands' requests to the daemon, with errors that name a remedy.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use granary_https::{FailureReason, HttpsArgs, RequestFailure, TrustOptions};
use granary_protocol::ErrorAnswer;
use serde::de::DeserializeOwned;
use ureq::{
    SendBody,
    config::ConfigBuilder,
    http::{
        Request, Response,
        header::{AUTHORIZATION, HeaderValue},
    },
    middleware::MiddlewareNext,
    typestate::AgentScope,
};

use super::screen;

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size of a response.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// The variable with the key, when there is no file.
const KEY_VARIABLE: &str = "GRANARY_KEY";

/// The default address of a daemon.
const DEFAULT_URL: &str = "http://127.0.0.1:7117";

/// Completes a daemon's address: the scheme may be missing, and a trailing slash is removed.
///
/// # Errors
/// When the text is not an address of a web server.
fn url(text: &str) -> Result<String, String> {
    let text = text.trim();
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let full = full.trim_end_matches('/').to_owned();
    let uri: ureq::http::Uri = full
        .parse()
        .map_err(|cause| format!("{cause}; use an address such as http://127.0.0.1:7117"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(full),
        _ => {
            Err("not an address of a daemon; use an address such as http://127.0.0.1:7117"
                .to_owned())
        }
    }
}

/// The name and the value of a query parameter.
pub(super) type Pair = (&'static str, String);

/// The daemon to which a command connects.
#[derive(Debug, Args)]
pub(super) struct Daemon {
    /// Address of the daemon
    #[arg(long, env = "GRANARY_URL", default_value = DEFAULT_URL, value_parser = url, global = true)]
    pub(super) url: String,
    /// File with a key of the daemon [default: the key in `GRANARY_KEY`, if it is set]
    #[arg(long, value_name = "FILE", env = "GRANARY_KEY_FILE", global = true)]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    https: HttpsArgs,
}

impl Daemon {
    /// Returns the key for the daemon, if one is set.
    fn key(&self) -> anyhow::Result<Option<String>> {
        let (text, source) = match &self.key_file {
            Some(path) => {
                let source = format!("--key-file {}", path.display());
                (fs::read_to_string(path).with_context(|| source.clone())?, source)
            }
            None => match std::env::var(KEY_VARIABLE) {
                Ok(text) => (text, KEY_VARIABLE.to_owned()),
                Err(_) => return Ok(None),
            },
        };
        let key = text.trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            bail!("{source}: it must contain one key, such as gry_...");
        }
        Ok(Some(key.to_owned()))
    }

    /// Returns a client with the key and the options of https. A status is never an error.
    ///
    /// # Errors
    /// The key or a file of the options cannot be used.
    fn agent(&self, timeout: Option<Duration>) -> anyhow::Result<ureq::Agent> {
        self.agent_with(ureq::Agent::config_builder().timeout_global(timeout))
    }

    /// Returns a client with this configuration, the key and the options of https.
    pub(super) fn agent_with(
        &self,
        config: ConfigBuilder<AgentScope>,
    ) -> anyhow::Result<ureq::Agent> {
        let config = with_key(config.http_status_as_error(false), self.key()?)?;
        let agent = self.https.settings().agent(config);
        agent.map_err(anyhow::Error::msg)
    }

    /// Gets a path directly below the address.
    pub(super) fn get_path(&self, path: &str) -> anyhow::Result<String> {
        self.body(self.agent(Some(TIMEOUT))?.get(format!("{}/{path}", self.url)).call())
    }

    /// Gets a path of the API with parameters.
    pub(super) fn get(&self, path: &str, pairs: &[Pair]) -> anyhow::Result<String> {
        let mut request = self.agent(Some(TIMEOUT))?.get(self.endpoint(path));
        for (name, value) in pairs {
            request = request.query(*name, value);
        }
        self.body(request.call())
    }

    /// Posts a text to a path of the API, and returns the response's body.
    pub(super) fn post_text(&self, path: &str, text: &str) -> anyhow::Result<String> {
        let request = self.agent(Some(TIMEOUT))?.post(self.endpoint(path));
        self.body(request.content_type("application/json").send(text))
    }

    /// Posts to a path of the API without a body or a timeout, and returns the response's body.
    pub(super) fn post_empty(&self, path: &str) -> anyhow::Result<String> {
        self.body(self.agent(None)?.post(self.endpoint(path)).send_empty())
    }

    /// Posts JSON to a path of the API without a timeout, and returns the response's body.
    pub(super) fn post_json(
        &self,
        path: &str,
        content: &serde_json::Value,
    ) -> anyhow::Result<String> {
        let request = self.agent(None)?.post(self.endpoint(path));
        self.body(request.content_type("application/json").send(content.to_string()))
    }

    /// Posts JSON to a path directly below the address.
    pub(super) fn post_path_json(
        &self,
        path: &str,
        content: &serde_json::Value,
    ) -> anyhow::Result<String> {
        let request = self.agent(Some(TIMEOUT))?.post(format!("{}/{path}", self.url));
        self.body(request.content_type("application/json").send(content.to_string()))
    }

    /// Deletes a path directly below the address.
    pub(super) fn delete_path(&self, path: &str) -> anyhow::Result<String> {
        self.body(self.agent(Some(TIMEOUT))?.delete(format!("{}/{path}", self.url)).call())
    }

    /// Returns a response's body as a stream.
    pub(super) fn stream(
        &self,
        path: &str,
        pairs: &[Pair],
    ) -> anyhow::Result<impl std::io::Read + use<>> {
        let request = self.agent(None)?.get(self.endpoint(path));
        let request =
            pairs.iter().fold(request, |request, (name, value)| request.query(*name, value));
        match request.call() {
            Ok(response) if response.status().is_success() => {
                Ok(response.into_body().into_reader())
            }
            refused => match self.body(refused) {
                Err(cause) => Err(cause),
                Ok(_) => bail!("{} does not stream; is it a Granary daemon?", self.url),
            },
        }
    }

    fn endpoint(&self, path: &str) -> String {
        format!("{}/api/v1/{path}", self.url)
    }

    fn body(&self, answer: Result<Response<ureq::Body>, ureq::Error>) -> anyhow::Result<String> {
        let url = &self.url;
        let mut response = answer.map_err(|cause| describe_failure(url, &cause))?;
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
            None => bail!("{url} answered {status}; is it a Granary daemon?"),
        }
    }
}

/// Parses the daemon's JSON.
pub(super) fn read<T: DeserializeOwned>(answer: &str) -> anyhow::Result<T> {
    serde_json::from_str(answer).context("read the answer")
}

/// Lets a client send a key with each request. It is not sent to other hosts, because a redirect
/// drops the header.
fn with_key(
    config: ConfigBuilder<AgentScope>,
    key: Option<String>,
) -> anyhow::Result<ConfigBuilder<AgentScope>> {
    let Some(key) = key else { return Ok(config) };
    let mut value = HeaderValue::try_from(format!("Bearer {key}")).context("the key")?;
    value.set_sensitive(true);
    Ok(config.middleware(move |mut request: Request<SendBody<'_>>, next: MiddlewareNext<'_>| {
        request.headers_mut().insert(AUTHORIZATION, value.clone());
        next.handle(request)
    }))
}

/// Describes a request without a response, with a remedy.
fn describe_failure(url: &str, cause: &ureq::Error) -> anyhow::Error {
    let RequestFailure { reason, text } = RequestFailure::of(cause, TrustOptions::Flags);
    let context = if reason == FailureReason::Tls {
        format!("cannot connect to granary at {url}")
    } else {
        format!("cannot reach granary at {url}; is the daemon running? Set its address with --url")
    };
    anyhow::Error::msg(text).context(context)
}

/// Returns the message of an error, in the format of the daemon, Prometheus or Alertmanager.
fn message(body: &str) -> Option<String> {
    let message = serde_json::from_str(body).map(|answer: ErrorAnswer| answer.message);
    message.ok().or_else(|| {
        let answer: serde_json::Value = serde_json::from_str(body).ok()?;
        Some(answer.get("error").unwrap_or(&answer).as_str()?.to_owned())
    })
}
