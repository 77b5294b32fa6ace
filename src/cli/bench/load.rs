//! Sending: each connection is a thread with its share of the hosts.

use std::{thread, time::Duration};

use anyhow::Context;
use granary_protocol::{BSON_MEDIA_TYPE, INGEST_PATH, IngestAnswer};

use super::fleet::Fleet;
use crate::model::{Clock, SystemClock, UnixMillis, time::Stopwatch};

/// How long a connection waits after it was told to come back later.
const BUSY_PAUSE: Duration = Duration::from_millis(50);
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What to send.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) url: String,
    pub(super) fleet: Fleet,
    pub(super) rounds: usize,
    pub(super) start: UnixMillis,
    pub(super) interval: Duration,
    pub(super) connections: usize,
    pub(super) batches_per_request: usize,
    pub(super) paced: bool,
    /// Whether a connection waits when it is told to.
    pub(super) patient: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) accepted: u64,
    pub(super) duplicates: u64,
    pub(super) refused: u64,
    pub(super) busy: u64,
    pub(super) requests: u64,
    pub(super) seconds: f64,
    /// Seconds from a request to its acknowledgement.
    pub(super) latencies: Vec<f64>,
}

/// Sends the whole plan.
pub(super) fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    let watch = Stopwatch::start();
    let mut total = Outcome::default();
    thread::scope(|scope| {
        let connections: Vec<_> = (0..plan.connections)
            .map(|index| scope.spawn(move || Connection::new(plan).send_share(index)))
            .collect();
        for connection in connections {
            let part = connection
                .join()
                .map_err(|_| anyhow::anyhow!("a connection's thread panicked"))??;
            total.accepted += part.accepted;
            total.duplicates += part.duplicates;
            total.refused += part.refused;
            total.busy += part.busy;
            total.requests += part.requests;
            total.latencies.extend(part.latencies);
        }
        anyhow::Ok(())
    })?;
    total.seconds = watch.seconds();
    total.latencies.sort_by(f64::total_cmp);
    Ok(total)
}

struct Connection<'a> {
    plan: &'a Plan,
    agent: ureq::Agent,
    outcome: Outcome,
    body: Vec<u8>,
}

impl<'a> Connection<'a> {
    fn new(plan: &'a Plan) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .build();
        Self { plan, agent: config.into(), outcome: Outcome::default(), body: Vec::new() }
    }

    fn send_share(mut self, index: usize) -> anyhow::Result<Outcome> {
        let plan = self.plan;
        for first in (0..plan.rounds).step_by(plan.batches_per_request) {
            let rounds = first..(first + plan.batches_per_request).min(plan.rounds);
            if plan.paced {
                let due = plan.start.plus(first as i64 * plan.interval.as_millis() as i64);
                let wait = due.0 - SystemClock.now().0;
                thread::sleep(Duration::from_millis(wait.max(0) as u64));
            }
            for host in (index..plan.fleet.hosts).step_by(plan.connections) {
                self.send(host, rounds.clone(), first == 0)?;
            }
        }
        Ok(self.outcome)
    }

    fn send(
        &mut self,
        host: usize,
        rounds: std::ops::Range<usize>,
        mut define: bool,
    ) -> anyhow::Result<()> {
        loop {
            self.body.clear();
            for round in rounds.clone() {
                let at = self.plan.start.plus(round as i64 * self.plan.interval.as_millis() as i64);
                let define = define && round == rounds.start;
                self.plan.fleet.encode(host, round, at, define, &mut self.body);
            }
            match self.post()? {
                Verdict::Acknowledged => return Ok(()),
                Verdict::Define => define = true,
                Verdict::Busy if self.plan.patient => thread::sleep(BUSY_PAUSE),
                Verdict::Busy => {}
            }
        }
    }

    fn post(&mut self) -> anyhow::Result<Verdict> {
        let watch = Stopwatch::start();
        let url = format!("{}{INGEST_PATH}", self.plan.url);
        let mut response = self
            .agent
            .post(&url)
            .content_type(BSON_MEDIA_TYPE)
            .send(&self.body)
            .with_context(|| format!("cannot reach granary at {}", self.plan.url))?;
        self.outcome.requests += 1;
        let text = response.body_mut().read_to_string().context("read the answer")?;
        match response.status().as_u16() {
            200 => {
                self.outcome.latencies.push(watch.seconds());
                let answer: IngestAnswer =
                    serde_json::from_str(&text).context("read the answer")?;
                self.outcome.accepted += answer.accepted;
                self.outcome.duplicates += answer.duplicates;
                self.outcome.refused += answer.refused.values().sum::<u64>();
                Ok(Verdict::Acknowledged)
            }
            409 => Ok(Verdict::Define),
            429 => {
                self.outcome.busy += 1;
                Ok(Verdict::Busy)
            }
            status => anyhow::bail!("granary answered {status}: {text}"),
        }
    }
}

enum Verdict {
    Acknowledged,
    Define,
    Busy,
}
