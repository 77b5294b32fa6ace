//! `granary senders`: list and remove the senders that a running daemon remembers.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    flags::{AskArgs, given},
    http::read,
    screen,
    table::table,
};
use crate::{
    model::{UnixMillis, counted},
    query::{SenderEntry, SendersAnswer, SendersRemoved},
};

/// List or remove the senders that a running daemon remembers by the numbers of their batches
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary senders list
  granary senders remove web1
  granary senders remove --idle 30d --dry-run

A sender that is removed may send at once, as a new one. What it sent stays. A batch that was accepted
and that it sends again, because it never saw the answer, counts again.")]
pub(super) struct SendersArgs {
    #[command(flatten)]
    ask: AskArgs,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The senders, with when they were heard and what they sent last
    List {
        /// Only those that were silent for so long, such as 7d
        #[arg(long)]
        idle: Option<String>,
    },
    /// Forget senders, so that they make room or can begin anew
    Remove {
        /// Their names
        #[arg(required_unless_present = "idle")]
        agents: Vec<String>,
        /// Only those that were silent for so long, such as 30d
        #[arg(long)]
        idle: Option<String>,
        /// Only show who would go
        #[arg(long)]
        dry_run: bool,
    },
}

pub(super) fn senders(args: &SendersArgs) -> anyhow::Result<ExitCode> {
    let daemon = &args.ask.daemon;
    match &args.what {
        What::List { idle } => {
            let answer =
                daemon.get("senders", &given([("idle", idle.clone())]).collect::<Vec<_>>())?;
            args.ask.print(&answer, || {
                let listed: SendersAnswer = read(&answer)?;
                Ok(format!("{}\n{}", rows(&listed.senders), counted(listed.total, "sender")))
            })
        }
        What::Remove { agents, idle, dry_run } => {
            let body = json!({ "agents": agents, "idle": idle, "dry_run": dry_run });
            let answer = daemon.post_json("admin/senders/remove", &body)?;
            args.ask.print(&answer, || {
                let done: SendersRemoved = read(&answer)?;
                let total = counted(done.total, "sender");
                if !done.dry_run {
                    return Ok(format!("removed {total}"));
                }
                let list = rows(&done.senders);
                Ok(format!("{list}\n{total} would be removed; nothing was changed"))
            })
        }
    }
}

/// A row for each sender.
fn rows(senders: &[SenderEntry]) -> String {
    let header = ["sender", "heard", "series", "epoch", "number"].map(str::to_owned);
    let mut table = table(header);
    for own in senders {
        let latest = own.epochs.first();
        let agent = screen::text(&own.agent);
        let heard = UnixMillis(own.heard).to_string();
        let epoch = latest.map_or(String::new(), |latest| latest.epoch.to_string());
        let number = latest.map_or(String::new(), |latest| latest.seq.to_string());
        table.add_row([agent, heard, own.series.to_string(), epoch, number]);
    }
    table.to_string()
}
