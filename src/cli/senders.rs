//! `granary senders`: lists and removes senders of a running daemon.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    flags::{AskArgs, present},
    http::read,
    screen,
    table::table,
};
use crate::{
    model::{UnixMillis, with_noun},
    query::{SenderEntry, SendersAnswer, SendersRemoved},
};

/// List or remove the senders whose batch numbers a running daemon remembers
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary senders list
  granary senders remove web1
  granary senders remove --idle 30d --dry-run

A removed sender may send again at once, as a new sender. Its samples stay. If it repeats an accepted
batch whose response it never received, that batch counts twice.")]
pub(super) struct SendersArgs {
    #[command(flatten)]
    ask: AskArgs,
    #[command(subcommand)]
    command: SendersCommand,
}

#[derive(Debug, Subcommand)]
enum SendersCommand {
    /// List senders with the time and the number of their last batch
    List {
        /// Only senders that have been silent for this long, such as 7d
        #[arg(long)]
        idle: Option<String>,
    },
    /// Remove senders, to free their places or to let them start over
    Remove {
        /// Names of the senders
        #[arg(required_unless_present = "idle")]
        agents: Vec<String>,
        /// Only senders that have been silent for this long, such as 30d
        #[arg(long)]
        idle: Option<String>,
        /// Only show which senders would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

pub(super) fn senders(args: &SendersArgs) -> anyhow::Result<ExitCode> {
    let daemon = &args.ask.daemon;
    match &args.command {
        SendersCommand::List { idle } => {
            let answer =
                daemon.get("senders", &present([("idle", idle.clone())]).collect::<Vec<_>>())?;
            args.ask.print(&answer, || {
                let listed: SendersAnswer = read(&answer)?;
                Ok(format!("{}\n{}", rows(&listed.senders), with_noun(listed.total, "sender")))
            })
        }
        SendersCommand::Remove { agents, idle, dry_run } => {
            let body = json!({ "agents": agents, "idle": idle, "dry_run": dry_run });
            let answer = daemon.post_json("admin/senders/remove", &body)?;
            args.ask.print(&answer, || {
                let done: SendersRemoved = read(&answer)?;
                let total = with_noun(done.total, "sender");
                if !done.dry_run {
                    return Ok(format!("removed {total}"));
                }
                let list = rows(&done.senders);
                Ok(format!("{list}\n{total} would be removed; nothing was changed"))
            })
        }
    }
}

/// Returns a table with a row per sender.
fn rows(senders: &[SenderEntry]) -> String {
    let header = ["sender", "heard", "series", "epoch", "number"].map(str::to_owned);
    let mut table = table(header);
    for sender in senders {
        let latest = sender.epochs.first();
        let agent = screen::text(&sender.agent);
        let heard = UnixMillis(sender.heard).to_string();
        let epoch = latest.map_or(String::new(), |latest| latest.epoch.to_string());
        let number = latest.map_or(String::new(), |latest| latest.seq.to_string());
        table.add_row([agent, heard, sender.series.to_string(), epoch, number]);
    }
    table.to_string()
}
