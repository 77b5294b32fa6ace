//! `GET /api/v1/admin/log`: the last lines of the log.

use actix_web::HttpResponse;
use serde_json::json;

use crate::telemetry::{last_log_lines, without_secrets};

/// Shows the last lines of the log, without secrets.
pub(super) async fn show() -> HttpResponse {
    let lines = last_log_lines();
    let lines: Vec<_> = lines.iter().map(|line| without_secrets(line)).collect();
    HttpResponse::Ok().json(json!({ "lines": lines }))
}
