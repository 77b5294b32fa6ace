//! Batches become cells: the samples of a record, each in the slot of the finest granularity that
//! keeps its time, and the states of counters and senders.
//!
//! Must never know: checkpoints, queries.

use std::borrow::Cow;

use super::{
    Catalog,
    cell_map::{Growth, SlotCursor},
    rounds,
    slots::Slots,
};
use crate::{
    model::{
        AcceptedBatch, Cell, Correction, GranularityIndex, Histogram, HistogramCell,
        RetentionStarts, SeriesId, TimeVerdict, TimesTally, UnixMillis, is_stale_marker,
    },
    store::classes::{Class, Classes},
};

impl Catalog {
    /// Applies the batches of one journal record, which were accepted at `now`. Returns the tally
    /// of the times of each batch.
    pub(crate) fn apply<'a>(
        &mut self,
        sequence: u64,
        batches: impl Iterator<Item = &'a AcceptedBatch>,
        now: UnixMillis,
    ) -> Vec<TimesTally> {
        assert_eq!(sequence, self.applied + 1, "journal records are applied in order, once");
        self.is_changing = true;
        self.applied = sequence;
        let keepings = keepings(&self.classes, now);
        let mut apply = |batch: &AcceptedBatch| {
            if let Some(number) = batch.number() {
                self.senders.apply(number, now);
            }
            self.apply_batch(batch, &keepings)
        };
        let tallies = batches.map(&mut apply).collect();
        self.is_changing = false;
        tallies
    }

    /// Decides, for batches that are accepted together, which first readings of counters add the
    /// growth since the start of the counter. A series for which `has_start` is false continues a
    /// series of another kind, so its first reading adds nothing.
    pub(crate) fn settle_starts(
        &self,
        batches: &mut Cow<'_, [AcceptedBatch]>,
        (is_accepted, has_start): (impl Fn(usize) -> bool, impl Fn(SeriesId) -> bool),
        now: UnixMillis,
    ) {
        let keepings = keepings(&self.classes, now);
        let slot_start = |series, at| {
            let class = self.series_classes.at(series, at);
            let finest = keepings[usize::from(class.0)].finest(at);
            let finest = finest.unwrap_or(GranularityIndex::FINEST);
            self.classes.get(class).levels[finest].slot_start(at)
        };
        rounds::settle(batches, (is_accepted, has_start), &self.states, slot_start);
    }

    /// Returns the maximum number of bytes that batches would add to memory when they are applied.
    pub(crate) fn growth(&self, batches: &[AcceptedBatch], now: UnixMillis) -> usize {
        let keepings = keepings(&self.classes, now);
        let mut bytes = 0;
        for batch in batches {
            let mut all_slots: Vec<Slots<'_, Option<Growth<'_>>>> =
                slots_of(&self.classes, &keepings);
            for (index, series) in batch.series.iter().enumerate() {
                let at = batch.time(index);
                let class = self.series_classes.at(*series, at);
                let make = |finest: Option<GranularityIndex>, start: UnixMillis| {
                    let level = self.classes.get(class).stored(finest?);
                    Some(self.maps[level.0].growth(start.0))
                };
                let growth = all_slots[usize::from(class.0)].at(at, make).value;
                bytes += growth.as_mut().map_or(0, |growth| growth.add(*series));
            }
            // A cell has three histograms, and the total may have the buckets of both. The state of
            // a counter remembers the reading.
            let histograms = batch.histograms.iter().map(|sample| sample.histogram.bytes());
            bytes += histograms.map(|histogram| 5 * histogram).sum::<usize>();
        }
        bytes
    }

    fn apply_batch(&mut self, batch: &AcceptedBatch, keepings: &[RetentionStarts]) -> TimesTally {
        let mut effects = Effects { tally: TimesTally::default(), corrections: Vec::new() };
        self.apply_samples(batch, keepings, &mut effects);
        for (series, Correction { at, increase, rate }) in effects.corrections {
            let class = self.series_classes.at(series, at);
            let finest = keepings[usize::from(class.0)].finest(at);
            let class = self.classes.get(class);
            note_lacking(&mut self.lacks_before, class, finest, at);
            if let Some(finest) = finest {
                let slot = class.levels[finest].slot_start(at).0;
                let map = &mut self.maps[class.stored(finest).0];
                let mut cursor = map.cursor(slot);
                map.merge(&mut cursor, series, &Cell::correction(increase, rate));
            }
        }
        effects.tally
    }

    fn apply_samples(
        &mut self,
        batch: &AcceptedBatch,
        keepings: &[RetentionStarts],
        effects: &mut Effects,
    ) {
        let classes = self.classes.clone();
        let mut all_slots: Vec<Slots<'_, Option<SlotCursor>>> = slots_of(&classes, keepings);
        let window_ms = batch.window_ms();
        let mut histograms = batch.histograms.iter().peekable();
        let mut next_histogram = histograms.peek().map_or(usize::MAX, |next| next.index as usize);
        for (index, (series, value)) in batch.series.iter().zip(&batch.values).enumerate() {
            let (at, series, value) = (batch.time(index), *series, *value);
            if is_stale_marker(value) {
                self.states.end(series, at);
                continue;
            }
            if let Some(window_ms) = window_ms
                && !effects.is_new(self.states.note_time(series, at, window_ms))
            {
                continue;
            }
            // The counter state is updated even when the sample is beyond every retention.
            let of_series = self.series_classes.at(series, at);
            let class = classes.get(of_series);
            let slot = all_slots[usize::from(of_series.0)].at(at, |finest, start| {
                note_lacking(&mut self.lacks_before, class, finest, start);
                Some(self.maps[class.stored(finest?).0].cursor(start.0))
            });
            self.not_kept += u64::from(slot.finest.is_none());
            // `settle_starts` decided which first readings count before the record was written.
            let start = batch.start(index);
            let observed = self.states.observe(series, at, value, start, slot.start);
            if let (Some(finest), Some(cursor)) = (slot.finest, slot.value) {
                self.maps[class.stored(finest).0].merge(cursor, series, &observed.cell);
            }
            if let Some(correction) = observed.correction {
                effects.corrections.push((series, correction));
            }
            if next_histogram <= index {
                let slot = (slot.start, slot.finest.map(|finest| class.stored(finest)));
                // Samples that do not count have no effect.
                while let Some(sample) = histograms.next_if(|next| next.index as usize <= index) {
                    if sample.index as usize == index {
                        let sample = (series, at, start, &sample.histogram);
                        self.apply_histogram(sample, slot, keepings);
                    }
                }
                next_histogram = histograms.peek().map_or(usize::MAX, |next| next.index as usize);
            }
        }
    }

    /// Adds the histogram of a sample, whose count was added before, to its slot.
    #[cold]
    fn apply_histogram(
        &mut self,
        (series, at, start, histogram): (SeriesId, UnixMillis, i64, &Histogram),
        (slot, level): (UnixMillis, Option<GranularityIndex>),
        keepings: &[RetentionStarts],
    ) {
        let observed = self.states.observe_histogram(series, (at, start), histogram);
        if let Some(level) = level {
            let offset = (at.0 - slot.0) as u32;
            let cell = HistogramCell::single(offset, histogram.clone(), observed.increase);
            self.histograms.merge(level, (series, slot.0), &cell);
        }
        if let Some((at, change)) = observed.correction {
            let class = self.series_classes.at(series, at);
            let finest = keepings[usize::from(class.0)].finest(at);
            let class = self.classes.get(class);
            if let Some(finest) = finest {
                let slot = class.levels[finest].slot_start(at).0;
                let cell = HistogramCell::correction(change);
                self.histograms.merge(class.stored(finest), (series, slot), &cell);
            }
        }
    }
}

/// Returns the starts of the retentions of each class.
fn keepings(classes: &Classes, now: UnixMillis) -> Vec<RetentionStarts> {
    classes.all().iter().map(|class| RetentionStarts::new(&class.levels, now)).collect()
}

/// Returns an empty memory of slots for each class.
fn slots_of<'a, T>(classes: &'a Classes, keepings: &'a [RetentionStarts]) -> Vec<Slots<'a, T>> {
    let all = classes.all().iter().zip(keepings);
    all.map(|(class, keeping)| Slots::new(&class.levels, keeping)).collect()
}

/// Records that the levels of a class finer than `finest` lack a sample in the slot of `finest` at
/// `at`. Without `finest`, each level lacks a sample in its slot at `at`.
fn note_lacking(
    lacks_before: &mut [UnixMillis],
    class: &Class,
    finest: Option<GranularityIndex>,
    at: UnixMillis,
) {
    let finer = finest.map_or(class.levels.count(), |finest| finest.0);
    for index in (0..finer).map(GranularityIndex) {
        let slot = &class.levels[finest.unwrap_or(index)];
        let end = slot.slot_start(at).plus(slot.width_ms);
        let lacks_before = &mut lacks_before[class.stored(index).0];
        *lacks_before = end.max(*lacks_before);
    }
}

/// The effects of a batch's samples other than cells.
struct Effects {
    tally: TimesTally,
    /// The corrections of later readings by late readings.
    corrections: Vec<(SeriesId, Correction)>,
}

impl Effects {
    fn is_new(&mut self, verdict: TimeVerdict) -> bool {
        match verdict {
            TimeVerdict::New => return true,
            TimeVerdict::Duplicate => self.tally.duplicates += 1,
            TimeVerdict::TooOld => self.tally.out_of_order += 1,
        }
        false
    }
}
