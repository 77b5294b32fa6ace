//! The coverage of series that rules of retention keep at other levels.
//!
//! A query of series of several classes uses a granularity where every class has all samples, so
//! its slots have one width. A class that keeps nothing of a time restricts nothing there. Must
//! never know: the selectors of rules.

use std::ops::Range;

use super::{Coverage, Holding, Times};
use crate::model::{Gaps, Granularity, GranularityIndex, UnixMillis};

/// A level of a class with its gaps.
pub type LevelGaps = (Granularity, Gaps);

/// The class of some series in a range of time.
#[derive(Debug, Clone)]
pub struct ClassTimes {
    /// The times of the samples.
    pub times: Range<UnixMillis>,
    /// The rule, and the levels of the class; `None` for the granularities of the settings.
    pub rule: Option<(String, Vec<LevelGaps>)>,
}

/// The times of one granularity for series with the same classes.
struct Held {
    complete: Times,
    /// The start of the kept times; `LATEST` when nothing is kept.
    kept_from: UnixMillis,
    /// The times that rules leave out, with the rules.
    left_out: Vec<(Range<UnixMillis>, String)>,
}

impl Coverage<'_> {
    /// Restricts the coverage to the times for which all series have all samples. Each entry is the
    /// classes of some series over time, ascending.
    #[must_use]
    pub fn within_classes(mut self, all: &[Vec<ClassTimes>], now: UnixMillis) -> Self {
        let indexes: Vec<_> = self.granularities.indexed().map(|(index, _)| index).collect();
        let held: Vec<Vec<Held>> = all
            .iter()
            .map(|spans| indexes.iter().map(|index| self.held(*index, spans, now)).collect())
            .collect();
        for index in indexes {
            let width = self.granularities[index].width_ms;
            let holding = &mut self.holdings[index.0];
            let (mut complete, mut kept_from) = (None, UnixMillis::EARLIEST);
            for levels in &held {
                let level = &levels[index.0];
                // Before this time, the series have nothing at any level.
                let any = levels.iter().map(|level| level.kept_from).min();
                let nothing = Times::one(UnixMillis::EARLIEST..any.unwrap_or(UnixMillis::LATEST));
                let of_series = nothing.with(&level.complete);
                complete = Some(match complete {
                    None => of_series,
                    Some(others) => of_series.within(&others),
                });
                kept_from = kept_from.max(level.kept_from);
                holding.left_out.extend_from_slice(&level.left_out);
            }
            // Nothing is complete at times for which no series keeps samples.
            let first = held.iter().flatten().map(|level| level.kept_from).min();
            let kept = Times::one(first.unwrap_or(UnixMillis::LATEST)..UnixMillis::LATEST);
            holding.complete = complete.unwrap_or_default().within(&kept);
            holding.whole = holding.complete.shrunk(width);
            holding.kept_from = kept_from;
        }
        self
    }

    /// Returns the times of a granularity for series with these classes.
    fn held(&self, index: GranularityIndex, spans: &[ClassTimes], now: UnixMillis) -> Held {
        let holding = self.holding(index);
        let width = self.granularities[index].width_ms;
        let mut held = Held {
            complete: Times::default(),
            kept_from: UnixMillis::LATEST,
            left_out: Vec::new(),
        };
        for ClassTimes { times, rule } in spans {
            let within = Times::one(times.clone());
            let (complete, kept_from) = match rule {
                None => (holding.complete.within(&within), holding.kept_from),
                Some((name, levels)) => {
                    let level = levels.iter().find(|(level, _)| level.width_ms == width);
                    let Some((level, gaps)) = level else {
                        held.left_out.push((times.clone(), name.clone()));
                        continue;
                    };
                    let of_level = Holding::new(holding.stored, level, gaps.clone(), now);
                    held.left_out.push((times.start..of_level.kept_from, name.clone()));
                    (of_level.complete.within(&within), of_level.kept_from)
                }
            };
            held.complete = held.complete.with(&complete);
            if kept_from < times.end {
                held.kept_from = held.kept_from.min(kept_from.max(times.start));
            }
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::GranularitySet, test_times::NOW};

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;

    fn debug(from: UnixMillis) -> Vec<ClassTimes> {
        let all = GranularitySet::default();
        let levels = all.iter().skip(1).map(|level| (level.of_class("debug"), Gaps::NONE));
        let rule = Some(("debug".to_owned(), levels.collect()));
        let before = ClassTimes { times: UnixMillis::EARLIEST..from, rule: None };
        let since = ClassTimes { times: from..UnixMillis::LATEST, rule };
        [before, since].into_iter().filter(|span| !span.times.is_empty()).collect()
    }

    fn settings() -> Vec<ClassTimes> {
        vec![ClassTimes { times: UnixMillis::EARLIEST..UnixMillis::LATEST, rule: None }]
    }

    /// Returns the granularities of the intervals of the last 12 hours, by hours before now.
    fn intervals(classes: &[Vec<ClassTimes>]) -> (Vec<(String, i64)>, Vec<String>) {
        let set = GranularitySet::default();
        let now = UnixMillis(NOW.0 / DAY * DAY);
        let gaps = vec![Gaps::NONE; set.count()];
        let coverage = Coverage::new(&set, gaps, now).within_classes(classes, now);
        let range = now.minus(12 * HOUR)..now;
        let intervals = coverage.intervals(GranularityIndex::FINEST, range.clone());
        let notes = coverage.notes(GranularityIndex::FINEST, &intervals, &range);
        let show = |interval: &super::super::Interval| {
            let name = coverage.granularities()[interval.granularity].name.clone();
            (name, now.since(interval.range.start) / HOUR)
        };
        (intervals.iter().map(show).collect(), notes)
    }

    #[test]
    fn a_class_without_a_level_is_answered_by_its_next_coarser_one_with_a_note() {
        let of = |name: &str, hours: i64| (name.to_owned(), hours);
        let (found, notes) = intervals(&[debug(UnixMillis::EARLIEST)]);
        assert_eq!(found, [of("5m", 12)]);
        assert!(notes[0].contains("by rule debug: 5m is shown there"), "{notes:?}");
        // The samples from before the rule are still in minutes; so are those of other series.
        let now = UnixMillis(NOW.0 / DAY * DAY);
        let changed = debug(now.minus(6 * HOUR));
        assert_eq!(intervals(std::slice::from_ref(&changed)).0, [of("1m", 12), of("5m", 6)]);
        assert_eq!(intervals(&[changed, settings()]).0, [of("1m", 12), of("5m", 6)]);
        assert_eq!(intervals(&[settings()]).0, [of("1m", 12)]);
    }

    #[test]
    fn a_class_restricts_nothing_before_everything_that_it_keeps() {
        let set = GranularitySet::default();
        let now = NOW;
        let gaps = vec![Gaps::NONE; set.count()];
        let mut short = set.as_slice()[0].of_class("short");
        short = short.with_retention(short.partition);
        let rule = Some(("short".to_owned(), vec![(short, Gaps::NONE)]));
        let short = vec![ClassTimes { times: UnixMillis::EARLIEST..UnixMillis::LATEST, rule }];
        let coverage = |classes: &[Vec<ClassTimes>]| {
            Coverage::new(&set, gaps.clone(), now).within_classes(classes, now)
        };
        let (both, alone) = (coverage(&[settings(), short.clone()]), coverage(&[short]));
        let day = now.minus(DAY)..now.minus(23 * HOUR);
        let hour = now.minus(HOUR)..now;
        let minute = GranularityIndex::FINEST;
        assert!(both.is_whole(minute, &day) && both.is_whole(minute, &hour));
        assert!(!both.is_whole(minute.coarser(), &hour), "the rule keeps no 5m");
        assert!(!alone.is_whole(minute, &day) && alone.is_whole(minute, &hour));
    }
}
