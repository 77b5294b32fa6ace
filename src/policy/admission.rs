//! Admission: the samples that are accepted.

use std::fmt;

use strum::{IntoStaticStr, VariantArray};

use crate::model::{
    DefinitionVerdict, GranularitySet, Kind, Moment, SeriesId, UnixMillis, is_stale_marker,
};

/// The reason why a sample or series is refused for good. The names are label values in responses
/// and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum RefusalReason {
    /// The sample is older than every retention of its series.
    TooOld,
    /// The sample is further in the future than the configured skew.
    TooNew,
    /// The value is NaN or infinite, and the series is not a gauge: no increase can be computed
    /// from it.
    NotFinite,
    /// The series' name or tags exceed a limit.
    BadSeries,
    /// The series exists with another kind.
    KindConflict,
    /// The series exists with another unit.
    UnitConflict,
    /// The store has reached its limit of series.
    SeriesLimit,
    /// The sender has reached its limit of series.
    SenderSeriesLimit,
    /// The metric has reached its limit of series.
    MetricSeriesLimit,
    /// The project has reached its limit of series.
    ProjectSeriesLimit,
    /// The store has reached its limit of senders.
    SenderLimit,
    /// The batch number is too far behind the sender's latest.
    StaleNumber,
    /// The batch's epoch or number is too far ahead.
    FarNumber,
    /// The sample is so far behind the latest one of its series that it cannot be recognized as a
    /// duplicate.
    OutOfOrder,
    /// The native histogram contradicts itself, or has too many buckets.
    BadHistogram,
    /// The sample or its line cannot be parsed as a number.
    BadSample,
    /// The field of line protocol is a text; only numbers are stored.
    TextField,
    /// The stored reading cannot be replaced: it belongs to a counter, or shares its cell with
    /// other readings.
    NotReplaceable,
}

impl RefusalReason {
    /// All reasons.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Returns the series of a definition of this kind; a series of another kind is returned as
    /// well, unless one of both contains histograms and the other numbers.
    ///
    /// # Errors
    /// The limit or the kind that prevented the registration.
    pub fn settle(verdict: DefinitionVerdict, kind: Kind) -> Result<SeriesId, Self> {
        match verdict {
            DefinitionVerdict::KindConflict(_, known)
                if known.is_histogram() != kind.is_histogram() =>
            {
                Err(Self::KindConflict)
            }
            DefinitionVerdict::Known(id) | DefinitionVerdict::KindConflict(id, _) => Ok(id),
            DefinitionVerdict::StoreLimit => Err(Self::SeriesLimit),
            DefinitionVerdict::SenderLimit => Err(Self::SenderSeriesLimit),
            DefinitionVerdict::MetricLimit => Err(Self::MetricSeriesLimit),
            DefinitionVerdict::ProjectLimit => Err(Self::ProjectSeriesLimit),
        }
    }

    /// Returns the name that is used as a label value.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Describes the problem and the remedy, as far as they do not depend on the sample.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::TooOld => "the time is older than every retention of the series",
            Self::TooNew => "the time is more than 10 minutes ahead: check the sender's clock",
            Self::NotFinite => "send finite numbers, or send the series as a gauge",
            Self::BadSeries => "the series' name or tags break a limit",
            Self::KindConflict => {
                "the series exists with another kind: use that kind or another name"
            }
            Self::UnitConflict => {
                "the series exists with another unit: use that unit or another name"
            }
            Self::SeriesLimit => {
                "the store has its maximum number of series: raise limits.series_max"
            }
            Self::SenderSeriesLimit => {
                "the sender has a fifth of the maximum number of series: raise limits.series_max"
            }
            Self::MetricSeriesLimit => {
                "the metric has its maximum number of series: raise limits.metric_series, or use \
                 fewer values of its tags"
            }
            Self::ProjectSeriesLimit => {
                "the project has its maximum number of series: delete series, or ask the \
                 administrator to raise series_max of the project in security.projects"
            }
            Self::SenderLimit => {
                "the project has its maximum number of senders: remove senders, or raise \
                 limits.series_max"
            }
            Self::StaleNumber => {
                "the batch's seq is too far behind the sender's latest, or its epoch is older than \
                 the latest four: begin a new epoch, with the time in Unix milliseconds"
            }
            Self::FarNumber => {
                "the batch's epoch is a time in the future, or its seq is not a count: use the \
                 time in Unix milliseconds as the epoch, and count batches from 1"
            }
            Self::OutOfOrder => {
                "the sample is further behind its series' latest one than ingest.out_of_order_window"
            }
            Self::BadHistogram => "the native histogram is not valid",
            Self::BadSample => "the sample cannot be read as a number",
            Self::TextField => "the field is a text: only numbers are kept",
            Self::NotReplaceable => "the stored reading cannot be replaced alone",
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The range of times in which samples are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// The start of the oldest partition that is kept of every series.
    pub oldest: UnixMillis,
    /// The latest accepted time.
    pub newest: UnixMillis,
    /// The rule of each class of series, with the start of its oldest partition that is kept.
    classes: Vec<(String, UnixMillis)>,
}

impl Admission {
    /// Returns the range at `now`, without rules of retention.
    pub fn new(
        granularities: &GranularitySet,
        future_skew_ms: i64,
        now: impl Into<Moment>,
    ) -> Self {
        Self::by_rule([("", granularities)].into_iter(), future_skew_ms, now)
    }

    /// Returns the range at `now` for classes of series: the rule of each, and its levels. Refused
    /// samples are lost, so while the clock is doubted a sample is accepted when either time allows
    /// it.
    pub fn by_rule<'a>(
        classes: impl Iterator<Item = (&'a str, &'a GranularitySet)>,
        future_skew_ms: i64,
        now: impl Into<Moment>,
    ) -> Self {
        let now = now.into();
        let earliest = now.earliest();
        let start = |(rule, levels): (&str, &GranularitySet)| {
            let oldest = levels.iter().map(|level| level.kept_from(earliest)).min();
            (rule.to_owned(), oldest.unwrap_or(earliest).max(UnixMillis::MIN))
        };
        let classes: Vec<_> = classes.map(start).collect();
        Self {
            oldest: classes.iter().map(|(_, oldest)| *oldest).max().unwrap_or(earliest),
            newest: now.latest().plus(future_skew_ms).min(UnixMillis::MAX),
            classes,
        }
    }

    /// Checks one sample of any class. The kind of its series is only looked up when the value is
    /// not finite.
    ///
    /// # Errors
    /// The reason why the sample is refused; a class may keep a sample that is too old here.
    pub fn check(
        &self,
        at: UnixMillis,
        value: f64,
        kind: impl FnOnce() -> Option<Kind>,
    ) -> Result<(), RefusalReason> {
        self.check_since(at, value, kind, || self.oldest)
    }

    fn check_since(
        &self,
        at: UnixMillis,
        value: f64,
        kind: impl FnOnce() -> Option<Kind>,
        oldest: impl FnOnce() -> UnixMillis,
    ) -> Result<(), RefusalReason> {
        if !value.is_finite() && kind() != Some(Kind::Gauge) {
            Err(RefusalReason::NotFinite)
        } else if at < self.oldest && at < oldest() {
            Err(RefusalReason::TooOld)
        } else if at > self.newest {
            Err(RefusalReason::TooNew)
        } else {
            Ok(())
        }
    }

    /// Checks a sample that may be a stale marker, and returns the value to store: stale markers
    /// keep their bits, and all other NaNs become one NaN. The class of the series is only looked
    /// up for old samples.
    ///
    /// # Errors
    /// The reason why the sample is refused.
    pub fn keep(
        &self,
        at: UnixMillis,
        value: f64,
        kind: impl FnOnce() -> Option<Kind>,
        class: impl FnOnce() -> usize,
    ) -> Result<f64, RefusalReason> {
        let is_marker = is_stale_marker(value);
        let has_rules = self.classes.len() > 1;
        let oldest = || if has_rules { self.class(class()).1 } else { self.oldest };
        self.check_since(at, if is_marker { 0.0 } else { value }, kind, oldest)?;
        Ok(if value.is_nan() && !is_marker { f64::NAN } else { value })
    }

    /// Returns the rule of a class, empty without one, and the start of its oldest partition.
    fn class(&self, class: usize) -> (&str, UnixMillis) {
        self.classes.get(class).map_or(("", self.oldest), |(rule, oldest)| (rule, *oldest))
    }

    /// Describes why a sample of a class is refused, and which samples would be accepted.
    pub fn explain(
        &self,
        reason: RefusalReason,
        (at, value): (UnixMillis, f64),
        class: usize,
    ) -> String {
        match reason {
            RefusalReason::TooOld => {
                let (rule, oldest) = self.class(class);
                let by_rule = if rule.is_empty() { "" } else { " by rule " };
                format!("time {at} is before {oldest}, the oldest time that is kept{by_rule}{rule}")
            }
            RefusalReason::TooNew => {
                format!("time {at} is after {}: check the sender's clock", self.newest)
            }
            RefusalReason::NotFinite => {
                format!("value {value} is not a finite number; only gauges accept it")
            }
            RefusalReason::BadSeries
            | RefusalReason::KindConflict
            | RefusalReason::UnitConflict
            | RefusalReason::SeriesLimit
            | RefusalReason::SenderSeriesLimit
            | RefusalReason::MetricSeriesLimit
            | RefusalReason::ProjectSeriesLimit
            | RefusalReason::SenderLimit
            | RefusalReason::StaleNumber
            | RefusalReason::FarNumber
            | RefusalReason::OutOfOrder
            | RefusalReason::BadHistogram
            | RefusalReason::BadSample
            | RefusalReason::TextField
            | RefusalReason::NotReplaceable => reason.remedy().to_owned(),
        }
    }
}

/// The time after which rejected kinds are checked again.
const KIND_CONFLICT_MS: i64 = 300_000;

/// A note that definitions of known series were rejected because of another kind; their kinds are
/// checked again later.
#[derive(Debug, Clone, Copy, Default)]
pub struct KindConflicts {
    /// The time of the first rejected definition.
    first: Option<UnixMillis>,
}

impl KindConflicts {
    /// Notes a rejected definition.
    pub fn note(&mut self, now: UnixMillis) {
        self.first.get_or_insert(now);
    }

    /// Returns true when the kinds must be checked again, and forgets the definitions. When the
    /// clock was set back, the kinds are checked at once.
    pub fn expire(&mut self, now: UnixMillis) -> bool {
        let is_over =
            |first: UnixMillis| !(0..KIND_CONFLICT_MS).contains(&now.0.saturating_sub(first.0));
        self.first.take_if(|first| is_over(*first)).is_some()
    }
}

#[cfg(test)]
mod tests;
