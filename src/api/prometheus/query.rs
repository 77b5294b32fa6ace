//! `query`, `query_range`, `format_query` and `parse_query`.

use actix_web::HttpResponse;

use super::{
    answer::{Answer, Data},
    fault::{Fault, FaultKind},
    params::Steps,
    receive::{Call, Received, respond},
};
use crate::{
    model::UnixMillis,
    query::{
        PromqlAnswer, PromqlRequest, PromqlValue, QueryError, format_promql, promql, promql_tree,
    },
};

pub(super) async fn instant(received: Received) -> HttpResponse {
    respond("promql_instant", received, |call| {
        let at = call.params.time("time")?.unwrap_or(call.now.clock.0);
        evaluate(call, Steps { start: at, end: at, step_ms: 0 })
    })
    .await
}

pub(super) async fn range(received: Received) -> HttpResponse {
    respond("promql_range", received, |call| evaluate(call, call.params.steps()?)).await
}

pub(super) async fn format(received: Received) -> HttpResponse {
    respond("promql_format", received, |call| {
        let text = format_promql(call.params.query(), &call.limits()).map_err(query_fault)?;
        Ok(Answer::new(Data::Text(text)))
    })
    .await
}

/// Returns the tree of a query as JSON.
pub(super) async fn parse(received: Received) -> HttpResponse {
    respond("promql_format", received, |call| {
        let tree = promql_tree(call.params.query(), &call.limits()).map_err(query_fault)?;
        Ok(Answer::new(Data::Json(tree.to_string().into())))
    })
    .await
}

fn evaluate(call: &Call<'_>, steps: Steps) -> Result<Answer, Fault> {
    let limit = call.params.limit()?;
    let lookback = call.params.duration("lookback_delta")?.filter(|ms| *ms > 0);
    let request = PromqlRequest {
        query: call.params.query().to_owned(),
        start: UnixMillis(steps.start),
        end: UnixMillis(steps.end),
        step_ms: steps.step_ms,
        lookback_ms: lookback.unwrap_or(call.parts.promql.get().lookback.as_millis() as i64),
        delayed_name_removal: true,
    };
    let found = promql(&call.parts.store, &request, &call.limits(), call.now.earliest());
    let PromqlAnswer { mut value, mut warnings, infos } = found.map_err(query_fault)?;
    if limit.is_some_and(|limit| truncate(&mut value, limit)) {
        warnings.push("results truncated due to limit".to_owned());
    }
    Ok(Answer { data: Data::Value(value), warnings, infos })
}

/// Keeps the first series, and returns true when there were more.
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

/// Returns the fault for an expression in the parameter `query`.
fn query_fault(cause: QueryError) -> Fault {
    if let QueryError::Invalid(message) = cause {
        return Fault::parameter("query", message);
    }
    fault(cause)
}

/// Returns Prometheus' fault for an error.
pub(in crate::api) fn fault(cause: QueryError) -> Fault {
    let kind = match &cause {
        QueryError::Invalid(_) => FaultKind::BadData,
        QueryError::Execution(_) => FaultKind::Execution,
        QueryError::TooMuch(_) => FaultKind::TooMuch,
        QueryError::Busy(_) => FaultKind::Busy,
        QueryError::Timeout(_) => FaultKind::Timeout,
        QueryError::Store(cause) => {
            let detail: &dyn std::error::Error = cause;
            if !cause.is_transient() {
                tracing::error!(cause = detail, "a query failed");
            }
            return Fault::of_store(cause);
        }
    };
    Fault::new(kind, cause)
}
