//! `granary-bench`: a synthetic fleet that drives a running daemon.
//!
//! A plan determines what each host sends in each round, threads send it, and a report summarizes
//! the responses. The program uses the agents' protocol or remote write, and knows nothing else
//! about the daemon.

mod args;
mod daemon;
mod fleet;
mod load;
mod outcome;
mod pings;
mod plan;
mod remote_write;
mod report;
mod synthetic_host;

use std::io::{self, Write};

use serde_json::json;

pub use args::Args;
use daemon::Daemon;
use fleet::Fleet;
use plan::{Plan, Protocol};

/// The maximum number of hosts in a request that removes hosts.
const REMOVED_HOSTS_MAX: usize = 10_000;

/// Sends the fleet's samples, prints the figures, and removes the fleet's series and hosts.
///
/// # Errors
/// The arguments contradict each other, the daemon cannot be reached, or it accepted fewer samples
/// than were sent.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let daemon = Daemon { url: args.url.clone(), https: args.https.settings() };
    let plan = args.plan()?;
    let before = report::DaemonUse::read(&daemon)?;
    let outcome = load::run(&daemon, &plan)?;
    let after = report::DaemonUse::read(&daemon)?;
    report::print(&report::Report::new(&outcome, &before, &after), args.json)?;
    if !args.keep {
        clean_up(&daemon, &plan);
    }
    let (sent, accepted) = (plan.samples(0..args.hosts, 0..plan.rounds), outcome.accepted());
    anyhow::ensure!(accepted == sent, "the daemon accepted {accepted} of {sent} samples");
    Ok(())
}

/// Deletes the series and hosts of this run; warns when that fails.
fn clean_up(daemon: &Daemon, plan: &Plan) {
    let Fleet { epoch, hosts, .. } = plan.fleet;
    let series =
        json!({ "selector": { "tags": { "bench": epoch.to_string() } }, "dry_run": false });
    if let Err(cause) = daemon.post_json("admin/series/delete", &series) {
        warn(&format!("cannot delete the series with the tag bench={epoch}: {cause:#}"));
    }
    if plan.protocol != Protocol::Native {
        return;
    }
    let names: Vec<String> = (0..hosts).map(|host| plan.fleet.name(host)).collect();
    for names in names.chunks(REMOVED_HOSTS_MAX) {
        if let Err(cause) = daemon.post_json("admin/hosts/remove", &json!({ "hosts": names })) {
            warn(&format!("cannot remove the hosts of this run: {cause:#}"));
        }
    }
}

/// Writes a line to standard error.
fn warn(line: &str) {
    // When standard error is closed, the line is lost.
    drop(writeln!(io::stderr(), "granary-bench: {line}"));
}
