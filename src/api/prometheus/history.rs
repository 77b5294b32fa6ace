//! `alerts/history`, which is Granary's own: when alerts fired, for how long, at which value.
//!
//! Must never know: how that is kept.

use actix_web::HttpResponse;
use serde_json::{Value, json};

use super::{
    answer::{Answer, Data},
    fault::Fault,
    query::of,
    receive::{Asked, Received, respond},
    rules::{exponent, time},
};
use crate::{
    alerts::{Episode, RuleGroup},
    model::UnixMillis,
};

/// Entries of one answer, at most, and when it is not said.
const ENTRIES_MAX: usize = 1000;
const ENTRIES: usize = 100;
/// What an entry takes in an answer, about.
const ENTRY_BYTES: usize = 1024;

pub(super) async fn history(received: Received) -> HttpResponse {
    respond("promql_status", received, listed).await
}

fn listed(asked: &Asked<'_>) -> Result<Answer, Fault> {
    let most = match asked.params.get("limit").map(str::parse::<usize>) {
        None => ENTRIES,
        Some(Ok(most)) => most.min(ENTRIES_MAX),
        Some(Err(cause)) => return Err(Fault::parameter("limit", cause.to_string())),
    };
    let is_asked = |name: &str, own: &str| asked.params.get(name).is_none_or(|text| text == own);
    let (set, statuses) = asked.parts.rules.groups();
    let mut found = Vec::new();
    for (group, status) in set.groups.iter().zip(&statuses) {
        if !is_asked("group", &group.name) || !is_asked("file", &group.file) {
            continue;
        }
        asked.limits().take(ENTRY_BYTES).map_err(of)?;
        let own = status.history.with_present(&status.state);
        let rule = |own: &Episode| own.labels.get("alertname").cloned().unwrap_or_default();
        let named = own.into_iter().filter(|own| is_asked("rule", &rule(own)));
        found.extend(named.take(most).map(|own| (group, own)));
    }
    asked.limits().take(found.len() * ENTRY_BYTES).map_err(of)?;
    found.sort_by_key(|(_, own)| std::cmp::Reverse(own.fired_at));
    found.truncate(most);
    let shown: Vec<_> = found.iter().map(|(group, own)| entry(group, own)).collect();
    Ok(Answer::of(Data::Json(json!({ "history": shown }).to_string().into())))
}

fn entry(group: &RuleGroup, own: &Episode) -> Value {
    json!({
        "file": group.file,
        "group": group.name,
        "labels": own.labels,
        "state": own.state.as_str(),
        "firedAt": time(Some(UnixMillis(own.fired_at))),
        "resolvedAt": own.resolved_at.map(|at| time(Some(UnixMillis(at)))),
        "seconds": own.resolved_at.map(|at| (at - own.fired_at) as f64 / 1000.0),
        "value": exponent(own.value),
        "acknowledged": own.acknowledged,
        "revised": own.revised.map(|own| json!({
            "at": time(Some(UnixMillis(own.at))),
            "active": own.active,
        })),
    })
}
