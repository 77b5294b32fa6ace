//! The work of the daemon's roles and its operator other than ingestion: checkpoints, shells,
//! sealing, retention and changes of series; and the arming of faults.

use granary::{
    actors::{DroppedPartitions, drop_expired},
    model::{
        GranularityIndex, GranularitySet, Kind, Moment, SeriesId, SeriesInfo, SeriesLimits,
        UnixMillis,
    },
    store::{
        ChangeAction, Columns, DocumentSpace, Matcher, Renaming, SeriesChange, Store, StoreError,
    },
};

use crate::{
    faulty::{Call, EIO, ENOSPC, Effect, Fault},
    histograms,
    history::{HISTORY_REACH_MS, History},
    senders::definition,
    setup::NOW as BEGIN,
    stages,
    world::{Outcome, Request},
};

/// A role's work that needs only the store.
#[derive(Debug, Clone)]
pub(crate) enum Upkeep {
    Checkpoint,
    /// Creates the shells of one granularity for a document.
    Preallocate(usize, UnixMillis),
    /// Drops partitions past their retention.
    Drop,
    /// Seals partitions that are over.
    Seal,
    /// Completes an erasure.
    Erase,
    /// Reserves bytes for the next documents of each level.
    Reserve(u64),
    /// Reserves space for the journal and the head.
    ReserveJournal,
}

impl Upkeep {
    /// Runs the work; returns the number of dropped or sealed partitions, or of reserved bytes.
    pub(crate) fn run(&self, store: &Store, now: Moment) -> Result<u64, StoreError> {
        match self {
            Self::Checkpoint => {
                store.checkpoint(now)?;
                store.pack_idle(now.believed);
                Ok(0)
            }
            Self::Preallocate(level, document) => {
                let count = store.dictionary().id_count() as u32;
                let ids: Vec<_> = (0..count).map(SeriesId).collect();
                store.preallocate(GranularityIndex(*level), *document, &ids).map(|_| 0)
            }
            Self::Drop => {
                let DroppedPartitions { partitions, failed } = drop_expired(store, now);
                failed.map_or(Ok(partitions), Err)
            }
            Self::Seal => {
                let report = store.seal(now, 0, &|_| true)?;
                assert_eq!(report.refused, 0);
                Ok(report.partitions)
            }
            Self::Erase => store.complete_erasure().map(|()| 0),
            Self::Reserve(bytes) => {
                let space = DocumentSpace { bytes: *bytes, is_segment: bytes % 3 != 0 };
                let needed = vec![space; store.levels().len()];
                let (reserved, outcome) = store.reserve_documents(now.latest(), &needed);
                outcome.map(|()| reserved.iter().sum())
            }
            Self::ReserveJournal => store.reserve_journal().map(|()| 0),
        }
    }
}

impl History {
    pub(crate) fn checkpoint(&mut self) {
        self.run_upkeep(&Upkeep::Checkpoint);
    }

    pub(crate) fn preallocate(&mut self) {
        let work = self.shell_work();
        self.run_upkeep(&work);
    }

    /// Drops partitions as the retention role does.
    pub(crate) fn drop_expired(&mut self) {
        self.clock.evaluate();
        self.run_upkeep(&Upkeep::Drop);
        self.forget_series();
    }

    /// Deletes series without samples.
    fn forget_series(&mut self) {
        let now = self.now();
        let store = self.store();
        let series = store.series_without_samples(now.clock, 9);
        if now.is_doubted() || series.is_empty() {
            return;
        }
        // The head may still contain older cells.
        let kept_since = |levels: &GranularitySet| {
            levels.iter().map(|level| level.kept_since(now.clock)).min().unwrap()
        };
        let since = store.classes().map(|(_, levels)| kept_since(levels)).max().unwrap();
        if !self.assert_no_cells(&series, since) {
            return;
        }
        let request = Request::Change(series.iter().map(|id| (*id, None)).collect());
        match self.appender().forget_series(&series, now.clock) {
            Ok(forgotten) => {
                self.tally.count("forgotten series", forgotten as u64);
                self.trace(|| format!("forgot {series:?}"));
                self.worlds.succeeded(&request, &Outcome::Changed(forgotten));
            }
            Err(cause) => {
                self.worlds.failed(request);
                self.expect_fault(&cause, "failed upkeep");
            }
        }
    }

    /// Asserts that series have no cells; returns false if a fault prevents the check.
    fn assert_no_cells(&mut self, series: &[SeriesId], since: UnixMillis) -> bool {
        let (store, mut slots) = (self.store(), Vec::new());
        let range = since..BEGIN.plus(HISTORY_REACH_MS);
        for level in 0..store.all_granularities().len() {
            let view = store.view(GranularityIndex(level), range.clone(), series);
            let seen = view.and_then(|view| {
                series.iter().try_for_each(|id| {
                    view.slots_into(*id, Columns::ALL, &mut slots)?;
                    let level = &store.all_granularities()[level].name;
                    assert!(slots.is_empty(), "{id:?} has samples of {level}: {slots:?}");
                    Ok(())
                })
            });
            if let Err(cause) = seen {
                self.expect_fault(&cause, "failed views");
                return false;
            }
        }
        true
    }

    pub(crate) fn reserve(&mut self) {
        // Writing zeros takes long, so large reservations are rare.
        match self.rng.usize(0..6) {
            0 => self.run_upkeep(&Upkeep::ReserveJournal),
            size => self.run_upkeep(&Upkeep::Reserve([0, 0, 100, 100, 5000, 90_000][size])),
        }
    }

    pub(crate) fn seal(&mut self) {
        self.run_upkeep(&Upkeep::Seal);
    }

    /// Returns the work that creates the shells of the current document or the next one.
    pub(crate) fn shell_work(&mut self) -> Upkeep {
        let level = self.rng.usize(0..self.levels.current.count());
        let granularity = &self.levels.current.as_slice()[level];
        let current = granularity.document_start(self.clock.clock());
        let next = granularity.document.next(current);
        Upkeep::Preallocate(level, if self.rng.bool() { current } else { next })
    }

    pub(crate) fn run_upkeep(&mut self, work: &Upkeep) {
        let (store, now) = (self.store(), self.now());
        let outcome = work.run(&store, now);
        if let (Upkeep::Preallocate(level, document), Ok(_)) = (work, &outcome) {
            self.remember_shells(*level, *document);
        }
        self.note_outcome(work, outcome);
    }

    pub(crate) fn note_outcome(&mut self, work: &Upkeep, outcome: Result<u64, StoreError>) {
        self.trace(|| format!("{work:?}: {outcome:?}"));
        match (work, &outcome) {
            (Upkeep::Drop, Ok(_)) => self.forget_dropped_shells(),
            (Upkeep::Drop, Err(_)) => self.inserted.clear(),
            _ => {}
        }
        match (work, outcome) {
            (Upkeep::Checkpoint, Ok(_)) => self.tally.note("checkpoints"),
            (Upkeep::Preallocate(..), Ok(_)) => self.tally.note("preallocations"),
            (Upkeep::Drop, Ok(dropped)) => self.tally.count("dropped partitions", dropped),
            (Upkeep::Reserve(_) | Upkeep::ReserveJournal, Ok(_)) => self.tally.note("reserves"),
            (Upkeep::Erase, Ok(_)) => self.tally.note("erasures"),
            (Upkeep::Erase, Err(cause)) => self.expect_fault(&cause, "failed erasures"),
            (Upkeep::Seal, Ok(sealed)) => self.tally.count("sealed partitions", sealed),
            (Upkeep::Checkpoint, Err(cause)) => self.expect_fault(&cause, "failed checkpoints"),
            (_, Err(cause)) => self.expect_fault(&cause, "failed upkeep"),
        }
    }

    /// Deletes the series of a name, or adds a tag to them.
    pub(crate) fn change_series(&mut self) {
        let name = match self.rng.u8(0..4) {
            0 => histograms::name_of_agent(&mut self.rng),
            _ => self.rng.u32(0..12),
        };
        let matchers = vec![Matcher { tag: "name".into(), value: name.to_string() }];
        let deletes = self.rng.bool();
        let action = if deletes {
            ChangeAction::Delete
        } else {
            let tags = vec![("moved".to_owned(), self.rng.u8(0..3).to_string())];
            let limits = SeriesLimits::default();
            ChangeAction::Rename(Renaming { metric: None, tags, limits })
        };
        let change = SeriesChange { matchers, action };
        let Ok(plan) = self.store().dictionary().plan(&change) else { return };
        let request =
            Request::Change(plan.into_iter().map(|update| (update.id, update.key)).collect());
        let now = self.clock.clock();
        match self.appender().change(&change, now) {
            Ok(changed) => {
                let changed = changed.unwrap();
                let kind = if deletes { "deleted series" } else { "renamed series" };
                self.tally.count(kind, changed as u64);
                self.trace(|| format!("{kind}: {request:?}"));
                self.worlds.succeeded(&request, &Outcome::Changed(changed));
            }
            Err(cause) => {
                self.worlds.failed(request);
                self.expect_fault(&cause, "failed sends");
            }
        }
    }

    /// Changes a gauge to a delta, or back, also of histograms. The cells of both kinds have the
    /// same meaning, so the samples of the series do not change; `tests/it/kinds.rs` changes
    /// counters.
    pub(crate) fn change_kind(&mut self) {
        let name = match self.rng.u8(0..4) {
            0 => histograms::name_of_agent(&mut self.rng),
            _ => 3 * self.rng.u32(0..4) + 2 * self.rng.u32(0..2),
        };
        let info = definition(name);
        let current_kind = self.store().dictionary().find(&info.key);
        let Some(current_kind) = current_kind.and_then(|id| self.store().dictionary().kind(id))
        else {
            return;
        };
        let kind = match current_kind {
            Kind::Gauge => Kind::Delta,
            Kind::Delta => Kind::Gauge,
            Kind::GaugeHistogram => Kind::DeltaHistogram,
            Kind::DeltaHistogram => Kind::GaugeHistogram,
            Kind::Counter | Kind::Histogram => return,
        };
        let info = SeriesInfo { kind, ..info };
        let now = self.now().earliest();
        let outcome = self.appender().change_kinds(std::slice::from_ref(&info), now);
        self.trace(|| format!("{} becomes a {kind}: {outcome:?}", info.key));
        let request = Request::ChangeKind(info);
        match outcome {
            // The kind changed too often.
            Ok(ids) if ids == [None] => {}
            Ok(ids) => {
                self.tally.note("changed kinds");
                self.worlds
                    .succeeded(&request, &Outcome::Defined(ids.into_iter().flatten().collect()));
            }
            Err(cause) => {
                self.worlds.failed(request);
                self.expect_fault(&cause, "failed sends");
            }
        }
    }

    /// Arms a fault that occurs soon.
    pub(crate) fn arm_fault(&mut self) {
        let rng = &mut self.rng;
        let times = if rng.bool() { 1 } else { u64::MAX };
        let errno = if rng.bool() { EIO } else { ENOSPC };
        let soon = |rng: &mut fastrand::Rng| {
            let calls_max = [3, 12, 40][rng.usize(0..3)];
            rng.u64(0..calls_max)
        };
        let error = Effect::Error;
        let (call, effect) = match rng.u8(0..20) {
            0..6 => (Call::Sync, Effect::PowerCut),
            6..10 => (Call::Write, error(errno)),
            10 => (if rng.bool() { Call::SetLen } else { Call::Allocate }, error(errno)),
            11..14 if stages::FAILED_SYNCS => (Call::Sync, error(EIO)),
            14..16 if stages::FAILED_READS => (Call::Read, error(EIO)),
            16 => (Call::List, error(EIO)),
            17 => (Call::Open, error(EIO)),
            18 => (Call::Rename, error(EIO)),
            19 => (Call::Remove, error(EIO)),
            _ => return,
        };
        let after = match call {
            Call::Read => rng.u64(0..300),
            Call::List | Call::Open => rng.u64(0..4),
            Call::Remove | Call::Rename | Call::Allocate => 0,
            Call::Write | Call::SetLen | Call::Sync => soon(rng),
        };
        let fault = Fault { call, after, times, effect };
        self.trace(|| format!("{fault:?}"));
        self.medium.arm(fault);
    }
}
