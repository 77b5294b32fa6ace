//! One request to the daemon, with errors that say what to do.

use std::time::Duration;

use anyhow::{Context, bail};
use granary_protocol::ErrorAnswer;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of an answer, at most.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// Gets an answer's body.
pub(super) fn get(
    url: &str,
    path: &str,
    pairs: &[(&'static str, String)],
) -> anyhow::Result<String> {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(TIMEOUT))
        .build();
    let agent: ureq::Agent = config.into();
    let mut request = agent.get(format!("{url}/api/v1/{path}"));
    for (name, value) in pairs {
        request = request.query(*name, value);
    }
    let mut response = request.call().with_context(|| {
        format!("cannot reach granary at {url}; is the daemon running? --url says where it listens")
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
    match serde_json::from_str::<ErrorAnswer>(&body) {
        Ok(answer) => bail!("{}", answer.message),
        Err(_) => bail!("{url} answered {status}; is it a granary?"),
    }
}
