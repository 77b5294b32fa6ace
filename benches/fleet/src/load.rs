//! Sending: each connection is a thread with its share of the hosts.

use std::{
    ops::Range,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::Duration,
};

use anyhow::Context;
use granary_agent_kit::{Stopwatch, unix_ms};
use granary_protocol::{BSON_MEDIA_TYPE, INGEST_PATH, IngestAnswer};

use crate::{
    daemon::Daemon,
    outcome::{Answer, Outcome, TimedResponse},
    pings,
    plan::{Plan, Protocol},
    remote_write, warn,
};

/// The pause of a connection after a busy response.
const BUSY_PAUSE: Duration = Duration::from_millis(50);
/// The maximum number of responses that wait to be counted.
const RESPONSES_MAX: usize = 4096;
/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(60);

const REMOTE_WRITE_PATH: &str = "/api/v1/write";

/// Sends the whole plan and reports each minute's figures.
pub(crate) fn run(daemon: &Daemon, plan: &Plan) -> anyhow::Result<Outcome> {
    let pinging = daemon.agent(pings::TIMEOUT)?;
    // Each connection has a client of its own, because a client keeps few idle connections.
    let agents = (0..plan.connections).map(|_| daemon.agent(TIMEOUT));
    let agents: Vec<_> = agents.collect::<anyhow::Result<_>>()?;
    let watch = Stopwatch::start();
    let mut outcome = Outcome::default();
    thread::scope(|scope| {
        // Dropping the sender stops the pings, even after an error.
        let (_pings_end, done) = sync_channel::<()>(0);
        if plan.protocol == Protocol::Native {
            scope.spawn(move || pings::run(daemon, plan, &pinging, &done));
        }
        let (response_sender, responses) = sync_channel(RESPONSES_MAX);
        let connections: Vec<_> = (0..)
            .zip(agents)
            .map(|(index, agent)| {
                let answers = response_sender.clone();
                let connection = Connection::new(daemon, plan, agent, watch, answers);
                scope.spawn(move || connection.send_share(index))
            })
            .collect();
        drop(response_sender);
        count_responses(plan, &watch, &responses, &mut outcome);
        for connection in connections {
            let sent = connection.join();
            sent.map_err(|_| anyhow::anyhow!("a connection's thread panicked"))??;
        }
        anyhow::Ok(())
    })?;
    outcome.seconds = watch.elapsed().as_secs_f64();
    Ok(outcome)
}

/// Counts the responses of all connections and reports each minute's figures.
fn count_responses(
    plan: &Plan,
    watch: &Stopwatch,
    responses: &Receiver<TimedResponse>,
    outcome: &mut Outcome,
) {
    for minute in 0.. {
        let end = Duration::from_secs(60 * (minute as u64 + 1));
        loop {
            match responses.recv_timeout(end.saturating_sub(watch.elapsed())) {
                Ok(answer) => outcome.add(&answer),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        if plan.reports_minutes {
            warn(&outcome.minute(minute));
        }
    }
}

struct Connection<'a> {
    daemon: &'a Daemon,
    plan: &'a Plan,
    agent: ureq::Agent,
    watch: Stopwatch,
    answers: SyncSender<TimedResponse>,
    body: Vec<u8>,
}

impl<'a> Connection<'a> {
    fn new(
        daemon: &'a Daemon,
        plan: &'a Plan,
        agent: ureq::Agent,
        watch: Stopwatch,
        answers: SyncSender<TimedResponse>,
    ) -> Self {
        Self { daemon, plan, agent, watch, answers, body: Vec::new() }
    }

    fn send_share(mut self, index: usize) -> anyhow::Result<()> {
        let plan = self.plan;
        let groups = plan.fleet.hosts.div_ceil(plan.hosts_per_request);
        let mut first = 0;
        while first < plan.rounds {
            let rounds = plan.rounds_of_request(first);
            for group in (index..groups).step_by(plan.connections) {
                if first >= plan.paced_from {
                    let due_ms = plan.time_of(first) + plan.offset_ms(group, groups);
                    thread::sleep(Duration::from_millis((due_ms - unix_ms()).max(0) as u64));
                }
                let host = group * plan.hosts_per_request;
                let hosts = host..(host + plan.hosts_per_request).min(plan.fleet.hosts);
                self.send(hosts, rounds.clone(), first == 0)?;
            }
            first = rounds.end;
        }
        Ok(())
    }

    fn send(
        &mut self,
        hosts: Range<usize>,
        rounds: Range<usize>,
        mut with_definitions: bool,
    ) -> anyhow::Result<()> {
        let plan = self.plan;
        let samples = plan.samples(hosts.clone(), rounds.clone());
        if samples == 0 {
            return Ok(());
        }
        loop {
            let response = match plan.protocol {
                Protocol::Native => {
                    self.body.clear();
                    for host in hosts.clone() {
                        let mut with_definitions = with_definitions;
                        for round in rounds.clone() {
                            let at = plan.time_of(round);
                            let is_sent = plan.fleet.encode(
                                host,
                                round,
                                at,
                                with_definitions,
                                &mut self.body,
                            );
                            with_definitions &= !is_sent;
                        }
                    }
                    self.post(&self.body, samples)?
                }
                Protocol::RemoteWrite => {
                    let (hosts, rounds) = (hosts.clone(), rounds.clone());
                    let time = |round| plan.time_of(round);
                    let body =
                        remote_write::encode(&plan.fleet, hosts, rounds, time, &mut self.body);
                    self.post(&body, samples)?
                }
            };
            self.answers.send(response).context("the thread that counts responses ended")?;
            match response.answer {
                Answer::Acknowledged { .. } => return Ok(()),
                Answer::Define => with_definitions = true,
                Answer::Busy if plan.waits_when_busy => thread::sleep(BUSY_PAUSE),
                Answer::Busy => {}
            }
        }
    }

    /// Posts encoded samples. A response to remote write has no counts: acknowledged samples count
    /// as accepted.
    fn post(&self, body: &[u8], samples: u64) -> anyhow::Result<TimedResponse> {
        let watch = Stopwatch::start();
        let protocol = self.plan.protocol;
        let request = match protocol {
            Protocol::Native => {
                self.agent.post(self.daemon.url_of(INGEST_PATH)).content_type(BSON_MEDIA_TYPE)
            }
            Protocol::RemoteWrite => self
                .agent
                .post(self.daemon.url_of(REMOTE_WRITE_PATH))
                .content_type("application/x-protobuf")
                .header("Content-Encoding", "snappy")
                .header("X-Prometheus-Remote-Write-Version", "0.1.0"),
        };
        let url = &self.daemon.url;
        let mut response = request.send(body).with_context(|| format!("cannot reach {url}"))?;
        let text = response.body_mut().read_to_string().context("read the response")?;
        let seconds = watch.elapsed().as_secs_f64();
        let answer = match (protocol, response.status().as_u16()) {
            (Protocol::Native, 200) => {
                let IngestAnswer { accepted, duplicates, refused, .. } =
                    serde_json::from_str(&text).context("read the response")?;
                Answer::Acknowledged { accepted, duplicates, refused: refused.values().sum() }
            }
            (Protocol::Native, 409) => Answer::Define,
            (Protocol::RemoteWrite, 200..=299) => {
                Answer::Acknowledged { accepted: samples, duplicates: 0, refused: 0 }
            }
            (_, 429) | (Protocol::RemoteWrite, 503) => Answer::Busy,
            (_, status) => anyhow::bail!("{url} answered {status}: {text}"),
        };
        Ok(TimedResponse { at: self.watch.elapsed().as_secs_f64(), seconds, answer })
    }
}
