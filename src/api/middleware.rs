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
    connection::{AnswerBody, ConnectionTurn, IsEncrypted, TurnEnd},
};
use crate::{kept::LiveValue, telemetry::Metrics};

/// The restrictions of a response that a browser opens as a document: it loads nothing, sends no
/// forms, and no other site may frame it (w3.org/TR/CSP3).
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The default headers that protect responses in browsers: no guessing of content types, no frames
/// or reads by other sites, no loading of other resources, and no copies in caches.
const SECURITY_HEADERS: [(header::HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::CACHE_CONTROL, "no-store"),
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
    let strict_transport = strict_transport(&request);
    let foreign = request.app_data::<web::Data<LiveValue<HostNames>>>().and_then(|names| {
        let foreign = {
            let path = request.match_info().as_str();
            names.get().check(request.head(), path).err()?
        };
        if let Some(metrics) = request.app_data::<web::Data<Metrics>>() {
            metrics.requests_refused.with_label_values(&[foreign.as_str()]).inc();
        }
        Some(foreign)
    });
    let mut response: ServiceResponse<BoxBody> = match foreign {
        Some(foreign) => {
            let refusal = foreign.response(request.head());
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
    if let Some(value) = strict_transport {
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
    Ok(response.map_body(|_, body| AnswerBody { body, _end: end }))
}

/// Returns the header that tells a browser to use https only. Over plain HTTP, browsers ignore the
/// header, because anybody on the network path could add it.
fn strict_transport(request: &ServiceRequest) -> Option<header::HeaderValue> {
    let is_encrypted = request.conn_data::<IsEncrypted>().is_some_and(|encrypted| encrypted.0);
    let names = request.app_data::<web::Data<LiveValue<HostNames>>>().filter(|_| is_encrypted)?;
    names.get().strict_transport(request.head())
}
