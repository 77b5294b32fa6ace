//! Sending: each connection is a thread with its share of the hosts.

use std::{
    ops::Range,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::Duration,
};

use anyhow::Context;
use granary_protocol::{BSON_MEDIA_TYPE, INGEST_PATH, IngestAnswer};

use super::{
    Speech,
    fleet::Fleet,
    outcome::{Answer, Answered, Outcome},
    pings, remote_write,
};
use crate::{
    cli::screen::complain,
    clock::{Clock, Stopwatch, SystemClock},
    model::UnixMillis,
};

/// How long a connection waits after it was told to come back later.
const BUSY_PAUSE: Duration = Duration::from_millis(50);
/// Answers that wait to be counted, at most.
const ANSWERS_MAX: usize = 4096;
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);

const REMOTE_WRITE_PATH: &str = "/api/v1/write";

/// What to send.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) url: String,
    pub(super) fleet: Fleet,
    pub(super) rounds: usize,
    pub(super) start: UnixMillis,
    pub(super) interval: Duration,
    pub(super) connections: usize,
    pub(super) speech: Speech,
    pub(super) hosts_per_request: usize,
    pub(super) batches_per_request: usize,
    /// From which round on one comes each interval.
    pub(super) paced_from: usize,
    /// Whether a connection waits when it is told to.
    pub(super) patient: bool,
    /// Whether it is said each minute what came of it.
    pub(super) tells_minutes: bool,
}

/// Sends the whole plan, and says each minute what came of it.
pub(super) fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    let watch = Stopwatch::start();
    let mut outcome = Outcome::default();
    thread::scope(|scope| {
        // Closed when this ends, with or without an error.
        let (_sending, done) = sync_channel::<()>(0);
        if plan.speech == Speech::Native {
            scope.spawn(move || pings::run(plan, &done));
        }
        let (answers, answered) = sync_channel(ANSWERS_MAX);
        let connections: Vec<_> = (0..plan.connections)
            .map(|index| {
                let connection = Connection::new(plan, watch, answers.clone());
                scope.spawn(move || connection.send_share(index))
            })
            .collect();
        drop(answers);
        count(plan, &watch, &answered, &mut outcome);
        for connection in connections {
            let sent = connection.join();
            sent.map_err(|_| anyhow::anyhow!("a connection's thread panicked"))??;
        }
        anyhow::Ok(())
    })?;
    outcome.seconds = watch.seconds();
    Ok(outcome)
}

/// Takes up the answers of all connections, and says each minute what came of it.
fn count(plan: &Plan, watch: &Stopwatch, answered: &Receiver<Answered>, outcome: &mut Outcome) {
    for minute in 0.. {
        let end = Duration::from_secs(60 * (minute as u64 + 1));
        loop {
            match answered.recv_timeout(end.saturating_sub(watch.elapsed())) {
                Ok(answer) => outcome.add(&answer),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        if plan.tells_minutes {
            complain(&outcome.minute(minute));
        }
    }
}

struct Connection<'a> {
    plan: &'a Plan,
    agent: ureq::Agent,
    watch: Stopwatch,
    answers: SyncSender<Answered>,
    body: Vec<u8>,
}

impl<'a> Connection<'a> {
    fn new(plan: &'a Plan, watch: Stopwatch, answers: SyncSender<Answered>) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .build();
        Self { plan, agent: config.into(), watch, answers, body: Vec::new() }
    }

    fn send_share(mut self, index: usize) -> anyhow::Result<()> {
        let plan = self.plan;
        let groups = plan.fleet.hosts.div_ceil(plan.hosts_per_request);
        let mut first = 0;
        while first < plan.rounds {
            let rounds = plan.together(first);
            for group in (index..groups).step_by(plan.connections) {
                if first >= plan.paced_from {
                    let due = plan.time_of(first).plus(plan.phase(group, groups));
                    let wait = due.0 - SystemClock.now().0;
                    thread::sleep(Duration::from_millis(wait.max(0) as u64));
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
        mut define: bool,
    ) -> anyhow::Result<()> {
        let plan = self.plan;
        let samples = plan.samples(hosts.clone(), rounds.clone());
        if samples == 0 {
            return Ok(());
        }
        loop {
            let answered = match plan.speech {
                Speech::Native => {
                    self.body.clear();
                    for host in hosts.clone() {
                        let mut define = define;
                        for round in rounds.clone() {
                            let at = plan.time_of(round);
                            let is_sent =
                                plan.fleet.encode(host, round, at, define, &mut self.body);
                            define &= !is_sent;
                        }
                    }
                    self.post()?
                }
                Speech::RemoteWrite => {
                    let (hosts, rounds) = (hosts.clone(), rounds.clone());
                    let time = |round| plan.time_of(round);
                    let body =
                        remote_write::encode(&plan.fleet, hosts, rounds, time, &mut self.body);
                    self.post_remote(&body, samples)?
                }
            };
            self.answers.send(answered).context("nobody counts the answers")?;
            match answered.answer {
                Answer::Acknowledged { .. } => return Ok(()),
                Answer::Define => define = true,
                Answer::Busy if plan.patient => thread::sleep(BUSY_PAUSE),
                Answer::Busy => {}
            }
        }
    }

    fn post(&mut self) -> anyhow::Result<Answered> {
        let watch = Stopwatch::start();
        let url = format!("{}{INGEST_PATH}", self.plan.url);
        let mut response = self
            .agent
            .post(&url)
            .content_type(BSON_MEDIA_TYPE)
            .send(&self.body)
            .with_context(|| format!("cannot reach granary at {}", self.plan.url))?;
        let text = response.body_mut().read_to_string().context("read the answer")?;
        let seconds = watch.seconds();
        let answer = match response.status().as_u16() {
            200 => {
                let answer: IngestAnswer =
                    serde_json::from_str(&text).context("read the answer")?;
                let refused = answer.refused.values().sum();
                let (accepted, duplicates) = (answer.accepted, answer.duplicates);
                Answer::Acknowledged { accepted, duplicates, refused }
            }
            409 => Answer::Define,
            429 => Answer::Busy,
            status => anyhow::bail!("granary answered {status}: {text}"),
        };
        Ok(Answered { at: self.watch.seconds(), seconds, answer })
    }

    /// The answer has no counts: what is acknowledged counts as accepted.
    fn post_remote(&mut self, body: &[u8], samples: u64) -> anyhow::Result<Answered> {
        let watch = Stopwatch::start();
        let mut response = self
            .agent
            .post(format!("{}{REMOTE_WRITE_PATH}", self.plan.url))
            .content_type("application/x-protobuf")
            .header("Content-Encoding", "snappy")
            .header("X-Prometheus-Remote-Write-Version", "0.1.0")
            .send(body)
            .with_context(|| format!("cannot reach {}", self.plan.url))?;
        let seconds = watch.seconds();
        let answer = match response.status().as_u16() {
            200..=299 => Answer::Acknowledged { accepted: samples, duplicates: 0, refused: 0 },
            429 | 503 => Answer::Busy,
            status => {
                let text = response.body_mut().read_to_string().unwrap_or_default();
                anyhow::bail!("{} answered {status}: {text}", self.plan.url)
            }
        };
        Ok(Answered { at: self.watch.seconds(), seconds, answer })
    }
}

impl Plan {
    /// The rounds that share a request, from one on.
    fn together(&self, first: usize) -> Range<usize> {
        let (several, end) = if first < self.paced_from {
            (self.batches_per_request, self.paced_from.min(self.rounds))
        } else {
            (1, self.rounds)
        };
        first..(first + several).min(end)
    }

    /// Samples that hosts send in rounds.
    pub(super) fn samples(&self, hosts: Range<usize>, rounds: Range<usize>) -> u64 {
        let is_sent = |host, round| !self.fleet.is_silent(host, self.time_of(round));
        let sent = |host| rounds.clone().filter(|round| is_sent(host, *round)).count();
        (hosts.map(sent).sum::<usize>() * self.fleet.series()) as u64
    }

    /// Milliseconds into a round when hosts report: each agent begins when it likes, so a fleet's
    /// reports lie all over the interval.
    fn phase(&self, group: usize, groups: usize) -> i64 {
        group as i64 * self.interval.as_millis() as i64 / groups as i64
    }

    fn time_of(&self, round: usize) -> UnixMillis {
        self.start.plus(round as i64 * self.interval.as_millis() as i64)
    }
}
