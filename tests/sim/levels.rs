//! The granularities of a history: the defaults, or random granularities that need not align.
//! Restarts change them.

use fastrand::Rng;
use granary::model::{Granularity, GranularitySet, Span};

use crate::{
    setup::{DAY, HOUR, MINUTE, granularities},
    stages,
};

/// All slot widths that a history may have. The oracle stores a bit per width with each sample.
const WIDTHS_MS: [i64; 6] = [10_000, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, DAY];

/// Returns the bit of a granularity's width.
pub(crate) fn width_bit(granularity: &Granularity) -> u8 {
    let index = WIDTHS_MS.iter().position(|width| *width == granularity.width_ms);
    1 << index.unwrap()
}

/// The granularities of a history.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    /// All granularities that the history may use.
    pool: Vec<Granularity>,
    pub(crate) current: GranularitySet,
}

impl Levels {
    /// Returns granularities with retentions of hours, days and years.
    pub(crate) fn usual() -> Self {
        let pool = granularities(&[
            ["1m", "1h", "2h", "6h"],
            ["5m", "4h", "1d", "2d"],
            ["1h", "1d", "7d", "63d"],
            ["1d", "1mo", "1y", "5y"],
        ]);
        let pool = pool.as_slice().to_vec();
        let usual = [0, 1, 3].map(|index: usize| pool[index].clone()).to_vec();
        Self { pool, current: GranularitySet::new(usual).unwrap() }
    }

    /// Returns any permitted granularities, whose partitions need not end where slots of the next
    /// granularity end.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        loop {
            let mut pool = Vec::new();
            let mut retention = HOUR * rng.i64(2..8);
            for width in WIDTHS_MS {
                if rng.bool() {
                    pool.push(random_level(width, retention, rng));
                    retention = retention.max(pool[pool.len() - 1].retention().longest_ms());
                }
            }
            if let Ok(current) = GranularitySet::new(pool.clone()) {
                return Self { pool, current };
            }
        }
    }

    /// Adds, removes or changes a granularity, perhaps with other spans; returns false when the
    /// change is not permitted.
    pub(crate) fn change_randomly(&mut self, rng: &mut Rng) -> bool {
        let mut levels = self.current.as_slice().to_vec();
        let count = self.pool.len();
        let candidate = &mut self.pool[rng.usize(0..count)];
        if stages::SPANS_CHANGE && rng.u8(0..4) == 0 {
            *candidate =
                random_level(candidate.width_ms, candidate.retention().longest_ms() / 2, rng);
            levels.retain(|level| level.name != candidate.name);
        }
        match levels.iter().position(|level| level.name == candidate.name) {
            None => levels.push(candidate.clone()),
            Some(index) if rng.bool() => drop(levels.remove(index)),
            Some(index) => {
                if let Span::Fixed(partition) = candidate.partition {
                    let retention = Span::Fixed(partition * rng.i64(1..12));
                    levels[index] = levels[index].with_retention(retention);
                }
            }
        }
        let Ok(set) = GranularitySet::new(levels) else { return false };
        set != std::mem::replace(&mut self.current, set.clone())
    }
}

impl Levels {
    /// Returns the current granularities, some with another retention, which may be longer.
    pub(crate) fn with_other_retentions(&self, rng: &mut Rng, may_grow: bool) -> GranularitySet {
        loop {
            let other = |level: &Granularity| match level.partition {
                Span::Fixed(partition) if rng.bool() => {
                    let wanted = Span::Fixed(partition * rng.i64(1..12));
                    let is_longer = wanted.longest_ms() > level.retention().longest_ms();
                    let is_kept = is_longer && !may_grow;
                    level.with_retention(if is_kept { level.retention() } else { wanted })
                }
                Span::Fixed(_) | Span::Months(_) => level.with_retention(level.retention()),
            };
            if let Ok(set) = GranularitySet::new(self.current.iter().map(other).collect()) {
                return set;
            }
        }
    }

    /// Returns true when a granularity has documents or partitions of another length than before.
    pub(crate) fn has_other_spans(&self, before: &Self) -> bool {
        let spans = |level: &Granularity| (level.document, level.partition);
        self.current.iter().any(|level| {
            let old = before.current.named(&level.name);
            old.is_some_and(|(_, old)| spans(old) != spans(level))
        })
    }
}

fn random_level(width: i64, retention_min: i64, rng: &mut Rng) -> Granularity {
    if width == DAY {
        let months = Span::Months;
        return Granularity::new(DAY, months(1), months(12), months(60));
    }
    let document = width * rng.i64(1..=72);
    // The lower bound limits the number of files.
    let shortest = if width <= MINUTE { HOUR } else { 6 * HOUR };
    let partition = document * (shortest / document + rng.i64(1..4));
    let retention_wanted = retention_min * rng.i64(1..4);
    let retention = partition * (retention_wanted / partition + 1);
    let fixed = Span::Fixed;
    Granularity::new(width, fixed(document), fixed(partition), fixed(retention))
}
