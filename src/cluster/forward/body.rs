//! The body of a forwarded request: chunks pass from the HTTP worker to the client's thread.
//!
//! Must never know: the holder.

use std::{
    io::{self, Read},
    sync::Arc,
};

use actix_web::{http::StatusCode, web};
use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::{
    sync::mpsc::{Receiver, channel},
    time::{Instant, timeout_at},
};

use super::ForwardLimits;

/// The number of chunks in memory.
const CHUNKS: usize = 4;

/// A part of a body.
pub(super) enum Part {
    Chunk(Bytes),
    End,
}

/// An error response: its status, a word for programs, and a sentence for people.
type Refusal = (StatusCode, &'static str, String);

/// The reason why a body was not forwarded, for the client.
#[derive(Debug, Clone, Default)]
pub(super) struct BodyFault(Arc<Mutex<Option<Refusal>>>);

impl BodyFault {
    pub(super) fn get(&self) -> Option<Refusal> {
        self.0.lock().clone()
    }

    fn set(&self, status: StatusCode, word: &'static str, message: String) {
        *self.0.lock() = Some((status, word, message));
    }
}

/// The body as the client's thread reads it.
pub(super) struct Incoming {
    parts: Option<Receiver<Part>>,
    rest: Bytes,
}

/// Returns the body of a request, which is read while the client's thread asks for it.
pub(super) fn incoming(
    mut payload: web::Payload,
    has_body: bool,
    limits: ForwardLimits,
) -> (Option<Incoming>, BodyFault) {
    let fault = BodyFault::default();
    if !has_body {
        return (None, fault);
    }
    let (sender, parts) = channel(CHUNKS);
    let noted = fault.clone();
    actix_web::rt::spawn(async move {
        let mut length = 0;
        // As in the daemon, the limit is that of the whole body.
        let until = Instant::now() + limits.client_timeout;
        loop {
            let part = match timeout_at(until, payload.next()).await {
                Ok(Some(Ok(chunk))) => {
                    length += chunk.len();
                    Part::Chunk(chunk)
                }
                Ok(None) => Part::End,
                Ok(Some(Err(cause))) => {
                    noted.set(StatusCode::BAD_REQUEST, "malformed", cause.to_string());
                    return;
                }
                Err(_) => {
                    let limit = limits.client_timeout;
                    let message =
                        format!("the body did not arrive within {limit:?} (server.client_timeout)");
                    noted.set(StatusCode::REQUEST_TIMEOUT, "too_slow", message);
                    return;
                }
            };
            if length > limits.body_bytes_max {
                let limit = limits.body_bytes_max;
                let message = format!("more than {limit} bytes: send smaller requests");
                noted.set(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message);
                return;
            }
            let is_end = matches!(part, Part::End);
            if sender.send(part).await.is_err() || is_end {
                return;
            }
        }
    });
    (Some(Incoming { parts: Some(parts), rest: Bytes::new() }), fault)
}

impl Read for Incoming {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            let Some(parts) = &mut self.parts else { return Ok(0) };
            match parts.blocking_recv() {
                Some(Part::Chunk(chunk)) => self.rest = chunk,
                Some(Part::End) => self.parts = None,
                // A part of a body must not look like a whole one.
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let count = out.len().min(self.rest.len());
        self.rest.copy_to_slice(out.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}
