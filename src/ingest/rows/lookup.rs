//! The search for the series of a row: in the cache, among the new series of the request, or in the
//! store.
//!
//! Must never know: the samples of a row.

use super::{DescribedSeries, KindOf, LimitExceeded, Rows, Target, TargetKind};
use crate::{
    ingest::series_cache::{CachedSeries, Fingerprint},
    model::{Kind, SeriesInfo, SeriesLimits},
    policy::RefusalReason,
};

impl Rows<'_> {
    /// Returns the series with this fingerprint; `describe` is called if it is unknown.
    pub fn series(
        &mut self,
        fingerprint: Fingerprint,
        describe: impl FnOnce(&SeriesLimits) -> Result<DescribedSeries, String>,
    ) -> Target {
        if self.exceeded.is_some() {
            return Target(TargetKind::Refused(RefusalReason::SeriesLimit));
        }
        match self.cache.find(fingerprint) {
            Some(CachedSeries::Series(id)) => Target(TargetKind::Series(id)),
            Some(CachedSeries::Refused(reason)) => Target(TargetKind::Refused(reason)),
            None => match self.new_series.get(&fingerprint) {
                Some(index) => Target(TargetKind::New(*index)),
                None => Target(self.look_up(fingerprint, false, describe)),
            },
        }
    }

    /// Returns the series that a stale marker ends: the known one, whatever its kind. `own`
    /// is the fingerprint of the marker, and `plain` that of numbers of the series.
    pub fn ended_series(
        &mut self,
        plain: Fingerprint,
        own: Fingerprint,
        describe: impl FnOnce(&SeriesLimits) -> Result<DescribedSeries, String>,
    ) -> Target {
        if self.exceeded.is_some() {
            return Target(TargetKind::Refused(RefusalReason::SeriesLimit));
        }
        let histograms = [Kind::Histogram, Kind::GaugeHistogram];
        let all = histograms.map(|kind| plain.with_kind(kind)).into_iter().chain([plain]);
        if let Some(index) = all.clone().find_map(|any| self.new_series.get(&any)) {
            return Target(TargetKind::New(*index));
        }
        // All cached entries of a series have its current kind.
        let cached = all.into_iter().find_map(|any| self.cache.find(any));
        Target(match cached {
            Some(CachedSeries::Series(id)) => TargetKind::Series(id),
            Some(CachedSeries::Refused(reason)) => TargetKind::Refused(reason),
            None => self.look_up(own, true, describe),
        })
    }

    fn look_up(
        &mut self,
        fingerprint: Fingerprint,
        is_end: bool,
        describe: impl FnOnce(&SeriesLimits) -> Result<DescribedSeries, String>,
    ) -> TargetKind {
        let mut described = match describe(self.limits) {
            Ok(described) => described,
            Err(message) => {
                let reason = RefusalReason::BadSeries;
                self.refused.explain(reason, message);
                self.cache.insert(fingerprint, CachedSeries::Refused(reason));
                return TargetKind::Refused(reason);
            }
        };
        let is_observed = self.distributions.is_some_and(|distributions| {
            distributions.observes(described.key.metric(), described.kind)
        });
        if is_observed {
            described.kind = Kind::DeltaHistogram;
        }
        // Numbers after histograms are stored as numbers, even of a guessed kind.
        let is_guessed = |kind: &Kind| {
            !(described.is_declared || is_observed)
                && kind.is_histogram() == described.kind.is_histogram()
        };
        let keeps_kind = |kind: &Kind| *kind == described.kind || is_guessed(kind);
        match (self.find)(&described.key) {
            Some((id, kind)) if keeps_kind(&kind) => {
                self.cache.insert(fingerprint, CachedSeries::Series(id));
                return TargetKind::Series(id);
            }
            // Not cached: samples with this fingerprint change the kind.
            Some((id, _)) if is_end => return TargetKind::Series(id),
            _ => {}
        }
        if self.definitions.len() == self.definitions_max {
            self.exceeded = Some(LimitExceeded::Series);
            return TargetKind::Refused(RefusalReason::SeriesLimit);
        }
        let index = self.definitions.len() as u32;
        let DescribedSeries { key, kind, unit, is_declared } = described;
        let previous = self.definitions.last();
        let sender = previous.map_or_else(|| self.sender.into(), |(_, info)| info.sender.clone());
        self.definitions.push((fingerprint, SeriesInfo { key, kind, unit, sender }));
        self.declared.push(match is_end {
            true => KindOf::End,
            false if is_observed => KindOf::Observed,
            false if is_declared => KindOf::Declared,
            false => KindOf::Guessed,
        });
        self.new_series.insert(fingerprint, index);
        TargetKind::New(index)
    }
}
