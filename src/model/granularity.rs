//! Granularities: the width of slots, the spans of documents and partitions, and their retention.

use std::{fmt, ops::Index};

use super::{Span, UnixMillis, retention::Retention};

const DAY_MS: i64 = 86_400_000;

/// A slot width with the spans of its documents and partitions, and its retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granularity {
    /// The name, such as `1m`: the slot width.
    pub name: String,
    /// The width of a slot in milliseconds.
    pub width_ms: i64,
    /// The span of a document.
    pub document: Span,
    /// The span of a partition.
    pub partition: Span,
    retention: Retention,
}

impl Granularity {
    /// Returns a granularity named after its slot width.
    pub fn new(width_ms: i64, document: Span, partition: Span, retention: Span) -> Self {
        let name = Span::Fixed(width_ms).to_string();
        Self { name, width_ms, document, partition, retention: Retention::new(retention) }
    }

    /// Returns the time for which a partition is kept after its end.
    pub fn retention(&self) -> Span {
        self.retention.get()
    }

    /// Changes the retention of this granularity and of all its clones.
    pub fn change_retention(&self, retention: Span) {
        self.retention.set(retention);
    }

    /// Returns the granularity with a retention that its clones do not share.
    #[must_use]
    pub fn with_retention(&self, retention: Span) -> Self {
        Self { retention: Retention::new(retention), ..self.clone() }
    }

    /// Returns the start of the slot that contains `at`.
    pub fn slot_start(&self, at: UnixMillis) -> UnixMillis {
        UnixMillis(at.0.div_euclid(self.width_ms) * self.width_ms)
    }

    /// Returns the start of the document that contains `at`.
    pub fn document_start(&self, at: UnixMillis) -> UnixMillis {
        self.document.start_of(at)
    }

    /// Returns the number of slots of the document that begins at `start`.
    pub fn slots(&self, start: UnixMillis) -> usize {
        ((self.document.next(start).0 - start.0) / self.width_ms) as usize
    }

    /// Returns the index of the slot that contains `at` in the document that begins at `start`.
    pub fn slot_index(&self, start: UnixMillis, at: UnixMillis) -> usize {
        ((at.0 - start.0) / self.width_ms) as usize
    }

    /// Returns the start of the partition that contains `at`.
    pub fn partition_start(&self, at: UnixMillis) -> UnixMillis {
        self.partition.start_of(at)
    }

    /// Returns the end of the partition that begins at `start`, exclusive.
    pub fn partition_end(&self, start: UnixMillis) -> UnixMillis {
        self.partition.next(start)
    }

    /// Returns true when the partition that begins at `start` is still kept at `now`.
    pub fn keeps_partition(&self, start: UnixMillis, now: UnixMillis) -> bool {
        self.partition_end(start) > self.retention().before(now)
    }

    /// Returns the time from which samples are kept at `now`; it begins a partition.
    pub fn kept_since(&self, now: UnixMillis) -> UnixMillis {
        self.partition_start(self.retention().before(now))
    }

    /// Returns true when the partition of a sample of time `at` is still kept at `now`.
    pub fn keeps(&self, at: UnixMillis, now: UnixMillis) -> bool {
        at >= self.kept_since(now)
    }

    /// Returns the start of the oldest partition that is still kept at `now`.
    pub fn kept_from(&self, now: UnixMillis) -> UnixMillis {
        self.partition_start(self.retention().before(now).plus(1))
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
        let (document, partition, retention) = (self.document, self.partition, self.retention());
        if !document.is_multiple_of_span(Span::Fixed(self.width_ms)) {
            out.push(format!(
                "granularity {name}: document = {document} is not a whole number of {name} slots"
            ));
        } else if let Some(limit) = self.slots_over_limit() {
            out.push(format!(
                "granularity {name}: document = {document} has more than {limit} slots and would \
                 not fit one {DOCUMENT_PAGE_BYTES} byte page; use a shorter document"
            ));
        }
        if !partition.is_multiple_of_span(document) {
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
        } else if !(retention.has_other_unit(partition) || retention.is_multiple_of_span(partition))
        {
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

/// The size limit of a document with its key: a page of redb.
pub const DOCUMENT_PAGE_BYTES: usize = 4096;
/// The maximum number of slots of a document that fits the page.
pub const DOCUMENT_SLOTS_MAX: usize = 73;

/// A partition stores the seconds from its start to a document's start in 32 bits.
const PARTITION_MS_MAX: i64 = u32::MAX as i64 * 1000;

/// The index of a granularity in a set or in a store. In a store, granularities that are no longer
/// in the settings follow the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GranularityIndex(pub usize);

impl GranularityIndex {
    /// The finest granularity.
    pub const FINEST: Self = Self(0);

    /// Returns the next finer index, if there is one.
    pub fn finer(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self)
    }

    /// Returns the next coarser index, which may be beyond the last.
    #[must_use]
    pub fn coarser(self) -> Self {
        Self(self.0 + 1)
    }

    /// Iterates from this index, exclusive, to the finest.
    pub fn all_finer(self) -> impl DoubleEndedIterator<Item = Self> {
        (0..self.0).rev().map(Self)
    }
}

/// The granularities of the settings, finest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GranularitySet(Vec<Granularity>);

/// All faults of a set, each with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct GranularityFaults(pub Vec<String>);

impl fmt::Display for GranularityFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

/// The maximum number of granularities of a set: the store numbers them with one byte, and charts
/// need only a few.
pub const GRANULARITIES_MAX: usize = 8;

impl GranularitySet {
    /// Checks that the granularities fit together.
    ///
    /// # Errors
    /// All faults at once, each with a remedy.
    pub fn new(mut all: Vec<Granularity>) -> Result<Self, GranularityFaults> {
        all.sort_by_key(|granularity| granularity.width_ms);
        let mut faults = Vec::new();
        if all.is_empty() || all.len() > GRANULARITIES_MAX {
            faults.push(format!("configure 1 to {GRANULARITIES_MAX} granularities"));
        }
        for granularity in &all {
            granularity.faults(&mut faults);
        }
        for pair in all.windows(2) {
            let (fine, coarse) = (&pair[0], &pair[1]);
            if fine.width_ms == coarse.width_ms {
                faults.push(format!("granularity {}: configured twice", fine.name));
            } else if fine.width_ms > 0 && coarse.width_ms % fine.width_ms != 0 {
                faults.push(format!(
                    "granularity {}: its width is not a multiple of {}, the next finer one",
                    coarse.name, fine.name
                ));
            }
            if coarse.retention().exact_longest_ms() < fine.retention().exact_longest_ms() {
                faults.push(format!(
                    "granularity {}: retention = {} is shorter than that of the finer {} ({})",
                    coarse.name,
                    coarse.retention(),
                    fine.name,
                    fine.retention()
                ));
            }
        }
        if faults.is_empty() { Ok(Self(all)) } else { Err(GranularityFaults(faults)) }
    }

    /// Returns the set of levels that were checked before; `None` when there is none.
    pub fn of_checked(mut all: Vec<Granularity>) -> Option<Self> {
        all.sort_by_key(|granularity| granularity.width_ms);
        (!all.is_empty()).then_some(Self(all))
    }

    /// Returns this set with one more granularity, and its index; `None` if its width does not fit
    /// between its neighbours. Unlike the others, it may have a shorter retention than a finer one.
    pub fn with(&self, other: &Granularity) -> Option<(GranularityIndex, Self)> {
        let index = self.0.partition_point(|known| known.width_ms < other.width_ms);
        let mut all = self.0.clone();
        all.insert(index, other.clone());
        let fit = all.windows(2).all(|pair| {
            pair[0].width_ms < pair[1].width_ms && pair[1].width_ms % pair[0].width_ms == 0
        });
        fit.then_some((GranularityIndex(index), Self(all)))
    }

    /// Returns all granularities, finest first.
    pub fn as_slice(&self) -> &[Granularity] {
        &self.0
    }

    /// Returns the set with retentions that no other set shares.
    #[must_use]
    pub fn with_own_retentions(self) -> Self {
        Self(self.0.into_iter().map(|one| one.with_retention(one.retention())).collect())
    }

    /// Returns true when a set has the same granularities, perhaps with other retentions.
    pub fn differs_in_retention_only(&self, set: &Self) -> bool {
        let is_same = |(ours, theirs): (&Granularity, &Granularity)| {
            *theirs == ours.with_retention(theirs.retention())
        };
        self.count() == set.count() && self.iter().zip(set).all(is_same)
    }

    /// Iterates over all granularities, finest first.
    pub fn iter(&self) -> std::slice::Iter<'_, Granularity> {
        self.0.iter()
    }

    /// Iterates over all granularities with their indexes, finest first.
    pub fn indexed(
        &self,
    ) -> impl DoubleEndedIterator<Item = (GranularityIndex, &Granularity)> + ExactSizeIterator {
        self.0.iter().enumerate().map(|(index, granularity)| (GranularityIndex(index), granularity))
    }

    /// Returns the number of granularities.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the coarsest granularity.
    pub fn coarsest(&self) -> GranularityIndex {
        GranularityIndex(self.0.len() - 1)
    }

    /// Returns the coarsest granularity whose slot width satisfies `serves`; `None` if none does.
    pub fn coarsest_by_width(&self, serves: impl Fn(i64) -> bool) -> Option<GranularityIndex> {
        self.0.iter().rposition(|granularity| serves(granularity.width_ms)).map(GranularityIndex)
    }

    /// Returns the granularity with this name, and its index.
    pub fn named(&self, name: &str) -> Option<(GranularityIndex, &Granularity)> {
        self.indexed().find(|(_, granularity)| granularity.name == name)
    }

    /// Returns the finest granularity that still keeps samples of time `at`; `None` if none does.
    pub fn finest_keeping(&self, at: UnixMillis, now: UnixMillis) -> Option<GranularityIndex> {
        self.0.iter().position(|granularity| granularity.keeps(at, now)).map(GranularityIndex)
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
    /// Returns the default granularities: 1m for 2 days, 5m for 14 days, 1h for 9 weeks and 1d for
    /// 5 years.
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
        check(&[], "configure 1 to 8");
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
            "configured twice",
        );
        check(&[granularity("1d", "1mo", "4w", "1y")], "partition = 28d is not a whole number");
    }

    #[test]
    fn retention_in_calendar_months_is_valid_with_partitions_of_a_fixed_length() {
        let check = |all: &[Granularity]| {
            assert!(GranularitySet::new(all.to_vec()).is_ok(), "{all:?}");
        };
        check(&[granularity("1h", "1d", "1w", "20y")]);
        check(&[granularity("1m", "1h", "6h", "5mo")]);
        check(&[granularity("1d", "1mo", "1y", "400d")]);
        // 7,308 days are longer than 20 years, which have at most five leap years.
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
            let (granularity, at) = (&set.as_slice()[which], UnixMillis(at));
            let document = granularity.document_start(at);
            let partition = granularity.partition_start(at);
            let index = granularity.slot_index(document, at);
            prop_assert!(partition <= document && document <= at);
            prop_assert!(granularity.document.next(document) <= granularity.partition_end(partition));
            prop_assert!(index < granularity.slots(document));
            let slot = document.plus(index as i64 * granularity.width_ms);
            prop_assert_eq!(slot, granularity.slot_start(at));
            for age in [0, 1, granularity.retention().longest_ms() - 1, granularity.retention().longest_ms()] {
                let now = granularity.partition_end(partition).plus(age);
                prop_assert_eq!(granularity.keeps(at, now), granularity.keeps_partition(partition, now));
            }
        }
    }
}
