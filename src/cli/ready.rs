//! `granary ready`: checks whether a daemon is ready, for scripts and containers.

use std::{io::Write, process::ExitCode, time::Duration};

use clap::Args;
use serde_json::Value;

use super::{http::Daemon, screen::print_error};
use crate::{clock::Stopwatch, model::Span};

/// The pause between two checks.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Check whether a daemon is ready; the exit code is 0 when it is
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary ready
  granary ready --wait 30s --url http://127.0.0.1:7117")]
pub(super) struct ReadyArgs {
    #[command(flatten)]
    daemon: Daemon,
    /// Maximum time to wait until the daemon is ready
    #[arg(long, value_name = "TIME")]
    wait: Option<Span>,
    /// Process id that the daemon must have: another daemon at the address is not ready
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
}

pub(super) fn ready(args: &ReadyArgs) -> anyhow::Result<ExitCode> {
    let wait_ms = match args.wait {
        None => 0,
        Some(Span::Fixed(ms)) => ms as u64,
        Some(Span::Months(_)) => anyhow::bail!("--wait must be in days or smaller units"),
    };
    let watch = Stopwatch::start();
    loop {
        let problem = match check(args) {
            Ok(status) => {
                writeln!(std::io::stdout(), "{status}")?;
                return Ok(ExitCode::SUCCESS);
            }
            Err(problem) => problem,
        };
        let has_exited =
            args.pid.is_some_and(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists());
        if has_exited || watch.millis() >= wait_ms {
            print_error(&format!("granary: not ready: {problem:#}"));
            return Ok(ExitCode::FAILURE);
        }
        std::thread::sleep(RETRY_AFTER);
    }
}

/// Returns `ready` or `degraded`, with the reasons and warnings.
fn check(args: &ReadyArgs) -> anyhow::Result<String> {
    let body = args.daemon.get_path("readyz")?;
    let answer: Value = serde_json::from_str(&body)?;
    if let Some(pid) = args.pid {
        let found = answer["pid"].as_u64();
        anyhow::ensure!(
            found == Some(u64::from(pid)),
            "another process ({}) listens at {}",
            found.map_or_else(|| "not a Granary daemon".to_owned(), |pid| pid.to_string()),
            args.daemon.url
        );
    }
    let status = answer["status"].as_str().unwrap_or("ready").to_owned();
    let parts = ["reasons", "warnings"].into_iter().filter_map(|name| answer.get(name));
    let parts: Vec<_> = parts.map(ToString::to_string).collect();
    Ok(if parts.is_empty() { status } else { format!("{status}: {}", parts.join(" ")) })
}
