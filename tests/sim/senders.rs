//! Senders: agents that number their batches and retry until they are acknowledged, and foreign
//! senders whose times count once. Clocks may be wrong, and numbers may have gaps.

use std::collections::BTreeSet;

use fastrand::Rng;
use granary::{
    model::{
        AcceptedBatch, BatchNumber, BatchVerdict, Deduplication, DefinitionVerdict, GranularitySet,
        Kind, Moment, SeriesId, SeriesInfo, UnixMillis,
    },
    policy::Admission,
};

use crate::{
    histograms::{self, FIRST_HISTOGRAM_NAME},
    history::History,
    objects::{Change, GROUP},
    setup::{DAY, HOUR, NOW as BEGIN, series},
    stages,
    tally::Tally,
    world::{Outcome, Request, Verdict},
};

const SENDERS: usize = 4;
/// Samples further in the future are refused.
const FUTURE_SKEW_MS: i64 = 600_000;
/// The offset of each sender's clock: within the skew, and days beyond it.
const CLOCK_ERRORS_MS: [i64; SENDERS] = [0, 500_000, -5 * HOUR, 400 * DAY];
/// The series of foreign senders have names from this number on.
const FIRST_FOREIGN_NAME: u32 = 10_000;
/// The series recorded by rules have names from this number on; they are gauges.
const FIRST_RECORDED_NAME: u32 = 30_000;
/// The largest delay of a foreign sample.
const WINDOW_MS: i64 = 600_000;
/// Foreign senders read at multiples of this interval: all their times fit in the window.
const FOREIGN_STEP_MS: i64 = 15_000;
/// Prometheus' stale marker.
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// The state of all senders.
pub(crate) struct Fleet {
    /// The number of series of each sender.
    series_max: u32,
    /// The epoch and next number of each sender.
    next: [(i64, u64); SENDERS],
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    name: u32,
    at: i64,
    value: f64,
    /// The start of the counter, or 0 if it is unknown.
    start: i64,
}

/// A batch that the sender retries until it is acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct SentBatch {
    /// The number of the batch, or `None` for a foreign sender.
    number: Option<BatchNumber>,
    samples: Vec<Sample>,
    is_waiting: bool,
}

impl SentBatch {
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }
}

impl Fleet {
    pub(crate) fn new(rng: &mut Rng, tally: &mut Tally) -> Self {
        let series_max = if rng.u8(0..8) == 0 {
            tally.note("histories with hundreds of series");
            rng.u32(100..600)
        } else {
            12
        };
        Self { series_max, next: [(1, 1); SENDERS] }
    }

    /// Returns the number of a sender's next batch.
    fn next_number(&mut self, sender: usize, rng: &mut Rng, tally: &mut Tally) -> BatchNumber {
        let (epoch, next) = &mut self.next[sender];
        let sender = format!("agent{sender}").into();
        if rng.u8(0..16) == 0 {
            // The sender lost its spool: numbers begin at 1 again in a new epoch.
            (*epoch, *next) = (*epoch + rng.i64(1..3), 1);
            tally.note("new epochs");
        }
        // Some numbers are skipped.
        *next += u64::from(rng.u8(0..8) == 0);
        if stages::WILD_NUMBERS && rng.u8(0..12) == 0 {
            *next += rng.u64(900..5000);
            tally.note("jumps of a thousand");
        }
        let seq = *next;
        *next += 1;
        if stages::WILD_NUMBERS && rng.u8(0..20) == 0 {
            // A second agent has the same name and a spool of an earlier epoch.
            tally.note("late epochs");
            return BatchNumber { sender, epoch: rng.i64(0..=*epoch), seq: rng.u64(1..3000) };
        }
        BatchNumber { sender, epoch: *epoch, seq }
    }
}

impl History {
    pub(crate) fn send_new(&mut self) {
        let sent =
            if self.rng.u8(0..4) == 0 { self.foreign_batch() } else { self.numbered_batch() };
        self.sent.push(sent);
        // Some batches are held back and arrive late.
        if self.rng.u8(0..5) > 0 {
            self.deliver(&[self.sent.len() - 1]);
        }
    }

    fn numbered_batch(&mut self) -> SentBatch {
        let sender = self.rng.usize(0..SENDERS);
        let number = self.fleet.next_number(sender, &mut self.rng, &mut self.tally);
        let clock = self.clock.time.0 + CLOCK_ERRORS_MS[sender];
        let sample = |rng: &mut Rng| {
            let age = rng.i64(0..4 * HOUR) * if rng.u8(0..10) == 0 { 30 } else { 1 };
            let name = match rng.u8(0..4) {
                0 => histograms::name_of_agent(rng),
                _ => rng.u32(0..self.fleet.series_max),
            };
            (name, clock - age)
        };
        let samples = (0..self.rng.usize(1..30)).map(|_| {
            let (name, at) = sample(&mut self.rng);
            let (value, start) = reading_at(name, at, &mut self.rng);
            Sample { name, at, value, start }
        });
        SentBatch { number: Some(number), samples: samples.collect(), is_waiting: true }
    }

    /// Returns a batch with one or several rounds of readings, without a number.
    fn foreign_batch(&mut self) -> SentBatch {
        self.tally.note("foreign batches");
        let mut samples = Vec::new();
        for _ in 0..self.rng.usize(1..6) {
            let name = match self.rng.u8(0..4) {
                0 => histograms::foreign_name(&mut self.rng),
                _ => FIRST_FOREIGN_NAME + self.rng.u32(0..self.fleet.series_max / 2),
            };
            let mut step = self.clock.time.0 / FOREIGN_STEP_MS - self.rng.i64(0..60);
            for _ in 0..self.rng.usize(1..8) {
                let at = step * FOREIGN_STEP_MS;
                let (mut value, start) = reading_at(name, at, &mut self.rng);
                if !is_histogram(name) && self.rng.u8(0..20) == 0 {
                    self.tally.note("stale markers");
                    value = f64::from_bits(STALE);
                }
                samples.push(Sample { name, at, value, start });
                step += self.rng.i64(1..4);
            }
        }
        SentBatch { number: None, samples, is_waiting: true }
    }

    /// Evaluates a group of rules as the alerter does: sends the recorded samples under the number
    /// of the evaluation, then stores that number as the group's state. After a kill in between,
    /// both are repeated.
    pub(crate) fn evaluate(&mut self) {
        let (kind, group) = GROUP;
        let Some(state) = self.object(kind, group) else { return };
        let expected = state.as_ref().map(|(version, _)| *version);
        let last = state.map_or(0, |(_, bytes)| u64::from_le_bytes(bytes.try_into().unwrap()));
        let number = BatchNumber { sender: "rules".into(), epoch: 1, seq: last + 1 };
        let at = self.clock.time.0;
        let sample = |name| Sample { name, at, value: f64::from(name), start: 0 };
        let samples = [FIRST_RECORDED_NAME, FIRST_RECORDED_NAME + 3].map(sample).to_vec();
        self.sent.push(SentBatch { number: Some(number), samples, is_waiting: true });
        let index = self.sent.len() - 1;
        self.deliver(&[index]);
        if !self.sent[index].is_waiting {
            let (name, bytes) = (group.to_owned(), Some((last + 1).to_le_bytes().to_vec()));
            self.execute(&Change::Object { kind, name, expected, bytes });
            self.tally.note("evaluations");
        }
    }

    /// Returns the name and the time of a sample that was sent recently.
    pub(crate) fn recent_sample(&mut self) -> Option<(u32, i64)> {
        let batch = &self.sent[self.sent.len().checked_sub(self.rng.usize(1..8))?];
        let sample = batch.samples.get(self.rng.usize(0..batch.samples.len().max(1)))?;
        Some((sample.name, sample.at))
    }

    /// Repeats batches, even acknowledged ones, because a response may have been lost.
    pub(crate) fn resend(&mut self) {
        if self.sent.is_empty() {
            return;
        }
        let several = stages::WILD_NUMBERS && self.rng.u8(0..3) == 0;
        let count = if several { self.rng.usize(2..6) } else { 1 };
        let batches: Vec<_> = (0..count).map(|_| self.rng.usize(0..self.sent.len())).collect();
        if several {
            self.tally.note("groups of several batches");
            let mut once = BTreeSet::new();
            let again = batches.iter().filter(|index| !once.insert(**index)).count();
            self.tally.count("duplicates in one group", again as u64);
        }
        self.deliver(&batches);
    }

    /// Sends batches that the writer commits as one group.
    pub(crate) fn deliver(&mut self, batches: &[usize]) {
        let samples = batches.iter().flat_map(|index| &self.sent[*index].samples);
        let names: BTreeSet<_> = samples.map(|sample| sample.name).collect();
        let Some(ids) = self.define(&names) else { return };
        let names: Vec<_> = names.into_iter().collect();
        let id = |name: u32| ids[names.binary_search(&name).unwrap()];
        let now = self.now();
        let set = self.levels.current.clone();
        // The daemon accepts or refuses each sample on arrival.
        let admission = admission(&set, now);
        let mut group = Vec::new();
        for index in batches {
            let SentBatch { number, samples, .. } = &self.sent[*index];
            let admitted =
                |sample: &&Sample| admission.check(UnixMillis(sample.at), 1.0, || None).is_ok();
            let admitted: Vec<_> = samples.iter().filter(admitted).collect();
            self.tally.count("refused samples", (samples.len() - admitted.len()) as u64);
            let by_time = Deduplication::ByTime { window_ms: WINDOW_MS };
            let histograms = admitted.iter().enumerate().filter_map(|(index, sample)| {
                histograms::sample(kind(sample.name), index, sample.value)
            });
            let histograms: Vec<_> = histograms.collect();
            self.tally.count("histograms sent", histograms.len() as u64);
            group.push(AcceptedBatch {
                deduplication: number.clone().map_or(by_time, Deduplication::ByNumber),
                series: admitted.iter().map(|sample| id(sample.name)).collect(),
                times: admitted.iter().map(|sample| sample.at).collect(),
                values: admitted.iter().map(|sample| sample.value).collect(),
                starts: admitted.iter().map(|sample| sample.start).collect(),
                histograms,
                ..AcceptedBatch::default()
            });
        }
        for batch in &group {
            if let (Some(number), Some(time)) = (batch.number(), batch.times.iter().max()) {
                self.clock.report_sender_time(&number.sender, UnixMillis(*time));
            }
        }
        let now = now.earliest();
        let request = Request::Accept { batches: group.clone(), set, now };
        match self.appender().commit(&[], &group, now) {
            Ok(verdict) => {
                let verdicts: Vec<_> = verdict.batches.into_iter().map(to_verdict).collect();
                for (index, verdict) in batches.iter().zip(&verdicts) {
                    self.sent[*index].is_waiting = false;
                    match verdict {
                        Verdict::Accepted(again) => {
                            self.tally.note("accepted");
                            self.tally.count("repeated foreign times", *again);
                        }
                        Verdict::Duplicate => self.tally.note("duplicates"),
                        Verdict::Stale => self.tally.note("stale numbers"),
                        Verdict::Empty => self.tally.note("batches without samples"),
                    }
                }
                self.trace(|| format!("sent {group:?}: {verdicts:?}"));
                self.worlds.succeeded(&request, &Outcome::Judged(verdicts));
            }
            Err(cause) => {
                self.worlds.failed(request);
                self.expect_fault(&cause, "failed sends");
            }
        }
    }

    /// Registers series and returns their IDs, or `None` after a failure.
    fn define(&mut self, names: &BTreeSet<u32>) -> Option<Vec<SeriesId>> {
        let definitions: Vec<_> = names.iter().map(|name| definition(*name)).collect();
        let now = self.now().earliest();
        let outcome = self.appender().commit(&definitions, &[], now);
        let request = Request::Define(definitions);
        match outcome {
            Ok(verdict) => {
                let known = |verdict| match verdict {
                    // The kinds of some series changed.
                    DefinitionVerdict::Known(id) | DefinitionVerdict::KindConflict(id, _) => id,
                    DefinitionVerdict::StoreLimit
                    | DefinitionVerdict::SenderLimit
                    | DefinitionVerdict::MetricLimit
                    | DefinitionVerdict::ProjectLimit => {
                        panic!("{verdict:?}")
                    }
                };
                let ids: Vec<_> = verdict.definitions.into_iter().map(known).collect();
                self.worlds.succeeded(&request, &Outcome::Defined(ids.clone()));
                Some(ids)
            }
            Err(cause) => {
                self.worlds.failed(request);
                self.expect_fault(&cause, "failed definitions");
                None
            }
        }
    }
}

/// Returns the range of accepted times.
pub(crate) fn admission(set: &GranularitySet, now: Moment) -> Admission {
    Admission::new(set, FUTURE_SKEW_MS, now)
}

fn to_verdict(verdict: BatchVerdict) -> Verdict {
    match verdict {
        BatchVerdict::Accepted(tally) => Verdict::Accepted(tally.duplicates + tally.out_of_order),
        BatchVerdict::Duplicate => Verdict::Duplicate,
        BatchVerdict::StaleNumber => Verdict::Stale,
        BatchVerdict::Empty => Verdict::Empty,
        BatchVerdict::FarNumber | BatchVerdict::SenderLimit => {
            panic!("senders are few, and their numbers are not far")
        }
    }
}

/// Returns true if the series of a name has histograms.
pub(crate) fn is_histogram(name: u32) -> bool {
    (FIRST_HISTOGRAM_NAME..FIRST_RECORDED_NAME).contains(&name)
}

fn kind(name: u32) -> Kind {
    if is_histogram(name) {
        return histograms::kind(name);
    }
    Kind::OF_NUMBERS[name as usize % Kind::OF_NUMBERS.len()]
}

/// Returns a value and a start. Values are whole numbers, so that sums are exact. Counters grow by
/// one per millisecond; most of them reset from time to time, and some report their start. The
/// value of a histogram is the number of its observations.
fn reading_at(name: u32, at: i64, rng: &mut Rng) -> (f64, i64) {
    if kind(name).of_counts() != Kind::Counter {
        let lowest = if is_histogram(name) { 0 } else { -99 };
        return (f64::from(rng.i32(lowest..100)), 0);
    }
    let lifetime = [i64::MAX, 20 * 60_000, 3 * HOUR, 30 * HOUR][name as usize / 3 % 4];
    let begin = BEGIN.0 - 600 * DAY;
    let start = begin + (at - begin) / lifetime * lifetime;
    ((at - start) as f64, if name.is_multiple_of(2) { start } else { 0 })
}

pub(crate) fn definition(name: u32) -> SeriesInfo {
    let text = name.to_string();
    series("events", &[("name", &text)], kind(name))
}
