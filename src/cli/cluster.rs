//! `granary cluster`: shows and operates a cluster by one of its nodes.

use std::{process::ExitCode, thread::sleep, time::Duration};

use anyhow::bail;
use clap::{Args, Subcommand};

use super::{
    flags::ClientArgs,
    http::read,
    screen,
    table::{right, table},
};
use crate::{
    clock::Stopwatch,
    cluster::{ClusterStatus, NodeStatus, ShardStatus, shards::FIRST},
    model::with_noun,
};

/// The time in which another node takes the store: three leases.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(30);
/// The time in which the holder removes a member.
const STRUCK_WITHIN: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_millis(500);

/// Show and operate a cluster of nodes that have replicas of one store
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary cluster status
  granary cluster hand-over                # before the holder is stopped
  granary cluster strike node3-7117        # after node3 was lost
  granary cluster seed node2-7117          # node2 copies its replica anew

Each command may be sent to any node: all nodes forward it to the holder. The
name of a node follows from cluster.advertise: https://node1.example.com:7117
is node1_example_com-7117.")]
pub(super) struct ClusterArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Show the holder, the members with their lag, and the extent of the log
    Status,
    /// Let another member hold the store, and wait until it does
    HandOver {
        /// Number of the shard
        #[arg(long, default_value_t = FIRST)]
        shard: u16,
    },
    /// Remove a member, so that the log no longer waits for its disk
    ///
    /// The node can return: it copies the store from another member if the log no longer has what
    /// its disk lacks. A node that runs returns at once, so stop it first.
    Strike {
        /// Name of the node
        node: String,
        /// Number of the shard
        #[arg(long, default_value_t = FIRST)]
        shard: u16,
    },
    /// Let a member replace its replica with a copy of another member's
    ///
    /// The node applies the log again instead, if all its records are still there. The node does
    /// not hold the store meanwhile, and keeps its replica when no member sends a copy.
    Seed {
        /// Name of the node
        node: String,
        /// Number of the shard
        #[arg(long, default_value_t = FIRST)]
        shard: u16,
    },
}

pub(super) fn cluster(args: &ClusterArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        ClusterCommand::Status => {
            let answer = args.client.daemon.get("cluster/status", &[])?;
            args.client.print(&answer, || Ok(render(&read(&answer)?)))
        }
        ClusterCommand::HandOver { shard } => hand_over(&args.client, *shard),
        ClusterCommand::Strike { node, shard } => strike(&args.client, node, *shard),
        ClusterCommand::Seed { node, shard } => {
            let answer = args.client.daemon.post_empty(&target("seed", node, *shard)?)?;
            args.client.print(&answer, || {
                Ok(format!(
                    "{node} copies its replica anew; `granary cluster status` shows its progress"
                ))
            })
        }
    }
}

/// Returns the path of a change of a node.
fn target(change: &str, node: &str, shard: u16) -> anyhow::Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if node.is_empty() || !node.chars().all(is_plain) {
        bail!("{node:?} is no name of a node; see `granary cluster status`");
    }
    Ok(of_shard(format!("cluster/{change}?node={node}"), shard))
}

/// Adds the number of a shard to the path of a change; nodes of earlier releases have one shard.
fn of_shard(path: String, shard: u16) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    if shard == FIRST { path } else { format!("{path}{separator}shard={shard}") }
}

/// Returns a shard; `None` when the store has no shard of this number, or when an earlier release
/// answers, which has one.
fn find(status: &ClusterStatus, shard: u16) -> Option<&ShardStatus> {
    status.shards.iter().find(|found| found.shard == shard)
}

/// Returns the holder and the epoch of a shard.
fn holding(status: &ClusterStatus, shard: u16) -> (String, u64) {
    let (holder, epoch) = match find(status, shard) {
        Some(found) => (&found.holder, found.epoch),
        None => (&status.holder, status.epoch),
    };
    (holder.clone().unwrap_or_default(), epoch)
}

fn status(client: &ClientArgs) -> anyhow::Result<(String, ClusterStatus)> {
    let answer = client.daemon.get("cluster/status", &[])?;
    let status = read(&answer)?;
    Ok((answer, status))
}

/// Reads the status until it fits; a cluster without a holder does not answer.
fn wait(
    client: &ClientArgs,
    limit: Duration,
    fits: impl Fn(&ClusterStatus) -> bool,
) -> Option<(String, ClusterStatus)> {
    let watch = Stopwatch::start();
    loop {
        match status(client) {
            Ok((answer, status)) if fits(&status) => return Some((answer, status)),
            _ if watch.elapsed() > limit => return None,
            Ok(_) | Err(_) => sleep(RETRY),
        }
    }
}

fn hand_over(client: &ClientArgs, shard: u16) -> anyhow::Result<ExitCode> {
    let (before, epoch) = holding(&status(client)?.1, shard);
    client.daemon.post_empty(&of_shard("cluster/hand-over".to_owned(), shard))?;
    match wait(client, HANDED_OVER_WITHIN, |now| holding(now, shard).1 > epoch) {
        None => bail!(
            "{before} ended its lease, but no node holds the store after {} seconds: are the other \
             members running?",
            HANDED_OVER_WITHIN.as_secs()
        ),
        Some((answer, now)) => client.print(&answer, || {
            let (now, _) = holding(&now, shard);
            Ok(if now == before {
                format!("{now} holds the store again: no other member took it")
            } else {
                format!("{now} holds the store now")
            })
        }),
    }
}

fn strike(client: &ClientArgs, node: &str, shard: u16) -> anyhow::Result<ExitCode> {
    client.daemon.post_empty(&target("strike", node, shard)?)?;
    let is_member = |now: &ClusterStatus| match find(now, shard) {
        Some(found) => found.members.contains_key(node),
        None => now.nodes.iter().any(|found| found.node == node && found.floor.is_some()),
    };
    match wait(client, STRUCK_WITHIN, |now| !is_member(now)) {
        None => bail!(
            "{node} is still a member after {} seconds; a node that runs returns at once, so stop \
             it first",
            STRUCK_WITHIN.as_secs()
        ),
        Some((answer, _)) => client.print(&answer, || Ok(format!("{node} is no member any more"))),
    }
}

fn render(status: &ClusterStatus) -> String {
    // A name follows from the address, which `--json` has.
    let header = ["node", "role", "alive", "on disk", "lag"].map(str::to_owned);
    let mut table = table(header);
    for node in &status.nodes {
        let number = |number: Option<u64>| number.map_or("-".to_owned(), |n| n.to_string());
        table.add_row([
            screen::text(&node.node).into(),
            role(node).into(),
            if node.alive { "yes" } else { "no" }.into(),
            right(number(node.floor)),
            right(number(node.lag_records)),
        ]);
    }
    let holder = status.holder.as_deref().unwrap_or("no node");
    let kept = status.last_record.saturating_sub(status.cut);
    let mut lines = vec![
        table.to_string(),
        format!(
            "holder {}, epoch {}, lease renewed {}",
            screen::text(holder),
            status.epoch,
            with_noun(status.beat.max(0), "time")
        ),
        format!("log: last record {}, {} kept", status.last_record, with_noun(kept, "record")),
    ];
    if status.shards.len() > 1 {
        lines.push(render_shards(&status.shards));
    }
    if let Some(fault) = &status.last_fault {
        lines.push(format!("last fault: {}", screen::text(fault)));
    }
    lines.join("\n")
}

fn render_shards(shards: &[ShardStatus]) -> String {
    let mut table =
        table(["shard", "holder", "epoch", "on disk (node: record)"].map(str::to_owned));
    for shard in shards {
        let members: Vec<_> =
            shard.members.iter().map(|(node, floor)| format!("{node}: {floor}")).collect();
        table.add_row([
            right(shard.shard.to_string()),
            screen::text(shard.holder.as_deref().unwrap_or("-")).into(),
            right(shard.epoch.to_string()),
            screen::text(&members.join(", ")).into(),
        ]);
    }
    table.to_string()
}

fn role(node: &NodeStatus) -> &'static str {
    match (node.holds, node.floor) {
        (true, _) => "holder",
        (false, Some(_)) => "member",
        (false, None) => "forwards",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_fits_on_80_columns_and_names_all_nodes() {
        let node = |name: &str, floor: Option<u64>, holds| NodeStatus {
            node: name.to_owned(),
            address: Some("https://node.example.com:7117".to_owned()),
            alive: holds,
            holds,
            floor,
            lag_records: floor.map(|floor| 120 - floor),
        };
        let nodes = vec![
            node("node1_example_com-7117", Some(110), true),
            node("node2_example_com-7117", Some(100), false),
            node("node3_example_com-7117", None, false),
        ];
        let status = ClusterStatus {
            node: "node1_example_com-7117".to_owned(),
            holder: Some("node1_example_com-7117".to_owned()),
            epoch: 3,
            beat: 1,
            last_record: 120,
            cut: 90,
            nodes,
            last_fault: None,
            shards: Vec::new(),
        };
        let text = render(&status);
        for part in
            ["holder node1_example_com-7117, epoch 3, lease renewed 1 time", "30 records kept"]
        {
            assert!(text.contains(part), "{text}");
        }
        for (name, part) in [("node1", "holder"), ("node2", "member"), ("node3", "forwards")] {
            let line =
                text.lines().find(|line| line.contains(&format!("{name}_example_com-"))).unwrap();
            assert!(line.contains(part), "{line}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_name_that_would_be_another_request_is_refused() {
        assert_eq!(target("seed", "a-1", 0).unwrap(), "cluster/seed?node=a-1");
        assert_eq!(target("seed", "a-1", 2).unwrap(), "cluster/seed?node=a-1&shard=2");
        assert_eq!(of_shard("cluster/hand-over".to_owned(), 2), "cluster/hand-over?shard=2");
        for name in ["", "a b", "a&x=1", "a/b"] {
            assert!(target("seed", name, 0).is_err(), "{name}");
        }
    }
}
