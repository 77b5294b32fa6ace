//! `granary alerts`: pending and firing alerts, acknowledgements, and tests of receivers.

mod history;
mod receiver;

use std::{collections::BTreeMap, process::ExitCode};

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;

use crate::model::with_noun;
use crate::{
    cli::{
        flags::{AskArgs, current_user, duration},
        http::read,
        screen,
        table::table,
    },
    clock::{Clock, SystemClock},
    model::UnixMillis,
};

/// List pending and firing alerts of a running daemon, acknowledge them, or test a receiver
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary alerts
  granary alerts --firing
  granary alerts history DiskFull
  granary alerts ack alertname=DiskFull host=web1 --comment \"a new disk is on its way\"
  granary alerts ack alertname=DiskFull host=web1 --for 2h
  granary alerts test-receiver duty")]
pub(super) struct AlertsArgs {
    #[command(flatten)]
    ask: AskArgs,
    /// Only firing alerts
    #[arg(long)]
    firing: bool,
    #[command(subcommand)]
    command: Option<AlertsCommand>,
}

#[derive(Debug, Subcommand)]
enum AlertsCommand {
    /// Acknowledge alerts, until they end or for a time
    Ack {
        /// Labels of the alerts, such as alertname=DiskFull host=web1
        #[arg(required = true, value_parser = label)]
        labels: Vec<(String, String)>,
        /// Name of the person who acknowledges
        #[arg(long, default_value_t = current_user())]
        by: String,
        /// Comment
        #[arg(long, default_value = "")]
        comment: String,
        /// Duration, such as 2h or 30m [default: until the alerts end]
        #[arg(long = "for", value_parser = duration, conflicts_with = "until")]
        duration: Option<i64>,
        /// End: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds
        #[arg(long, value_parser = UnixMillis::parse)]
        until: Option<UnixMillis>,
    },
    /// List past episodes of firing alerts
    History {
        /// Only alerts with this name
        rule: Option<String>,
        /// Maximum number of episodes
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Withdraw an acknowledgement
    Unack {
        /// Labels of the alerts
        #[arg(required = true, value_parser = label)]
        labels: Vec<(String, String)>,
    },
    /// Send a test alert to a receiver, and show its response
    TestReceiver {
        /// Name of the receiver in the file of notifications
        name: String,
    },
}

fn label(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "use name=value".to_owned())
}

/// The response in Prometheus' format.
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
    acknowledged: Option<Acknowledged>,
}

#[derive(Debug, Deserialize)]
struct Acknowledged {
    by: String,
    comment: String,
    until: Option<i64>,
}

/// The number of changed alerts.
#[derive(Debug, Deserialize)]
struct Changed {
    alerts: usize,
}

pub(super) fn alerts(args: &AlertsArgs) -> anyhow::Result<ExitCode> {
    let daemon = &args.ask.daemon;
    let (path, body, word) = match &args.command {
        None => return list(args),
        Some(AlertsCommand::History { rule, limit }) => {
            return history::list(&args.ask, rule.as_deref(), *limit);
        }
        Some(AlertsCommand::TestReceiver { name }) => return receiver::test(&args.ask, name),
        Some(AlertsCommand::Ack { labels, by, comment, duration, until }) => {
            let labels: BTreeMap<_, _> = labels.iter().cloned().collect();
            let mut body = json!({ "labels": labels, "by": by, "comment": comment });
            let end = until.or_else(|| Some(SystemClock.now().plus((*duration)?)));
            if let Some(end) = end {
                body["until"] = end.to_string().into();
            }
            ("alerts/ack", body, "acknowledged")
        }
        Some(AlertsCommand::Unack { labels }) => {
            let labels: BTreeMap<_, _> = labels.iter().cloned().collect();
            ("alerts/unack", json!({ "labels": labels }), "withdrew the acknowledgement of")
        }
    };
    let answer = daemon.post_json(path, &body)?;
    args.ask.print(&answer, || {
        let Changed { alerts } = read(&answer)?;
        Ok(format!("{word} {}", with_noun(alerts, "alert")))
    })
}

fn list(args: &AlertsArgs) -> anyhow::Result<ExitCode> {
    let answer = args.ask.daemon.get("alerts", &[])?;
    args.ask.print(&answer, || {
        let Answer { data: Data { mut alerts } } = read(&answer)?;
        if args.firing {
            alerts.retain(|alert| alert.state == "firing");
        }
        Ok(shown(&alerts))
    })
}

/// Returns the labels except the name.
fn other_labels(labels: &BTreeMap<String, String>) -> String {
    let labels = labels.iter().filter(|(name, _)| *name != "alertname");
    labels.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// Formats a number without an exponent.
fn plain(value: &str) -> String {
    value.parse().map_or_else(|_| value.to_owned(), |number: f64| number.to_string())
}

fn shown(alerts: &[Shown]) -> String {
    let firing = alerts.iter().filter(|alert| alert.state == "firing").count();
    let totals = format!("{firing} firing, {} pending", alerts.len() - firing);
    if alerts.is_empty() {
        return totals;
    }
    let names = ["alert", "state", "since", "value", "labels", "acknowledged"];
    let mut table = table(names.map(str::to_owned));
    for alert in alerts {
        let name = alert.labels.get("alertname").map_or("", String::as_str);
        let state = if alert.no_data { "no data" } else { &alert.state };
        let (value, labels) = (plain(&alert.value), other_labels(&alert.labels));
        let by = alert.acknowledged.as_ref().map_or_else(String::new, |acknowledged| {
            let until = acknowledged.until.map(|at| format!(" until {}", UnixMillis(at)));
            let comment = if acknowledged.comment.is_empty() { "" } else { ": " };
            format!(
                "{}{}{comment}{}",
                acknowledged.by,
                until.unwrap_or_default(),
                acknowledged.comment
            )
        });
        let cells = [name, state, &alert.active_at, &value, &labels, &by];
        table.add_row(cells.map(screen::text));
    }
    format!("{table}\n{totals}")
}
