//! The lease of a holder around its answers: another node may have confirmed records after its end.
//!
//! Must never know: what is answered.

use actix_web::{
    Error, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::StatusCode,
    middleware::Next,
    web,
};

use super::answer;
use crate::replication::runner::{StatusReader, now_ms};

/// The lease of this node.
#[derive(Debug, Clone)]
pub struct Lease(StatusReader);

/// The paths that describe the process alone.
const OF_THE_PROCESS: [&str; 3] = ["/healthz", "/-/healthy", "/metrics"];

impl Lease {
    /// Creates the lease of a replica that holds its shard.
    pub fn new(status: StatusReader) -> Self {
        Self(status)
    }

    /// Returns true while no other node can have confirmed a record.
    pub fn is_valid(&self) -> bool {
        self.0.may_answer(now_ms())
    }
}

fn refusal() -> HttpResponse {
    answer::error(
        StatusCode::SERVICE_UNAVAILABLE,
        "no_lease",
        "this node cannot renew its lease, because MongoDB or this node was not available for some \
         seconds; send the request again, to any node",
    )
}

/// Refuses a request unless the lease holds before and after its handler: a process that was
/// stopped in between must not answer with old data.
///
/// # Errors
/// The errors of the route.
pub async fn while_held<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let lease = request.app_data::<web::Data<Lease>>().cloned();
    let lease = lease.filter(|_| !OF_THE_PROCESS.contains(&request.path()));
    if lease.as_ref().is_some_and(|lease| !lease.is_valid()) {
        return Ok(request.into_response(refusal()));
    }
    let response = next.call(request).await?;
    if lease.is_some_and(|lease| !lease.is_valid()) {
        return Ok(response.into_response(refusal()));
    }
    Ok(response.map_into_boxed_body())
}
