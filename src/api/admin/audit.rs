//! `GET /api/v1/admin/audit`: the records of changes and refused callers, newest first.

use actix_web::{
    HttpResponse,
    http::StatusCode,
    web::{self, Query},
};
use serde::Deserialize;

use crate::{
    api::{AdminParts, answer},
    kept::{AUDIT_RECORDS_ANSWERED_MAX, AuditAnswer, AuditQuery},
    model::UnixMillis,
    query::QueryError,
};

/// The number of records by default.
const LIMIT: usize = 100;

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// One object with all records.
    #[default]
    Json,
    /// One record per line.
    Lines,
}

/// `GET /api/v1/admin/audit?since=...&until=...&who=...&limit=...&before=...&format=...`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// RFC 3339, a date, or Unix seconds or milliseconds.
    since: Option<String>,
    /// Exclusive.
    until: Option<String>,
    who: Option<String>,
    limit: Option<usize>,
    before: Option<u64>,
    #[serde(default)]
    format: Format,
}

impl Params {
    fn query(&self) -> Result<AuditQuery, QueryError> {
        let time = |name: &str, text: &Option<String>, default| match text {
            None => Ok(default),
            Some(text) => UnixMillis::parse(text)
                .map_err(|cause| QueryError::Invalid(format!("{name}={cause}"))),
        };
        let limit = self.limit.unwrap_or(LIMIT);
        if !(1..=AUDIT_RECORDS_ANSWERED_MAX).contains(&limit) {
            let message = format!("limit={limit}: use 1 to {AUDIT_RECORDS_ANSWERED_MAX}");
            return Err(QueryError::Invalid(message));
        }
        Ok(AuditQuery {
            since: time("since", &self.since, UnixMillis::MIN)?,
            until: time("until", &self.until, UnixMillis::MAX)?,
            who: self.who.clone(),
            before: self.before.unwrap_or(u64::MAX),
            limit,
        })
    }
}

pub(super) async fn show(
    params: Result<Query<Params>, actix_web::Error>,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    let params = params.map_err(|cause| QueryError::Invalid(cause.to_string()));
    let (query, format) = match params.and_then(|params| Ok((params.query()?, params.format))) {
        Ok(read) => read,
        Err(cause) => return answer::query_error(&cause),
    };
    match web::block(move || parts.access.audit.read(&query)).await {
        Ok(Ok(found)) if format == Format::Lines => lines(&found),
        Ok(Ok(found)) => HttpResponse::Ok().json(found),
        Ok(Err(cause)) => answer::store_error(&cause),
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}

fn lines(found: &AuditAnswer) -> HttpResponse {
    let mut text = String::new();
    for record in &found.records {
        // A record has only texts and numbers, so serialization cannot fail.
        text.push_str(&serde_json::to_string(record).unwrap_or_default());
        text.push('\n');
    }
    HttpResponse::Ok().content_type("application/x-ndjson").body(text)
}
