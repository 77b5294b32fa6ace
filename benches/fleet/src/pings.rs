//! The pings of the fleet's agents, all in one thread.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

use granary_agent_kit::unix_ms;
use granary_protocol::{PING_PATH, PINGS_PER_REQUEST_MAX, PingBody, ping_interval};

use crate::{daemon::Daemon, plan::Plan, warn};

/// The time limit of a request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Pings for all hosts until `done` is closed; warns when pings begin to fail.
pub(crate) fn run(daemon: &Daemon, plan: &Plan, agent: &ureq::Agent, done: &Receiver<()>) {
    let mut is_failing = false;
    loop {
        let outcome = ping_all(daemon, plan, agent);
        if let Err(cause) = &outcome
            && !is_failing
        {
            warn(&format!("the fleet's agents cannot ping: {cause:#}"));
        }
        is_failing = outcome.is_err();
        match done.recv_timeout(ping_interval(plan.interval)) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn ping_all(daemon: &Daemon, plan: &Plan, agent: &ureq::Agent) -> anyhow::Result<()> {
    let interval_ms = (plan.interval.as_millis() as u64).max(1);
    let hosts: Vec<usize> = (0..plan.fleet.hosts).collect();
    for hosts in hosts.chunks(PINGS_PER_REQUEST_MAX) {
        let now_ms = unix_ms();
        let ping = |host: &usize| plan.fleet.ping(*host, interval_ms, now_ms);
        let body = PingBody { pings: hosts.iter().map(ping).collect() };
        let request = agent.post(daemon.url_of(PING_PATH));
        let request = request.content_type("application/json");
        let status = request.send(serde_json::to_vec(&body)?)?.status();
        anyhow::ensure!(status.is_success(), "{} answered {status}", daemon.url);
    }
    Ok(())
}
