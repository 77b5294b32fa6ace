//! The writer's thread: gathers, commits and answers groups.
//!
//! Must never know: the senders of commands.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crossbeam_channel::Receiver;

use super::{
    ChangeVerdict, Command, ErasureVerdict, FORGOTTEN, Pressure, ReplaceVerdicts, Reply,
    SingleCommand, WriteFault, WriterParts,
    group::{CommandGroup, deliver},
    linger::Linger,
};
use crate::{
    actors::CheckpointNow,
    clock::Stopwatch,
    model::{AcceptedBatch, ProjectName, SeriesId, SeriesInfo},
    store::{ErasureRequest, NewReading, SeriesChange},
    telemetry::Condition,
};

pub(super) struct WriterThread {
    pub(super) parts: WriterParts,
    pub(super) pressure: Arc<Pressure>,
    pub(super) outage: Option<Outage>,
}

/// A journal that cannot be written.
pub(super) struct Outage {
    /// The size of the last group that could not be written.
    weight: usize,
    /// The time since that failure.
    since: Stopwatch,
}

/// The time without a failure after which an outage is over, whatever was written in it.
const QUIET: Duration = Duration::from_secs(60);

impl Outage {
    /// Returns true when a successful commit ends the outage. On a full disk, small groups still
    /// fit while larger ones are refused, so a smaller group than the failed one proves nothing.
    fn is_over(&self, weight: usize, elapsed: Duration) -> bool {
        weight >= self.weight || elapsed >= QUIET
    }
}

impl WriterThread {
    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        let mut linger = Linger::default();
        while let Ok(first) = commands.recv() {
            let mut group = CommandGroup::default();
            group.add(first);
            let watch = Stopwatch::start();
            while group.is_open() {
                let next = commands.try_recv().ok();
                let next = next.or_else(|| {
                    let wait = linger.wait(group.commands, group.samples, watch.elapsed())?;
                    commands.recv_timeout(wait).ok()
                });
                let Some(next) = next else { break };
                group.add(next);
            }
            linger.note(group.commands);
            self.parts.appender.set_limits(*self.parts.limits.get());
            self.parts.appender.set_metric_limits(self.parts.metric_limits.get());
            let stop = group.stop.take();
            let settled = self.settle();
            if let Err(fault) = &settled {
                group.refuse(fault);
                self.note_dequeued(group.weight);
            }
            let single = group.single.take();
            if settled.is_ok() && (group.has_writes() || single.is_none()) {
                self.commit(group);
            }
            if let Some(single) = single {
                self.run_single(single);
            }
            if let Some(reply) = stop {
                self.parts.lifeline.release();
                if reply.send(()).is_err() {
                    tracing::debug!("no one waits for the writer's end");
                }
                return;
            }
        }
        self.parts.lifeline.release();
    }

    /// Settles a record of the shared log whose outcome is unknown; nothing can be written before.
    fn settle(&mut self) -> Result<(), WriteFault> {
        let settled = self.parts.appender.retry().map_err(|cause| WriteFault::from(&cause));
        match &settled {
            Ok(false) => return Ok(()),
            Ok(true) => self.note_health(0, None),
            Err(fault) => self.note_health(0, Some(fault)),
        }
        settled.map(drop)
    }

    fn note_dequeued(&self, weight: usize) {
        let queued_before = self.pressure.queued_bytes.fetch_sub(weight, Ordering::Relaxed);
        let queued = queued_before.saturating_sub(weight);
        self.parts.metrics.writer_queue_bytes.set(queued as i64);
    }

    fn commit(&mut self, mut group: CommandGroup) {
        let parts = &mut self.parts;
        let watch = Stopwatch::start();
        let now = parts.clock.moment().earliest();
        let mut room = parts.store.room(&parts.bounds, now);
        if !room.take_easily(&group.batches) {
            group.refuse_unless(|batches| room.take(batches), &self.pressure.backlog());
        }
        if parts.appender.names_forgotten(&group.batches) {
            let is_current = |batches: &[AcceptedBatch]| !parts.appender.names_forgotten(batches);
            group.refuse_unless(is_current, &WriteFault::Busy(FORGOTTEN));
        }
        let result = parts.appender.commit(&group.definitions, &group.batches, now);
        parts.metrics.observe_commit(watch.seconds());
        self.note_dequeued(group.weight);
        let result = result.map_err(|cause| WriteFault::from(&cause));
        self.note_health(group.weight, result.as_ref().err());
        group.answer(result);
        self.ask_for_checkpoint();
    }

    fn run_single(&mut self, command: SingleCommand) {
        match command {
            SingleCommand::Change { change, reply } => self.change(&change.0, &change.1, reply),
            SingleCommand::ChangeKinds { definitions, reply } => {
                self.change_kinds(&definitions, reply);
            }
            SingleCommand::Erase { project, request, is_dry, reply } => {
                self.erase((&project, &request), is_dry, reply);
            }
            SingleCommand::Replace { readings, reply } => self.replace(&readings, reply),
            SingleCommand::ForgetSenders { senders, reply } => self.forget_senders(&senders, reply),
            SingleCommand::ForgetSeries { series, reply } => self.forget_series(&series, reply),
        }
    }

    fn change(
        &mut self,
        project: &ProjectName,
        change: &SeriesChange,
        reply: Reply<ChangeVerdict>,
    ) {
        let watch = Stopwatch::start();
        let now = self.parts.clock.moment().earliest();
        let result = self.parts.appender.change_in(project, change, now);
        let result = result.map_err(|cause| WriteFault::from(&cause));
        if let Ok(Ok(series)) = &result {
            let elapsed_ms = watch.millis();
            tracing::info!(series, %project, ?change, elapsed_ms, "changed series");
        }
        self.note_health(0, result.as_ref().err());
        deliver(reply, result);
    }

    fn change_kinds(&mut self, definitions: &[SeriesInfo], reply: Reply<Vec<Option<SeriesId>>>) {
        let now = self.parts.clock.moment().earliest();
        let result = self.parts.appender.change_kinds(definitions, now);
        let result = result.map_err(|cause| WriteFault::from(&cause));
        self.note_health(0, result.as_ref().err());
        deliver(reply, result);
    }

    fn erase(
        &mut self,
        (project, request): (&ProjectName, &ErasureRequest),
        is_dry: bool,
        reply: Reply<ErasureVerdict>,
    ) {
        let watch = Stopwatch::start();
        let now = self.parts.clock.moment();
        let result = self.parts.appender.erase_in(project, request, is_dry, now);
        let result = result.map_err(|cause| WriteFault::from(&cause));
        if let (Ok(Ok(report)), false) = (&result, is_dry) {
            let (series, elapsed_ms) = (report.series, watch.millis());
            tracing::info!(series, %project, ?request, elapsed_ms, "accepted a deletion of samples");
        }
        deliver(reply, result);
    }

    fn replace(&mut self, readings: &[NewReading], reply: Reply<ReplaceVerdicts>) {
        let now = self.parts.clock.moment();
        let series = readings.iter().map(|reading| reading.series).collect();
        let batch = AcceptedBatch { series, ..AcceptedBatch::default() };
        if self.parts.appender.names_forgotten(&[batch]) {
            deliver(reply, Err(WriteFault::Busy(FORGOTTEN)));
            return;
        }
        let result =
            self.parts.appender.replace(readings, now).map_err(|cause| WriteFault::from(&cause));
        deliver(reply, result);
    }

    fn forget_senders(&mut self, senders: &[Arc<str>], reply: Reply<usize>) {
        let now = self.parts.clock.moment().earliest();
        let result =
            self.parts.appender.forget(senders, now).map_err(|cause| WriteFault::from(&cause));
        if let Ok(senders) = result {
            tracing::info!(senders, "removed senders");
        }
        self.note_health(0, result.as_ref().err());
        deliver(reply, result);
    }

    fn forget_series(&mut self, series: &[SeriesId], reply: Reply<usize>) {
        let (parts, watch) = (&mut self.parts, Stopwatch::start());
        let now = parts.clock.moment();
        // While the time is doubted, no series is removed.
        let series = if now.is_doubted() { &[] } else { series };
        let result = parts.appender.forget_series(series, now.clock);
        let result = result.map_err(|cause| WriteFault::from(&cause));
        if let Ok(series @ 1..) = result {
            let elapsed_ms = watch.millis();
            tracing::info!(series, elapsed_ms, "removed series without samples");
        }
        self.note_health(0, result.as_ref().err());
        deliver(reply, result);
    }

    /// Raises or clears the condition of the journal after a commit of a given size.
    fn note_health(&mut self, weight: usize, fault: Option<&WriteFault>) {
        match (fault, &self.outage) {
            (Some(fault), known) => {
                if known.is_none() {
                    tracing::error!(%fault, "cannot write the journal; batches are refused");
                    self.parts.health.raise(Condition::Journal, fault.to_string());
                }
                self.outage = Some(Outage { weight, since: Stopwatch::start() });
            }
            (None, Some(outage)) if outage.is_over(weight, outage.since.elapsed()) => {
                tracing::info!("the journal can be written again");
                self.parts.health.clear(Condition::Journal);
                self.outage = None;
            }
            (None, _) => {}
        }
    }

    /// Requests a checkpoint when one of the limits is reached.
    fn ask_for_checkpoint(&self) {
        let parts = &self.parts;
        if parts.store.needs_checkpoint(&parts.bounds)
            && parts.checkpointer.try_send(CheckpointNow).is_err()
        {
            tracing::trace!("a checkpoint is already requested");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_commit_does_not_end_the_outage_of_a_larger_one() {
        let outage = Outage { weight: 5000, since: Stopwatch::start() };
        let after = |weight, seconds| outage.is_over(weight, Duration::from_secs(seconds));
        assert_eq!([after(200, 1), after(200, 59), after(4999, 0)], [false; 3]);
        assert_eq!([after(5000, 0), after(9000, 1), after(0, 60)], [true; 3]);
    }
}
