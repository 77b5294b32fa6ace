//! `granary clock`: shows whether a running daemon trusts its machine's clock, and confirms the
//! clock.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{flags::ClientArgs, http::read};
use crate::clock::ClockReport;

/// Show whether a running daemon trusts its machine's clock, or confirm that the clock is right
///
/// A daemon doubts a clock that is far from the expected time. It then neither expires nor
/// preallocates data; everything else continues. The doubt ends when senders agree with the
/// clock, or with `granary clock confirm`.
#[derive(Debug, Args)]
pub(super) struct ClockArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    command: Option<ClockCommand>,
}

#[derive(Debug, Subcommand)]
enum ClockCommand {
    /// Trust the clock from now on, and expire data that is past its retention
    Confirm,
}

pub(super) fn clock(args: &ClockArgs) -> anyhow::Result<ExitCode> {
    let daemon = &args.client.daemon;
    let answer = match args.command {
        None => daemon.get("admin/clock", &[])?,
        Some(ClockCommand::Confirm) => daemon.post_empty("admin/clock/confirm")?,
    };
    args.client.print(&answer, || {
        let report: ClockReport = read(&answer)?;
        let trusted = || format!("the clock shows {} and is trusted", report.clock);
        Ok(report.reason().unwrap_or_else(trusted))
    })
}
