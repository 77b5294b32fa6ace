//! The preallocator: creates the partition and the shells of each coming period ahead of time.

use std::{sync::Arc, time::Duration};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Lifeline, Stop};
use crate::{
    clock::Clock,
    kept::LiveValue,
    model::{Granularity, GranularityIndex, Moment, SeriesId, UnixMillis},
    policy::preallocation::{self, PassDue},
    store::{Store, StoreError},
    telemetry::{Condition, Health},
};

/// The interval between two checks for due passes.
const TICK: Duration = Duration::from_secs(1);
/// The number of ticks before a failed pass is repeated.
const RETRY_TICKS: u32 = 60;

/// The parts of the role.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct PreallocatorParts {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub health: Health,
    pub lifeline: Lifeline,
    /// False while documents are not inserted ahead.
    pub is_enabled: LiveValue<bool>,
}

/// The actor of this role. It blocks its thread while it writes, so it needs its own arbiter.
#[derive(Debug)]
pub struct Preallocator {
    parts: PreallocatorParts,
    /// The progress by granularity.
    progress: Vec<Progress>,
    /// The number of ticks until a failed pass is repeated.
    pause: u32,
}

/// The passes over one granularity.
#[derive(Debug, Clone, Default)]
struct Progress {
    /// The last pass that is complete. A start repeats it, which changes nothing.
    complete: Option<PassDue>,
    /// The start of the coming period, and the number of series when its last pass began: only
    /// these must have a shell.
    coming: Option<(UnixMillis, u32)>,
}

impl Preallocator {
    /// Creates the role without starting it.
    pub fn new(parts: PreallocatorParts) -> Self {
        let progress = vec![Progress::default(); parts.store.granularities().count()];
        Self { parts, progress, pause: 0 }
    }

    fn tick(&mut self) {
        if !*self.parts.is_enabled.get() {
            self.parts.health.clear(Condition::Preallocation);
            return;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return;
        }
        match self.preallocate() {
            Ok(()) => self.parts.health.clear(Condition::Preallocation),
            Err(cause) => {
                self.pause = RETRY_TICKS;
                self.parts.health.raise_fault(Condition::Preallocation, &cause);
                let cause: &dyn std::error::Error = &cause;
                tracing::warn!(cause, "preallocation failed and will be retried");
            }
        }
    }

    /// Runs the passes that are due, of every granularity; the first failure is returned.
    fn preallocate(&mut self) -> Result<(), StoreError> {
        let now = self.parts.clock.moment();
        let (store, mut live, mut outcome) = (self.parts.store.clone(), None, Ok(()));
        for (index, granularity) in store.granularities().indexed() {
            let progress = &mut self.progress[index.0];
            let done = progress.run(&store, (index, granularity), now, &mut live);
            outcome = outcome.and(done);
        }
        outcome
    }
}

impl Progress {
    /// Runs the pass that is due, and counts missed shells when a period has begun. `live` are the
    /// live series, which the first granularity that needs them finds.
    fn run(
        &mut self,
        store: &Store,
        (index, granularity): (GranularityIndex, &Granularity),
        now: Moment,
        live: &mut Option<Vec<SeriesId>>,
    ) -> Result<(), StoreError> {
        let find = || {
            let finest = &store.granularities()[GranularityIndex::FINEST];
            store.live_series(preallocation::live_since(finest, now.clock))
        };
        let period = granularity.document_start(now.clock);
        let begun = self.coming.filter(|(document, _)| *document <= period);
        if let Some((document, known)) = begun
            && document == period
        {
            let live = live.get_or_insert_with(find);
            let expected = live.partition_point(|series| series.0 < known);
            let missed = store.note_missed_shells(index, document, &live[..expected])?;
            if missed > 0 {
                let granularity = &granularity.name;
                tracing::info!(granularity, missed, %document, "live series without a shell");
            }
        }
        if begun.is_some() {
            self.coming = None;
        }
        let Some(due) = preallocation::pass_due(granularity, now) else { return Ok(()) };
        if self.complete == Some(due) {
            return Ok(());
        }
        self.coming = Some((due.document, store.all_series().id_count() as u32));
        let documents = store.preallocate(index, due.document, live.get_or_insert_with(find))?;
        self.complete = Some(due);
        if documents > 0 {
            let (granularity, start) = (&granularity.name, due.document);
            tracing::info!(granularity, documents, %start, "preallocated documents");
        }
        Ok(())
    }
}

impl Actor for Preallocator {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(TICK, |role, _| role.tick());
    }
}

impl Handler<Stop> for Preallocator {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.parts.lifeline.release();
        ctx.stop();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

    use super::*;
    use crate::{
        model::Kind,
        setup::{HOUR, MINUTE, define, open, samples, send, series},
    };

    /// 2026-11-21T12:00:00Z
    const NOON: UnixMillis = UnixMillis(1_795_262_400_000);

    #[test]
    fn only_series_of_a_failed_pass_are_missed() {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = open(dir.path(), NOON);
        let mut begin = |host: &str, minute: i64| {
            let now = NOON.plus(minute * MINUTE);
            let id = define(&mut appender, &[series("m", &[("host", host)], Kind::Gauge)], now)[0];
            send(&mut appender, samples(id, [(now.0, 1.0)]), now);
        };
        let finest = (GranularityIndex::FINEST, &store.granularities()[GranularityIndex::FINEST]);
        let run = |progress: &mut Progress, minute: i64| {
            progress.run(&store, finest, NOON.plus(minute * MINUTE).into(), &mut None).unwrap();
            let counters = store.counters();
            (counters.shells_preallocated.get(), counters.shells_missed.get())
        };
        let mut progress = Progress::default();
        begin("a", 1);
        assert_eq!(run(&mut progress, 29), (0, 0));
        assert_eq!(run(&mut progress, 30), (1, 0));
        begin("b", 40);
        assert_eq!(run(&mut progress, 41), (1, 0));
        assert_eq!(run(&mut progress, 54), (2, 0));
        // A series that begins after the last pass needs no shell.
        begin("c", 57);
        assert_eq!(run(&mut progress, 60), (2, 0));
        // A start repeats the pass that is due.
        assert_eq!(run(&mut Progress::default(), 90), (5, 0));
        // The passes of an hour failed for all series but one.
        let coming = (NOON.plus(3 * HOUR), 2);
        let mut failed = Progress { complete: None, coming: Some(coming) };
        begin("d", 170);
        assert_eq!(store.live_series(NOON.plus(2 * HOUR)).len(), 1);
        assert_eq!(run(&mut failed, 180), (5, 0), "d is newer than the passes");
        let mut failed = Progress { complete: None, coming: Some((coming.0, 4)) };
        assert_eq!(run(&mut failed, 180), (5, 1));
        assert_eq!(run(&mut failed, 181), (5, 1));
    }
}
