//! `granary alerts`: what is pending and what fires, and who looks after it. Knows nothing of rules.

mod history;
mod receiver;

use std::{collections::BTreeMap, process::ExitCode};

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;

use crate::model::counted;
use crate::{
    cli::{
        flags::{AskArgs, length, who},
        http::read,
        screen,
        table::table,
    },
    clock::{Clock, SystemClock},
    model::UnixMillis,
};

/// List the alerts of a running daemon that are pending or fire, or say who looks after them
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
    /// Only those that fire
    #[arg(long)]
    firing: bool,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say that somebody looks after alerts, until they end or for a time
    Ack {
        /// Labels that the alerts have, such as alertname=DiskFull host=web1
        #[arg(required = true, value_parser = label)]
        labels: Vec<(String, String)>,
        /// Who does
        #[arg(long, default_value_t = who())]
        by: String,
        /// What there is to say
        #[arg(long, default_value = "")]
        comment: String,
        /// For how long, such as 2h or 30m [default: until they end]
        #[arg(long = "for", value_parser = length, conflicts_with = "until")]
        length: Option<i64>,
        /// Until when: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds
        #[arg(long, value_parser = UnixMillis::parse)]
        until: Option<UnixMillis>,
    },
    /// List the times in which alerts fired
    History {
        /// Only those of alerts of this name
        rule: Option<String>,
        /// How many, at most
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Say that nobody does any more
    Unack {
        /// Labels that the alerts have
        #[arg(required = true, value_parser = label)]
        labels: Vec<(String, String)>,
    },
    /// Send a test alert to a receiver, and say what it answers
    TestReceiver {
        /// Its name in the file of notifications
        name: String,
    },
}

fn label(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "write name=value".to_owned())
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
    acknowledged: Option<Acknowledged>,
}

#[derive(Debug, Deserialize)]
struct Acknowledged {
    by: String,
    comment: String,
    until: Option<i64>,
}

/// How many alerts were changed.
#[derive(Debug, Deserialize)]
struct Changed {
    alerts: usize,
}

pub(super) fn alerts(args: &AlertsArgs) -> anyhow::Result<ExitCode> {
    let daemon = &args.ask.daemon;
    let (path, asked, word) = match &args.what {
        None => return list(args),
        Some(What::History { rule, limit }) => {
            return history::list(&args.ask, rule.as_deref(), *limit);
        }
        Some(What::TestReceiver { name }) => return receiver::test(&args.ask, name),
        Some(What::Ack { labels, by, comment, length, until }) => {
            let labels: BTreeMap<_, _> = labels.iter().cloned().collect();
            let mut asked = json!({ "labels": labels, "by": by, "comment": comment });
            let end = until.or_else(|| Some(SystemClock.now().plus((*length)?)));
            if let Some(end) = end {
                asked["until"] = end.to_string().into();
            }
            ("alerts/ack", asked, "acknowledged")
        }
        Some(What::Unack { labels }) => {
            let labels: BTreeMap<_, _> = labels.iter().cloned().collect();
            ("alerts/unack", json!({ "labels": labels }), "gave back")
        }
    };
    let answer = daemon.post_json(path, &asked)?;
    args.ask.print(&answer, || {
        let Changed { alerts } = read(&answer)?;
        Ok(format!("{word} {}", counted(alerts, "alert")))
    })
}

fn list(args: &AlertsArgs) -> anyhow::Result<ExitCode> {
    let answer = args.ask.daemon.get("alerts", &[])?;
    args.ask.print(&answer, || {
        let Answer { data: Data { mut alerts } } = read(&answer)?;
        if args.firing {
            alerts.retain(|own| own.state == "firing");
        }
        Ok(shown(&alerts))
    })
}

/// The labels besides the name.
fn other_labels(labels: &BTreeMap<String, String>) -> String {
    let labels = labels.iter().filter(|(name, _)| *name != "alertname");
    labels.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// A number without an exponent.
fn plain(value: &str) -> String {
    value.parse().map_or_else(|_| value.to_owned(), |own: f64| own.to_string())
}

fn shown(alerts: &[Shown]) -> String {
    let firing = alerts.iter().filter(|own| own.state == "firing").count();
    let totals = format!("{firing} firing, {} pending", alerts.len() - firing);
    if alerts.is_empty() {
        return totals;
    }
    let names = ["alert", "state", "since", "value", "labels", "acknowledged"];
    let mut table = table(names.map(str::to_owned));
    for own in alerts {
        let name = own.labels.get("alertname").map_or("", String::as_str);
        let state = if own.no_data { "no data" } else { &own.state };
        let (value, labels) = (plain(&own.value), other_labels(&own.labels));
        let by = own.acknowledged.as_ref().map_or_else(String::new, |own| {
            let until = own.until.map(|at| format!(" until {}", UnixMillis(at)));
            let comment = if own.comment.is_empty() { "" } else { ": " };
            format!("{}{}{comment}{}", own.by, until.unwrap_or_default(), own.comment)
        });
        let cells = [name, state, &own.active_at, &value, &labels, &by];
        table.add_row(cells.map(screen::text));
    }
    format!("{table}\n{totals}")
}
