//! Errors with Prometheus' messages and status codes.
//!
//! Must never know: what was requested.

use std::fmt;

use actix_web::{HttpResponse, http::StatusCode};
use serde::Serialize;

use crate::{store::StoreError, telemetry::QueryOutcome};

/// An error of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) struct Fault {
    kind: FaultKind,
    message: String,
    /// True when running the query again may succeed; see [`StoreError::is_transient`].
    is_transient: bool,
}

/// The error types of Prometheus' HTTP API that occur here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum FaultKind {
    /// The request is invalid.
    BadData,
    /// The request is valid but cannot be answered.
    Execution,
    /// The answer, or its computation, would exceed a limit.
    TooMuch,
    /// Running queries hold the needed resources.
    Busy,
    /// The query timed out.
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
        Self { kind, message: message.to_string(), is_transient: false }
    }

    /// Creates the error for a failure of the store.
    pub(super) fn of_store(cause: &StoreError) -> Self {
        let is_transient = cause.is_transient();
        Self { is_transient, ..Self::new(FaultKind::Internal, cause.with_causes()) }
    }

    /// Returns true when running the query again may succeed.
    pub(super) fn is_transient(&self) -> bool {
        self.is_transient
    }

    pub(in crate::api) fn bad_data(message: impl fmt::Display) -> Self {
        Self::new(FaultKind::BadData, message)
    }

    /// Creates the error for an invalid parameter.
    pub(super) fn parameter(name: &str, message: impl fmt::Display) -> Self {
        Self::bad_data(format!("invalid parameter {name:?}: {message}"))
    }

    pub(in crate::api) fn outcome(&self) -> QueryOutcome {
        match self.kind {
            FaultKind::BadData | FaultKind::Execution => QueryOutcome::Invalid,
            FaultKind::TooMuch => QueryOutcome::TooMuch,
            FaultKind::Busy => QueryOutcome::Busy,
            FaultKind::Timeout => QueryOutcome::Timeout,
            FaultKind::Internal => QueryOutcome::Failed,
        }
    }

    /// Returns the status code, and Prometheus' word for the kind of error.
    fn status(&self) -> (StatusCode, &'static str) {
        match self.kind {
            FaultKind::BadData => (StatusCode::BAD_REQUEST, "bad_data"),
            FaultKind::Execution | FaultKind::TooMuch => {
                (StatusCode::UNPROCESSABLE_ENTITY, "execution")
            }
            FaultKind::Busy => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            FaultKind::Timeout => (StatusCode::SERVICE_UNAVAILABLE, "timeout"),
            FaultKind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        }
    }

    /// Returns the error as text, which the clients of protocols without JSON show.
    pub(in crate::api) fn text_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status().0);
        response.content_type("text/plain; charset=utf-8").body(format!("{}\n", self.message))
    }

    pub(super) fn response(&self) -> HttpResponse {
        let (status, error_type) = self.status();
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
