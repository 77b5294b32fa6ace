//! The renewal of the key, when the daemon asks for it in a response.
//!
//! Must never know: batches.

use std::time::Duration;

use granary_protocol::{EnrollAnswer, RENEW_PATH};
use tracing::{info, warn};
use ureq::http::header::AUTHORIZATION;

use super::{ANSWER_BYTES_MAX, Client};
use crate::sending::key::{NewKeyFile, Token};

/// The timeout of the request for the next key.
const RENEW_TIMEOUT: Duration = Duration::from_secs(10);

impl Client {
    /// Renews the key in its file. The earlier key stays valid for a while. A failure is logged,
    /// and the renewal is retried an hour later.
    pub(super) fn renew_key(&self) {
        let Some(token) = &self.token else { return };
        let Some(file) = token.file_to_renew() else { return };
        // The new file is created first, so that the daemon replaces no key that cannot be written.
        let renewed = match NewKeyFile::create(file) {
            Err(cause) => Err(format!("cannot write a file next to it: {cause}")),
            Ok(new) => match self.request_next_key(token) {
                Ok(answer) => new.replace(&answer.token).map_err(|cause| cause.to_string()),
                Err(cause) => {
                    new.discard();
                    Err(cause)
                }
            },
        };
        let file = file.display();
        match renewed {
            Ok(()) => info!(%file, "renewed the key"),
            Err(cause) => warn!(%file, cause, "cannot renew the key before it expires"),
        }
    }

    fn request_next_key(&self, token: &Token) -> Result<EnrollAnswer, String> {
        let request = self.http.current().post(self.url_of(RENEW_PATH));
        let request = request.header(AUTHORIZATION, token.authorization());
        let sent = request.config().timeout_global(Some(RENEW_TIMEOUT)).build().send_empty();
        let mut answer = sent.map_err(|cause| self.note_failure(&cause).text)?;
        let status = answer.status().as_u16();
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let text = text.map_err(|cause| format!("status {status}: {cause}"))?;
        if status != 200 {
            return Err(format!("status {status}"));
        }
        serde_json::from_slice(&text)
            .map_err(|cause| format!("status 200, but not the daemon's answer: {cause}"))
    }
}
