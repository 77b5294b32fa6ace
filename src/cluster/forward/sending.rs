//! The thread of a forwarded request, and the response.
//!
//! Must never know: which node holds the store.

use std::io::{self, Read};

use actix_web::{
    HttpResponse, HttpResponseBuilder,
    body::{BodyStream, SizedStream},
    http::StatusCode,
};
use bytes::Bytes;
use futures_util::stream;
use tokio::{
    sync::{
        OwnedSemaphorePermit,
        mpsc::{Receiver, channel},
        oneshot,
    },
    time::timeout,
};
use ureq::{SendBody, http};

use super::{LOOK, body::Incoming, headers};

/// The number of chunks in memory.
const CHUNKS: usize = 4;
const CHUNK_BYTES: usize = 64 << 10;

/// A response whose body still arrives.
pub(super) struct Received {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    length: Option<u64>,
    chunks: Receiver<io::Result<Bytes>>,
}

impl Received {
    /// Returns the response. Its body ends early when `goes_on` returns false: a holder whose machine
    /// is gone, or is suspended, sends neither bytes nor an end.
    pub(super) fn into_response(self, goes_on: impl Fn() -> bool + 'static) -> HttpResponse {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let mut response = HttpResponseBuilder::new(status);
        for (name, value) in &self.headers {
            response.append_header((name.as_str(), value.as_slice()));
        }
        let chunks = stream::unfold(Some((self.chunks, goes_on)), |rest| async {
            let (mut chunks, goes_on) = rest?;
            loop {
                match timeout(LOOK, chunks.recv()).await {
                    Ok(chunk) => return Some((chunk?, Some((chunks, goes_on)))),
                    Err(_) if goes_on() => {}
                    Err(_) => {
                        let cause = "the node no longer holds the store";
                        return Some((Err(io::Error::other(cause)), None));
                    }
                }
            }
        });
        match self.length {
            Some(length) => response.body(SizedStream::new(length, chunks)),
            None => response.body(BodyStream::new(chunks)),
        }
    }
}

/// Sends a request from a thread of its own; returns the response when it begins.
pub(super) fn send(
    agent: ureq::Agent,
    outgoing: http::request::Builder,
    incoming: Option<Incoming>,
    permit: OwnedSemaphorePermit,
) -> oneshot::Receiver<Result<Received, String>> {
    let (head, received) = oneshot::channel();
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let sent = match incoming {
            Some(incoming) => {
                let body = SendBody::from_owned_reader(incoming);
                outgoing
                    .body(body)
                    .map_err(|cause| cause.to_string())
                    .and_then(|request| agent.run(request).map_err(|cause| cause.to_string()))
            }
            None => outgoing
                .body(())
                .map_err(|cause| cause.to_string())
                .and_then(|request| agent.run(request).map_err(|cause| cause.to_string())),
        };
        match sent {
            Ok(response) => pass_on(response, head),
            // The client may have disconnected meanwhile.
            Err(cause) => drop(head.send(Err(cause))),
        }
    });
    received
}

fn pass_on(response: http::Response<ureq::Body>, head: oneshot::Sender<Result<Received, String>>) {
    let (parts, body) = response.into_parts();
    let (sender, chunks) = channel(CHUNKS);
    let headers = headers::of_response(&parts.headers);
    let length = body.content_length();
    let received = Received { status: parts.status.as_u16(), headers, length, chunks };
    if head.send(Ok(received)).is_err() {
        return;
    }
    let mut reader = body.into_with_config().limit(u64::MAX).reader();
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        let part = match reader.read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => {
                chunk.truncate(count);
                Ok(Bytes::from(chunk))
            }
            Err(cause) => Err(cause),
        };
        let is_over = part.is_err();
        if sender.blocking_send(part).is_err() || is_over {
            return;
        }
    }
}
