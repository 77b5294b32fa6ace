//! The expected content of a slot: a naive aggregate of its samples.

use granary::model::{Cell, Kind};

/// The samples of one slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Expected {
    /// Samples that must be present; other samples may be lost.
    must: u32,
    /// All samples: offset in the slot and value.
    all: Vec<(u32, f64)>,
    /// The growth of a counter's readings, and their rates; empty when not guaranteed.
    adds: Option<f64>,
    rates: Vec<f64>,
}

impl Expected {
    pub(super) fn add(&mut self, offset: u32, value: f64, must: bool) {
        self.must += u32::from(must);
        self.all.push((offset, value));
    }

    pub(super) fn increase(&mut self, increase: f64) {
        *self.adds.get_or_insert(0.0) += increase;
    }

    pub(super) fn rate(&mut self, rate: f64) {
        self.rates.push(rate);
    }

    /// Marks the samples as possibly lost.
    pub(super) fn is_promised_no_more(&mut self) {
        self.must = 0;
    }

    pub(super) fn may_be_empty(&self) -> bool {
        self.must == 0
    }

    /// Compares the slot with the store's; also returns whether growth was compared.
    pub(super) fn check(&self, found: &Cell, kind: Kind) -> Result<bool, String> {
        let all = self.all.len() as u32;
        if !(self.must..=all).contains(&found.n) {
            return Err(format!("{} samples instead of {} to {all}", found.n, self.must));
        }
        if found.n < all || all == 0 {
            return Ok(false);
        }
        let by_time = |left: &(u32, f64), right: &(u32, f64)| {
            left.0.cmp(&right.0).then(left.1.total_cmp(&right.1))
        };
        let mut sorted = self.all.clone();
        sorted.sort_by(by_time);
        let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
        let ends = [(found.first_at, found.first), (found.last_at, found.last)];
        if ends != [first, last] {
            return Err(format!("first and last {ends:?} instead of {first:?} and {last:?}"));
        }
        let values: Vec<_> = self.all.iter().map(|(_, value)| *value).collect();
        let (sum, values) = match (kind, self.adds) {
            (Kind::Gauge | Kind::Delta, _) => (values.iter().sum(), &values),
            // A late reading changes other slots where they are kept.
            (Kind::Counter, Some(adds)) if self.must == all => (adds, &self.rates),
            (Kind::Counter, _) => return Ok(false),
        };
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Growth and rates are whole numbers: counters grow by one per millisecond.
        if (found.sum, found.min, found.max) != (sum, least, most) {
            let got = (found.sum, found.min, found.max);
            return Err(format!("sum, min, max {got:?} instead of {:?}", (sum, least, most)));
        }
        Ok(kind == Kind::Counter)
    }
}
