//! `granary alerts`: what is pending and what fires. Knows nothing of rules.

use std::{collections::BTreeMap, process::ExitCode};

use clap::Args;
use serde::Deserialize;

use super::{flags::AskArgs, http::read, screen, table::table};

/// List the alerts of a running daemon that are pending or fire
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary alerts
  granary alerts --firing")]
pub(super) struct AlertsArgs {
    #[command(flatten)]
    ask: AskArgs,
    /// Only those that fire
    #[arg(long)]
    firing: bool,
}

/// Prometheus' answer.
#[derive(Debug, Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Debug, Deserialize)]
struct Data {
    alerts: Vec<Shown>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    labels: BTreeMap<String, String>,
    state: String,
    active_at: String,
    value: String,
    #[serde(default)]
    no_data: bool,
}

pub(super) fn alerts(args: &AlertsArgs) -> anyhow::Result<ExitCode> {
    let answer = args.ask.daemon.get("alerts", &[])?;
    args.ask.print(&answer, || {
        let Answer { data: Data { mut alerts } } = read(&answer)?;
        if args.firing {
            alerts.retain(|own| own.state == "firing");
        }
        Ok(shown(&alerts))
    })
}

fn shown(alerts: &[Shown]) -> String {
    let firing = alerts.iter().filter(|own| own.state == "firing").count();
    let totals = format!("{firing} firing, {} pending", alerts.len() - firing);
    if alerts.is_empty() {
        return totals;
    }
    let mut table = table(["alert", "state", "since", "value", "labels"].map(str::to_owned));
    for own in alerts {
        let name = own.labels.get("alertname").map_or("", String::as_str);
        let labels = own.labels.iter().filter(|(name, _)| *name != "alertname");
        let labels: Vec<_> = labels.map(|(name, value)| format!("{name}={value}")).collect();
        let state = if own.no_data { "no data" } else { &own.state };
        let value =
            own.value.parse().map_or_else(|_| own.value.clone(), |own: f64| own.to_string());
        let cells = [name, state, &own.active_at, &value, &labels.join(" ")];
        table.add_row(cells.map(screen::text));
    }
    format!("{table}\n{totals}")
}
