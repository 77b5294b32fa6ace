//! `granary silence`: times in which nobody is told of some alerts. Knows nothing of alerts.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    flags::{AskArgs, length, who},
    http::{Daemon, read},
    screen,
    table::table,
};
use crate::{
    alerts::{LabelMatcher, Recurrence},
    clock::{Clock, SystemClock},
    model::{UnixMillis, counted},
};

/// Silence alerts of a running daemon for a time, once or again and again
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
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Silence the alerts that all matchers fit
    Add(AddArgs),
    /// List silences
    List {
        /// Those that are over, too
        #[arg(long)]
        expired: bool,
    },
    /// End silences
    Expire {
        /// Their ids
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Such as host=web1, host!=web1, host=~"web.*" or host!~"web.*"
    #[arg(required = true, value_parser = LabelMatcher::parse)]
    matchers: Vec<LabelMatcher>,
    /// From when: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds [default: now]
    #[arg(long, value_parser = UnixMillis::parse)]
    start: Option<UnixMillis>,
    /// For how long, such as 2h or 30m
    #[arg(long = "for", default_value = "1h", value_parser = length, conflicts_with = "end")]
    length: i64,
    /// Until when
    #[arg(long, value_parser = UnixMillis::parse)]
    end: Option<UnixMillis>,
    /// Only in windows of that time, which begin at this time of the day
    #[arg(long, requires = "until")]
    from: Option<String>,
    /// When these windows end; on the next day, unless it is later than --from
    #[arg(long, requires = "from")]
    until: Option<String>,
    /// The weekdays on which they begin, such as sat,sun [default: all]
    #[arg(long, requires = "from", value_delimiter = ',')]
    on: Vec<String>,
    /// The time zone of these times, such as Europe/Berlin
    #[arg(long, requires = "from", default_value = "UTC")]
    zone: String,
    /// Why
    #[arg(long)]
    comment: String,
    /// Who says so
    #[arg(long, default_value_t = who())]
    by: String,
}

/// What is listed of a silence.
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
    match &args.what {
        What::Add(add) => {
            let answer =
                daemon.post_path_json("api/v2/silences", &add.posted(SystemClock.now())?)?;
            args.ask.print(&answer, || {
                let made: Value = read(&answer)?;
                Ok(made["silenceID"].as_str().unwrap_or_default().to_owned())
            })
        }
        What::List { expired } => {
            let answer = daemon.get_path("api/v2/silences")?;
            args.ask.print(&answer, || {
                let mut all: Vec<Shown> = read(&answer)?;
                all.retain(|own| *expired || own.status.state != "expired");
                Ok(shown(&all))
            })
        }
        What::Expire { ids } => expire(daemon, ids),
    }
}

fn expire(daemon: &Daemon, ids: &[String]) -> anyhow::Result<ExitCode> {
    for id in ids {
        daemon.delete_path(&format!("api/v2/silence/{id}"))?;
    }
    screen::print(&format!("ended {}", counted(ids.len(), "silence")))
}

impl AddArgs {
    fn posted(&self, now: UnixMillis) -> anyhow::Result<Value> {
        let start = self.start.unwrap_or(now);
        let end = self.end.unwrap_or_else(|| start.plus(self.length));
        let mut posted = json!({
            "matchers": self.matchers,
            "startsAt": start.to_string(),
            "endsAt": end.to_string(),
            "createdBy": self.by,
            "comment": self.comment,
        });
        if let (Some(from), Some(until), Some(posted)) =
            (&self.from, &self.until, posted.as_object_mut())
        {
            let recurring =
                json!({ "weekdays": self.on, "from": from, "until": until, "zone": self.zone });
            // What is wrong is said before anything is sent.
            let recurring: Recurrence = serde_json::from_value(recurring)?;
            posted.insert("recurring".to_owned(), json!(recurring));
        }
        Ok(posted)
    }
}

fn shown(all: &[Shown]) -> String {
    let totals = counted(all.len(), "silence");
    if all.is_empty() {
        return totals;
    }
    let names = ["id", "state", "matchers", "from", "until", "recurs", "by", "comment"];
    let mut table = table(names.map(str::to_owned));
    for own in all {
        let matchers: Vec<_> = own.matchers.iter().map(LabelMatcher::to_string).collect();
        let matchers = matchers.join(" ");
        let recurs = own.recurring.as_ref().map_or_else(String::new, recurs);
        let cells = [
            &own.id,
            &own.status.state,
            &matchers,
            &own.starts_at,
            &own.ends_at,
            &recurs,
            &own.created_by,
            &own.comment,
        ];
        table.add_row(cells.map(|cell| screen::text(cell)));
    }
    format!("{table}\n{totals}")
}

fn recurs(own: &Value) -> String {
    let text = |key: &str| own[key].as_str().unwrap_or_default();
    let days = own["weekdays"].as_array().into_iter().flatten();
    let days: Vec<_> = days.filter_map(|day| day.as_str()?.get(..3)).collect();
    format!("{} {}-{} {}", days.join(","), text("from"), text("until"), text("zone"))
}
