//! `granary clock`: whether a running daemon believes its machine's clock, and that it should.

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};

use super::{http, screen};
use crate::actors::ClockReport;

/// Show whether a running daemon believes its machine's clock, or confirm that it is right
///
/// A clock that is far from what is expected is doubted: nothing is dropped or preallocated then,
/// and all else goes on. Senders that agree with it end the doubt, or `granary clock confirm`.
#[derive(Debug, Args)]
pub(super) struct ClockArgs {
    /// Where the daemon listens
    #[arg(long, env = "GRANARY_URL", default_value = http::DEFAULT_URL, value_parser = http::url, global = true)]
    url: String,
    /// Print the daemon's JSON answer
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The clock is right: believe it from now on, and drop what is past its retention
    Confirm,
}

pub(super) fn clock(args: &ClockArgs) -> anyhow::Result<ExitCode> {
    let answer = match args.what {
        None => http::get(&args.url, "admin/clock", &[])?,
        Some(What::Confirm) => http::post(&args.url, "admin/clock/confirm")?,
    };
    if args.json {
        return screen::print_json(&answer);
    }
    let report: ClockReport = serde_json::from_str(&answer).context("read the answer")?;
    let believed = || format!("the clock says {} and is believed", report.clock);
    screen::print(&report.reason().unwrap_or_else(believed))
}
