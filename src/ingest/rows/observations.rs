//! The numbers of distributions in a batch of rows become histograms.
//!
//! Must never know: protocols, settings.

use crate::model::{
    AcceptedBatch, HistogramSample, Kind, OBSERVATION_BYTES, SeriesId, is_stale_marker, observation,
};

/// Replaces the numbers of series of histograms by histograms of one observation; their value is
/// the number of observations. `reserve` is called before memory is allocated.
///
/// # Errors
/// The error of `reserve`.
pub fn observe<E>(
    batch: &mut AcceptedBatch,
    kind: impl Fn(SeriesId) -> Option<Kind>,
    reserve: impl FnOnce(usize) -> Result<(), E>,
) -> Result<(), E> {
    let mut histograms = batch.histograms.iter().map(|sample| sample.index).peekable();
    let mut indexes = Vec::new();
    for (index, (series, value)) in (0..).zip(batch.series.iter().zip(&batch.values)) {
        let has_histogram = histograms.next_if_eq(&index).is_some();
        if !has_histogram && !is_stale_marker(*value) && kind(*series) == Some(Kind::DeltaHistogram)
        {
            indexes.push(index);
        }
    }
    if indexes.is_empty() {
        return Ok(());
    }
    reserve(indexes.len() * OBSERVATION_BYTES)?;
    for index in indexes {
        let Some(value) = batch.values.get_mut(index as usize) else { continue };
        batch.histograms.push(HistogramSample { index, histogram: observation(*value) });
        *value = 1.0;
    }
    batch.histograms.sort_by_key(|sample| sample.index);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ingest::{
            rows::{DescribedSeries, Rows},
            series_cache::{Fingerprint, SeriesCache},
        },
        model::{
            DefinitionVerdict, Distributions, GranularitySet, Histogram, MetricPattern,
            STALE_MARKER, SeriesKey, SeriesLimits,
        },
        policy::{Admission, RefusalReason},
        test_times::NOW,
    };

    #[test]
    fn a_series_of_other_histograms_takes_no_observations() {
        let limits = SeriesLimits::default();
        let key = SeriesKey::new("wait", [], &limits).unwrap();
        let patterns = Distributions::new(vec![MetricPattern::parse("wait").unwrap()]);
        for kind in [Kind::Histogram, Kind::DeltaHistogram] {
            let mut cache = SeriesCache::default();
            let find = |_: &SeriesKey| Some((SeriesId(3), kind));
            let mut rows = Rows::new(&mut cache, &find, &limits, "a").with_distributions(&patterns);
            let described = DescribedSeries {
                key: key.clone(),
                kind: Kind::Gauge,
                is_declared: false,
                unit: "".into(),
            };
            let target = rows.series(Fingerprint::new(0, b"wait"), |_| Ok(described));
            rows.push(target, NOW, 0.25, 0);
            let decoded = rows.finish();
            let new = decoded.definitions().len();
            let verdicts = vec![DefinitionVerdict::KindConflict(SeriesId(3), kind); new];
            let admission = Admission::new(&GranularitySet::default(), 0, NOW);
            let facts = (|_| Some(kind), |_, _| 0, |_| None);
            let (batch, refused) = decoded.admit(&verdicts, &mut cache, &admission, facts, 0);
            let is_taken = kind == Kind::DeltaHistogram;
            assert_eq!((new, batch.values.len()), if is_taken { (0, 1) } else { (1, 0) });
            assert_eq!(refused.counts.contains_key(&RefusalReason::KindConflict), !is_taken);
        }
    }

    #[test]
    fn numbers_of_series_of_histograms_become_observations() {
        let kept = HistogramSample { index: 2, histogram: Histogram::sketch() };
        let mut batch = AcceptedBatch {
            series: [1, 2, 2, 2, 2].map(SeriesId).into(),
            values: vec![7.0, 0.25, 0.0, STALE_MARKER, 4.0],
            histograms: vec![kept.clone()],
            ..AcceptedBatch::default()
        };
        let kind = |id| Some(if id == SeriesId(1) { Kind::Gauge } else { Kind::DeltaHistogram });
        let mut reserved = 0;
        let reserve = |bytes| {
            reserved += bytes;
            Ok::<_, ()>(())
        };
        observe(&mut batch, kind, reserve).unwrap();
        assert_eq!(reserved, 2 * OBSERVATION_BYTES);
        assert_eq!(batch.values[..3], [7.0, 1.0, 0.0]);
        assert!(is_stale_marker(batch.values[3]) && batch.values[4] == 1.0);
        let sample = |index, value| HistogramSample { index, histogram: observation(value) };
        assert_eq!(batch.histograms, [sample(1, 0.25), kept, sample(4, 4.0)]);
        let before = batch.clone();
        batch.histograms.remove(0);
        assert_eq!(observe(&mut batch, kind, |_| Err("full")), Err("full"));
        assert_eq!(batch.values[..3], before.values[..3]);
    }
}
