//! Granularities: how wide slots are, how they are gathered into documents and partitions, and
//! how long those are kept.

use std::fmt;

use super::{DocumentLayout, Span, UnixMillis};

const DAY_MS: i64 = 86_400_000;

/// One level of pre-aggregation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granularity {
    /// Name of the level, such as `1m`: its slot width.
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
                 not fit one {} byte page; use a shorter document",
                DocumentLayout::PAGE_BYTES
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
        if retention.longest_ms() < partition.longest_ms() {
            out.push(format!(
                "granularity {name}: retention = {retention} is shorter than one partition \
                 ({partition}); use {partition} or more"
            ));
        } else if !retention.holds_whole(partition) {
            out.push(format!(
                "granularity {name}: retention = {retention} is not a whole number of partitions \
                 of {partition}"
            ));
        }
    }

    fn slots_over_limit(&self) -> Option<usize> {
        let slots = (self.document.longest_ms() / self.width_ms) as usize;
        (slots > DocumentLayout::SLOTS_MAX).then_some(DocumentLayout::SLOTS_MAX)
    }
}

/// A partition counts the seconds from its start to a document's in 32 bits.
const PARTITION_MS_MAX: i64 = u32::MAX as i64 * 1000;

/// The levels of a store, finest first.
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

/// Levels of a set, at most: they are numbered by one byte in the store, and charts need few.
pub const GRANULARITIES_MAX: usize = 8;

impl GranularitySet {
    /// Checks that the levels fit together.
    ///
    /// # Errors
    /// All faults at once, each with what to change.
    pub fn new(mut levels: Vec<Granularity>) -> Result<Self, GranularityFaults> {
        levels.sort_by_key(|level| level.width_ms);
        let mut faults = Vec::new();
        if levels.is_empty() || levels.len() > GRANULARITIES_MAX {
            faults.push(format!("give 1 to {GRANULARITIES_MAX} granularities"));
        }
        for level in &levels {
            level.faults(&mut faults);
        }
        for pair in levels.windows(2) {
            let (fine, coarse) = (&pair[0], &pair[1]);
            if fine.width_ms == coarse.width_ms {
                faults.push(format!("granularity {}: given twice", fine.name));
            } else if fine.width_ms > 0 && coarse.width_ms % fine.width_ms != 0 {
                faults.push(format!(
                    "granularity {}: its width is not a multiple of {}, the next finer one",
                    coarse.name, fine.name
                ));
            }
            if coarse.retention.longest_ms() < fine.retention.longest_ms() {
                faults.push(format!(
                    "granularity {}: retention = {} is shorter than that of the finer {} ({})",
                    coarse.name, coarse.retention, fine.name, fine.retention
                ));
            }
        }
        if faults.is_empty() { Ok(Self(levels)) } else { Err(GranularityFaults(faults)) }
    }

    /// This set and a level besides, and its index; `None` when its slots fit in between no two
    /// others. Unlike the others it may be kept shorter than a finer one.
    pub fn with(&self, level: &Granularity) -> Option<(usize, Self)> {
        let index = self.0.partition_point(|own| own.width_ms < level.width_ms);
        let mut levels = self.0.clone();
        levels.insert(index, level.clone());
        let fit = levels.windows(2).all(|pair| {
            pair[0].width_ms < pair[1].width_ms && pair[1].width_ms % pair[0].width_ms == 0
        });
        fit.then_some((index, Self(levels)))
    }

    /// The levels, finest first.
    pub fn levels(&self) -> &[Granularity] {
        &self.0
    }

    /// Number of levels.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The level with this name, and its index.
    pub fn named(&self, name: &str) -> Option<(usize, &Granularity)> {
        self.0.iter().enumerate().find(|(_, level)| level.name == name)
    }

    /// Index of the finest level that still keeps samples of time `at`; `None` when none does.
    pub fn finest_keeping(&self, at: UnixMillis, now: UnixMillis) -> Option<usize> {
        self.0.iter().position(|level| level.keeps(at, now))
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

    fn level(width: &str, document: &str, partition: &str, retention: &str) -> Granularity {
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
        let check = |levels: &[Granularity], fault: &str| {
            let message = GranularitySet::new(levels.to_vec()).unwrap_err().to_string();
            assert!(message.contains(fault), "{message}");
        };
        check(&[], "give 1 to 8");
        check(&[level("7s", "7m", "7h", "7d")], "divide a day");
        check(&[level("1m", "90s", "1h", "1d")], "not a whole number of 1m slots");
        check(&[level("1s", "1h", "1h", "1d")], "would not fit one 4096 byte page");
        check(&[level("1m", "1h", "90m", "1d")], "partition = 90m is not a whole number");
        check(&[level("1m", "1h", "6h", "1h")], "use 6h or more");
        check(&[level("1m", "1h", "6h", "7h")], "not a whole number of partitions");
        check(&[level("1m", "1h", "1h", "1d"), level("90s", "1h", "1h", "1d")], "multiple of 1m");
        check(&[level("1m", "1h", "1h", "2d"), level("1h", "1d", "1d", "1d")], "is shorter than");
        check(&[level("1m", "1h", "1h", "1d"), level("1m", "1h", "1h", "1d")], "given twice");
        check(&[level("1d", "1mo", "4w", "1y")], "partition = 28d is not a whole number");
    }

    #[test]
    fn months_have_28_to_31_slots() {
        let day = level("1d", "1mo", "1y", "5y");
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
            let (level, at) = (&set.levels()[which], UnixMillis(at));
            let document = level.document_start(at);
            let partition = level.partition_start(at);
            let index = level.slot_index(document, at);
            prop_assert!(partition <= document && document <= at);
            prop_assert!(level.document.next(document) <= level.partition_end(partition));
            prop_assert!(index < level.slots(document));
            let slot = document.plus(index as i64 * level.width_ms);
            prop_assert_eq!(slot, level.slot_start(at));
            for age in [0, 1, level.retention.longest_ms() - 1, level.retention.longest_ms()] {
                let now = level.partition_end(partition).plus(age);
                prop_assert_eq!(level.keeps(at, now), level.keeps_partition(partition, now));
            }
        }
    }
}
