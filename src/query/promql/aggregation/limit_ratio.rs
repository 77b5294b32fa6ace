//! `limit_ratio`, which keeps a part of the series unchanged.
//!
//! Must never know: the store, the tree.

use xxhash_rust::xxh64::xxh64;

use super::Aggregator;
use crate::query::promql::{
    context::{Context, bounds::KeptMemory},
    value::{numbers::text_of, series::Series},
};
use crate::query::{Labels, QueryError};

/// About the given ratio of the series, always the same series. A negative ratio keeps the
/// complement.
pub(super) struct LimitRatio<'a> {
    ratios: Vec<f64>,
    kept: Vec<Series>,
    is_empty: bool,
    context: &'a Context<'a>,
    memory: KeptMemory<'a>,
}

impl<'a> LimitRatio<'a> {
    pub(super) fn new(ratios: Vec<f64>, context: &'a Context<'a>) -> Self {
        Self { ratios, kept: Vec::new(), is_empty: true, context, memory: context.bounds.keep() }
    }

    fn warn(&self) {
        let notes = self.context.notes.at_argument(0);
        for ratio in self.ratios.iter().filter(|ratio| bounded(**ratio) != **ratio) {
            notes.warn(|| {
                format!(
                    "ratio value should be between -1 and 1, got {}, capping to {}",
                    text_of(*ratio),
                    text_of(bounded(*ratio))
                )
            });
        }
    }
}

impl Aggregator for LimitRatio<'_> {
    fn add(&mut self, mut series: Vec<Series>) -> Result<(), QueryError> {
        self.is_empty &= series.is_empty();
        for entry in &mut series {
            let position = position_of(&entry.labels);
            for (step, ratio) in self.ratios.iter().enumerate() {
                let bounded = bounded(*ratio);
                let is_kept =
                    if bounded >= 0.0 { position < bounded } else { position >= 1.0 + bounded };
                if !is_kept {
                    entry.remove(step);
                }
            }
        }
        self.kept.extend(series.into_iter().filter(Series::has_values));
        self.memory.resize(Series::bytes_of(self.kept.len(), self.context.steps))
    }

    fn series_count(&self) -> usize {
        self.kept.len()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Series>, QueryError> {
        if self.ratios.iter().any(|ratio| ratio.is_nan()) {
            return Err(QueryError::Execution("Ratio value is NaN".to_owned()));
        }
        if !self.is_empty {
            self.warn();
        }
        Ok(self.kept)
    }
}

fn bounded(ratio: f64) -> f64 {
    ratio.clamp(-1.0, 1.0)
}

/// Returns a number from 0 to 1 that only depends on the labels.
fn position_of(labels: &Labels) -> f64 {
    let mut bytes = Vec::new();
    for text in labels.iter().flat_map(|(name, value)| [name, value]) {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0xff);
    }
    xxh64(&bytes, 0) as f64 / u64::MAX as f64
}
