//! `granary update`: sends updates in MongoDB's syntax to a running daemon.

use std::{io, process::ExitCode};

use clap::Args;
use granary_protocol::IngestAnswer;

use super::{
    http::{Daemon, read},
    screen,
};

/// The exit code when samples were refused.
const REFUSED: u8 = 2;

/// Send updates in MongoDB's syntax; each update becomes samples
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  granary update \"db.page_views.update({page: '/', timestamp_minute: ISODate('$(date -u +%FT%H:%M:00Z)')}, {\\$inc: {'seconds.0': 1}})\"

The exit code is 0 when all samples were accepted, 2 when some were refused, 1 on failure.")]
pub(super) struct UpdateArgs {
    #[command(flatten)]
    daemon: Daemon,
    /// Updates, as commands or in the syntax of MongoDB's shell [default: from standard input]
    updates: Option<String>,
}

pub(super) fn update(args: &UpdateArgs) -> anyhow::Result<ExitCode> {
    let typed = args.updates.clone().map_or_else(|| io::read_to_string(io::stdin()), Ok)?;
    let body = args.daemon.post_text("update", &typed)?;
    let answer: IngestAnswer = read(&body)?;
    screen::print_json(&body)?;
    Ok(if answer.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}
