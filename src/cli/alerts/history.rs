//! `granary alerts history`: past alerts, and whether late samples change their result.

use std::{collections::BTreeMap, process::ExitCode};

use serde::Deserialize;

use super::{other_labels, plain};
use crate::{
    cli::{flags::AskArgs, http::read, screen, table::table},
    model::with_noun,
};

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
    let mut pairs = vec![("limit", limit.to_string())];
    pairs.extend(rule.map(|rule| ("rule", rule.to_owned())));
    let answer = ask.daemon.get("alerts/history", &pairs)?;
    ask.print(&answer, || {
        let Answer { data: Data { history } } = read(&answer)?;
        Ok(shown(&history))
    })
}

fn shown(history: &[Episode]) -> String {
    let totals = with_noun(history.len(), "episode");
    if history.is_empty() {
        return totals;
    }
    let names = ["alert", "state", "fired", "resolved", "value", "labels", "with late samples"];
    let mut table = table(names.map(str::to_owned));
    for episode in history {
        let name = episode.labels.get("alertname").map_or("", String::as_str);
        let resolved = episode.resolved_at.as_deref().unwrap_or("");
        let revised = episode.revised.as_ref().map_or_else(String::new, |revision| {
            format!("{} at {}", if revision.active { "active" } else { "not active" }, revision.at)
        });
        let (value, labels) = (plain(&episode.value), other_labels(&episode.labels));
        let cells = [name, &episode.state, &episode.fired_at, resolved, &value, &labels, &revised];
        table.add_row(cells.map(screen::text));
    }
    format!("{table}\n{totals}")
}
