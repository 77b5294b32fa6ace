//! `granary clock`: whether a running daemon believes its machine's clock, and that it should.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{flags::AskArgs, http::read};
use crate::clock::ClockReport;

/// Show whether a running daemon believes its machine's clock, or confirm that it is right
///
/// A clock that is far from what is expected is doubted: nothing is dropped or preallocated then,
/// and all else goes on. Senders that agree with it end the doubt, or `granary clock confirm`.
#[derive(Debug, Args)]
pub(super) struct ClockArgs {
    #[command(flatten)]
    ask: AskArgs,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The clock is right: believe it from now on, and drop what is past its retention
    Confirm,
}

pub(super) fn clock(args: &ClockArgs) -> anyhow::Result<ExitCode> {
    let daemon = &args.ask.daemon;
    let answer = match args.what {
        None => daemon.get("admin/clock", &[])?,
        Some(What::Confirm) => daemon.post("admin/clock/confirm")?,
    };
    args.ask.print(&answer, || {
        let report: ClockReport = read(&answer)?;
        let believed = || format!("the clock says {} and is believed", report.clock);
        Ok(report.reason().unwrap_or_else(believed))
    })
}
