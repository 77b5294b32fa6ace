//! The samples of an evaluation as a numbered batch, so that a restart never writes a sample twice.
//!
//! Must never know: the evaluation of rules.

use std::sync::Arc;

use crate::{
    actors::{WriteFault, WriterHandle},
    alerts::GroupRun,
    model::{
        AcceptedBatch, BatchNumber, BatchVerdict, Deduplication, DefinitionVerdict, Kind,
        METRIC_TAG, STALE_MARKER, SeriesId, SeriesInfo, SeriesKey, SeriesLimits, UnixMillis,
        WINDOW_BATCHES, with_noun,
    },
    query::Labels,
    store::Store,
    telemetry::{Health, Metrics, Shortfall},
};

/// The number of bits of the seconds within an epoch; an epoch lasts 12 days.
const EPOCH_BITS: u32 = 20;
/// The number of bits of a stage of an evaluation. A group has at most 1,000 rules, and so at most
/// as many stages.
const STAGE_BITS: u32 = 10;
/// The lowest bit, in an epoch, of the number of times that the clock was set back: epochs are
/// ordered by that number first, then by time.
const SET_BACK_SHIFT: u32 = 32;
/// The limit of stages, exclusive.
pub(super) const STAGES_MAX: u64 = 1 << STAGE_BITS;

/// The writer of rules' results. Clones are cheap.
#[derive(Debug, Clone)]
pub(super) struct Recording {
    pub(super) store: Store,
    pub(super) writer: WriterHandle,
    pub(super) limits: SeriesLimits,
    pub(super) health: Health,
    pub(super) metrics: Metrics,
}

/// Samples that could not be written.
#[derive(Debug)]
pub(super) struct LostSamples {
    /// The number of samples.
    pub(super) count: usize,
    /// The reason; when there are several reasons, the last reason.
    pub(super) cause: String,
}

/// The numbering of a stage of an evaluation, which is the same in every repetition.
#[derive(Debug)]
pub(super) struct Numbering<'a> {
    pub(super) sender: Arc<str>,
    pub(super) at: UnixMillis,
    pub(super) stage: usize,
    /// The number of times that the clock was set back: without it, the store would refuse the
    /// earlier numbers.
    pub(super) set_back: &'a mut u32,
}

impl Numbering<'_> {
    fn number(&self) -> BatchNumber {
        let seconds = self.at.0.max(0).unsigned_abs() / 1000;
        let in_epoch = seconds & ((1 << EPOCH_BITS) - 1);
        let seq = (in_epoch << STAGE_BITS) + self.stage as u64 + 1;
        let epoch = (i64::from(*self.set_back) << SET_BACK_SHIFT) + (seconds >> EPOCH_BITS) as i64;
        BatchNumber { sender: self.sender.clone(), epoch, seq }
    }

    /// Returns the number of the stage. When the store would refuse that number as too old, first
    /// counts that the clock was set back once more.
    fn number_after(&mut self, latest: Option<(i64, u64)>) -> BatchNumber {
        let number = self.number();
        let is_behind = latest.is_some_and(|(epoch, seq)| {
            number.epoch < epoch
                || (number.epoch == epoch && number.seq.saturating_add(WINDOW_BATCHES) <= seq)
        });
        if !is_behind {
            return number;
        }
        let before = latest.map_or(0, |(epoch, _)| epoch >> SET_BACK_SHIFT);
        *self.set_back = u32::try_from(before.saturating_add(1)).unwrap_or(u32::MAX >> 1);
        self.number()
    }
}

impl Recording {
    /// Writes the results of a stage; returns the lost samples, which are counted and keep the
    /// daemon degraded until the sender's next samples are written.
    pub(super) async fn write(
        &self,
        run: &GroupRun,
        at: UnixMillis,
        mut numbering: Numbering<'_>,
    ) -> Option<LostSamples> {
        let sender = numbering.sender.clone();
        let number = numbering.number_after(self.store.sender_latest(&sender));
        let lost = self.append(run, at, number).await;
        self.metrics.rule_samples_lost.inc_by(lost.as_ref().map_or(0, |lost| lost.count as u64));
        let reason = lost
            .as_ref()
            .map(|lost| format!("lost {}: {}", with_noun(lost.count, "sample"), lost.cause));
        self.health.set_shortfall(Shortfall::OwnSamples, &sender, reason);
        lost
    }

    async fn append(
        &self,
        run: &GroupRun,
        at: UnixMillis,
        number: BatchNumber,
    ) -> Option<LostSamples> {
        let mut lost = LostSamples { count: 0, cause: String::new() };
        let mut lose = |count: usize, cause: String| {
            lost.count += count;
            lost.cause = cause;
        };
        let mut batch = AcceptedBatch { times: vec![at.0], ..AcceptedBatch::default() };
        let sender = number.sender.clone();
        batch.deduplication = Deduplication::ByNumber(number);
        match self.resolve(run, &sender).await {
            Err(cause) => lose(run.samples.len(), cause.to_string()),
            Ok(resolved) => {
                for (found, (_, value)) in resolved.into_iter().zip(&run.samples) {
                    match found {
                        Ok(id) => {
                            batch.series.push(id);
                            // A NaN must not be read as a stale marker: ends of series are written
                            // below.
                            batch.values.push(if value.is_nan() { f64::NAN } else { *value });
                        }
                        Err(cause) => lose(1, cause),
                    }
                }
            }
        }
        for labels in &run.ended {
            if let Some(id) = self.key(labels).ok().and_then(|key| self.find(&key)?.ok()) {
                batch.series.push(id);
                batch.values.push(STALE_MARKER);
            }
        }
        let count = batch.values.len();
        if count > 0 {
            match self.writer.append(vec![batch]).await.as_deref() {
                Ok([BatchVerdict::Accepted(_) | BatchVerdict::Duplicate, ..]) => {}
                Ok(verdict) => lose(count, format!("the batch was not accepted: {verdict:?}")),
                Err(cause) => lose(count, cause.to_string()),
            }
        }
        (lost.count > 0).then_some(lost)
    }

    /// Returns the series of each sample; registers new series first.
    async fn resolve(
        &self,
        run: &GroupRun,
        sender: &Arc<str>,
    ) -> Result<Vec<Result<SeriesId, String>>, WriteFault> {
        let keys: Vec<_> = run.samples.iter().map(|(labels, _)| self.key(labels)).collect();
        let mut found: Vec<Option<Result<SeriesId, String>>> = keys
            .iter()
            .map(|key| match key {
                Ok(key) => self.find(key),
                Err(cause) => Some(Err(cause.clone())),
            })
            .collect();
        let unknown = keys.into_iter().zip(&found).filter(|(_, found)| found.is_none());
        let info =
            |key| SeriesInfo { key, kind: Kind::Gauge, unit: "".into(), sender: sender.clone() };
        let unknown: Vec<_> = unknown.filter_map(|(key, _)| key.ok()).map(info).collect();
        if !unknown.is_empty() {
            let verdicts = self.writer.define(unknown).await?;
            let missing = found.iter_mut().filter(|found| found.is_none());
            for (entry, verdict) in missing.zip(verdicts) {
                *entry = Some(match verdict {
                    DefinitionVerdict::Known(id) => Ok(id),
                    DefinitionVerdict::KindConflict(_, kind) => Err(kind_conflict(kind)),
                    DefinitionVerdict::MetricLimit => {
                        Err("the metric is at its limit of series (limits.metric_series)"
                            .to_owned())
                    }
                    DefinitionVerdict::ProjectLimit => {
                        Err("the project is at its limit of series \
                                                            (series_max in security.projects)"
                            .to_owned())
                    }
                    DefinitionVerdict::StoreLimit | DefinitionVerdict::SenderLimit => {
                        Err("the store is at its limit of series (limits.series_max)".to_owned())
                    }
                });
            }
        }
        let unregistered = || Err("the series was not registered".to_owned());
        Ok(found.into_iter().map(|found| found.unwrap_or_else(unregistered)).collect())
    }

    fn key(&self, labels: &Labels) -> Result<SeriesKey, String> {
        // A template may have produced line breaks in a label.
        let plain = |value: &str| value.replace(char::is_control, " ");
        let tags = labels.iter().filter(|(name, _)| *name != METRIC_TAG);
        let tags: Vec<_> = tags.map(|(name, value)| (name, plain(value))).collect();
        let tags = tags.iter().map(|(name, value)| (*name, value.as_str()));
        SeriesKey::new(labels.metric(), tags, &self.limits).map_err(|cause| cause.to_string())
    }

    fn find(&self, key: &SeriesKey) -> Option<Result<SeriesId, String>> {
        let dictionary = self.store.dictionary();
        let id = dictionary.find(key)?;
        let kind = dictionary.kind(id)?;
        Some(if kind == Kind::Gauge { Ok(id) } else { Err(kind_conflict(kind)) })
    }
}

fn kind_conflict(kind: Kind) -> String {
    format!("a series of that name is a {kind}, but rules record gauges: use another name")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{SenderWindow, SequenceVerdict};

    #[test]
    fn each_stage_of_each_evaluation_has_a_number_that_is_new_once() {
        let mut window = SenderWindow::default();
        let start = 1_763_683_200;
        for second in (start..start + 3_000_000).step_by(9_000) {
            for stage in 0..3 {
                let (sender, at) = ("rules".into(), UnixMillis(second * 1000));
                let numbering = Numbering { sender, at, stage, set_back: &mut 0 }.number();
                assert_eq!(
                    window.accept(numbering.epoch, numbering.seq),
                    SequenceVerdict::New,
                    "{second}"
                );
                assert_eq!(
                    window.accept(numbering.epoch, numbering.seq),
                    SequenceVerdict::Duplicate
                );
            }
        }
    }

    proptest! {
        /// Regression: after a clock that was an hour ahead was set back, each number was refused
        /// until the clock caught up.
        #[test]
        fn numbers_are_new_after_every_clock_change_even_if_the_count_of_changes_is_lost(
            steps in prop::collection::vec((-5_000_000_i64..5_000_000, any::<bool>()), 1..50)
        ) {
            let (mut window, mut set_back) = (SenderWindow::default(), 0);
            let mut second = 1_763_683_200;
            for (step, is_forgotten) in steps {
                // No two evaluations have the same time.
                second = i64::max(1, second + step + i64::from(step == 0));
                set_back = if is_forgotten { 0 } else { set_back };
                for stage in 0..3 {
                    let (sender, at) = ("rules".into(), UnixMillis(second * 1000));
                    let mut numbering = Numbering { sender, at, stage, set_back: &mut set_back };
                    let number = numbering.number_after(window.epochs().next_back());
                    let verdict = window.accept(number.epoch, number.seq);
                    let is_known = step.abs() < 2 && verdict == SequenceVerdict::Duplicate;
                    prop_assert!(verdict == SequenceVerdict::New || is_known, "{:?}", verdict);
                }
            }
        }
    }
}
