//! `POST /api/v1/ingest`.

use std::{io::Read, time::Duration};

use actix::Addr;
use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web::{self, Bytes},
};

use tokio::time::timeout;

use super::{ApiParts, answer};
use crate::{
    actors::{Collect, CollectFault, Collector, Encoding, WriteFault},
    model::time::Stopwatch,
    telemetry::IngestOutcome,
};

/// Memory that one zstd stream may ask for: 8 MiB windows, as zstd's own command line.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

pub(super) async fn ingest(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<ApiParts>,
    collector: web::Data<Addr<Collector>>,
) -> HttpResponse {
    let watch = Stopwatch::start();
    let (outcome, response) = match receive(&request, payload, &parts).await {
        Ok(collect) => deliver(collect, &collector).await,
        Err(refused) => *refused,
    };
    parts.metrics.ingest_requests.with_label_values(&[outcome.as_str()]).inc();
    parts.metrics.ingest_request_duration.observe(watch.seconds());
    response
}

/// Boxed, because it is large and rare.
type Refused = Box<(IngestOutcome, HttpResponse)>;

async fn receive(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &ApiParts,
) -> Result<Collect, Refused> {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let encoding = match header(header::CONTENT_TYPE).map(|kind| kind.split(';').next()) {
        Some(Some(kind)) if kind.trim().eq_ignore_ascii_case("application/json") => Encoding::Json,
        _ => Encoding::Bson,
    };
    let limit = parts.request_bytes_max;
    let received = timeout(parts.client_timeout, payload.to_bytes_limited(limit)).await;
    let body = match received {
        Ok(Ok(Ok(body))) => body,
        Ok(Ok(Err(cause))) => return Err(malformed(format!("body: {cause}"))),
        Ok(Err(_)) => return Err(too_large("ingest.request_bytes_max", limit)),
        Err(_) => return Err(too_slow(parts.client_timeout)),
    };
    let body = match header(header::CONTENT_ENCODING) {
        None | Some("identity") => body,
        Some("zstd") => decompress(&body, parts.decompressed_bytes_max)?,
        Some(other) => {
            let message = format!("Content-Encoding: {other} is not known; use zstd or none");
            let response = answer::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "malformed", message);
            return Err(Box::new((IngestOutcome::Malformed, response)));
        }
    };
    Ok(Collect { body, encoding })
}

fn decompress(body: &[u8], limit: usize) -> Result<Bytes, Refused> {
    let fault = |cause: std::io::Error| malformed(format!("body is not zstd: {cause}"));
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(fault)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(fault)?;
    let mut out = Vec::with_capacity((body.len() * 4).min(limit));
    decoder.take(limit as u64 + 1).read_to_end(&mut out).map_err(fault)?;
    if out.len() > limit {
        return Err(too_large("ingest.decompressed_bytes_max", limit));
    }
    Ok(out.into())
}

fn malformed(message: String) -> Refused {
    let response = answer::error(StatusCode::BAD_REQUEST, "malformed", message);
    Box::new((IngestOutcome::Malformed, response))
}

fn too_slow(limit: Duration) -> Refused {
    let message = format!("the body did not come within {limit:?} (server.client_timeout)");
    let response = answer::error(StatusCode::REQUEST_TIMEOUT, "too_slow", message);
    Box::new((IngestOutcome::Malformed, response))
}

fn too_large(setting: &str, limit: usize) -> Refused {
    let message = format!("more than {limit} bytes: send smaller requests or raise {setting}");
    let response = answer::error(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message);
    Box::new((IngestOutcome::TooLarge, response))
}

async fn deliver(collect: Collect, collector: &Addr<Collector>) -> (IngestOutcome, HttpResponse) {
    match collector.send(collect).await {
        Ok(Ok(accepted)) => (IngestOutcome::Acknowledged, HttpResponse::Ok().json(accepted)),
        Ok(Err(fault)) => {
            let outcome = match fault {
                CollectFault::Malformed(_) => IngestOutcome::Malformed,
                CollectFault::UnknownRef(_) => IngestOutcome::UnknownRefs,
                CollectFault::Write(WriteFault::Busy(_)) => IngestOutcome::Busy,
                CollectFault::Write(WriteFault::DiskFull(_) | WriteFault::Failed(_)) => {
                    IngestOutcome::Failed
                }
            };
            (outcome, answer::collect_fault(&fault))
        }
        Err(_) => {
            let message = "the collector has ended; the daemon is stopping";
            let response = answer::error(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
            (IngestOutcome::Failed, response)
        }
    }
}
