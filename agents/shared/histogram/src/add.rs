//! Sums and differences of histograms for queries, as in Prometheus.

use std::sync::Arc;

use thiserror::Error;

use super::{Bucket, CUSTOM_BOUNDS, Histogram, ResetHint};

/// Exponential buckets cannot be added to custom bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("exponential buckets and custom bounds cannot be combined")]
pub struct Incompatible;

/// Facts about a sum or difference that a query reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Added {
    /// One histogram came after a reset, the other one did not.
    pub has_hint_collision: bool,
    /// The custom bounds differed; the result has the common ones.
    pub has_reconciled_bounds: bool,
}

impl Histogram {
    /// Adds another histogram. The zero bucket becomes as wide as the wider one, the schema as
    /// coarse as the coarser one; custom bounds become the common ones.
    pub fn add(&mut self, other: &Self) -> Result<Added, Incompatible> {
        self.combine(other, 1.0)
    }

    /// Subtracts another histogram. Counts can become negative.
    pub fn subtract(&mut self, other: &Self) -> Result<Added, Incompatible> {
        self.combine(other, -1.0)
    }

    fn combine(&mut self, other: &Self, sign: f64) -> Result<Added, Incompatible> {
        if self.is_custom() != other.is_custom() {
            return Err(Incompatible);
        }
        let has_hint_collision = matches!(
            (self.hint, other.hint),
            (ResetHint::Reset, ResetHint::NotReset) | (ResetHint::NotReset, ResetHint::Reset)
        );
        let mut other = other.clone();
        let has_reconciled_bounds = self.custom_bounds != other.custom_bounds;
        self.reconcile(&mut other);
        self.combine_aligned(&other, sign);
        Ok(Added { has_hint_collision, has_reconciled_bounds })
    }

    /// Makes schemas, zero buckets and custom bounds of two compatible histograms the same.
    pub fn reconcile(&mut self, other: &mut Self) {
        if self.is_custom() {
            self.intersect_bounds(other);
            return;
        }
        self.reconcile_zero(other);
        let schema = self.schema.min(other.schema);
        self.lower_schema(schema);
        other.lower_schema(schema);
    }

    /// Adds a histogram of the same form.
    pub(crate) fn combine_aligned(&mut self, other: &Self, sign: f64) {
        self.hint = self.hint.merged(other.hint);
        self.zero_count += sign * other.zero_count;
        self.count += sign * other.count;
        self.sum += sign * other.sum;
        combine_side(&mut self.positive, &other.positive, sign);
        combine_side(&mut self.negative, &other.negative, sign);
    }

    /// Gives two histograms their common custom bounds.
    pub(crate) fn intersect_bounds(&mut self, other: &mut Self) {
        if self.custom_bounds == other.custom_bounds {
            return;
        }
        let theirs = other.custom_bounds.iter();
        let mut theirs = theirs.peekable();
        let is_common = |bound: &&f64| {
            while theirs.next_if(|their| *their < bound).is_some() {}
            theirs.peek() == Some(bound)
        };
        let common: Arc<[f64]> = self.custom_bounds.iter().filter(is_common).copied().collect();
        self.set_bounds(&common);
        other.set_bounds(&common);
    }

    /// Adds up custom buckets until only a subset of the bounds is left.
    pub(crate) fn set_bounds(&mut self, bounds: &Arc<[f64]>) {
        for bucket in &mut self.positive {
            let position = usize::try_from(bucket.index).unwrap_or_default();
            // The last bucket has no bound.
            let bound = self.custom_bounds.get(position).copied().unwrap_or(f64::INFINITY);
            bucket.index = bounds.partition_point(|common| *common < bound) as i32;
        }
        self.schema = CUSTOM_BOUNDS;
        self.custom_bounds = Arc::clone(bounds);
        self.normalize();
    }
}

/// Adds the buckets of one side.
fn combine_side(side: &mut Vec<Bucket>, other: &[Bucket], sign: f64) {
    let mut at = 0;
    let mut has_new = false;
    let len = side.len();
    for bucket in other {
        while at < len && side[at].index < bucket.index {
            at += 1;
        }
        let count = sign * bucket.count;
        if at < len && side[at].index == bucket.index {
            side[at].count += count;
        } else {
            has_new = true;
            side.push(Bucket { index: bucket.index, count });
        }
    }
    if has_new {
        // Two sorted runs, which this sort merges.
        side.sort_by_key(|bucket| bucket.index);
    }
    side.retain(|bucket| bucket.count != 0.0);
}
