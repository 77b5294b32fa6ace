//! The live tail: which cells of some series changed since the last look.
//!
//! A look reads the slot under way and the ones just before it, as a chart would; what comes late
//! for older slots is not shown. Nothing is kept of a look but these cells.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    model::{Cell, GranularityIndex, SeriesId, SeriesInfo, UnixMillis},
    query::{
        Budget, QueryError, QueryLimits, Resolution, Selector, SeriesEntry,
        cells::coverage::coverage,
        time::resolution::{AUTO_POINTS, granularity_of_documents},
    },
    store::Store,
};

/// Slots before the one under way that are looked at.
const SLOTS_BACK: i64 = 2;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailRequest {
    /// Which series.
    pub selector: Selector,
    /// How wide the slots are; the finest granularity when it is left to the daemon.
    pub resolution: Resolution,
    /// How far in the future samples may be, in milliseconds.
    pub ahead_ms: i64,
}

/// What changed since the last look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TailEvent {
    /// Width of the slots.
    pub resolution: String,
    /// Looks that were left out because the client was slow; their changes are in this one.
    pub skipped: u64,
    /// The cells that are new or changed, as they are now, by slot and series.
    pub cells: Vec<TailCell>,
}

/// One cell of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TailCell {
    /// Which series.
    #[serde(flatten)]
    pub series: SeriesEntry,
    /// Start of the slot, Unix milliseconds.
    pub start: i64,
    /// Number of samples.
    pub n: u32,
    /// Sum of values, or total increase.
    pub sum: Option<f64>,
    /// Smallest value, or smallest rate; `None` without a neighbour to make a rate with.
    pub min: Option<f64>,
    /// Largest value, or largest rate.
    pub max: Option<f64>,
    /// First value in time, and milliseconds from the slot's start.
    pub first: Option<f64>,
    /// See `first`.
    pub first_at: u32,
    /// Last value in time, and milliseconds from the slot's start.
    pub last: Option<f64>,
    /// See `last`.
    pub last_at: u32,
}

impl TailCell {
    fn new(series: SeriesEntry, start: i64, cell: &Cell) -> Self {
        let Cell { n, first_at, last_at, .. } = *cell;
        let [sum, min, max, first, last] = cell.finite_numbers();
        Self { series, start, n, sum, min, max, first, first_at, last, last_at }
    }
}

/// A tail, with what its last look showed.
#[derive(Debug)]
pub struct Tail {
    store: Store,
    request: TailRequest,
    limits: QueryLimits,
    granularity: GranularityIndex,
    found: Vec<(SeriesId, SeriesInfo)>,
    /// What the dictionary was when the series were found: ids given, and generation.
    dictionary: (usize, u64),
    /// The last journal record at the last look.
    record: Option<u64>,
    /// The cells at the last look, by slot and series.
    known: BTreeMap<(i64, SeriesId), Cell>,
}

impl Tail {
    /// Finds the series; nothing is looked at yet.
    ///
    /// # Errors
    /// When the resolution is not known, more series match than an answer may hold, or the budget is
    /// used up.
    pub fn new(
        store: &Store,
        budget: &Budget,
        request: TailRequest,
        limits: QueryLimits,
        now: UnixMillis,
    ) -> Result<Self, QueryError> {
        let granularity = match &request.resolution {
            Resolution::Auto => GranularityIndex::FINEST,
            named @ (Resolution::Named(_) | Resolution::Calendar(_)) => granularity_of_documents(
                &coverage(store, &(now..now), now),
                named,
                &(now..now),
                AUTO_POINTS,
            )?,
        };
        let found = request.selector.select_within(store, budget, &limits, false)?;
        let (known, dictionary) = (BTreeMap::new(), (0, 0));
        let store = store.clone();
        Ok(Self { store, request, limits, granularity, found, dictionary, record: None, known })
    }

    /// The cells that are new or changed since the last look, in order of time and series.
    ///
    /// # Errors
    /// When by now more series match than an answer may hold, the budget is used up, or the store
    /// cannot be read.
    pub fn look(&mut self, budget: &Budget, now: UnixMillis) -> Result<TailEvent, QueryError> {
        let granularity = self.store.granularities()[self.granularity].clone();
        let mut event =
            TailEvent { resolution: granularity.name.clone(), skipped: 0, cells: Vec::new() };
        let record = self.store.last_record();
        if self.record == Some(record) {
            return Ok(event);
        }
        budget.check()?;
        self.find(budget)?;
        let from = granularity.slot_start(now).minus(SLOTS_BACK * granularity.width_ms);
        let range = from..now.plus(self.request.ahead_ms.max(1));
        let ids: Vec<SeriesId> = self.found.iter().map(|(id, _)| *id).collect();
        let view = self.store.view(self.granularity, range, &ids)?;
        let mut seen = BTreeMap::new();
        let mut changed = BTreeMap::new();
        for (place, (id, _)) in self.found.iter().enumerate() {
            budget.check()?;
            for slot in view.slots(*id)? {
                let key = (slot.start.0, *id);
                if self.known.get(&key) != Some(&slot.cell) {
                    changed.insert((slot.start.0, place), slot.cell);
                }
                seen.insert(key, slot.cell);
            }
        }
        let entries = changed.keys().map(|(_, place)| SeriesEntry::bytes_of(&self.found[*place].1));
        budget.take(entries.sum::<usize>() + changed.len() * size_of::<TailCell>())?;
        let cells = changed.iter().map(|((start, place), cell)| {
            TailCell::new(SeriesEntry::new(&self.found[*place].1), *start, cell)
        });
        event.cells = cells.collect();
        // Only now, so that what a failed look did not show is shown by the next.
        (self.known, self.record) = (seen, Some(record));
        Ok(event)
    }

    /// Finds the series again when there are new ones, or changed ones.
    fn find(&mut self, budget: &Budget) -> Result<(), QueryError> {
        let dictionary = self.store.dictionary();
        let now = (dictionary.id_count(), dictionary.generation());
        drop(dictionary);
        if now != self.dictionary {
            self.found =
                self.request.selector.select_within(&self.store, budget, &self.limits, false)?;
            self.dictionary = now;
            let living: BTreeSet<_> = self.found.iter().map(|(id, _)| *id).collect();
            self.known.retain(|(_, id), _| living.contains(id));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::Kind,
        setup::{self, NOW, samples, send},
        store::{Appender, ChangeAction, SeriesChange},
    };

    fn add(appender: &mut Appender, host: &str, at: UnixMillis, value: f64) {
        let load = setup::series("load", &[("host", host)], Kind::Gauge);
        let id = setup::define(appender, &[load], NOW)[0];
        send(appender, samples(id, [(at.0, value)]), NOW);
    }

    fn shown(tail: &mut Tail, now: UnixMillis) -> Vec<(String, i64, u32, f64)> {
        let cells = tail.look(&Budget::UNLIMITED, now).unwrap().cells.into_iter();
        let show = |cell: TailCell| {
            (cell.series.tags["host"].clone(), cell.start, cell.n, cell.sum.unwrap())
        };
        cells.map(show).collect()
    }

    #[test]
    fn a_look_shows_what_changed_since_the_last_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = setup::open(dir.path(), NOW);
        let slot = store.granularities().as_slice()[0].slot_start(NOW).0;
        add(&mut appender, "a", NOW, 2.0);
        add(&mut appender, "b", NOW.minus(60_000), 3.0);
        // Too old to be tailed.
        add(&mut appender, "b", NOW.minus(600_000), 9.0);
        let selector = Selector { metric: Some("load".into()), tags: vec![] };
        let request = TailRequest { selector, resolution: Resolution::Auto, ahead_ms: 600_000 };
        let limits = QueryLimits::new(3, 1);
        let mut tail = Tail::new(&store, &Budget::UNLIMITED, request, limits, NOW).unwrap();
        let row = |host: &str, start, n, sum| (host.to_owned(), start, n, sum);
        let first = shown(&mut tail, NOW);
        assert_eq!(first, [row("b", slot - 60_000, 1, 3.0), row("a", slot, 1, 2.0)]);
        assert_eq!(shown(&mut tail, NOW), []);
        store.checkpoint(NOW).unwrap();
        add(&mut appender, "a", NOW, 5.0);
        assert_eq!(shown(&mut tail, NOW), [row("a", slot, 2, 7.0)]);
        // A new series is seen, and a sample of the near future.
        add(&mut appender, "c", NOW.plus(60_000), 1.0);
        assert_eq!(shown(&mut tail, NOW), [row("c", slot + 60_000, 1, 1.0)]);
        let change = |host: &str| {
            let selector = Selector { metric: None, tags: vec![("host".into(), host.into())] };
            SeriesChange { matchers: selector.matchers(), action: ChangeAction::Delete }
        };
        assert_eq!(appender.change(&change("a"), NOW).unwrap(), Ok(1));
        add(&mut appender, "a", NOW, 8.0);
        assert_eq!(shown(&mut tail, NOW), [row("a", slot, 1, 8.0)]);
        add(&mut appender, "d", NOW, 8.0);
        assert!(matches!(tail.look(&Budget::UNLIMITED, NOW), Err(QueryError::TooMuch(_))));
    }
}
