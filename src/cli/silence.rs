//! `granary silence`: mutes notifications of matching alerts.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    flags::{AskArgs, current_user, duration},
    http::{Daemon, read},
    screen,
    table::table,
};
use crate::{
    alerts::{LabelMatcher, Recurrence},
    clock::{Clock, SystemClock},
    model::{UnixMillis, with_noun},
};

/// Silence alerts of a running daemon, once or in recurring windows
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary silence add alertname=DiskFull 'host=~\"web.*\"' --for 2h --comment \"new disks\"
  granary silence add job=backup --from 22:00 --until 06:00 --on sat,sun --zone Europe/Berlin \\
    --for 52w --comment \"weekly maintenance\"
  granary silence list
  granary silence expire 6bc12d1a-2f0f-4ee0-8b5e-3f6a4d8a4f0e

Alertmanager's amtool works, too: amtool silence --alertmanager.url=http://127.0.0.1:7117")]
pub(super) struct SilenceArgs {
    #[command(flatten)]
    ask: AskArgs,
    #[command(subcommand)]
    command: SilenceCommand,
}

#[derive(Debug, Subcommand)]
enum SilenceCommand {
    /// Silence the alerts that match all matchers
    Add(AddArgs),
    /// List silences
    List {
        /// Include expired silences
        #[arg(long)]
        expired: bool,
    },
    /// Expire silences
    Expire {
        /// Ids of the silences
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Matchers such as host=web1, host!=web1, host=~"web.*" or host!~"web.*"
    #[arg(required = true, value_parser = LabelMatcher::parse)]
    matchers: Vec<LabelMatcher>,
    /// Start: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds [default: now]
    #[arg(long, value_parser = UnixMillis::parse)]
    start: Option<UnixMillis>,
    /// Duration, such as 2h or 30m
    #[arg(long = "for", default_value = "1h", value_parser = duration, conflicts_with = "end")]
    duration: i64,
    /// End
    #[arg(long, value_parser = UnixMillis::parse)]
    end: Option<UnixMillis>,
    /// Time of day at which recurring windows start
    #[arg(long, requires = "until")]
    from: Option<String>,
    /// Time of day at which recurring windows end; on the next day unless it is later than --from
    #[arg(long, requires = "from")]
    until: Option<String>,
    /// Weekdays on which the windows start, such as sat,sun [default: all]
    #[arg(long, requires = "from", value_delimiter = ',')]
    on: Vec<String>,
    /// Time zone of --from and --until, such as Europe/Berlin
    #[arg(long, requires = "from", default_value = "UTC")]
    zone: String,
    /// Reason
    #[arg(long)]
    comment: String,
    /// Author
    #[arg(long, default_value_t = current_user())]
    by: String,
}

/// The listed fields of a silence.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    id: String,
    status: Status,
    matchers: Vec<LabelMatcher>,
    starts_at: String,
    ends_at: String,
    created_by: String,
    comment: String,
    recurring: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Status {
    state: String,
}

pub(super) fn silence(args: &SilenceArgs) -> anyhow::Result<ExitCode> {
    let daemon = &args.ask.daemon;
    match &args.command {
        SilenceCommand::Add(add) => {
            let answer = daemon.post_path_json("api/v2/silences", &add.body(SystemClock.now())?)?;
            args.ask.print(&answer, || {
                let made: Value = read(&answer)?;
                Ok(made["silenceID"].as_str().unwrap_or_default().to_owned())
            })
        }
        SilenceCommand::List { expired } => {
            let answer = daemon.get_path("api/v2/silences")?;
            args.ask.print(&answer, || {
                let mut all: Vec<Shown> = read(&answer)?;
                all.retain(|silence| *expired || silence.status.state != "expired");
                Ok(shown(&all))
            })
        }
        SilenceCommand::Expire { ids } => expire(daemon, ids),
    }
}

fn expire(daemon: &Daemon, ids: &[String]) -> anyhow::Result<ExitCode> {
    for id in ids {
        daemon.delete_path(&format!("api/v2/silence/{id}"))?;
    }
    screen::print(&format!("expired {}", with_noun(ids.len(), "silence")))
}

impl AddArgs {
    fn body(&self, now: UnixMillis) -> anyhow::Result<Value> {
        let start = self.start.unwrap_or(now);
        let end = self.end.unwrap_or_else(|| start.plus(self.duration));
        let mut body = json!({
            "matchers": self.matchers,
            "startsAt": start.to_string(),
            "endsAt": end.to_string(),
            "createdBy": self.by,
            "comment": self.comment,
        });
        if let (Some(from), Some(until), Some(body)) =
            (&self.from, &self.until, body.as_object_mut())
        {
            let recurring =
                json!({ "weekdays": self.on, "from": from, "until": until, "zone": self.zone });
            // An invalid recurrence is reported before anything is sent.
            let recurring: Recurrence = serde_json::from_value(recurring)?;
            body.insert("recurring".to_owned(), json!(recurring));
        }
        Ok(body)
    }
}

fn shown(all: &[Shown]) -> String {
    let totals = with_noun(all.len(), "silence");
    if all.is_empty() {
        return totals;
    }
    let names = ["id", "state", "matchers", "from", "until", "recurs", "by", "comment"];
    let mut table = table(names.map(str::to_owned));
    for silence in all {
        let matchers: Vec<_> = silence.matchers.iter().map(LabelMatcher::to_string).collect();
        let matchers = matchers.join(" ");
        let recurs = silence.recurring.as_ref().map_or_else(String::new, recurs);
        let cells = [
            &silence.id,
            &silence.status.state,
            &matchers,
            &silence.starts_at,
            &silence.ends_at,
            &recurs,
            &silence.created_by,
            &silence.comment,
        ];
        table.add_row(cells.map(|cell| screen::text(cell)));
    }
    format!("{table}\n{totals}")
}

fn recurs(recurring: &Value) -> String {
    let text = |key: &str| recurring[key].as_str().unwrap_or_default();
    let days = recurring["weekdays"].as_array().into_iter().flatten();
    let days: Vec<_> = days.filter_map(|day| day.as_str()?.get(..3)).collect();
    format!("{} {}-{} {}", days.join(","), text("from"), text("until"), text("zone"))
}
