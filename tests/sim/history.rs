//! One history: a random sequence of sends, retries, deletions, checkpoints, faults and restarts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fastrand::Rng;
use granary::{
    model::{
        Cell, Granularity, GranularitySet, Kind, SeriesId, SeriesKey, SeriesLimits, Span,
        UnixMillis,
    },
    pipeline::{Admission, retention},
    store::{
        AcceptedBatch, Appender, BatchNumber, BatchVerdict, ChangeAction, Definition,
        DefinitionVerdict, Matcher, PartitionId, Renaming, SeriesChange, Store, StoreError,
    },
};

use crate::faulty::{EIO, ENOSPC, Fault, FaultyMedium};

/// 2026-11-21T12:34:56Z
const BEGIN: UnixMillis = UnixMillis(1_795_264_496_000);
const HOUR: i64 = 3_600_000;
const SERIES_MAX: u32 = 12;
const SENDERS: usize = 4;
/// More epochs of a sender are not remembered: an older batch would be refused, not known.
const EPOCHS_MAX: i64 = 4;
/// Samples further in the future are refused.
const FUTURE_SKEW_MS: i64 = 600_000;
/// How far each sender's clock is off: within the skew, and days beyond it.
const CLOCK_ERRORS_MS: [i64; SENDERS] = [0, 500_000, -5 * HOUR, 400 * 24 * HOUR];

/// What happened, over many histories.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) acknowledged: u64,
    pub(crate) duplicates: u64,
    pub(crate) failed_writes: u64,
    pub(crate) power_cuts: u64,
    pub(crate) restarts: u64,
    pub(crate) checkpoints: u64,
    pub(crate) failed_checkpoints: u64,
    pub(crate) refused_samples: u64,
    pub(crate) new_epochs: u64,
    pub(crate) dropped_partitions: u64,
    pub(crate) deleted: u64,
    pub(crate) renamed: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.duplicates += other.duplicates;
        self.failed_writes += other.failed_writes;
        self.power_cuts += other.power_cuts;
        self.restarts += other.restarts;
        self.checkpoints += other.checkpoints;
        self.failed_checkpoints += other.failed_checkpoints;
        self.refused_samples += other.refused_samples;
        self.new_epochs += other.new_epochs;
        self.dropped_partitions += other.dropped_partitions;
        self.deleted += other.deleted;
        self.renamed += other.renamed;
    }
}

/// A batch that a sender made: it sends it until it is acknowledged.
#[derive(Debug, Clone)]
struct Sent {
    number: BatchNumber,
    /// Name of the series and time.
    samples: Vec<(u32, i64)>,
    /// The series that the samples were last sent for: while they were not acknowledged, a name
    /// may have been given to another one.
    series: Vec<SeriesId>,
    acknowledged: bool,
}

pub(crate) struct History {
    rng: Rng,
    medium: FaultyMedium,
    granularities: GranularitySet,
    open: Option<(Store, Appender)>,
    /// Ids by series name, as far as the sender was told.
    ids: BTreeMap<u32, SeriesId>,
    sent: Vec<Sent>,
    /// What each series must be called by now; `None`: it was deleted.
    keys: BTreeMap<SeriesId, Option<SeriesKey>>,
    /// Changes that failed, which a restart may find done.
    unsure: Vec<(SeriesId, Option<SeriesKey>)>,
    /// The simulated clock: it moves only when a step moves it.
    now: UnixMillis,
    /// Epoch and next number of each sender.
    next: [(i64, u64); SENDERS],
    tally: Tally,
}

impl History {
    pub(crate) fn new(seed: u64) -> Self {
        let span = |text: &str| text.parse::<Span>().unwrap();
        let level = |ms: i64, document: &str, partition: &str, retention: &str| {
            Granularity::new(ms, span(document), span(partition), span(retention))
        };
        let levels = vec![
            level(60_000, "1h", "2h", "6h"),
            level(300_000, "4h", "1d", "2d"),
            level(86_400_000, "1mo", "1y", "5y"),
        ];
        Self {
            rng: Rng::with_seed(seed),
            medium: FaultyMedium::default(),
            granularities: GranularitySet::new(levels).unwrap(),
            open: None,
            ids: BTreeMap::new(),
            sent: Vec::new(),
            keys: BTreeMap::new(),
            unsure: Vec::new(),
            now: BEGIN,
            next: [(1, 1); SENDERS],
            tally: Tally::default(),
        }
    }

    pub(crate) fn run(mut self) -> Tally {
        for _ in 0..self.rng.u32(5..40) {
            self.step();
        }
        self.medium.lift();
        self.restart();
        // Every sender comes back until all is acknowledged.
        for index in 0..self.sent.len() {
            if !self.sent[index].acknowledged {
                self.send(index);
                assert!(self.sent[index].acknowledged, "a well store refuses a batch");
            }
        }
        self.compare();
        let store = self.store();
        store.checkpoint(self.now).unwrap();
        assert_eq!(store.counters().documents_grown.get(), 0);
        self.compare();
        self.restart();
        self.compare();
        self.tally
    }

    fn step(&mut self) {
        if self.open.is_none() {
            self.restart();
            return;
        }
        match self.rng.u32(0..100) {
            0..40 => self.send_new(),
            40..55 => self.resend(),
            55..59 => self.now = self.now.plus(self.rng.i64(0..9 * HOUR)),
            59..62 => self.drop_expired(),
            62..72 => self.checkpoint(),
            72..78 => {
                let after_syncs = self.rng.u64(0..12);
                self.medium.arm(Fault::PowerCut { after_syncs });
            }
            78..85 => {
                let errno = if self.rng.bool() { ENOSPC } else { EIO };
                let after_writes = self.rng.u64(0..40);
                self.medium.arm(Fault::Writes { after_writes, errno });
            }
            85..92 => self.medium.lift(),
            92..94 => self.preallocate(),
            94..97 => self.change_series(),
            _ => {
                self.open = None;
                self.restart();
            }
        }
        if self.medium.is_dead() {
            self.tally.power_cuts += 1;
            self.open = None;
            let mut rng = self.rng.fork();
            let kept = rng.f64();
            self.medium.power_up(|| rng.f64() < kept);
        }
    }

    fn store(&self) -> Store {
        self.open.as_ref().unwrap().0.clone()
    }

    fn restart(&mut self) {
        self.open = None;
        let medium = Arc::new(self.medium.clone());
        match Store::open(medium, self.granularities.clone(), self.now) {
            Ok((store, appender, _)) => {
                self.tally.restarts += 1;
                assert_eq!(store.damaged_partitions(), Vec::<String>::new());
                for (id, key) in self.unsure.drain(..) {
                    if store.dictionary().info(id).map(|info| &info.key) == key.as_ref() {
                        self.keys.insert(id, key);
                    }
                }
                self.open = Some((store, appender));
            }
            Err(cause) => self.expect_fault(&cause),
        }
    }

    /// An operation may only fail while a fault is armed.
    fn expect_fault(&self, cause: &StoreError) {
        let armed = self.medium.is_dead() || self.medium.has_fault();
        assert!(armed, "failed without a fault: {cause}: {:?}", std::error::Error::source(cause));
    }

    fn send_new(&mut self) {
        let sender = self.rng.usize(0..SENDERS);
        let (epoch, next) = &mut self.next[sender];
        if self.rng.u8(0..16) == 0 && *epoch < EPOCHS_MAX {
            // Its spool was lost: it counts from 1 again, in a new epoch.
            (*epoch, *next) = (*epoch + 1, 1);
            self.tally.new_epochs += 1;
        }
        // Now and then a number is skipped, to be overtaken by later ones.
        *next += u64::from(self.rng.u8(0..8) == 0);
        let agent = format!("agent{sender}").into();
        let number = BatchNumber { agent, epoch: *epoch, seq: *next };
        *next += 1;
        let clock = self.now.0 + CLOCK_ERRORS_MS[sender];
        let samples = (0..self.rng.usize(1..30)).map(|_| {
            let back = self.rng.i64(0..4 * HOUR) * if self.rng.u8(0..10) == 0 { 30 } else { 1 };
            (self.rng.u32(0..SERIES_MAX), clock - back)
        });
        // The daemon judges each sample when it comes. What is too far in the future stays so in
        // every retry, because a history is shorter than that clock is wrong.
        let admission = Admission::new(&self.granularities, FUTURE_SKEW_MS, self.now);
        let made: Vec<_> = samples.collect();
        let admitted =
            |(_, at): &(u32, i64)| admission.check(UnixMillis(*at), 1.0, || None).is_ok();
        let samples: Vec<_> = made.iter().filter(|sample| admitted(sample)).copied().collect();
        self.tally.refused_samples += (made.len() - samples.len()) as u64;
        self.sent.push(Sent { number, samples, series: Vec::new(), acknowledged: false });
        // Some batches are held back and come later, out of order.
        if self.rng.u8(0..5) > 0 {
            self.send(self.sent.len() - 1);
        }
    }

    /// Drops the partitions that are past their retention, as the retention role does.
    fn drop_expired(&mut self) {
        let store = self.store();
        let partitions = store.partitions().into_iter().map(|info| (info.id.level, info.id.start));
        for (level, start) in retention::expired(&self.granularities, partitions, self.now) {
            match store.drop_partition(PartitionId { level, start }) {
                Ok(dropped) => self.tally.dropped_partitions += u64::from(dropped),
                Err(cause) => self.expect_fault(&cause),
            }
        }
    }

    fn resend(&mut self) {
        if !self.sent.is_empty() {
            // Acknowledged ones too: an answer may get lost.
            let index = self.rng.usize(0..self.sent.len());
            self.send(index);
        }
    }

    fn send(&mut self, index: usize) {
        let sent = self.sent[index].clone();
        let names: BTreeSet<_> = sent.samples.iter().map(|(name, _)| *name).collect();
        if !self.define(&names) {
            return;
        }
        let series: Vec<_> = sent.samples.iter().map(|(name, _)| self.ids[name]).collect();
        let batch = AcceptedBatch {
            number: Some(sent.number),
            window_ms: 0,
            series: series.clone(),
            times: sent.samples.iter().map(|(_, at)| *at).collect(),
            values: sent.samples.iter().map(|(name, at)| value(*name, *at)).collect(),
            starts: Vec::new(),
        };
        let appender = &mut self.open.as_mut().unwrap().1;
        match appender.commit(&[], &[batch], self.now) {
            Ok(verdict) => {
                match verdict.batches[0] {
                    BatchVerdict::Accepted(_) => {
                        assert!(!self.sent[index].acknowledged, "acknowledged, then lost");
                        self.tally.acknowledged += 1;
                        self.sent[index].series = series;
                        // A change that failed is undone by now.
                        self.unsure.clear();
                    }
                    BatchVerdict::Duplicate => self.tally.duplicates += 1,
                    BatchVerdict::StaleNumber
                    | BatchVerdict::FarNumber
                    | BatchVerdict::SenderLimit => {
                        panic!("few batches are neither stale nor of too many senders")
                    }
                }
                self.sent[index].acknowledged = true;
            }
            Err(cause) => {
                self.sent[index].series = series;
                self.tally.failed_writes += 1;
                self.expect_fault(&cause);
            }
        }
    }

    /// Makes series known; the collector does this on every connection.
    fn define(&mut self, names: &BTreeSet<u32>) -> bool {
        let definitions: Vec<_> = names.iter().map(|name| definition(*name)).collect();
        let appender = &mut self.open.as_mut().unwrap().1;
        match appender.commit(&definitions, &[], self.now) {
            Ok(verdict) => {
                for (name, verdict) in names.iter().zip(verdict.definitions) {
                    let DefinitionVerdict::Known(id) = verdict else { panic!("{verdict:?}") };
                    self.ids.insert(*name, id);
                    let key = Some(definition(*name).key);
                    assert_eq!(*self.keys.entry(id).or_insert_with(|| key.clone()), key);
                }
                true
            }
            Err(cause) => {
                self.tally.failed_writes += 1;
                self.expect_fault(&cause);
                false
            }
        }
    }

    /// Deletes the series of a name, or gives them one more tag.
    fn change_series(&mut self) {
        let name = self.rng.u32(0..SERIES_MAX).to_string();
        let matchers = vec![Matcher { tag: "name".into(), value: name }];
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
        let updates = plan.into_iter().map(|update| (update.id, update.key));
        match self.open.as_mut().unwrap().1.change(&change) {
            Ok(changed) => {
                assert_eq!(changed, Ok(updates.len()));
                let tally = &mut self.tally;
                *(if deletes { &mut tally.deleted } else { &mut tally.renamed }) +=
                    updates.len() as u64;
                self.keys.extend(updates);
            }
            Err(cause) => {
                self.unsure.extend(updates);
                self.tally.failed_writes += 1;
                self.expect_fault(&cause);
            }
        }
    }

    fn checkpoint(&mut self) {
        match self.store().checkpoint(self.now) {
            Ok(_) => self.tally.checkpoints += 1,
            Err(cause) => {
                self.tally.failed_checkpoints += 1;
                self.expect_fault(&cause);
            }
        }
    }

    fn preallocate(&mut self) {
        let store = self.store();
        let ids: Vec<_> = (0..store.dictionary().id_count() as u32).map(SeriesId).collect();
        let level = self.rng.usize(0..3);
        let document = store.granularities().levels()[level].document_start(self.now);
        if let Err(cause) = store.preallocate(level, document, &ids) {
            self.expect_fault(&cause);
        }
    }

    /// Every slot of every granularity holds exactly the acknowledged samples, but for those of
    /// deleted series; all are by now.
    fn compare(&self) {
        let store = self.store();
        let dictionary = store.dictionary();
        for (id, key) in &self.keys {
            assert_eq!(dictionary.info(*id).map(|info| &info.key), key.as_ref(), "{id:?}");
        }
        let ids = dictionary.select(&[]);
        let keys: Vec<_> = ids.iter().map(|id| &dictionary.info(*id).unwrap().key).collect();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "a series twice");
        let name = |key: &SeriesKey| key.tag("name").unwrap().parse().unwrap();
        let names: BTreeMap<SeriesId, u32> =
            ids.iter().zip(keys).map(|(id, key)| (*id, name(key))).collect();
        drop(dictionary);
        let mut finer: Option<Slots> = None;
        for (level, granularity) in self.granularities.levels().iter().enumerate() {
            let mut expected: BTreeMap<(SeriesId, i64), u32> = BTreeMap::new();
            let samples = self.sent.iter().flat_map(|sent| sent.series.iter().zip(&sent.samples));
            for (id, (_, at)) in samples.filter(|(id, _)| names.contains_key(id)) {
                let at = UnixMillis(*at);
                if granularity.keeps(at, self.now) {
                    *expected.entry((*id, granularity.slot_start(at).0)).or_default() += 1;
                }
            }
            let range = BEGIN.minus(30 * 24 * HOUR)..self.now.plus(24 * HOUR);
            let view = store.view(level, range, &ids).unwrap();
            let mut found = Slots::new();
            for id in &ids {
                let slots = view.slots(*id).unwrap().into_iter();
                let kept = slots.filter(|slot| granularity.keeps(slot.start, self.now));
                found.extend(kept.map(|slot| ((*id, slot.start.0), slot.cell)));
            }
            let counts: BTreeMap<_, _> = found.iter().map(|(key, cell)| (*key, cell.n)).collect();
            assert_eq!(counts, expected, "granularity {}", granularity.name);
            for ((id, start), cell) in &found {
                let name = names[id];
                if kind(name) == Kind::Delta {
                    assert_eq!(f64::from(cell.n), cell.sum, "every sample is 1");
                } else {
                    // The value says the time: first and last are those of their times.
                    let value = |offset: u32| value(name, start + i64::from(offset));
                    assert_eq!(
                        (cell.first, cell.last),
                        (value(cell.first_at), value(cell.last_at))
                    );
                }
            }
            if let Some(finer) = finer {
                agree(&finer, &found, granularity, level, &self.granularities, self.now);
            }
            finer = Some(found);
        }
    }
}

/// Cells by series and slot start.
type Slots = BTreeMap<(SeriesId, i64), Cell>;

/// Each slot that the finer granularity still keeps whole is the merge of its finer slots.
fn agree(
    finer: &Slots,
    coarser: &Slots,
    granularity: &Granularity,
    level: usize,
    granularities: &GranularitySet,
    now: UnixMillis,
) {
    let mut merged = Slots::new();
    for ((id, start), cell) in finer {
        let own = granularity.slot_start(UnixMillis(*start)).0;
        merged.entry((*id, own)).or_default().merge(&cell.shifted((start - own) as u32));
    }
    let fine = &granularities.levels()[level - 1];
    for (key, cell) in coarser.iter().filter(|((_, start), _)| fine.keeps(UnixMillis(*start), now))
    {
        let merged = merged[key];
        let sums = (cell.sum - merged.sum).abs() <= 1e-6 * cell.sum.abs().max(1.0);
        assert!(sums, "{}: {cell:?} and {merged:?}", granularity.name);
        assert_eq!(Cell { sum: 0.0, ..*cell }, Cell { sum: 0.0, ..merged }, "{}", granularity.name);
    }
}

/// A third of the series are counters.
fn kind(name: u32) -> Kind {
    if name.is_multiple_of(3) { Kind::Counter } else { Kind::Delta }
}

/// Deltas are 1, so that sums count samples; counters grow by one each millisecond.
fn value(name: u32, at: i64) -> f64 {
    match kind(name) {
        Kind::Counter => (at - (BEGIN.0 - 400 * 24 * HOUR)) as f64,
        Kind::Gauge | Kind::Delta => 1.0,
    }
}

fn definition(id: u32) -> Definition {
    let name = id.to_string();
    let key = SeriesKey::new("events", [("name", name.as_str())], &SeriesLimits::default());
    Definition { key: key.unwrap(), kind: kind(id), unit: "".into(), sender: "".into() }
}
