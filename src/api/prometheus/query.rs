//! `query`, `query_range`, `format_query` and `parse_query`.

use actix_web::HttpResponse;

use super::{
    answer::{Answer, Data},
    fault::{Fault, FaultKind},
    params::Steps,
    receive::{Asked, Received, respond},
};
use crate::{
    model::UnixMillis,
    query::{
        PromqlAnswer, PromqlError, PromqlRequest, PromqlValue, format_promql, promql, promql_tree,
    },
};

pub(super) async fn instant(received: Received) -> HttpResponse {
    respond("promql_instant", received, |asked| {
        let at = asked.params.time("time")?.unwrap_or(asked.now.clock.0);
        evaluate(asked, Steps { start: at, end: at, step_ms: 0 })
    })
    .await
}

pub(super) async fn range(received: Received) -> HttpResponse {
    respond("promql_range", received, |asked| evaluate(asked, asked.params.steps()?)).await
}

pub(super) async fn format(received: Received) -> HttpResponse {
    respond("promql_format", received, |asked| {
        let text = format_promql(asked.params.query(), &asked.limits()).map_err(of_query)?;
        Ok(Answer::of(Data::Text(text)))
    })
    .await
}

/// The tree of a query as JSON.
pub(super) async fn parse(received: Received) -> HttpResponse {
    respond("promql_format", received, |asked| {
        let tree = promql_tree(asked.params.query(), &asked.limits()).map_err(of_query)?;
        Ok(Answer::of(Data::Json(tree.to_string().into())))
    })
    .await
}

fn evaluate(asked: &Asked<'_>, steps: Steps) -> Result<Answer, Fault> {
    let limit = asked.params.limit()?;
    let lookback = asked.params.duration("lookback_delta")?.filter(|ms| *ms > 0);
    let request = PromqlRequest {
        query: asked.params.query().to_owned(),
        start: UnixMillis(steps.start),
        end: UnixMillis(steps.end),
        step_ms: steps.step_ms,
        lookback_ms: lookback.unwrap_or(asked.parts.promql.lookback.as_millis() as i64),
        delayed_name_removal: asked.parts.promql.delayed_name_removal,
    };
    let found = promql(&asked.parts.store, &request, &asked.limits(), asked.now.earliest());
    let PromqlAnswer { mut value, mut warnings, infos } = found.map_err(of_query)?;
    if limit.is_some_and(|limit| truncate(&mut value, limit)) {
        warnings.push("results truncated due to limit".to_owned());
    }
    Ok(Answer { data: Data::Value(value), warnings, infos })
}

/// Keeps the first series; says whether there were more.
fn truncate(value: &mut PromqlValue, limit: usize) -> bool {
    let before = match value {
        PromqlValue::Vector(all) => {
            let before = all.len();
            all.truncate(limit);
            before
        }
        PromqlValue::Matrix(all) => {
            let before = all.len();
            all.truncate(limit);
            before
        }
        PromqlValue::Scalar(..) | PromqlValue::String(..) => 0,
    };
    before > limit
}

/// The fault of an expression that stands in `query`.
fn of_query(cause: PromqlError) -> Fault {
    if let PromqlError::BadData(message) = cause {
        return Fault::parameter("query", message);
    }
    of(cause)
}

/// The fault that Prometheus gives for this.
pub(super) fn of(cause: PromqlError) -> Fault {
    let kind = match &cause {
        PromqlError::BadData(_) => FaultKind::BadData,
        PromqlError::Execution(_) => FaultKind::Execution,
        PromqlError::TooMuch(_) => FaultKind::TooMuch,
        PromqlError::Busy(_) => FaultKind::Busy,
        PromqlError::Timeout(_) => FaultKind::Timeout,
        PromqlError::Store(cause) => {
            let detail: &dyn std::error::Error = cause;
            if !cause.is_settled() {
                tracing::error!(cause = detail, "a query failed");
            }
            return Fault::of_store(cause);
        }
    };
    Fault::new(kind, cause)
}
