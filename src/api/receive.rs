//! What happens to every request before and behind its route.

use actix_web::{
    Error,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header,
    middleware::Next,
    web,
};

use super::{
    HostNames,
    connection::{Answered, ConnectionTurn, TurnEnd},
};
use crate::telemetry::Metrics;

/// What browsers are told of every answer, unless it says otherwise itself: it is only ever what it
/// says that it is, no other site's page can read or frame it, and it loads nothing.
const GUARDED: [(header::HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
];

/// Refuses strangers, and lets a connection's next request in when this one is answered.
///
/// # Errors
/// As the route.
pub async fn receive<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let end = TurnEnd(request.conn_data::<ConnectionTurn>().cloned());
    let stranger = request.app_data::<web::Data<HostNames>>().and_then(|names| {
        let stranger = {
            let path = request.match_info().as_str();
            names.check(request.method(), path, request.headers()).err()?
        };
        if let Some(metrics) = request.app_data::<web::Data<Metrics>>() {
            metrics.requests_refused.with_label_values(&[stranger.as_str()]).inc();
        }
        Some(stranger)
    });
    let mut response: ServiceResponse<BoxBody> = match stranger {
        Some(stranger) => {
            let refusal = stranger.response(request.headers());
            request.into_response(refusal)
        }
        None => next.call(request).await?.map_into_boxed_body(),
    };
    for (name, value) in GUARDED {
        let value = header::HeaderValue::from_static(value);
        if !response.headers().contains_key(&name) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response.map_body(|_, body| Answered { body, _end: end }))
}
