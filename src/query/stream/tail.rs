//! The live tail: cells of some series that changed since the last poll.
//!
//! A poll reads the current slot, the two slots before it, and the time by which the clocks of
//! senders may be ahead. Late samples for older slots are not shown. Only the
//! cells of these slots are kept between polls. Must never know: HTTP.

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

/// Number of slots before the current slot that a poll reads.
const SLOTS_BACK: i64 = 2;

/// A request for a tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailRequest {
    /// The series to follow.
    pub selector: Selector,
    /// The slot width; with automatic resolution, that of the finest granularity
    /// that keeps all of the series.
    pub resolution: Resolution,
    /// The accepted clock difference of senders, in milliseconds: samples may be this far in the
    /// future.
    pub ahead_ms: i64,
}

/// The changes since the last poll.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TailEvent {
    /// The slot width.
    pub resolution: String,
    /// The seconds without a poll because the client was slow, which the caller sets. This event
    /// includes the changes of that time.
    pub skipped: u64,
    /// New and changed cells, by slot and series.
    pub cells: Vec<TailCell>,
}

/// One cell of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TailCell {
    /// The series.
    #[serde(flatten)]
    pub series: SeriesEntry,
    /// Start of the slot, Unix milliseconds.
    pub start: i64,
    /// Number of samples.
    pub n: u32,
    /// The sum of the values, or the total increase.
    pub sum: Option<f64>,
    /// The smallest value or rate; `None` when a rate lacks a second reading.
    pub min: Option<f64>,
    /// The largest value or rate.
    pub max: Option<f64>,
    /// The first value.
    pub first: Option<f64>,
    /// The offset of the first value from the start of the slot, in milliseconds.
    pub first_at: u32,
    /// The last value.
    pub last: Option<f64>,
    /// The offset of the last value from the start of the slot, in milliseconds.
    pub last_at: u32,
}

impl TailCell {
    fn new(series: SeriesEntry, start: i64, cell: &Cell) -> Self {
        let Cell { n, first_at, last_at, .. } = *cell;
        let [sum, min, max, first, last] = cell.finite_numbers();
        Self { series, start, n, sum, min, max, first, first_at, last, last_at }
    }
}

/// A tail with the cells of its last poll.
#[derive(Debug)]
pub struct Tail {
    store: Store,
    request: TailRequest,
    limits: QueryLimits,
    granularity: GranularityIndex,
    series: Vec<(SeriesId, SeriesInfo)>,
    /// The number of IDs and the generation of the dictionary when a poll last selected the series;
    /// (0, 0) before, so that the first poll selects again.
    dictionary: (usize, u64),
    /// The last journal record at the last poll.
    record: Option<u64>,
    /// The cells at the last poll, by slot and series.
    last_cells: BTreeMap<(i64, SeriesId), Cell>,
}

/// Returns the finest granularity at which all of the series are kept now; the finest of all when
/// there is none.
fn finest(store: &Store, series: &[(SeriesId, SeriesInfo)], now: UnixMillis) -> GranularityIndex {
    let ids: Vec<_> = series.iter().map(|(id, _)| *id).collect();
    let coverage = coverage(store, &ids, &(now..now), now);
    coverage.finest_whole(&(now..now.plus(1))).unwrap_or(GranularityIndex::FINEST)
}

impl Tail {
    /// Selects the series; the first poll reads them.
    ///
    /// # Errors
    /// When the resolution is unknown, too many series match, or the budget is used up.
    pub fn new(
        store: &Store,
        budget: &Budget,
        request: TailRequest,
        limits: QueryLimits,
        now: UnixMillis,
    ) -> Result<Self, QueryError> {
        let series = request.selector.select_within(store, budget, &limits, false)?;
        let granularity = match &request.resolution {
            Resolution::Auto => finest(store, &series, now),
            named @ (Resolution::Named(_) | Resolution::Calendar(_)) => granularity_of_documents(
                &coverage(store, &[], &(now..now), now),
                named,
                &(now..now),
                AUTO_POINTS,
            )?,
        };
        let (last_cells, dictionary) = (BTreeMap::new(), (0, 0));
        let store = store.clone();
        Ok(Self {
            store,
            request,
            limits,
            granularity,
            series,
            dictionary,
            record: None,
            last_cells,
        })
    }

    /// Returns the cells that are new or changed since the last poll, in order of time and series.
    ///
    /// # Errors
    /// When too many series match by now, the budget is used up, or the store cannot be read.
    pub fn poll(&mut self, budget: &Budget, now: UnixMillis) -> Result<TailEvent, QueryError> {
        let granularity = self.store.granularities()[self.granularity].clone();
        let mut event =
            TailEvent { resolution: granularity.name.clone(), skipped: 0, cells: Vec::new() };
        let record = self.store.last_record();
        if self.record == Some(record) {
            return Ok(event);
        }
        budget.check()?;
        self.update_selection(budget)?;
        let first_slot = granularity.slot_start(now).minus(SLOTS_BACK * granularity.width_ms);
        let range = first_slot..now.plus(self.request.ahead_ms.max(1));
        let ids: Vec<SeriesId> = self.series.iter().map(|(id, _)| *id).collect();
        let view = self.store.view(self.granularity, range, &ids)?;
        let mut current_cells = BTreeMap::new();
        let mut changed = BTreeMap::new();
        for (index, (id, _)) in self.series.iter().enumerate() {
            budget.check()?;
            for slot in view.slots(*id)? {
                let key = (slot.start.0, *id);
                if self.last_cells.get(&key) != Some(&slot.cell) {
                    changed.insert((slot.start.0, index), slot.cell);
                }
                current_cells.insert(key, slot.cell);
            }
        }
        let entries =
            changed.keys().map(|(_, index)| SeriesEntry::bytes_of(&self.series[*index].1));
        budget.reserve(entries.sum::<usize>() + changed.len() * size_of::<TailCell>())?;
        let cells = changed.iter().map(|((start, index), cell)| {
            TailCell::new(SeriesEntry::new(&self.series[*index].1), *start, cell)
        });
        event.cells = cells.collect();
        // These fields are updated last, so that a failed poll is repeated in full.
        (self.last_cells, self.record) = (current_cells, Some(record));
        Ok(event)
    }

    /// Selects the series again when the dictionary has changed.
    fn update_selection(&mut self, budget: &Budget) -> Result<(), QueryError> {
        let dictionary = self.store.dictionary();
        let current = (dictionary.id_count(), dictionary.generation());
        drop(dictionary);
        if current != self.dictionary {
            self.series =
                self.request.selector.select_within(&self.store, budget, &self.limits, false)?;
            self.dictionary = current;
            let selected: BTreeSet<_> = self.series.iter().map(|(id, _)| *id).collect();
            self.last_cells.retain(|(_, id), _| selected.contains(id));
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

    fn changes(tail: &mut Tail, now: UnixMillis) -> Vec<(String, i64, u32, f64)> {
        let cells = tail.poll(&Budget::UNLIMITED, now).unwrap().cells.into_iter();
        let show = |cell: TailCell| {
            (cell.series.tags["host"].clone(), cell.start, cell.n, cell.sum.unwrap())
        };
        cells.map(show).collect()
    }

    #[test]
    fn a_poll_shows_only_the_changes_since_the_last_poll() {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = setup::open(dir.path(), NOW);
        let slot = store.granularities().as_slice()[0].slot_start(NOW).0;
        add(&mut appender, "a", NOW, 2.0);
        add(&mut appender, "b", NOW.minus(60_000), 3.0);
        // The sample is too old for the tail.
        add(&mut appender, "b", NOW.minus(600_000), 9.0);
        let selector = Selector { metric: Some("load".into()), tags: vec![] };
        let request = TailRequest { selector, resolution: Resolution::Auto, ahead_ms: 600_000 };
        let limits = QueryLimits::new(3, 1);
        let mut tail = Tail::new(&store, &Budget::UNLIMITED, request, limits, NOW).unwrap();
        let row = |host: &str, start, n, sum| (host.to_owned(), start, n, sum);
        let first = changes(&mut tail, NOW);
        assert_eq!(first, [row("b", slot - 60_000, 1, 3.0), row("a", slot, 1, 2.0)]);
        assert_eq!(changes(&mut tail, NOW), []);
        store.checkpoint(NOW).unwrap();
        add(&mut appender, "a", NOW, 5.0);
        assert_eq!(changes(&mut tail, NOW), [row("a", slot, 2, 7.0)]);
        // The tail includes new series, and samples in the near future.
        add(&mut appender, "c", NOW.plus(60_000), 1.0);
        assert_eq!(changes(&mut tail, NOW), [row("c", slot + 60_000, 1, 1.0)]);
        let change = |host: &str| {
            let selector = Selector { metric: None, tags: vec![("host".into(), host.into())] };
            SeriesChange { matchers: selector.matchers(), action: ChangeAction::Delete }
        };
        assert_eq!(appender.change(&change("a"), NOW).unwrap(), Ok(1));
        add(&mut appender, "a", NOW, 8.0);
        assert_eq!(changes(&mut tail, NOW), [row("a", slot, 1, 8.0)]);
        add(&mut appender, "d", NOW, 8.0);
        assert!(matches!(tail.poll(&Budget::UNLIMITED, NOW), Err(QueryError::TooMuch(_))));
    }
}
