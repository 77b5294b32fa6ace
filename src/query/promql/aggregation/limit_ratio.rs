//! `limit_ratio`, which keeps a part of the series unchanged.
//!
//! Must never know: the store, the tree.

use xxhash_rust::xxh64::xxh64;

use crate::query::promql::value::{
    annotations::Notes,
    numbers::text_of,
    series::{ABSENT, Series},
};
use crate::query::{Labels, QueryError};

/// Keeps about the given ratio of the series, always the same series. A negative ratio keeps the
/// complement.
pub(super) fn limit_ratio(
    mut input: Vec<Series>,
    numbers: &[f64],
    notes: &Notes<'_>,
) -> Result<Vec<Series>, QueryError> {
    if numbers.iter().any(|ratio| ratio.is_nan()) {
        return Err(QueryError::Execution("Ratio value is NaN".to_owned()));
    }
    for series in &mut input {
        let position = position_of(&series.labels);
        for (value, ratio) in series.values.iter_mut().zip(numbers) {
            let bounded = ratio.clamp(-1.0, 1.0);
            if bounded != *ratio {
                notes.warn(|| {
                    format!(
                        "ratio value should be between -1 and 1, got {}, capping to {}",
                        text_of(*ratio),
                        text_of(bounded)
                    )
                });
            }
            let is_kept =
                if bounded >= 0.0 { position < bounded } else { position >= 1.0 + bounded };
            if !is_kept {
                *value = ABSENT;
            }
        }
    }
    input.retain(Series::has_values);
    Ok(input)
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
