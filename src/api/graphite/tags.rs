//! `/tags` and the paths below it: names and values of tags, and series by their tags.

use actix_web::HttpResponse;
use serde_json::json;

use super::{Call, Received, respond};
use crate::query::{QueryError, TagsRequest, list_tags};

/// The number of listed texts when the request sets no limit, as in Graphite.
const COMPLETIONS_DEFAULT: usize = 100;

fn list(call: &Call<'_>, request: &TagsRequest) -> Result<Vec<String>, QueryError> {
    list_tags(&call.parts.store, request, &call.limits())
}

/// Returns the conditions in the parameters `expr` and the limit of an answer.
fn conditions(call: &Call<'_>, default: usize) -> Result<TagsRequest, QueryError> {
    let limit = call.params.number("limit");
    let limit = limit.map_err(|fault| QueryError::Invalid(fault.to_string()))?;
    let all = call.params.all("expr").chain(call.params.all("expr[]"));
    let conditions = all.map(str::to_owned).collect();
    Ok(TagsRequest { conditions, limit: limit.unwrap_or(default), ..TagsRequest::default() })
}

pub(super) async fn tags(received: Received) -> HttpResponse {
    respond("graphite_tags", received, |call| {
        let names = list(call, &conditions(call, usize::MAX)?)?;
        let entries: Vec<_> = names.iter().map(|name| json!({ "tag": name })).collect();
        call.json(&entries)
    })
    .await
}

pub(super) async fn values(received: Received) -> HttpResponse {
    let (request, ..) = &received;
    let tag = request.match_info().get("tag").unwrap_or_default().to_owned();
    respond("graphite_tags", received, move |call| {
        let request = TagsRequest { tag: Some(tag.clone()), ..conditions(call, usize::MAX)? };
        let values = list(call, &request)?;
        let entries: Vec<_> = values.iter().map(|value| json!({ "value": value })).collect();
        call.json(&json!({ "tag": tag, "values": entries }))
    })
    .await
}

pub(super) async fn complete_tags(received: Received) -> HttpResponse {
    respond("graphite_tags", received, |call| {
        let prefix = call.params.get("tagPrefix").unwrap_or_default().to_owned();
        let names = list(call, &TagsRequest { prefix, ..conditions(call, COMPLETIONS_DEFAULT)? })?;
        call.json(&names)
    })
    .await
}

pub(super) async fn complete_values(received: Received) -> HttpResponse {
    respond("graphite_tags", received, |call| {
        let prefix = call.params.get("valuePrefix").unwrap_or_default().to_owned();
        let tag = Some(call.required_param("tag")?.to_owned());
        let values =
            list(call, &TagsRequest { tag, prefix, ..conditions(call, COMPLETIONS_DEFAULT)? })?;
        call.json(&values)
    })
    .await
}

pub(super) async fn find_series(received: Received) -> HttpResponse {
    respond("graphite_tags", received, |call| {
        let request = conditions(call, usize::MAX)?;
        let names = call.store().series_by_tag(&request.conditions, &call.limits())?;
        let names: Vec<_> = names.into_iter().take(request.limit).collect();
        call.json(&names)
    })
    .await
}
