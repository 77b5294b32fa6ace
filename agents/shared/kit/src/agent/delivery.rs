//! Delivery to one daemon, or to one of several daemons at a time. Each delivery has its own refs,
//! spool and sender.
//!
//! Must never know: what is sampled, and when.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
};

use tracing::{error, info, warn};

use super::{AgentError, STOP_GRACE, error::system_error};
use crate::{
    AgentArgs, Readings,
    clock::{schedule::Schedule, skew::DaemonClock, unix_ms, wall_base_ms},
    reporting::totals::{ReportFile, Totals},
    sampling::{refs::Refs, relabel::Rule},
    sending::{
        client::Client,
        pinger::Pinger,
        sender::{FLUSH_DEADLINE, Sender},
    },
    spool::{Spool, SpoolError, SpoolUsage},
};

/// The capacity of the channel that wakes the sender after a round. A full channel means that the
/// sender is already awake.
const ROUNDS_ANNOUNCED_MAX: usize = 1;

/// The parts of a delivery that has not started.
pub(super) struct DeliveryParts {
    /// The connection to the daemons.
    pub(super) client: Client,
    /// The folder of the spool.
    pub(super) folder: PathBuf,
    /// The file that shows the totals.
    pub(super) report: Option<PathBuf>,
    pub(super) pinger: Pinger,
    pub(super) rules: Vec<Rule>,
}

/// A running delivery.
pub(super) struct Delivery {
    folder: PathBuf,
    pub(super) spool: Arc<Spool>,
    pub(super) totals: Arc<Totals>,
    pub(super) clock: Arc<DaemonClock>,
    refs: Refs,
    /// The size of the spool when it began to drop batches, or `None` while it drops none.
    dropping_since_bytes: Option<u64>,
    /// The channel that wakes the sender after a round; `None` after the last round.
    round_sender: Option<SyncSender<()>>,
    thread: JoinHandle<()>,
    result_receiver: Receiver<Result<(), SpoolError>>,
}

impl Delivery {
    /// Opens the spool and starts to deliver its batches.
    pub(super) fn start(
        parts: DeliveryParts,
        args: &AgentArgs,
        agent: &str,
    ) -> Result<Self, AgentError> {
        let DeliveryParts { client, folder, report, pinger, rules } = parts;
        let spool_error = |cause| AgentError::Spool { folder: folder.clone(), cause };
        let spool =
            Spool::open(&folder, agent, args.spool_max_bytes, unix_ms()).map_err(spool_error)?;
        spool.note_clock(wall_base_ms());
        let spool = spool.with_age_max(args.spool_max_age).with_linger(args.spool_linger);
        let spool = Arc::new(spool);
        let clock = Arc::clone(client.clock());
        let totals = Arc::new(Totals::default());
        let delay = Schedule::new(args.interval).send_delay(agent) + args.linger;
        let (shared, counts) = (Arc::clone(&spool), Arc::clone(&totals));
        let report = report.map(|path| ReportFile::new(path, agent.to_owned()));
        let sender = Sender::new(shared, client, counts, report, delay);
        let sender = sender.with_clock(args.clock);
        let (round_sender, rounds) = sync_channel(ROUNDS_ANNOUNCED_MAX);
        let (result_sender, result_receiver) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("sender".to_owned())
            .spawn(move || {
                let result = sender.run(&rounds, pinger);
                // Sending fails if the agent no longer waits.
                drop(result_sender.send(result));
            })
            .map_err(system_error("start the sending thread"))?;
        let mut refs = Refs::new(rules);
        spool.each_definition(|definition| refs.remember(&definition)).map_err(spool_error)?;
        let (dropping_since_bytes, round_sender) = (None, Some(round_sender));
        Ok(Self {
            folder,
            spool,
            totals,
            clock,
            refs,
            dropping_since_bytes,
            round_sender,
            thread,
            result_receiver,
        })
    }

    /// Stores a round's readings.
    pub(super) fn store(
        &mut self,
        round: (&str, i64),
        readings: &Readings,
        problems: &mut BTreeMap<String, String>,
    ) -> Result<(), AgentError> {
        let spool_usage = self.spool.usage();
        self.spool.note_clock(wall_base_ms());
        let (spool, totals) = (&self.spool, &self.totals);
        let mut dropped = 0;
        let stored = self.refs.batches(round, readings, problems, |mut batch| {
            let appended = spool.append(&mut batch)?;
            totals.samples_collected.add(batch.values.len() as u64);
            totals.batches_dropped.add(appended.dropped_batches);
            totals.samples_dropped.add(appended.dropped_samples);
            dropped += appended.dropped_batches;
            Ok(())
        });
        stored.map_err(|cause| self.spool_error(cause))?;
        totals.rounds.add(1);
        self.log_dropping(dropped, spool_usage);
        Ok(())
    }

    /// Replaces the rules.
    pub(super) fn set_rules(&mut self, rules: Vec<Rule>) {
        self.refs.set_rules(rules);
    }

    /// Wakes the sender after a round. Returns false when the sender has ended.
    pub(super) fn announce_round(&self) -> bool {
        if self.thread.is_finished() {
            error!("the sending thread ended early");
            return false;
        }
        // When the channel is full, the sender finds this round together with the previous round.
        let outcome = self.round_sender.as_ref().map(|round_sender| round_sender.try_send(()));
        !matches!(outcome, Some(Err(TrySendError::Disconnected(()))))
    }

    /// Closes the channel to the sender, because no round follows.
    pub(super) fn close_rounds(&mut self) {
        self.round_sender = None;
    }

    /// Waits until the sender has delivered the batches or reached its deadline, and logs the
    /// totals.
    pub(super) fn wait_for_end(&self) -> Result<(), AgentError> {
        let sent = match self.result_receiver.recv_timeout(FLUSH_DEADLINE + STOP_GRACE) {
            Ok(result) => result.map_err(|cause| self.spool_error(cause)),
            Err(RecvTimeoutError::Timeout) => {
                warn!("the sender exceeded its deadline; unacknowledged batches stay in the spool");
                Ok(())
            }
            Err(RecvTimeoutError::Disconnected) => Err(AgentError::SenderDied),
        };
        let written = self.spool.flush().map_err(|cause| self.spool_error(cause));
        self.log_totals();
        sent.and(written)
    }

    fn spool_error(&self, cause: SpoolError) -> AgentError {
        AgentError::Spool { folder: self.folder.clone(), cause }
    }

    fn log_dropping(&mut self, dropped: u64, spool_usage: SpoolUsage) {
        let batches = self.totals.batches_dropped.get();
        let samples = self.totals.samples_dropped.get();
        let folder = self.folder.display();
        let has_space_again = |before: u64| spool_usage.bytes < before / 10 * 9;
        if dropped > 0 {
            if self.dropping_since_bytes.replace(spool_usage.bytes).is_some() {
                return;
            }
            warn!(%folder, batches, samples, "the spool is full; the oldest batches are being dropped");
        } else if self.dropping_since_bytes.is_some_and(has_space_again) {
            self.dropping_since_bytes = None;
            warn!(
                %folder,
                batches,
                samples,
                "the spool has room again; the counts are the totals of dropped data"
            );
        }
    }

    fn log_totals(&self) {
        let totals = &self.totals;
        info!(
            rounds = totals.rounds.get(),
            samples_collected = totals.samples_collected.get(),
            batches_acknowledged = totals.batches_acknowledged.get(),
            samples_acknowledged = totals.samples_acknowledged.get(),
            samples_duplicate = totals.samples_duplicate.get(),
            samples_refused = totals.samples_refused.get(),
            batches_dropped = totals.batches_dropped.get(),
            batches_rejected = totals.batches_rejected.get(),
            ticks_missed = totals.ticks_missed.get(),
            "stopped"
        );
    }
}
