//! Why there is no answer: as Prometheus words it, with its status codes.
//!
//! Must never know: what was asked.

use std::fmt;

use actix_web::{HttpResponse, http::StatusCode};
use serde::Serialize;

use crate::{store::StoreError, telemetry::QueryOutcome};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    kind: FaultKind,
    message: String,
    /// See [`StoreError::is_settled`].
    is_settled: bool,
}

/// The error types of Prometheus' HTTP API that occur here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// The request cannot be understood.
    BadData,
    /// It is understood and cannot be answered as it is.
    Execution,
    /// The answer, or the work for it, would be more than a limit allows.
    TooMuch,
    /// The queries under way hold what it needs.
    Busy,
    /// It took too long.
    Timeout,
    /// The store cannot be read.
    Internal,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    status: &'static str,
    #[serde(rename = "errorType")]
    error_type: &'static str,
    error: &'a str,
}

impl Fault {
    pub(super) fn new(kind: FaultKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), is_settled: false }
    }

    /// The store cannot be read.
    pub(super) fn of_store(cause: &StoreError) -> Self {
        let is_settled = cause.is_settled();
        Self { is_settled, ..Self::new(FaultKind::Internal, cause.chain()) }
    }

    /// Whether the same query may have an answer by now.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled
    }

    pub(super) fn bad_data(message: impl fmt::Display) -> Self {
        Self::new(FaultKind::BadData, message)
    }

    /// A parameter that cannot be used.
    pub(super) fn parameter(name: &str, message: impl fmt::Display) -> Self {
        Self::bad_data(format!("invalid parameter {name:?}: {message}"))
    }

    pub(super) fn outcome(&self) -> QueryOutcome {
        match self.kind {
            FaultKind::BadData | FaultKind::Execution => QueryOutcome::Invalid,
            FaultKind::TooMuch => QueryOutcome::TooMuch,
            FaultKind::Busy => QueryOutcome::Busy,
            FaultKind::Timeout => QueryOutcome::Timeout,
            FaultKind::Internal => QueryOutcome::Failed,
        }
    }

    pub(super) fn response(&self) -> HttpResponse {
        let (status, error_type) = match self.kind {
            FaultKind::BadData => (StatusCode::BAD_REQUEST, "bad_data"),
            FaultKind::Execution | FaultKind::TooMuch => {
                (StatusCode::UNPROCESSABLE_ENTITY, "execution")
            }
            FaultKind::Busy => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            FaultKind::Timeout => (StatusCode::SERVICE_UNAVAILABLE, "timeout"),
            FaultKind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        HttpResponse::build(status).json(ErrorBody {
            status: "error",
            error_type,
            error: &self.message,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
