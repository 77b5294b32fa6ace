//! `POST /write` and `/api/v2/write`: InfluxDB line protocol, and the requests with which its
//! clients begin.

use actix_web::{HttpResponse, http::StatusCode, web::Query};
use serde::Deserialize;
use serde_json::json;

use super::rows::{RowsRequest, respond};
use crate::{
    actors::RowsAnswer,
    api::refusal::Refusal,
    ingest::{influx::Precision, protocol::RowProtocol},
};

/// The reported version of InfluxDB, recent enough for all features that clients need.
const VERSION: &str = "1.8.10-granary";

/// The parameters of a write; databases, organizations, buckets and credentials are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct WriteParams {
    #[serde(default)]
    precision: String,
}

pub(super) async fn write(received: RowsRequest, params: Query<WriteParams>) -> HttpResponse {
    let precision = Precision::from_word(&params.precision);
    let protocol = precision.map(RowProtocol::Influx).ok_or_else(|| {
        Refusal::Malformed(format!(
            "precision={:?} is not supported; use ns, us, ms, s, m or h",
            params.precision
        ))
    });
    respond(received, protocol, "identity", acknowledge).await
}

/// Answers as InfluxDB: when points were refused, the rest is written and the response is a 400.
fn acknowledge(answer: RowsAnswer) -> HttpResponse {
    let dropped: u64 = answer.answer.refused.values().sum();
    if dropped == 0 {
        return HttpResponse::NoContent().insert_header(("X-Influxdb-Version", VERSION)).finish();
    }
    let examples: Vec<_> =
        answer.answer.examples.into_iter().map(|refusal| refusal.message).collect();
    let message = format!("partial write: {} dropped={dropped}", examples.join("; "));
    HttpResponse::build(StatusCode::BAD_REQUEST)
        .insert_header(("X-Influxdb-Version", VERSION))
        .json(json!({ "error": message, "code": "invalid", "message": message }))
}

pub(super) async fn ping() -> HttpResponse {
    HttpResponse::NoContent().insert_header(("X-Influxdb-Version", VERSION)).finish()
}

#[derive(Debug, Deserialize)]
pub(super) struct QueryParams {
    #[serde(default)]
    q: String,
}

/// Answers the statements with which clients create a database; other InfluxQL is refused.
pub(super) async fn query(params: Query<QueryParams>) -> HttpResponse {
    let words = params.q.trim().to_ascii_uppercase();
    let known = words.is_empty() || words.starts_with("CREATE ");
    let response = if known {
        json!({ "results": [{ "statement_id": 0 }] })
    } else {
        json!({ "results": [{ "statement_id": 0, "error":
            "InfluxQL is not supported; use /api/v1/chart" }] })
    };
    HttpResponse::Ok().insert_header(("X-Influxdb-Version", VERSION)).json(response)
}
