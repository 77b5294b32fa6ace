//! `granary senders`: list and remove the senders that a running daemon remembers.

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::json;

use super::{http, query::table, screen};
use crate::query::{SendersAnswer, SendersRemoved};

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
    /// Where the daemon listens
    #[arg(long, env = "GRANARY_URL", default_value = http::DEFAULT_URL, value_parser = http::url, global = true)]
    url: String,
    /// Print the daemon's JSON answer
    #[arg(long, global = true)]
    json: bool,
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
    const UNREADABLE: &str = "read the answer";
    let (answer, text) = match &args.what {
        What::List { idle } => {
            let pairs: Vec<_> = idle.iter().map(|idle| ("idle", idle.clone())).collect();
            let answer = http::get(&args.url, "senders", &pairs)?;
            let listed: SendersAnswer = serde_json::from_str(&answer).context(UNREADABLE)?;
            let text = table::senders(&listed.senders);
            (answer, format!("{text}\n{} senders", listed.total))
        }
        What::Remove { agents, idle, dry_run } => {
            let body = json!({ "agents": agents, "idle": idle, "dry_run": dry_run });
            let answer = http::post_json(&args.url, "admin/senders/remove", &body)?;
            let done: SendersRemoved = serde_json::from_str(&answer).context(UNREADABLE)?;
            let total = done.total;
            let text = if done.dry_run {
                let list = table::senders(&done.senders);
                format!("{list}\n{total} senders would be removed; nothing was changed")
            } else {
                format!("removed {total} senders")
            };
            (answer, text)
        }
    };
    if args.json { screen::print_json(&answer) } else { screen::print(&text) }
}
