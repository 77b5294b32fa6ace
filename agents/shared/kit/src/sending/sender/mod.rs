//! The sender: a thread that delivers the spool's batches, oldest first. With a backlog, every
//! second request takes the newest batch. `posting` sends one request.
//!
//! The sender retries without end. A batch leaves the queue when the daemon has acknowledged it, or
//! when the daemon rejects it for good; rejected batches are set aside.

mod posting;
mod refusals;
mod waiting;
mod wrong_clock;

use std::{
    sync::{Arc, mpsc::Receiver},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use granary_protocol::IngestAnswer;
use tracing::{debug, info, warn};

use self::{refusals::Refusals, waiting::wait, wrong_clock::ClockGuard};
use crate::{
    ClockOf,
    clock::Stopwatch,
    reporting::totals::{Failure, ReportFile, Totals},
    sending::{
        client::{Client, RequestOutcome},
        pinger::Pinger,
    },
    spool::{Spool, SpoolError, StoredBatch},
};

/// The limits of one request; a single batch is sent even if it is larger.
const REQUEST_BATCHES_MAX: usize = 64;
const REQUEST_BYTES_MAX: usize = 1024 * 1024;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The first delay of a retry. Jitter at most doubles a delay.
const BACKOFF_MIN: Duration = Duration::from_millis(500);
/// The largest delay without jitter. After an outage, a fleet returns within ten seconds, each
/// agent at a different time.
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// The largest delay that a daemon can request.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// The time for a last delivery when the agent stops.
pub(crate) const FLUSH_DEADLINE: Duration = Duration::from_secs(5);
/// The number of newest batches in every second request of a backlog.
const LIVE_BATCHES_MAX: usize = 8;
/// The maximum distance between an accepted number and an older number: the daemon's window of
/// numbers, minus a margin.
const LIVE_SPAN_MAX: u64 = 900;

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// No batch is waiting.
    Idle,
    /// A batch left the queue, or the next attempt is smaller.
    Progress,
    /// Retry after this delay; `answered` is true when a response arrived.
    Retry { delay: Duration, answered: bool },
}

/// The relation of the spool's epoch to the daemon: proven once the daemon accepts a new number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// The daemon has not accepted a new number in this run yet: the spool may be an older copy of
    /// itself.
    Unproven,
    /// The daemon has accepted new numbers of this epoch in this run.
    Proven,
    /// A new epoch began because the daemon knew later numbers. The daemon has not accepted a
    /// number of the new epoch yet.
    Renewed,
}

/// The batches that the next request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextRequest {
    Oldest,
    /// The newest batches, when more are waiting than fit in one request.
    Newest,
}

/// The state of the sending thread.
#[derive(Debug)]
pub(crate) struct Sender {
    spool: Arc<Spool>,
    client: Client,
    totals: Arc<Totals>,
    report: Option<ReportFile>,
    send_delay: Duration,
    /// The retry delays, or `None` while deliveries succeed.
    backoff: Option<ExponentialBackoff>,
    /// Batches up to this number are sent one by one, because a request with them was rejected.
    single_through: u64,
    refusals: Refusals,
    /// Batches up to this number were in a request whose outcome is unknown.
    uncertain_through: u64,
    numbers: Numbers,
    /// Batches up to this number may have been posted before; later batches were not.
    posted_through: u64,
    next_request: NextRequest,
    clock_guard: ClockGuard,
}

fn backoff() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(BACKOFF_MIN)
        .with_max_delay(BACKOFF_MAX)
        .with_jitter()
        .without_max_times()
        .build()
}

impl Sender {
    /// Creates a sender that waits `send_delay` between a round and its delivery.
    pub(crate) fn new(
        spool: Arc<Spool>,
        client: Client,
        totals: Arc<Totals>,
        report: Option<ReportFile>,
        send_delay: Duration,
    ) -> Self {
        let posted_through = spool.newest_at_open();
        Self {
            spool,
            client,
            totals,
            report,
            send_delay,
            backoff: None,
            single_through: 0,
            refusals: Refusals::default(),
            uncertain_through: 0,
            numbers: Numbers::Unproven,
            posted_through,
            next_request: NextRequest::Oldest,
            clock_guard: ClockGuard::default(),
        }
    }

    /// Sets the clock in use.
    #[must_use]
    pub(crate) fn with_clock(self, clock_of: ClockOf) -> Self {
        Self { clock_guard: ClockGuard::new(clock_of), ..self }
    }

    /// Delivers batches and pings until `rounds` is closed, then delivers the rest within the
    /// deadline. The first ping precedes all batches.
    pub(crate) fn run(
        mut self,
        rounds: &Receiver<()>,
        mut pinger: Pinger,
    ) -> Result<(), SpoolError> {
        loop {
            pinger.ping_if_due(&self.client);
            let is_stopping = match self.attempt(REQUEST_TIMEOUT)? {
                Attempt::Progress => wait(rounds, Duration::ZERO),
                Attempt::Retry { delay, .. } => self.wait_pinging(rounds, delay, &mut pinger),
                Attempt::Idle => {
                    self.wait_for_round(rounds, &mut pinger)
                        || self.wait_pinging(rounds, self.send_delay, &mut pinger)
                }
            };
            if is_stopping {
                return self.flush(&pinger);
            }
        }
    }

    fn flush(&mut self, pinger: &Pinger) -> Result<(), SpoolError> {
        let watch = Stopwatch::start();
        pinger.ping_end(&self.client);
        loop {
            let left = watch.left_of(FLUSH_DEADLINE);
            if left.is_zero() {
                break;
            }
            match self.attempt(left)? {
                Attempt::Progress => {}
                Attempt::Retry { delay, answered: true } if delay < left => {
                    std::thread::sleep(delay);
                }
                Attempt::Retry { .. } | Attempt::Idle => break,
            }
        }
        self.write_report();
        Ok(())
    }

    /// Returns the batches of the next request. With a backlog, every second request contains the
    /// newest batches, so that live data does not wait for old data.
    fn fetch(&mut self) -> Result<Vec<StoredBatch>, SpoolError> {
        let may_be_live = self.single_through == 0 && !self.may_be_copy();
        if std::mem::replace(&mut self.next_request, NextRequest::Newest) == NextRequest::Newest
            && may_be_live
        {
            let span = REQUEST_BATCHES_MAX as u64..LIVE_SPAN_MAX;
            let newest = self.spool.fetch_newest(LIVE_BATCHES_MAX, REQUEST_BYTES_MAX, span)?;
            if !newest.is_empty() {
                self.next_request = NextRequest::Oldest;
                return Ok(newest);
            }
        }
        self.spool.fetch(REQUEST_BATCHES_MAX, REQUEST_BYTES_MAX)
    }

    /// Sends one request and handles its response.
    pub(crate) fn attempt(&mut self, timeout: Duration) -> Result<Attempt, SpoolError> {
        if self.waits_for_clock() {
            return Ok(Attempt::Idle);
        }
        let mut batches = self.fetch()?;
        let Some(first) = batches.first().map(|batch| batch.seq) else {
            return Ok(Attempt::Idle);
        };
        if first <= self.single_through {
            batches.truncate(1);
        } else {
            self.single_through = 0;
        }
        let posted_before = self.posted_through;
        let old = batches.partition_point(|batch| batch.seq <= posted_before);
        if self.may_be_copy() {
            // A new number is sent alone, so that the response is unambiguous.
            batches.truncate(old.max(1));
        }
        let last = batches.last().map_or(0, |batch| batch.seq);
        self.posted_through = posted_before.max(last);
        match self.post(&batches, timeout)? {
            RequestOutcome::Acknowledged(answer) => {
                let (old, new) = batches.split_at(old.min(batches.len()));
                if self.numbers == Numbers::Unproven && !new.is_empty() {
                    let may_be_known: u64 = old.iter().map(StoredBatch::samples).sum();
                    if answer.duplicates > may_be_known {
                        return self.begin_epoch_after_restore(old, new.len());
                    }
                    if answer.renumber.is_empty() {
                        self.numbers = Numbers::Proven;
                    }
                }
                self.handle_acknowledgement(&batches, &answer)
            }
            RequestOutcome::Refused(cause) => {
                self.posted_through = posted_before;
                self.handle_refusal(&batches, &cause)
            }
            RequestOutcome::UnknownRefs => {
                self.posted_through = posted_before;
                let cause = "the daemon does not know refs that were just defined".to_owned();
                Ok(self.retry(None, &cause, Failure::Answer))
            }
            RequestOutcome::Retry { after, cause, failure } => {
                if failure != Failure::Answer {
                    // The request was never sent.
                    self.posted_through = posted_before;
                }
                Ok(self.retry(after, &cause, failure))
            }
            RequestOutcome::Unknown { cause, failure } => {
                self.uncertain_through = self.uncertain_through.max(last);
                Ok(self.retry(None, &cause, failure))
            }
        }
    }

    /// Returns true when the spool may be an older copy of itself: it existed when the agent
    /// started, and the daemon has not accepted a new number yet. Later duplicates prove nothing,
    /// because a proxy may have repeated a request.
    fn may_be_copy(&self) -> bool {
        self.numbers == Numbers::Unproven && self.spool.newest_at_open() > 0
    }

    /// Starts a new epoch because the daemon already knows numbers that are new in this spool: the
    /// spool is an older copy of itself, and its new batches looked like duplicates.
    fn begin_epoch_after_restore(
        &mut self,
        old: &[StoredBatch],
        batches: usize,
    ) -> Result<Attempt, SpoolError> {
        let seqs: Vec<u64> = old.iter().map(|batch| batch.seq).collect();
        self.spool.acknowledge(&seqs)?;
        let before = self.spool.epoch();
        self.spool.begin_epoch(self.now_ms().max(before.saturating_add(1)))?;
        self.numbers = Numbers::Proven;
        let epoch = self.spool.epoch();
        warn!(before, epoch, batches, "the spool is an older copy of itself; a new epoch begins");
        Ok(Attempt::Progress)
    }

    /// Removes acknowledged batches. Batches whose numbers the daemon rejected are sent again in a
    /// new epoch. Batches that the daemon may have accepted before are set aside instead, because
    /// they could count twice.
    fn handle_acknowledgement(
        &mut self,
        batches: &[StoredBatch],
        answer: &IngestAnswer,
    ) -> Result<Attempt, SpoolError> {
        let is_refused = |batch: &&StoredBatch| answer.renumber.contains(&batch.seq);
        let (to_resend, accepted): (Vec<_>, Vec<_>) = batches.iter().partition(is_refused);
        let (possibly_accepted, to_resend): (Vec<_>, Vec<_>) =
            to_resend.into_iter().partition(|batch| batch.seq <= self.uncertain_through);
        let seqs: Vec<u64> = accepted.iter().map(|batch| batch.seq).collect();
        self.spool.acknowledge(&seqs)?;
        for batch in &possibly_accepted {
            let cause = "it may have been accepted before, and its number is no longer known";
            self.set_aside(batch, cause)?;
        }
        let to_send: u64 = to_resend.iter().map(|batch| batch.samples()).sum();
        self.count_acknowledged(&seqs, answer, to_send);
        self.write_report();
        if to_resend.is_empty() {
            if self.numbers == Numbers::Renewed && !seqs.is_empty() {
                self.numbers = Numbers::Proven;
            }
            return Ok(Attempt::Progress);
        }
        let before = self.spool.epoch();
        // An epoch in the future is replaced by the current time. Any other epoch must increase.
        let is_far = answer.refused.contains_key("far_number");
        let epoch_min = if is_far { i64::MIN } else { before.saturating_add(1) };
        let epoch = self.now_ms().max(epoch_min);
        self.spool.begin_epoch(if epoch == before { epoch + 1 } else { epoch })?;
        let (samples, epoch) = (to_send, self.spool.epoch());
        warn!(before, epoch, samples, "the daemon knows later numbers; a new epoch begins");
        // When the daemon rejects the new epoch too, the next attempt waits.
        if std::mem::replace(&mut self.numbers, Numbers::Renewed) == Numbers::Renewed {
            let cause = "status 200, but the daemon accepts no number";
            return Ok(self.retry(None, cause, Failure::Answer));
        }
        Ok(Attempt::Progress)
    }

    /// Updates the totals, except for samples that are sent again.
    fn count_acknowledged(&mut self, seqs: &[u64], answer: &IngestAnswer, to_send: u64) {
        let refused: u64 = answer.refused.values().sum();
        let refused = refused.saturating_sub(to_send);
        self.totals.batches_acknowledged.add(seqs.len() as u64);
        self.totals.samples_acknowledged.add(answer.accepted);
        self.totals.samples_duplicate.add(answer.duplicates);
        self.totals.samples_refused.add(refused);
        debug!(
            batches = seqs.len(),
            through = seqs.last(),
            answer.accepted,
            answer.duplicates,
            refused,
            "acknowledged"
        );
        if self.backoff.take().is_some() {
            info!(url = self.client.url(), "delivering again");
        }
        self.refusals.log(refused, answer);
    }

    /// Handles a rejected request: the batches are sent one by one, and a rejected batch is set
    /// aside, so that it does not block the queue.
    fn handle_refusal(
        &mut self,
        batches: &[StoredBatch],
        cause: &str,
    ) -> Result<Attempt, SpoolError> {
        self.totals.count_failure(Failure::Answer);
        let [batch] = batches else {
            self.single_through = batches.last().map_or(0, |batch| batch.seq);
            self.spool.release();
            let batches = batches.len();
            warn!(batches, cause, "the daemon refused a request; sending its batches one by one");
            return Ok(Attempt::Progress);
        };
        self.set_aside(batch, cause)?;
        self.write_report();
        Ok(Attempt::Progress)
    }

    fn set_aside(&self, batch: &StoredBatch, cause: &str) -> Result<(), SpoolError> {
        self.spool.reject(batch.seq)?;
        self.totals.batches_rejected.add(1);
        self.totals.samples_rejected.add(batch.samples());
        let total = self.totals.batches_rejected.get();
        warn!(seq = batch.seq, cause, total, "the daemon refused a batch; it is set aside");
        Ok(())
    }

    fn retry(&mut self, after: Option<Duration>, cause: &str, failure: Failure) -> Attempt {
        self.spool.release();
        self.totals.count_failure(failure);
        let is_first = self.backoff.is_none();
        let delay = self.backoff.get_or_insert_with(backoff).next().unwrap_or(RETRY_MAX);
        let delay = delay.max(after.unwrap_or_default()).min(RETRY_MAX);
        // After an outage, live data is delivered first.
        self.next_request = NextRequest::Newest;
        let failed = self.client.url();
        if after.is_none() && self.client.switch_to_next() {
            let url = self.client.url();
            info!(failed, url, cause, "switching to the next daemon");
        }
        if is_first {
            let url = self.client.url();
            warn!(url, cause, ?delay, "cannot deliver; samples wait in the spool");
        } else {
            debug!(cause, ?delay, "still cannot deliver");
        }
        Attempt::Retry { delay, answered: failure == Failure::Answer }
    }

    fn write_report(&mut self) {
        if let Some(report) = &mut self.report {
            report.write(self.spool.epoch(), &self.totals, self.spool.usage());
        }
    }
}

#[cfg(test)]
mod tests;
