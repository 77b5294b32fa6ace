//! One history: a random sequence of sends, retries, checkpoints, faults and restarts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fastrand::Rng;
use granary::{
    model::{
        Granularity, GranularitySet, Kind, SeriesId, SeriesKey, SeriesLimits, Span, UnixMillis,
    },
    store::{
        AcceptedBatch, Appender, BatchNumber, BatchVerdict, Definition, DefinitionVerdict, Store,
        StoreError,
    },
};

use crate::faulty::{EIO, ENOSPC, Fault, FaultyMedium};

/// 2026-11-21T12:34:56Z
const NOW: UnixMillis = UnixMillis(1_795_264_496_000);
const SERIES_MAX: u32 = 12;

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
    }
}

/// A batch that a sender made: it sends it until it is acknowledged.
#[derive(Debug, Clone)]
struct Sent {
    number: BatchNumber,
    /// Name of the series, time and a value that is a power of nothing else: 1.
    samples: Vec<(u32, i64)>,
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
    next_seq: [u64; 3],
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
            next_seq: [1; 3],
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
        store.checkpoint(NOW).unwrap();
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
            0..45 => self.send_new(),
            45..60 => self.resend(),
            60..72 => self.checkpoint(),
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
            92..96 => self.preallocate(),
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
        match Store::open(medium, self.granularities.clone(), NOW) {
            Ok((store, appender, _)) => {
                self.tally.restarts += 1;
                assert_eq!(store.damaged_partitions(), Vec::<String>::new());
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
        let sender = self.rng.usize(0..3);
        // Now and then a number is skipped, to be overtaken by later ones.
        self.next_seq[sender] += u64::from(self.rng.u8(0..8) == 0);
        let seq = self.next_seq[sender];
        self.next_seq[sender] += 1;
        let samples = (0..self.rng.usize(1..30)).map(|_| {
            let back =
                self.rng.i64(0..4 * 3_600_000) * if self.rng.u8(0..10) == 0 { 30 } else { 1 };
            (self.rng.u32(0..SERIES_MAX), NOW.0 - back)
        });
        let samples = samples.collect();
        let agent = format!("agent{sender}").into();
        let number = BatchNumber { agent, epoch: 1, seq };
        self.sent.push(Sent { number, samples, acknowledged: false });
        // Some batches are held back and come later, out of order.
        if self.rng.u8(0..5) > 0 {
            self.send(self.sent.len() - 1);
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
        let batch = AcceptedBatch {
            number: Some(sent.number),
            series: sent.samples.iter().map(|(name, _)| self.ids[name]).collect(),
            times: sent.samples.iter().map(|(_, at)| *at).collect(),
            values: vec![1.0; sent.samples.len()],
            starts: Vec::new(),
        };
        let appender = &mut self.open.as_mut().unwrap().1;
        match appender.commit(&[], &[batch], NOW) {
            Ok(verdict) => {
                match verdict.batches[0] {
                    BatchVerdict::Accepted => {
                        assert!(!self.sent[index].acknowledged, "acknowledged, then lost");
                        self.tally.acknowledged += 1;
                    }
                    BatchVerdict::Duplicate => self.tally.duplicates += 1,
                    BatchVerdict::StaleNumber | BatchVerdict::SenderLimit => {
                        panic!("few batches are neither stale nor of too many senders")
                    }
                }
                self.sent[index].acknowledged = true;
            }
            Err(cause) => {
                self.tally.failed_writes += 1;
                self.expect_fault(&cause);
            }
        }
    }

    /// Makes series known; the collector does this on every connection.
    fn define(&mut self, names: &BTreeSet<u32>) -> bool {
        let definitions: Vec<_> = names.iter().map(|name| definition(*name)).collect();
        let appender = &mut self.open.as_mut().unwrap().1;
        match appender.commit(&definitions, &[], NOW) {
            Ok(verdict) => {
                for (name, verdict) in names.iter().zip(verdict.definitions) {
                    let DefinitionVerdict::Known(id) = verdict else { panic!("{verdict:?}") };
                    self.ids.insert(*name, id);
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

    fn checkpoint(&mut self) {
        match self.store().checkpoint(NOW) {
            Ok(_) => self.tally.checkpoints += 1,
            Err(cause) => {
                self.tally.failed_checkpoints += 1;
                self.expect_fault(&cause);
            }
        }
    }

    fn preallocate(&mut self) {
        let store = self.store();
        let ids: Vec<_> = (0..store.dictionary().len() as u32).map(SeriesId).collect();
        let level = self.rng.usize(0..3);
        let document = store.granularities().levels()[level].document_start(NOW);
        if let Err(cause) = store.preallocate(level, document, &ids) {
            self.expect_fault(&cause);
        }
    }

    /// Every slot of every granularity holds exactly the acknowledged samples; all are by now.
    fn compare(&self) {
        let store = self.store();
        let dictionary = store.dictionary();
        let ids: Vec<_> = (0..dictionary.len() as u32).map(SeriesId).collect();
        let names: Vec<u32> = ids
            .iter()
            .map(|id| dictionary.info(*id).unwrap().key.tag("name").unwrap().parse().unwrap())
            .collect();
        drop(dictionary);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "a series twice");
        for (level, granularity) in self.granularities.levels().iter().enumerate() {
            let mut expected: BTreeMap<(u32, i64), u32> = BTreeMap::new();
            let samples = self.sent.iter().flat_map(|sent| &sent.samples);
            for (name, at) in samples {
                let at = UnixMillis(*at);
                if granularity.keeps(at, NOW) {
                    *expected.entry((*name, granularity.slot_start(at).0)).or_default() += 1;
                }
            }
            let range = NOW.minus(30 * 86_400_000)..NOW.plus(1);
            let view = store.view(level, range, &ids).unwrap();
            let mut found = BTreeMap::new();
            for (id, name) in ids.iter().zip(&names) {
                for slot in view.slots(*id).unwrap() {
                    assert_eq!(f64::from(slot.cell.n), slot.cell.sum, "every sample is 1");
                    found.insert((*name, slot.start.0), slot.cell.n);
                }
            }
            assert_eq!(found, expected, "granularity {}", granularity.name);
        }
    }
}

fn definition(name: u32) -> Definition {
    let name = name.to_string();
    let key = SeriesKey::new("events", [("name", name.as_str())], &SeriesLimits::default());
    Definition { key: key.unwrap(), kind: Kind::Delta, unit: "".into(), sender: "".into() }
}
