//! The disk budget: the partitions to drop before their retention ends, so that the store fits.
//!
//! The oldest partition of the granularity that keeps the largest share of its retention goes
//! first. Each granularity therefore keeps about the same share of its retention, and of the bytes
//! that the plan computes for it. Must never know: who measures and who drops.

use std::{collections::BTreeMap, fmt, str::FromStr};

use crate::model::{Granularity, GranularityIndex, PartitionId, UnixMillis};

/// The maximum size of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskMax {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of the file system.
    Percent(u8),
}

/// The units of bytes, longest names first.
const UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

impl DiskMax {
    /// Returns the bytes on a file system with `total` bytes.
    pub fn bytes(self, total: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => total / 100 * u64::from(percent),
        }
    }
}

impl FromStr for DiskMax {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || format!("{text:?} is not a size; use bytes such as \"50GB\", or \"80%\"");
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.trim().parse().ok().filter(|percent| (1..=100).contains(percent));
            return percent.map(Self::Percent).ok_or_else(fault);
        }
        let unit =
            UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
        let (number, factor) = unit.unwrap_or((text, 1));
        let number: Option<u64> = number.trim().parse().ok().filter(|number| *number > 0);
        let bytes = number.and_then(|number| number.checked_mul(factor));
        bytes.map(Self::Bytes).ok_or_else(fault)
    }
}

impl fmt::Display for DiskMax {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(out, "{bytes}"),
            Self::Percent(percent) => write!(out, "{percent}%"),
        }
    }
}

/// A partition and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizedPartition {
    /// The granularity and the start.
    pub id: PartitionId,
    /// The end, exclusive.
    pub end: UnixMillis,
    /// The size of its files.
    pub bytes: u64,
}

/// Returns the partitions to drop, in this order, to free `excess` bytes; fewer bytes when all
/// other partitions must stay. The newest partition of each granularity that has begun stays, and
/// so do partitions that have not begun. `all` includes retired granularities.
pub fn over_budget(
    all: &[Granularity],
    partitions: &[SizedPartition],
    excess: u64,
    now: UnixMillis,
) -> Vec<SizedPartition> {
    let mut levels: BTreeMap<GranularityIndex, Vec<SizedPartition>> = BTreeMap::new();
    for partition in partitions.iter().filter(|partition| partition.id.start <= now) {
        levels.entry(partition.id.granularity).or_default().push(*partition);
    }
    for level in levels.values_mut() {
        // The oldest partition is last.
        level.sort_unstable_by_key(|partition| std::cmp::Reverse(partition.id.start));
        level.remove(0);
    }
    let (mut freed, mut dropped) = (0, Vec::new());
    while freed < excess {
        let oldest = levels.values().filter_map(|level| level.last());
        let share = |partition: &&SizedPartition| {
            kept_share(&all[partition.id.granularity.0], partition.id.start, now)
        };
        let Some(first) = oldest.max_by(|one, other| share(one).total_cmp(&share(other))).copied()
        else {
            break;
        };
        if let Some(level) = levels.get_mut(&first.id.granularity) {
            level.pop();
        }
        freed += first.bytes;
        dropped.push(first);
    }
    dropped
}

/// Returns the share of its planned time that a granularity keeps when its oldest partition begins
/// at `oldest`.
fn kept_share(granularity: &Granularity, oldest: UnixMillis, now: UnixMillis) -> f64 {
    let planned =
        granularity.retention().longest_ms() as f64 + granularity.partition.longest_ms() as f64;
    (now.0.saturating_sub(oldest.0)) as f64 / planned
}

/// Returns the bytes by which the store grows until a time: the documents of all periods that end,
/// minus the partitions that expire. `turn_bytes` has the size of a period's documents of each
/// granularity of the settings.
pub fn growth(
    all: &[Granularity],
    turn_bytes: &[u64],
    partitions: &[SizedPartition],
    now: UnixMillis,
    until: UnixMillis,
) -> i64 {
    let mut bytes = 0_i64;
    for (granularity, turn) in all.iter().zip(turn_bytes) {
        let mut end = granularity.document.next(granularity.document_start(now));
        while end <= until {
            bytes = bytes.saturating_add_unsigned(*turn);
            end = granularity.document.next(end);
        }
    }
    let expires = |partition: &&SizedPartition| {
        let granularity = &all[partition.id.granularity.0];
        super::is_expired(granularity, partition.end, until)
    };
    let expired: u64 = partitions.iter().filter(expires).map(|partition| partition.bytes).sum();
    bytes.saturating_sub_unsigned(expired)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::GranularitySet;

    const HOUR: i64 = 3_600_000;
    /// 2026-11-21T12:20:00Z
    const NOW: UnixMillis = UnixMillis(1_795_263_600_000);

    fn set() -> GranularitySet {
        GranularitySet::default()
    }

    /// Returns the last `counts` partitions of each granularity, and one that has not begun.
    fn partitions(counts: &[usize], bytes: impl Fn(usize, usize) -> u64) -> Vec<SizedPartition> {
        let set = set();
        let mut out = Vec::new();
        for (index, granularity) in set.as_slice().iter().enumerate() {
            let mut start = granularity.partition.next(granularity.partition_start(NOW));
            for number in 0..=counts[index] {
                let id = PartitionId { granularity: GranularityIndex(index), start };
                let end = granularity.partition_end(start);
                out.push(SizedPartition { id, end, bytes: bytes(index, number) });
                start = granularity.partition_start(start.minus(1));
            }
        }
        out
    }

    fn check(counts: &[usize], bytes: &[u64], excess: u64) {
        let set = set();
        let all = partitions(counts, |index, number| bytes[(index * 31 + number) % bytes.len()]);
        let dropped = over_budget(set.as_slice(), &all, excess, NOW);
        let freed = |dropped: &[SizedPartition]| dropped.iter().map(|one| one.bytes).sum::<u64>();
        let remaining: Vec<_> = all.iter().filter(|one| !dropped.contains(one)).collect();
        let of = |index: usize| {
            let begun = remaining.iter().filter(move |one| one.id.start <= NOW);
            let mut starts: Vec<_> = begun
                .filter(move |one| one.id.granularity.0 == index)
                .map(|one| one.id.start)
                .collect();
            starts.sort_unstable();
            starts
        };
        for (index, count) in counts.iter().enumerate() {
            // The newest stays, and the dropped ones are the oldest.
            assert!(*count == 0 || !of(index).is_empty(), "{index}");
            let lost = dropped.iter().filter(|one| one.id.granularity.0 == index);
            assert!(lost.clone().all(|lost| of(index).first() > Some(&lost.id.start)), "{index}");
        }
        let ahead = remaining.iter().filter(|one| one.id.start > NOW).count();
        assert_eq!(ahead, 4, "partitions that have not begun stay");
        // No more is dropped than necessary, and only the newest stay when it is not enough.
        if freed(&dropped) < excess {
            assert!((0..4).all(|index| of(index).len() <= 1));
        } else if let Some((_, needed)) = dropped.split_last() {
            assert!(freed(needed) < excess);
        }
        // Each granularity that lost partitions still keeps as large a share as all others.
        let share = |index: usize, start| kept_share(&set.as_slice()[index], start, NOW);
        for lost in &dropped {
            let before = share(lost.id.granularity.0, lost.id.start);
            for other in (0..4).filter(|index| of(*index).len() > 1) {
                assert!(share(other, of(other)[0]) <= before, "{lost:?} {other}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_oldest_partitions_go_in_proportion_and_the_newest_stay(
            counts in prop::collection::vec(0_usize..12, 4),
            bytes in prop::collection::vec(0_u64..1000, 1..40),
            excess in 0_u64..20_000,
        ) {
            check(&counts, &bytes, excess);
        }
    }

    #[test]
    fn at_full_retention_half_of_the_budget_keeps_half_of_each_retention() {
        let set = set();
        // Every granularity takes 1,200 bytes at full retention.
        let counts = [9, 15, 10, 6];
        let all = partitions(&counts, |index, _| 1200 / counts[index] as u64);
        let dropped = over_budget(set.as_slice(), &all, 2400, NOW);
        let lost =
            |index: usize| dropped.iter().filter(|one| one.id.granularity.0 == index).count();
        assert_eq!([0, 1, 2, 3].map(lost), [4, 8, 5, 4]);
    }

    #[test]
    fn a_day_of_growth_is_its_documents_minus_the_expired_partitions() {
        let set = set();
        let all = partitions(&[9, 15, 10, 6], |_, _| 0);
        let day = NOW.plus(24 * HOUR);
        let growth = |partitions: &[SizedPartition]| {
            growth(set.as_slice(), &[1, 100, 10_000, 1_000_000], partitions, NOW, day)
        };
        assert_eq!(growth(&all), 24 + 600 + 10_000);
        let sized = partitions(&[9, 0, 0, 0], |_, number| 1 << number);
        // Four partitions of six hours expire in a day: those that end by then minus 48 hours.
        assert_eq!(growth(&sized), 24 + 600 + 10_000 - (0b11_1100 << 4));
    }

    #[test]
    fn sizes_are_bytes_with_a_unit_or_a_percentage() {
        for (text, expected) in [
            ("1000", DiskMax::Bytes(1000)),
            ("50GB", DiskMax::Bytes(50_000_000_000)),
            ("1 TiB", DiskMax::Bytes(1 << 40)),
            ("80%", DiskMax::Percent(80)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            assert_eq!(expected.to_string().parse(), Ok(expected), "{text}");
        }
        for text in ["", "0", "0%", "101%", "-1", "1.5GB", "GB", "99999999999TB", "5 apples"] {
            assert!(text.parse::<DiskMax>().unwrap_err().contains("use bytes"), "{text}");
        }
        assert_eq!(DiskMax::Percent(80).bytes(1000), 800);
    }
}
