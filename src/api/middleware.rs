//! The steps before and after every route.

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
    connection::{AnswerBody, ConnectionTurn, TurnEnd},
};
use crate::{kept::LiveValue, telemetry::Metrics};

/// The default headers that protect responses in browsers: no guessing of content types, no frames
/// or reads by other sites, and no loading of other resources.
const SECURITY_HEADERS: [(header::HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
];

/// Refuses requests of foreign pages, and admits the connection's next request after the response.
///
/// # Errors
/// The errors of the route.
pub async fn receive<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let end = TurnEnd(request.conn_data::<ConnectionTurn>().cloned());
    let foreign = request.app_data::<web::Data<LiveValue<HostNames>>>().and_then(|names| {
        let foreign = {
            let path = request.match_info().as_str();
            names.get().check(request.method(), path, request.headers()).err()?
        };
        if let Some(metrics) = request.app_data::<web::Data<Metrics>>() {
            metrics.requests_refused.with_label_values(&[foreign.as_str()]).inc();
        }
        Some(foreign)
    });
    let mut response: ServiceResponse<BoxBody> = match foreign {
        Some(foreign) => {
            let refusal = foreign.response(request.headers());
            request.into_response(refusal)
        }
        None => next.call(request).await?.map_into_boxed_body(),
    };
    for (name, value) in SECURITY_HEADERS {
        let value = header::HeaderValue::from_static(value);
        if !response.headers().contains_key(&name) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response.map_body(|_, body| AnswerBody { body, _end: end }))
}
