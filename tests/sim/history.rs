//! One history: a random sequence of sends, retries, deletions, checkpoints, faults and restarts,
//! with a comparison of store and oracle after each step.

use std::sync::Arc;

use fastrand::Rng;
use granary::{
    model::{GranularityIndex, Moment, SeriesId, UnixMillis},
    store::{Appender, Columns, RecoveryReport, Store, StoreError},
};

use crate::{
    clock::SimulatedClock,
    faulty::FaultyMedium,
    histograms::{self, FoundHistograms},
    levels::Levels,
    objects::Objects,
    rules::Rules,
    senders::{Fleet, SentBatch},
    setup::{DAY, HOUR, NOW as BEGIN},
    shells::InsertedDocuments,
    snapshots::SnapshotShelf,
    stages,
    tally::Tally,
    world::{StoreContents, Worlds},
};

/// The maximum distance of a sample from the beginning of its history.
pub(crate) const HISTORY_REACH_MS: i64 = 600 * DAY;
/// The number of series up to which all series are compared. Of more series, a random part is
/// compared.
const COMPARED_SERIES_MAX: usize = 24;

#[expect(clippy::struct_excessive_bools, reason = "the flags are independent")]
pub(crate) struct History {
    pub(crate) rng: Rng,
    pub(crate) medium: FaultyMedium,
    pub(crate) levels: Levels,
    /// Rules of retention, which restarts change; `None` in histories whose granularities change
    /// and whose files are damaged.
    pub(crate) rules: Option<Rules>,
    pub(crate) open: Option<(Store, Appender)>,
    pub(crate) worlds: Worlds,
    pub(crate) fleet: Fleet,
    pub(crate) sent: Vec<SentBatch>,
    pub(crate) objects: Objects,
    /// Shells that were created and must exist.
    pub(crate) inserted: Vec<InsertedDocuments>,
    /// The snapshots of the history, or `None` before the first one.
    pub(crate) shelf: Option<SnapshotShelf>,
    pub(crate) clock: SimulatedClock,
    /// True if a fault occurred since the store was opened.
    pub(crate) had_fault_since_open: bool,
    /// True if a fault occurred during this step.
    pub(crate) had_fault_in_step: bool,
    /// True if files were damaged.
    pub(crate) is_damaged: bool,
    /// True if granularities were added or removed.
    had_level_changes: bool,
    pub(crate) tally: Tally,
    /// True if steps are printed.
    pub(crate) is_traced: bool,
}

impl History {
    pub(crate) fn new(seed: u64, is_traced: bool) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut tally = Tally::default();
        let levels = if stages::RANDOM_LEVELS && rng.bool() {
            tally.note("histories with random granularities");
            Levels::random(&mut rng)
        } else {
            Levels::usual()
        };
        let rules = Rules::new(seed, &levels);
        tally.count("histories with rules of retention", u64::from(rules.is_some()));
        let fleet = Fleet::new(&mut rng, &mut tally);
        Self {
            medium: FaultyMedium::new(rng.u64(..)),
            rng,
            levels,
            rules,
            open: None,
            worlds: Worlds::default(),
            fleet,
            sent: Vec::new(),
            objects: Objects::default(),
            inserted: Vec::new(),
            shelf: None,
            clock: SimulatedClock::new(),
            had_fault_since_open: false,
            had_fault_in_step: false,
            is_damaged: false,
            had_level_changes: false,
            tally,
            is_traced,
        }
    }

    /// Prints a step when a single history is replayed.
    pub(crate) fn trace(&self, what: impl FnOnce() -> String) {
        if self.is_traced {
            eprintln!("{} {}", self.clock.clock(), what());
        }
    }

    pub(crate) fn run(mut self) -> Tally {
        for _ in 0..self.rng.u32(5..40) {
            self.step();
            self.compare_part();
            self.power_up_after_cut();
        }
        self.begin_step();
        self.medium.lift();
        if self.had_fault_since_open || self.open.is_none() {
            self.restart();
        }
        // Every sender retries until all batches are acknowledged.
        for index in 0..self.sent.len() {
            if self.sent[index].is_waiting() {
                self.deliver(&[index]);
                assert!(!self.sent[index].is_waiting(), "a healthy store refuses a batch");
            }
        }
        self.compare_all();
        let (store, now) = (self.store(), self.now());
        store.checkpoint(now).unwrap();
        self.compare_all();
        self.restart();
        self.compare_all();
        self.tally
    }

    fn step(&mut self) {
        self.begin_step();
        match self.rng.u32(0..126) {
            _ if self.may_damage() && self.rng.u16(0..150) == 0 => self.damage(),
            _ if self.may_damage() && !self.is_damaged && self.rng.u16(0..150) == 0 => {
                self.damage_number();
            }
            _ if self.open.is_none() => {
                if self.rng.bool() {
                    self.medium.lift();
                }
                self.restart();
            }
            0..26 => self.send_new(),
            26..30 => self.seal(),
            30..42 => self.resend(),
            42..47 => self.move_clock(),
            47..50 => self.drop_expired(),
            50..58 => self.checkpoint(),
            58..72 => self.arm_fault(),
            72..78 => self.medium.lift(),
            78..80 => self.preallocate(),
            80..83 => self.change_series(),
            110..112 => self.change_kind(),
            112..115 => self.reserve(),
            115..117 => self.reload(),
            117..120 => self.erase(),
            120..126 => self.replace(),
            83..84 | 100..102 => self.save_or_restore(),
            102..110 => self.use_objects(),
            84..92 => self.run_while_held(),
            92..95 => {
                self.medium.kill();
                self.tally.note("kills");
                self.trace(|| "kill".to_owned());
                self.restart();
            }
            _ => self.restart(),
        }
        self.power_up_after_cut();
    }

    fn power_up_after_cut(&mut self) {
        if self.medium.is_power_cut() {
            self.begin_step();
            self.open = None;
            self.medium.power_up();
            self.clock.restart_machine();
            self.trace(|| "power up".to_owned());
        }
    }

    /// Returns the daemon's current time, at which data past its retention may be deleted.
    pub(crate) fn now(&mut self) -> Moment {
        let now = self.clock.moment();
        if now.is_doubted() {
            self.tally.note("doubted clocks");
        }
        self.worlds.expire(&self.levels.current, now.earliest());
        now
    }

    fn move_clock(&mut self) {
        if let Some(error) = self.clock.advance(&mut self.rng) {
            self.tally.note(match error {
                ..0 => "clock back",
                0 => "clock right again",
                _ if error < DAY => "clock ahead",
                _ => "clock far ahead",
            });
        }
        if self.rng.u8(0..8) == 0 {
            self.clock.confirm();
        }
        self.trace(|| "the clock moved".to_owned());
    }

    pub(crate) fn store(&self) -> Store {
        self.open.as_ref().unwrap().0.clone()
    }

    pub(crate) fn appender(&mut self) -> &mut Appender {
        &mut self.open.as_mut().unwrap().1
    }

    /// Closes the store if it is open, and opens it again.
    pub(crate) fn restart(&mut self) {
        self.open = None;
        let before = self.levels.clone();
        if let Some(rules) = &mut self.rules {
            if rules.change_randomly(&self.levels) {
                self.tally.note("rules of retention changed");
                // The rules assign series to other classes, whose shells do not exist.
                self.inserted.clear();
            }
        } else if stages::LEVELS_CHANGE
            && self.rng.u8(0..6) == 0
            && self.levels.change_randomly(&mut self.rng)
        {
            self.had_level_changes = true;
            self.tally.note("granularities changed");
            self.tally.count("spans changed", u64::from(self.levels.has_other_spans(&before)));
        }
        match self.try_open() {
            Ok(opened) => self.continue_with(opened),
            Err(cause) => self.expect_fault(&cause, "failed opens"),
        }
    }

    pub(crate) fn try_open(&self) -> Result<(Store, Appender, RecoveryReport), StoreError> {
        let medium = Arc::new(self.medium.clone());
        let rules = self.rules.as_ref().map_or(&[][..], |rules| &rules.current);
        let (set, now) = (self.levels.current.clone(), self.clock.clock());
        Store::open_with_rules(medium, set, Some(rules), now)
    }

    fn may_damage(&self) -> bool {
        stages::DAMAGE && self.rules.is_none()
    }

    /// Continues with a newly opened store.
    pub(crate) fn continue_with(&mut self, opened: (Store, Appender, RecoveryReport)) {
        let (store, appender, report) = opened;
        self.set_random_sizes(&store);
        self.tally.note("restarts");
        self.trace(|| format!("opened with {:?}", self.levels.current));
        let damaged = store.damaged_partitions();
        assert!(self.is_damaged || damaged.is_empty(), "{damaged:?}");
        self.clock.restart_daemon(report.last_run);
        self.worlds.reopened();
        self.now();
        self.open = Some((store, appender));
        self.had_fault_since_open = false;
    }

    /// Sets the sizes that a store may have at any time.
    pub(crate) fn set_random_sizes(&mut self, store: &Store) {
        // Some runs seal documents at each checkpoint, others later.
        store.set_segment_documents_min([1, 2, 512][self.rng.usize(0..3)]);
        // Some runs release unneeded space of the journal at each checkpoint.
        store.set_journal_free_bytes_max([0, 16 << 20][self.rng.usize(0..2)]);
        // Some runs have a log file for every few records.
        store.set_log_file_bytes([100, 4000, 4 << 20][self.rng.usize(0..3)]);
    }

    /// Begins a step, in which earlier faults do not excuse failures.
    fn begin_step(&mut self) {
        self.note_faults();
        self.had_fault_in_step = false;
    }

    pub(crate) fn note_faults(&mut self) {
        let met = self.medium.take_hits();
        self.tally.note_faults(&met);
        if !met.is_empty() {
            self.trace(|| format!("faults: {met:?}"));
        }
        self.had_fault_in_step |= !met.is_empty();
        self.had_fault_since_open |= !met.is_empty();
    }

    /// Checks that an operation failed because of a fault.
    pub(crate) fn expect_fault(&mut self, cause: &StoreError, kind: &'static str) {
        self.note_faults();
        // A query that finds damage is repeated and returns the remaining data.
        let is_transient = self.is_damaged && cause.is_transient();
        let is_excused = is_transient
            || self.had_fault_in_step
            || (self.had_fault_since_open && !stages::RECOVERS_AT_ONCE);
        assert!(is_excused, "failed without a fault: {}", cause.with_causes());
        self.trace(|| format!("{kind}: {}", cause.with_causes()));
        self.tally.note(kind);
    }

    /// Compares a part of the store with the oracle, after every step.
    pub(crate) fn compare_part(&mut self) {
        if self.open.is_none() {
            return;
        }
        let level = self.rng.usize(0..self.levels.current.count());
        let (mut from, mut to) = (BEGIN.minus(HISTORY_REACH_MS), BEGIN.plus(HISTORY_REACH_MS));
        if self.rng.u8(0..4) == 0 {
            from = self.clock.time.minus(self.rng.i64(0..10 * HOUR));
            to = from.plus(self.rng.i64(1..10 * HOUR));
        }
        self.compare_range(level, from, to);
        self.check_shells();
    }

    fn compare_all(&mut self) {
        self.begin_step();
        for level in 0..self.levels.current.count() {
            self.compare_range(level, BEGIN.minus(HISTORY_REACH_MS), BEGIN.plus(HISTORY_REACH_MS));
        }
        self.compare_objects();
        self.check_shells();
    }

    fn compare_range(&mut self, level: usize, from: UnixMillis, to: UnixMillis) {
        let store = self.store();
        // Until an erasure is complete, a view may show a part of its samples.
        if store.is_erasing() {
            return;
        }
        let found = loop {
            match self.find(&store, level, from, to) {
                Err(cause) if self.is_damaged && cause.is_transient() => {}
                outcome => break outcome,
            }
        };
        match found {
            Ok(found) => {
                let checked =
                    self.worlds.check(&found).unwrap_or_else(|difference| panic!("{difference}"));
                self.tally.note("checks");
                self.tally.count("ends checked", checked.ends);
                self.tally.count("increases checked", checked.increases);
                self.tally.count("totals of histograms checked", checked.totals);
                self.tally.count("holes", found.holes.len() as u64);
                self.tally.count("failed, yet present", u64::from(checked.has_failed_request));
            }
            Err(cause) => self.expect_fault(&cause, "failed views"),
        }
    }

    /// Returns the contents of the store.
    pub(crate) fn find_all(
        &mut self,
        store: &Store,
        level: usize,
    ) -> Result<StoreContents, StoreError> {
        self.find(store, level, BEGIN.minus(HISTORY_REACH_MS), BEGIN.plus(HISTORY_REACH_MS))
    }

    /// Returns the contents of the store within a time range.
    fn find(
        &mut self,
        store: &Store,
        level: usize,
        from: UnixMillis,
        to: UnixMillis,
    ) -> Result<StoreContents, StoreError> {
        let dictionary = store.dictionary();
        let all = (0..dictionary.id_count() as u32).map(SeriesId);
        let keys = all.map(|id| dictionary.key(id).cloned()).collect();
        let mut ids = dictionary.select(&[]);
        drop(dictionary);
        if ids.len() > COMPARED_SERIES_MAX {
            let stride = ids.len() / COMPARED_SERIES_MAX + 1;
            ids.retain(|_| self.rng.usize(0..stride) == 0);
        }
        let last = ids.iter().copied().zip(store.last_samples(&ids)).collect();
        let granularity = store.granularities().as_slice()[level].clone();
        let view = store.view(GranularityIndex(level), from..to, &ids)?;
        let (mut slots, mut series_slots) = (Vec::new(), Vec::new());
        let mut histograms = FoundHistograms::new();
        for id in &ids {
            histograms::find(&view, *id, &mut histograms)?;
            view.slots_into(*id, Columns::ALL, &mut series_slots)?;
            slots.extend(series_slots.iter().map(|slot| (*id, slot.start.0, slot.cell)));
        }
        drop(view);
        let holes = store.gaps().swap_remove(level).holes;
        // A granularity that was removed and added again lacks the samples in between.
        let may_have_holes = self.is_damaged || self.had_level_changes;
        assert!(may_have_holes || holes.is_empty(), "{holes:?}");
        Ok(StoreContents {
            keys,
            holes: holes.into_iter().map(|hole| hole.start.0..hole.end.0).collect(),
            last,
            from: granularity.slot_start(from).0,
            to: granularity.slot_start(to.minus(1)).0 + granularity.width_ms,
            granularity,
            compared: ids.into_iter().collect(),
            slots,
            // Damage may remove histograms without their counts.
            histograms: (!self.is_damaged).then_some(histograms),
        })
    }
}
