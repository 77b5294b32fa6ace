//! `alerts/history`, an extension of Prometheus' API: past episodes of alerts.
//!
//! Must never know: how episodes are stored.

use actix_web::HttpResponse;
use serde_json::{Value, json};

use super::{
    answer::{Answer, Data},
    fault::Fault,
    query::fault,
    receive::{Call, Received, respond},
    rules::{exponent, time},
};
use crate::{
    alerts::{Episode, RuleGroup},
    model::UnixMillis,
};

/// The maximum number of entries in a response.
const ENTRIES_MAX: usize = 1000;
/// The default number of entries in a response.
const ENTRIES: usize = 100;
/// The estimated size of an entry.
const ENTRY_BYTES: usize = 1024;

pub(super) async fn history(received: Received) -> HttpResponse {
    respond("promql_status", received, listed).await
}

fn listed(call: &Call<'_>) -> Result<Answer, Fault> {
    let limit = match call.params.get("limit").map(str::parse::<usize>) {
        None => ENTRIES,
        Some(Ok(limit)) => limit.min(ENTRIES_MAX),
        Some(Err(cause)) => return Err(Fault::parameter("limit", cause.to_string())),
    };
    let is_selected =
        |name: &str, value: &str| call.params.get(name).is_none_or(|text| text == value);
    let (set, statuses) = call.parts.rules.groups();
    let mut found = Vec::new();
    for (group, status) in set.groups.iter().zip(&statuses) {
        if !is_selected("group", &group.name) || !is_selected("file", &group.file) {
            continue;
        }
        call.limits().reserve(ENTRY_BYTES).map_err(fault)?;
        let episodes = status.history.with_present(&status.state);
        let rule = |episode: &Episode| episode.labels.get("alertname").cloned().unwrap_or_default();
        let named = episodes.into_iter().filter(|episode| is_selected("rule", &rule(episode)));
        found.extend(named.take(limit).map(|episode| (group, episode)));
    }
    call.limits().reserve(found.len() * ENTRY_BYTES).map_err(fault)?;
    found.sort_by_key(|(_, episode)| std::cmp::Reverse(episode.fired_at));
    found.truncate(limit);
    let shown: Vec<_> = found.iter().map(|(group, episode)| entry(group, episode)).collect();
    Ok(Answer::new(Data::Json(json!({ "history": shown }).to_string().into())))
}

fn entry(group: &RuleGroup, episode: &Episode) -> Value {
    json!({
        "file": group.file,
        "group": group.name,
        "labels": episode.labels,
        "state": episode.state.as_str(),
        "firedAt": time(Some(UnixMillis(episode.fired_at))),
        "resolvedAt": episode.resolved_at.map(|at| time(Some(UnixMillis(at)))),
        "seconds": episode.resolved_at.map(|at| (at - episode.fired_at) as f64 / 1000.0),
        "value": exponent(episode.value),
        "acknowledged": episode.acknowledged,
        "revised": episode.revised.map(|revision| json!({
            "at": time(Some(UnixMillis(revision.at))),
            "active": revision.active,
        })),
    })
}
