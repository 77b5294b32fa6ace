//! Series with the states of hosts, for rules.
//!
//! Must never know: rules, the state machine of hosts.

use super::recording::{Numbering, Recording};
use crate::{
    alerts::{GroupRun, WrittenSeries},
    kept::KnownHosts,
    model::{AgentStatus, HostState, HostStatus, METRIC_TAG, UnixMillis, own_sender},
    query::Labels,
    telemetry::HOST_METRICS,
};

/// The interval between two writes, in milliseconds; agents ping at the same interval.
const WRITE_INTERVAL_MS: i64 = 30_000;
/// The role that sends these series.
const ROLE: &str = "hosts";

/// The series of hosts in the last write.
#[derive(Debug, Default)]
pub(super) struct HostSeries {
    last: i64,
    written: WrittenSeries,
    set_back: u32,
}

impl HostSeries {
    /// Writes the states of hosts when they are due. A write that fails is dropped; the next write
    /// contains the current states.
    pub(super) async fn write(&mut self, hosts: &KnownHosts, recording: &Recording) {
        let now = hosts.time();
        let at = now.0 - now.0.rem_euclid(WRITE_INTERVAL_MS);
        // Listing a large fleet each second would cost more than all other work of the alerter.
        if at == self.last {
            return;
        }
        let (_, listed) = hosts.list(None);
        if listed.is_empty() && self.written.is_empty() {
            return;
        }
        self.last = at;
        let mut run = GroupRun::default();
        for host in &listed {
            push_samples(host, &mut run.samples);
        }
        let now: WrittenSeries = run.samples.iter().map(|(labels, _)| labels.clone()).collect();
        let before = std::mem::replace(&mut self.written, now);
        run.ended = before.into_iter().filter(|labels| !self.written.contains(labels)).collect();
        run.ended.sort_unstable();
        let (sender, at, set_back) = (own_sender(ROLE), UnixMillis(at), &mut self.set_back);
        let numbering = Numbering { sender, at, stage: 0, set_back };
        if let Some(lost) = recording.write(&run, at, numbering).await {
            tracing::warn!(count = lost.count, lost.cause, "dropped samples of hosts");
        }
    }
}

fn push_samples(host: &HostStatus, samples: &mut Vec<(Labels, f64)>) {
    let [silent, up, stopped, first_seen, booted, skew] = HOST_METRICS.map(|(name, _)| name);
    let mut add = |name: &str, tags: &[(&str, &str)], value: f64| {
        let all = [(METRIC_TAG, name), ("host", &host.host)];
        let all = all.iter().chain(tags).map(|(name, value)| ((*name).into(), (*value).into()));
        samples.push((Labels::new(all.collect()), value));
    };
    let is_stopped = host.state == HostState::Stopped;
    if is_stopped {
        let silent_ms = host.agents.iter().map(|agent| agent.silent_ms).min();
        add(stopped, &[], seconds(silent_ms.unwrap_or(0)));
    } else {
        add(up, &[], f64::from(u8::from(host.state != HostState::Down)));
    }
    add(first_seen, &[], seconds(host.first_seen));
    if let Some(at) = host.booted {
        add(booted, &[], seconds(at));
    }
    // The silence of an agent that stopped cleanly is not a failure.
    let is_expected = |agent: &&AgentStatus| !is_stopped && agent.state != HostState::Stopped;
    for agent in host.agents.iter().filter(is_expected) {
        let tags = [("agent", agent.agent.as_str()), ("program", agent.program.as_str())];
        add(silent, &tags, seconds(agent.silent_ms));
        add(skew, &tags, seconds(agent.skew_ms));
    }
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}
