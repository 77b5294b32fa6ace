//! What a slot must hold, summed up naively from the samples in it.

use granary::model::{Cell, Kind};

/// The samples of one slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Expected {
    /// Samples that must be there; the others may be gone.
    must: u32,
    /// All: offset in the slot and value.
    all: Vec<(u32, f64)>,
}

impl Expected {
    pub(super) fn add(&mut self, offset: u32, value: f64, must: bool) {
        self.must += u32::from(must);
        self.all.push((offset, value));
    }

    pub(super) fn may_be_empty(&self) -> bool {
        self.must == 0
    }

    /// Whether this is what was found.
    pub(super) fn check(&self, found: &Cell, kind: Kind) -> Result<(), String> {
        let all = self.all.len() as u32;
        if !(self.must..=all).contains(&found.n) {
            return Err(format!("{} samples instead of {} to {all}", found.n, self.must));
        }
        if found.n < all || all == 0 {
            return Ok(());
        }
        let by_time = |one: &(u32, f64), other: &(u32, f64)| {
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        };
        let mut sorted = self.all.clone();
        sorted.sort_by(by_time);
        let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
        let ends = [(found.first_at, found.first), (found.last_at, found.last)];
        if ends != [first, last] {
            return Err(format!("first and last {ends:?} instead of {first:?} and {last:?}"));
        }
        let values = || self.all.iter().map(|(_, value)| *value);
        let least = values().fold(f64::INFINITY, f64::min);
        let most = values().fold(f64::NEG_INFINITY, f64::max);
        let expected = (values().sum::<f64>(), least, most);
        let got = (found.sum, found.min, found.max);
        // Of a counter, these are increases and rates.
        if kind != Kind::Counter && got != expected {
            return Err(format!("sum, min, max {got:?} instead of {expected:?}"));
        }
        Ok(())
    }
}
