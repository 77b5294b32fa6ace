//! Granularities: how wide slots are, how they are gathered into documents and partitions, and
//! how long those are kept.

use std::{fmt, ops::Index};

use super::{Span, UnixMillis};

const DAY_MS: i64 = 86_400_000;

/// Cells of one slot width, and how long they are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granularity {
    /// Its name, such as `1m`: the slot width.
    pub name: String,
    /// Width of a slot in milliseconds.
    pub width_ms: i64,
    /// How long one document is.
    pub document: Span,
    /// How long one partition (one file) is.
    pub partition: Span,
    /// How long a partition is kept after its end.
    pub retention: Span,
}

impl Granularity {
    /// A granularity named after its slot width.
    pub fn new(width_ms: i64, document: Span, partition: Span, retention: Span) -> Self {
        let name = Span::Fixed(width_ms).to_string();
        Self { name, width_ms, document, partition, retention }
    }

    /// Start of the slot that holds `at`.
    pub fn slot_start(&self, at: UnixMillis) -> UnixMillis {
        UnixMillis(at.0.div_euclid(self.width_ms) * self.width_ms)
    }

    /// Start of the document that holds `at`.
    pub fn document_start(&self, at: UnixMillis) -> UnixMillis {
        self.document.start_of(at)
    }

    /// Number of slots of the document that begins at `start`.
    pub fn slots(&self, start: UnixMillis) -> usize {
        ((self.document.next(start).0 - start.0) / self.width_ms) as usize
    }

    /// Index of the slot that holds `at` in the document that begins at `start`.
    pub fn slot_index(&self, start: UnixMillis, at: UnixMillis) -> usize {
        ((at.0 - start.0) / self.width_ms) as usize
    }

    /// Start of the partition that holds `at`.
    pub fn partition_start(&self, at: UnixMillis) -> UnixMillis {
        self.partition.start_of(at)
    }

    /// End of the partition that begins at `start`, exclusive.
    pub fn partition_end(&self, start: UnixMillis) -> UnixMillis {
        self.partition.next(start)
    }

    /// Whether the partition that begins at `start` is still kept at `now`.
    pub fn keeps_partition(&self, start: UnixMillis, now: UnixMillis) -> bool {
        self.partition_end(start) > self.retention.before(now)
    }

    /// Samples from this time on have a living partition at `now`: it begins a partition.
    pub fn kept_since(&self, now: UnixMillis) -> UnixMillis {
        self.partition_start(self.retention.before(now))
    }

    /// Whether a sample of time `at` still has a living partition at `now`.
    pub fn keeps(&self, at: UnixMillis, now: UnixMillis) -> bool {
        at >= self.kept_since(now)
    }

    /// Start of the oldest partition that is still kept at `now`.
    pub fn kept_from(&self, now: UnixMillis) -> UnixMillis {
        self.partition_start(self.retention.before(now).plus(1))
    }

    fn faults(&self, out: &mut Vec<String>) {
        let name = &self.name;
        if !(1000..=DAY_MS).contains(&self.width_ms)
            || self.width_ms % 1000 != 0
            || DAY_MS % self.width_ms != 0
        {
            out.push(format!(
                "granularity {name}: the width must be whole seconds that divide a day; \
                 use 1s, 10s, 1m, 5m, 1h or 1d"
            ));
            return;
        }
        let (document, partition, retention) = (self.document, self.partition, self.retention);
        if !document.holds_whole(Span::Fixed(self.width_ms)) {
            out.push(format!(
                "granularity {name}: document = {document} is not a whole number of {name} slots"
            ));
        } else if let Some(limit) = self.slots_over_limit() {
            out.push(format!(
                "granularity {name}: document = {document} has more than {limit} slots and would \
                 not fit one {DOCUMENT_PAGE_BYTES} byte page; use a shorter document"
            ));
        }
        if !partition.holds_whole(document) {
            out.push(format!(
                "granularity {name}: partition = {partition} is not a whole number of documents \
                 of {document}"
            ));
        }
        if partition.longest_ms() > PARTITION_MS_MAX {
            out.push(format!(
                "granularity {name}: partition = {partition} is longer than 136 years; use less"
            ));
        }
        if retention.exact_longest_ms() < partition.exact_longest_ms() {
            out.push(format!(
                "granularity {name}: retention = {retention} is shorter than one partition \
                 ({partition}); use {partition} or more"
            ));
        } else if !(retention.is_unlike(partition) || retention.holds_whole(partition)) {
            out.push(format!(
                "granularity {name}: retention = {retention} is not a whole number of partitions \
                 of {partition}"
            ));
        }
    }

    fn slots_over_limit(&self) -> Option<usize> {
        let slots = (self.document.longest_ms() / self.width_ms) as usize;
        (slots > DOCUMENT_SLOTS_MAX).then_some(DOCUMENT_SLOTS_MAX)
    }
}

/// Bytes that a document may take, with what is kept beside it: a page of redb.
pub const DOCUMENT_PAGE_BYTES: usize = 4096;
/// Most slots of a document that fits them.
pub const DOCUMENT_SLOTS_MAX: usize = 73;

/// A partition counts the seconds from its start to a document's in 32 bits.
const PARTITION_MS_MAX: i64 = u32::MAX as i64 * 1000;

/// Which granularity: its place in a set, or in a store, where those that are not in the settings
/// any more follow the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GranularityIndex(pub usize);

impl GranularityIndex {
    /// Of the finest.
    pub const FINEST: Self = Self(0);

    /// Of the next finer one in a set, if there is any.
    pub fn finer(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self)
    }

    /// Of the next coarser one in a set, or beyond the last.
    #[must_use]
    pub fn coarser(self) -> Self {
        Self(self.0 + 1)
    }

    /// From this one, exclusive, to the finest.
    pub fn all_finer(self) -> impl DoubleEndedIterator<Item = Self> {
        (0..self.0).rev().map(Self)
    }
}

/// The granularities that a store has by its settings, finest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GranularitySet(Vec<Granularity>);

/// Every fault of a set, each with what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct GranularityFaults(pub Vec<String>);

impl fmt::Display for GranularityFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

/// Granularities of a set, at most: they are numbered by one byte in the store, and charts need few.
pub const GRANULARITIES_MAX: usize = 8;

impl GranularitySet {
    /// Checks that they fit together.
    ///
    /// # Errors
    /// All faults at once, each with what to change.
    pub fn new(mut all: Vec<Granularity>) -> Result<Self, GranularityFaults> {
        all.sort_by_key(|own| own.width_ms);
        let mut faults = Vec::new();
        if all.is_empty() || all.len() > GRANULARITIES_MAX {
            faults.push(format!("give 1 to {GRANULARITIES_MAX} granularities"));
        }
        for own in &all {
            own.faults(&mut faults);
        }
        for pair in all.windows(2) {
            let (fine, coarse) = (&pair[0], &pair[1]);
            if fine.width_ms == coarse.width_ms {
                faults.push(format!("granularity {}: given twice", fine.name));
            } else if fine.width_ms > 0 && coarse.width_ms % fine.width_ms != 0 {
                faults.push(format!(
                    "granularity {}: its width is not a multiple of {}, the next finer one",
                    coarse.name, fine.name
                ));
            }
            if coarse.retention.exact_longest_ms() < fine.retention.exact_longest_ms() {
                faults.push(format!(
                    "granularity {}: retention = {} is shorter than that of the finer {} ({})",
                    coarse.name, coarse.retention, fine.name, fine.retention
                ));
            }
        }
        if faults.is_empty() { Ok(Self(all)) } else { Err(GranularityFaults(faults)) }
    }

    /// This set and one besides, and its index; `None` when its slots fit in between no two
    /// others. Unlike the others it may be kept shorter than a finer one.
    pub fn with(&self, other: &Granularity) -> Option<(GranularityIndex, Self)> {
        let index = self.0.partition_point(|own| own.width_ms < other.width_ms);
        let mut all = self.0.clone();
        all.insert(index, other.clone());
        let fit = all.windows(2).all(|pair| {
            pair[0].width_ms < pair[1].width_ms && pair[1].width_ms % pair[0].width_ms == 0
        });
        fit.then_some((GranularityIndex(index), Self(all)))
    }

    /// All, finest first.
    pub fn as_slice(&self) -> &[Granularity] {
        &self.0
    }

    /// All, finest first.
    pub fn iter(&self) -> std::slice::Iter<'_, Granularity> {
        self.0.iter()
    }

    /// All with their indexes, finest first.
    pub fn indexed(
        &self,
    ) -> impl DoubleEndedIterator<Item = (GranularityIndex, &Granularity)> + ExactSizeIterator {
        self.0.iter().enumerate().map(|(index, own)| (GranularityIndex(index), own))
    }

    /// Number of granularities.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The coarsest one.
    pub fn coarsest(&self) -> GranularityIndex {
        GranularityIndex(self.0.len() - 1)
    }

    /// The coarsest one whose slot width serves; `None` when none does.
    pub fn coarsest_by_width(&self, serves: impl Fn(i64) -> bool) -> Option<GranularityIndex> {
        self.0.iter().rposition(|own| serves(own.width_ms)).map(GranularityIndex)
    }

    /// The one with this name, and its index.
    pub fn named(&self, name: &str) -> Option<(GranularityIndex, &Granularity)> {
        self.indexed().find(|(_, own)| own.name == name)
    }

    /// The finest one that still keeps samples of time `at`; `None` when none does.
    pub fn finest_keeping(&self, at: UnixMillis, now: UnixMillis) -> Option<GranularityIndex> {
        self.0.iter().position(|own| own.keeps(at, now)).map(GranularityIndex)
    }
}

impl Index<GranularityIndex> for GranularitySet {
    type Output = Granularity;

    fn index(&self, index: GranularityIndex) -> &Granularity {
        &self.0[index.0]
    }
}

impl<'a> IntoIterator for &'a GranularitySet {
    type Item = &'a Granularity;
    type IntoIter = std::slice::Iter<'a, Granularity>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Default for GranularitySet {
    /// 1m for 2 days, 5m for 14 days, 1h for 9 weeks and 1d for 5 years.
    fn default() -> Self {
        const MINUTE: i64 = 60_000;
        const HOUR: i64 = 60 * MINUTE;
        let fixed = Span::Fixed;
        Self(vec![
            Granularity::new(MINUTE, fixed(HOUR), fixed(6 * HOUR), fixed(48 * HOUR)),
            Granularity::new(5 * MINUTE, fixed(4 * HOUR), fixed(DAY_MS), fixed(14 * DAY_MS)),
            Granularity::new(HOUR, fixed(DAY_MS), fixed(7 * DAY_MS), fixed(63 * DAY_MS)),
            Granularity::new(DAY_MS, Span::Months(1), Span::Months(12), Span::Months(60)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn granularity(width: &str, document: &str, partition: &str, retention: &str) -> Granularity {
        let span = |text: &str| text.parse::<Span>().unwrap();
        let Span::Fixed(width_ms) = span(width) else { panic!("{width}") };
        Granularity::new(width_ms, span(document), span(partition), span(retention))
    }

    #[test]
    fn the_default_set_is_valid() {
        let set = GranularitySet::default();
        assert_eq!(GranularitySet::new(set.0.clone()), Ok(set));
    }

    #[test]
    fn impossible_sets_are_refused_with_the_remedy() {
        let check = |all: &[Granularity], fault: &str| {
            let message = GranularitySet::new(all.to_vec()).unwrap_err().to_string();
            assert!(message.contains(fault), "{message}");
        };
        check(&[], "give 1 to 8");
        check(&[granularity("7s", "7m", "7h", "7d")], "divide a day");
        check(&[granularity("1m", "90s", "1h", "1d")], "not a whole number of 1m slots");
        check(&[granularity("1s", "1h", "1h", "1d")], "would not fit one 4096 byte page");
        check(&[granularity("1m", "1h", "90m", "1d")], "partition = 90m is not a whole number");
        check(&[granularity("1m", "1h", "6h", "1h")], "use 6h or more");
        check(&[granularity("1m", "1h", "6h", "7h")], "not a whole number of partitions");
        check(
            &[granularity("1m", "1h", "1h", "1d"), granularity("90s", "1h", "1h", "1d")],
            "multiple of 1m",
        );
        check(
            &[granularity("1m", "1h", "1h", "2d"), granularity("1h", "1d", "1d", "1d")],
            "is shorter than",
        );
        check(
            &[granularity("1m", "1h", "1h", "1d"), granularity("1m", "1h", "1h", "1d")],
            "given twice",
        );
        check(&[granularity("1d", "1mo", "4w", "1y")], "partition = 28d is not a whole number");
    }

    #[test]
    fn retention_of_the_calendar_goes_with_partitions_of_a_fixed_length() {
        let check = |all: &[Granularity]| {
            assert!(GranularitySet::new(all.to_vec()).is_ok(), "{all:?}");
        };
        check(&[granularity("1h", "1d", "1w", "20y")]);
        check(&[granularity("1m", "1h", "6h", "5mo")]);
        check(&[granularity("1d", "1mo", "1y", "400d")]);
        // 7,308 days are more than 20 years, of which at most five are leap years.
        check(&[granularity("1h", "1d", "1w", "20y"), granularity("1d", "4w", "4w", "1044w")]);
        let other = [granularity("1h", "1d", "1w", "1044w"), granularity("1d", "4w", "4w", "20y")];
        let message = GranularitySet::new(other.to_vec()).unwrap_err().to_string();
        assert!(message.contains("20y is shorter than that of the finer 1h"), "{message}");
    }

    #[test]
    fn months_have_28_to_31_slots() {
        let day = granularity("1d", "1mo", "1y", "5y");
        let slots = |date: &str| {
            let date: jiff::civil::Date = date.parse().unwrap();
            day.slots(UnixMillis::from_date(date))
        };
        assert_eq!([slots("2023-02-01"), slots("2024-02-01"), slots("2026-11-01")], [28, 29, 30]);
        assert_eq!(slots("2026-12-01"), 31);
    }

    proptest! {
        #[test]
        fn every_time_has_one_slot_in_one_document_in_one_partition(
            at in 0..UnixMillis::MAX.0, which in 0..4_usize
        ) {
            let set = GranularitySet::default();
            let (own, at) = (&set.as_slice()[which], UnixMillis(at));
            let document = own.document_start(at);
            let partition = own.partition_start(at);
            let index = own.slot_index(document, at);
            prop_assert!(partition <= document && document <= at);
            prop_assert!(own.document.next(document) <= own.partition_end(partition));
            prop_assert!(index < own.slots(document));
            let slot = document.plus(index as i64 * own.width_ms);
            prop_assert_eq!(slot, own.slot_start(at));
            for age in [0, 1, own.retention.longest_ms() - 1, own.retention.longest_ms()] {
                let now = own.partition_end(partition).plus(age);
                prop_assert_eq!(own.keeps(at, now), own.keeps_partition(partition, now));
            }
        }
    }
}
