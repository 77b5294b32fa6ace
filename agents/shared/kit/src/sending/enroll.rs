//! The request for a key of this agent's own, with a one-time code.
//!
//! Must never know: where the key's file is configured.

use std::{path::Path, time::Duration};

use granary_https::{Https, RequestFailure, TrustOptions};
use granary_protocol::{ENROLL_PATH, EnrollAnswer, EnrollBody, ErrorAnswer};
use ureq::http::header::CONTENT_TYPE;

use super::key::NewKeyFile;

const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of a response.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Uses a one-time code of the daemon at `url` for a key of the agent `sender`, and writes it to a
/// file, which must not exist.
///
/// # Errors
/// The file exists or cannot be written, the daemon does not answer, or it refuses the code.
pub fn enroll(url: &str, body: &EnrollBody, key_file: &Path, https: &Https) -> Result<(), String> {
    let file = key_file.display();
    if key_file.exists() {
        return Err(format!("{file}: the file exists; remove it to get another key"));
    }
    // The code can be used only once, so the file is created first.
    let new = NewKeyFile::create(key_file)
        .map_err(|cause| format!("{file}: cannot create the file: {cause}"))?;
    match request_key(url, body, https) {
        Ok(answer) => new.replace(&answer.token).map_err(|cause| {
            format!("{file}: cannot write the key: {cause}; revoke the key, and use another code")
        }),
        Err(cause) => {
            new.discard();
            Err(cause)
        }
    }
}

fn request_key(url: &str, body: &EnrollBody, https: &Https) -> Result<EnrollAnswer, String> {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .timeout_global(Some(TIMEOUT));
    let body = serde_json::to_vec(body).map_err(|cause| cause.to_string())?;
    let request = https.agent(config)?.post(format!("{url}{ENROLL_PATH}"));
    let sent = request.header(CONTENT_TYPE, "application/json").send(&body[..]);
    let mut answer = sent.map_err(|cause| RequestFailure::of(&cause, TrustOptions::Flags).text)?;
    let status = answer.status().as_u16();
    let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
    let text = text.map_err(|cause| format!("status {status}: {cause}"))?;
    if status == 201 {
        return serde_json::from_slice(&text)
            .map_err(|cause| format!("status 201, but not the daemon's answer: {cause}"));
    }
    match serde_json::from_slice::<ErrorAnswer>(&text) {
        Ok(answer) => Err(answer.message),
        Err(_) => Err(format!("status {status}; is {url} a Granary daemon?")),
    }
}
