//! Requests that are refused as a whole, with their response and the outcome that is counted.

use std::{fmt, time::Duration};

use actix_web::{HttpResponse, ResponseError, http::StatusCode};

use super::answer;
use crate::{
    actors::{CollectFault, WriteFault},
    ingest::memory::NoMemory,
    telemetry::IngestOutcome,
};

/// The reason for refusing a request. Nothing of the request was accepted, except batches of known
/// senders with [`CollectFault::SenderLimit`].
#[derive(Debug)]
pub(super) enum Refusal {
    /// The request cannot be read; the message contains the location.
    Malformed(String),
    /// The `Content-Type` is not supported.
    UnknownMediaType(String),
    /// The `Content-Encoding` is not supported.
    UnknownEncoding(String),
    /// The request is larger than a setting allows.
    TooLarge { limit: usize, setting: &'static str },
    /// The query or change is longer than its fixed limit.
    TooLong { limit: usize },
    /// The body arrived too slowly.
    TooSlow(Duration),
    /// A queue or memory is full.
    Busy(String),
    /// The daemon is stopping.
    Stopping,
    /// The collector refused the request.
    Collect(CollectFault),
}

impl From<NoMemory> for Refusal {
    fn from(cause: NoMemory) -> Self {
        match cause {
            NoMemory::Busy => Self::Busy(cause.to_string()),
            NoMemory::TooLarge { .. } => Self::Collect(CollectFault::Memory(cause)),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Lets handlers return a refusal with `?`.
impl ResponseError for Refusal {
    fn error_response(&self) -> HttpResponse {
        self.response()
    }
}

impl Refusal {
    pub(super) fn outcome(&self) -> IngestOutcome {
        match self {
            Self::Malformed(_)
            | Self::UnknownMediaType(_)
            | Self::UnknownEncoding(_)
            | Self::Collect(CollectFault::Malformed(_) | CollectFault::Forbidden(_)) => {
                IngestOutcome::Malformed
            }
            Self::TooLarge { .. }
            | Self::TooLong { .. }
            | Self::Collect(
                CollectFault::TooMany(_) | CollectFault::Memory(NoMemory::TooLarge { .. }),
            ) => IngestOutcome::TooLarge,
            Self::TooSlow(_) => IngestOutcome::TooSlow,
            Self::Busy(_)
            | Self::Collect(
                CollectFault::SenderLimit
                | CollectFault::Quota { .. }
                | CollectFault::DiskQuota { .. }
                | CollectFault::Memory(NoMemory::Busy)
                | CollectFault::Write(WriteFault::Busy(_)),
            ) => IngestOutcome::Busy,
            Self::Collect(CollectFault::UnknownRef(_)) => IngestOutcome::UnknownRefs,
            Self::Collect(CollectFault::Shard(refusal)) => match refusal.status {
                409 => IngestOutcome::UnknownRefs,
                413 => IngestOutcome::TooLarge,
                429 => IngestOutcome::Busy,
                400..500 => IngestOutcome::Malformed,
                _ => IngestOutcome::Failed,
            },
            Self::Stopping | Self::Collect(CollectFault::Write(_)) => IngestOutcome::Failed,
        }
    }

    pub(super) fn response(&self) -> HttpResponse {
        let error = |status, word, message: &str| answer::error(status, word, message);
        match self {
            Self::Malformed(message) => error(StatusCode::BAD_REQUEST, "malformed", message),
            Self::UnknownMediaType(message) => {
                error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "malformed", message)
            }
            Self::UnknownEncoding(encoding) => {
                let message = format!(
                    "Content-Encoding: {encoding} is not supported; use snappy for remote write, \
                     otherwise gzip, zstd or none"
                );
                error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "malformed", &message)
            }
            Self::TooLarge { limit, setting } => {
                let message =
                    format!("more than {limit} bytes: send smaller requests or raise {setting}");
                error(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &message)
            }
            Self::TooLong { limit } => {
                let message = format!("the body exceeds {limit} bytes: send a smaller request");
                error(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &message)
            }
            Self::TooSlow(limit) => {
                let message =
                    format!("the body did not arrive within {limit:?} (server.client_timeout)");
                error(StatusCode::REQUEST_TIMEOUT, "too_slow", &message)
            }
            Self::Busy(message) => error(StatusCode::TOO_MANY_REQUESTS, "busy", message),
            Self::Stopping => {
                error(StatusCode::SERVICE_UNAVAILABLE, "busy", "the daemon is stopping")
            }
            Self::Collect(fault) => collect_fault(fault),
        }
    }
}

fn collect_fault(fault: &CollectFault) -> HttpResponse {
    match fault {
        CollectFault::Malformed(cause) => {
            answer::error(StatusCode::BAD_REQUEST, "malformed", cause)
        }
        CollectFault::Forbidden(cause) => answer::error(StatusCode::FORBIDDEN, "forbidden", cause),
        CollectFault::TooMany(_) | CollectFault::Memory(NoMemory::TooLarge { .. }) => {
            answer::error(StatusCode::PAYLOAD_TOO_LARGE, "too_large", fault)
        }
        CollectFault::UnknownRef(cause) => {
            answer::error(StatusCode::CONFLICT, "unknown_refs", cause)
        }
        CollectFault::Memory(NoMemory::Busy) => {
            answer::error(StatusCode::TOO_MANY_REQUESTS, "busy", fault)
        }
        CollectFault::SenderLimit => {
            answer::error(StatusCode::SERVICE_UNAVAILABLE, "sender_limit", fault)
        }
        CollectFault::Quota { .. } | CollectFault::DiskQuota { .. } => {
            answer::error(StatusCode::TOO_MANY_REQUESTS, "quota", fault)
        }
        CollectFault::Shard(refusal) => {
            let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_GATEWAY);
            answer::error(status, &refusal.error, &refusal.message)
        }
        CollectFault::Write(fault) => write_fault(fault),
    }
}

pub(super) fn write_fault(fault: &WriteFault) -> HttpResponse {
    match fault {
        WriteFault::Busy(reason) => answer::error(StatusCode::TOO_MANY_REQUESTS, "busy", reason),
        WriteFault::NoLog(_) => answer::error(StatusCode::SERVICE_UNAVAILABLE, "no_log", fault),
        WriteFault::DiskFull(_) => {
            answer::error(StatusCode::INSUFFICIENT_STORAGE, "disk_full", fault)
        }
        WriteFault::Failed(_) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", fault),
    }
}
