//! `granary hosts`: lists and removes hosts that ping, with their states: up, late, down or
//! stopped.

use std::{collections::BTreeSet, process::ExitCode};

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    flags::{AskArgs, present},
    http::read,
    screen,
    table::table,
};
use crate::{
    model::{HostState, HostStatus, with_noun},
    query::{HostsAnswer, HostsRemoved},
};

const SECOND_MS: i64 = 1000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// List the hosts whose agents ping a running daemon, or remove some
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary hosts
  granary hosts --down
  granary hosts remove web1

A host is late when none of its agents has sent a ping for 90 seconds, and down after 4 minutes. A
host whose agents were shut down normally is stopped. A removed host returns with its next ping; its
series stay.")]
pub(super) struct HostsArgs {
    #[command(flatten)]
    ask: AskArgs,
    /// Only this host
    #[arg(long)]
    host: Option<String>,
    /// Only hosts that are not up
    #[arg(long)]
    down: bool,
    #[command(subcommand)]
    command: Option<HostsCommand>,
}

#[derive(Debug, Subcommand)]
enum HostsCommand {
    /// Remove hosts from the list
    Remove {
        /// Names of the hosts
        #[arg(required = true)]
        hosts: Vec<String>,
    },
}

pub(super) fn hosts(args: &HostsArgs) -> anyhow::Result<ExitCode> {
    let daemon = &args.ask.daemon;
    if let Some(HostsCommand::Remove { hosts }) = &args.command {
        let names: BTreeSet<_> = hosts.iter().collect();
        let answer = daemon.post_json("admin/hosts/remove", &json!({ "hosts": names }))?;
        return args.ask.print(&answer, || {
            let HostsRemoved { total } = read(&answer)?;
            Ok(format!("removed {}", with_noun(total, "host")))
        });
    }
    let pairs: Vec<_> = present([("host", args.host.clone())]).collect();
    let answer = daemon.get("hosts", &pairs)?;
    args.ask.print(&answer, || {
        let mut listed: HostsAnswer = read(&answer)?;
        if args.down {
            listed.hosts.retain(|host| host.state != HostState::Up);
        }
        Ok(shown(&listed))
    })
}

fn shown(listed: &HostsAnswer) -> String {
    let states = HostState::ALL.iter();
    let totals: Vec<_> =
        states.map(|state| format!("{} {}", listed.totals.of(*state), state.as_str())).collect();
    let totals = totals.join(", ");
    if listed.hosts.is_empty() {
        return totals;
    }
    let mut table = table(["host", "state", "last ping", "version", "up since"].map(str::to_owned));
    for host in &listed.hosts {
        table.add_row(row(host, listed.now));
    }
    format!("{table}\n{totals}")
}

fn row(host: &HostStatus, now: i64) -> [String; 5] {
    let pinged = format!("{} ago", duration(now.saturating_sub(host.pinged)));
    let booted = host.booted.map(|booted| duration(now.saturating_sub(booted)));
    [
        screen::text(&host.host),
        host.state.as_str().to_owned(),
        pinged,
        screen::text(&host.version),
        booted.unwrap_or_else(|| "-".to_owned()),
    ]
}

/// Formats a duration in its two largest units.
fn duration(ms: i64) -> String {
    let ms = ms.max(0);
    let (whole, unit, rest, smaller) = match ms {
        ..MINUTE_MS => return format!("{}s", ms / SECOND_MS),
        MINUTE_MS..HOUR_MS => (ms / MINUTE_MS, "m", ms % MINUTE_MS / SECOND_MS, "s"),
        HOUR_MS..DAY_MS => (ms / HOUR_MS, "h", ms % HOUR_MS / MINUTE_MS, "m"),
        _ => (ms / DAY_MS, "d", ms % DAY_MS / HOUR_MS, "h"),
    };
    format!("{whole}{unit} {rest}{smaller}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_its_two_largest_units() {
        for (ms, text) in [
            (-5, "0s"),
            (59_999, "59s"),
            (61_000, "1m 1s"),
            (3_600_000, "1h 0m"),
            (90_000_000, "1d 1h"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }
}
