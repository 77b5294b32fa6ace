//! The comparison of all nodes after the last record: digests, answers, and the times of records.

use granary::{
    model::{Cell, Granularity, GranularityIndex, SeriesId, UnixMillis},
    store::Store,
};

use super::{Cluster, NODES};
use crate::setup::{DAY, HOUR};

/// Sums of the same cells in another order differ by less than this part.
const TOLERANCE: f64 = 1e-9;

impl Cluster {
    /// Compares all nodes after the last record.
    pub(super) fn compare(&mut self) {
        self.end_faults();
        self.take_over(self.leader);
        let now = self.latest;
        for node in 0..NODES {
            if node != self.leader {
                self.catch_up(node);
            }
        }
        self.check_times();
        let first = self.store(0).digest(now).unwrap();
        for node in 1..NODES {
            let other = self.store(node).digest(now).unwrap();
            let compared = first.compare(&other);
            assert!(compared.is_ok(), "node {node}: {compared:?}\n{first:?}\n{other:?}");
        }
        self.compare_answers(now);
        self.note("comparisons");
    }

    /// Checks that the times of records never decrease.
    fn check_times(&self) {
        let mut last = i64::MIN;
        let records = (1..=self.log.last()).filter_map(|number| self.log.record(number));
        for record in records {
            // After the version of the layout.
            let now = i64::from_le_bytes(record[1..9].try_into().unwrap());
            assert!(now >= last, "a record of {now} follows one of {last}");
            last = now;
        }
    }

    /// Compares the answers of all nodes for all series at one level.
    fn compare_answers(&mut self, now: UnixMillis) {
        for node in 1..NODES {
            self.compare_answers_of(&[self.store(0), self.store(node)], now);
        }
    }

    fn compare_answers_of(&mut self, stores: &[Store; 2], now: UnixMillis) {
        let level = self.rng.usize(0..self.set.count());
        let complete = stores.each_ref().map(|store| store.gaps()[level].complete_since);
        // Each node deletes whole partitions at its own time, also those of a rule.
        let kept_by = |spans: &Granularity| {
            let kept = spans.kept_from(now).max(complete[0]).max(complete[1]);
            spans.partition_end(spans.partition_start(kept))
        };
        let name = &stores[0].granularity(GranularityIndex(level)).name;
        let all = stores[0].all_granularities().iter();
        let read = all.filter(|spans| spans.name.split('@').next() == Some(&**name));
        let kept = read.map(kept_by).max().unwrap();
        let range = kept.max(now.minus(40 * DAY))..now.plus(DAY);
        if range.is_empty() {
            return;
        }
        if stores[0].last_record() > 1 && range.start < now.minus(HOUR) {
            self.note("compared answers of the past");
        }
        let ids: Vec<_> = (0..stores[0].dictionary().id_count() as u32).map(SeriesId).collect();
        let hosts = stores.each_ref().map(|store| store.hosts().unwrap());
        assert_eq!(hosts[0], hosts[1]);
        let view =
            |store: &Store| store.view(GranularityIndex(level), range.clone(), &ids).unwrap();
        let views = stores.each_ref().map(view);
        for id in ids {
            let [ours, theirs] = views.each_ref().map(|view| view.slots(id).unwrap());
            let mut both = ours.iter().zip(&theirs);
            let is_same = both.all(|(ours, theirs)| {
                ours.start == theirs.start && is_near(&ours.cell, &theirs.cell)
            });
            assert!(is_same && ours.len() == theirs.len(), "{id:?}: {ours:?} and {theirs:?}");
        }
        let last = stores.each_ref().map(|store| {
            let ids: Vec<_> = (0..store.dictionary().id_count() as u32).map(SeriesId).collect();
            let dictionary = store.dictionary();
            let ids: Vec<_> = ids.into_iter().filter(|id| dictionary.key(*id).is_some()).collect();
            drop(dictionary);
            store.last_samples(&ids)
        });
        assert_eq!(last[0], last[1]);
    }
}

/// Returns true when two cells are equal except for the order of their additions. A series of a
/// changed kind has bounds that follow from sums.
fn is_near(ours: &Cell, theirs: &Cell) -> bool {
    let values = |cell: &Cell| [cell.sum, cell.min, cell.max, cell.first, cell.last];
    let finite = values(ours).into_iter().filter(|value| value.is_finite());
    let most = finite.fold(1.0, |most: f64, value| most.max(value.abs()));
    let most = most * f64::from(ours.n.max(1)) * TOLERANCE;
    let is_near = |(a, b): (f64, f64)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= most;
    let times = |cell: &Cell| (cell.n, cell.first_at, cell.last_at);
    times(ours) == times(theirs)
        && values(ours).into_iter().zip(values(theirs)).all(is_near)
        && ours.has_moment_of(theirs)
}
