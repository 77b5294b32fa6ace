//! `granary alerts history`: when alerts fired, and what late samples would have made of it.

use std::{collections::BTreeMap, process::ExitCode};

use serde::Deserialize;

use super::{other_labels, plain};
use crate::cli::{flags::AskArgs, http::read, screen, table::table};

#[derive(Debug, Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Debug, Deserialize)]
struct Data {
    history: Vec<Episode>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Episode {
    labels: BTreeMap<String, String>,
    state: String,
    fired_at: String,
    resolved_at: Option<String>,
    value: String,
    revised: Option<Revised>,
}

#[derive(Debug, Deserialize)]
struct Revised {
    at: String,
    active: bool,
}

pub(super) fn list(ask: &AskArgs, rule: Option<&str>, limit: usize) -> anyhow::Result<ExitCode> {
    let mut asked = vec![("limit", limit.to_string())];
    asked.extend(rule.map(|rule| ("rule", rule.to_owned())));
    let answer = ask.daemon.get("alerts/history", &asked)?;
    ask.print(&answer, || {
        let Answer { data: Data { history } } = read(&answer)?;
        Ok(shown(&history))
    })
}

fn shown(history: &[Episode]) -> String {
    let totals = format!("{} episodes", history.len());
    if history.is_empty() {
        return totals;
    }
    let names = ["alert", "state", "fired", "resolved", "value", "labels", "late samples say"];
    let mut table = table(names.map(str::to_owned));
    for own in history {
        let name = own.labels.get("alertname").map_or("", String::as_str);
        let resolved = own.resolved_at.as_deref().unwrap_or("");
        let revised = own.revised.as_ref().map_or_else(String::new, |own| {
            format!("{} at {}", if own.active { "active" } else { "not active" }, own.at)
        });
        let (value, labels) = (plain(&own.value), other_labels(&own.labels));
        let cells = [name, &own.state, &own.fired_at, resolved, &value, &labels, &revised];
        table.add_row(cells.map(screen::text));
    }
    format!("{table}\n{totals}")
}
