//! Coverage: the times for which each granularity has all samples, and the granularities that
//! answer the parts of a range.
//!
//! The requested granularity answers where it is kept and complete. Elsewhere, finer granularities
//! fill its slots. Where the finer granularities are incomplete too, the next coarser granularity
//! continues.

use std::{borrow::Cow, iter, ops::Range};

mod classes;

use super::times::{Times, ceil, floor};
use crate::model::{Gaps, Granularity, GranularityIndex, GranularitySet, UnixMillis};
pub use classes::{ClassTimes, LevelGaps};

/// A part of a range, and the granularity that answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// Index of the granularity in the coverage.
    pub granularity: GranularityIndex,
    /// Index of the granularity in the store.
    pub stored: GranularityIndex,
    /// The part of the range: whole slots of the granularity, except at the ends of the range.
    pub range: Range<UnixMillis>,
}

/// The times for which each granularity has all samples.
#[derive(Debug)]
pub struct Coverage<'a> {
    granularities: Cow<'a, GranularitySet>,
    holdings: Vec<Holding>,
    /// The coarsest granularity that accepts samples.
    coarsest: GranularityIndex,
}

/// The times that one granularity covers.
#[derive(Debug)]
struct Holding {
    /// Index of the granularity in the store.
    stored: GranularityIndex,
    /// The start of the oldest partition that is kept.
    kept_from: UnixMillis,
    gaps: Gaps,
    /// The times for which all samples exist.
    complete: Times,
    /// These times in whole slots.
    whole: Times,
    /// The times that rules of retention leave out for some series, with the rules.
    left_out: Vec<(Range<UnixMillis>, String)>,
}

impl<'a> Coverage<'a> {
    /// Returns the coverage of granularities at a time, with the gaps of each.
    pub fn new(granularities: &'a GranularitySet, gaps: Vec<Gaps>, now: UnixMillis) -> Self {
        let all = granularities.indexed().zip(gaps);
        let holdings =
            all.map(|((stored, granularity), gaps)| Holding::new(stored, granularity, gaps, now));
        let coarsest = granularities.coarsest();
        Self { holdings: holdings.collect(), granularities: Cow::Borrowed(granularities), coarsest }
    }

    /// Adds a granularity that no longer accepts samples if it has samples in the range; `stored`
    /// is its index in the store.
    #[must_use]
    pub fn with_retired(
        mut self,
        stored: GranularityIndex,
        granularity: &Granularity,
        gaps: Gaps,
        range: &Range<UnixMillis>,
        now: UnixMillis,
    ) -> Self {
        let holding = Holding::new(stored, granularity, gaps, now);
        let asked = Times::one(range.clone());
        let has_samples = !holding.whole.within(&asked).ranges().is_empty();
        if has_samples && let Some((index, granularities)) = self.granularities.with(granularity) {
            self.granularities = Cow::Owned(granularities);
            self.holdings.insert(index.0, holding);
            if index <= self.coarsest {
                self.coarsest = self.coarsest.coarser();
            }
        }
        self
    }

    /// Returns all granularities, finest first.
    pub fn granularities(&self) -> &GranularitySet {
        &self.granularities
    }

    /// Returns the index of a granularity in the store.
    pub fn stored(&self, granularity: GranularityIndex) -> GranularityIndex {
        self.holding(granularity).stored
    }

    fn holding(&self, granularity: GranularityIndex) -> &Holding {
        &self.holdings[granularity.0]
    }

    fn interval(&self, granularity: GranularityIndex, range: Range<UnixMillis>) -> Interval {
        Interval { granularity, stored: self.stored(granularity), range }
    }

    /// Returns true when a granularity still keeps samples of a time.
    pub fn keeps(&self, granularity: GranularityIndex, at: UnixMillis) -> bool {
        at >= self.holding(granularity).kept_from
    }

    /// Returns true when a granularity has all samples of the slots that overlap a range.
    pub fn is_whole(&self, granularity: GranularityIndex, range: &Range<UnixMillis>) -> bool {
        let width = self.width(granularity);
        let slots = floor(range.start, width)..ceil(range.end, width);
        range.is_empty() || self.holding(granularity).whole.covers(&slots)
    }

    /// Returns true when all samples of a range exist in slots of a granularity, or in slots of
    /// finer granularities that fill them.
    pub fn makes_whole(&self, granularity: GranularityIndex, range: &Range<UnixMillis>) -> bool {
        let intervals = self.intervals(granularity, range.clone());
        let answered: i64 =
            intervals.iter().map(|interval| interval.range.end.since(interval.range.start)).sum();
        answered == range.end.since(range.start)
            && intervals.iter().all(|interval| {
                interval.granularity <= granularity
                    && self.is_whole(interval.granularity, &interval.range)
            })
    }

    /// Returns the finest granularity that has all samples of a range.
    pub fn finest_whole(&self, range: &Range<UnixMillis>) -> Option<GranularityIndex> {
        let mut all = self.granularities.indexed().map(|(index, _)| index);
        all.find(|index| self.is_whole(*index, range))
    }

    fn width(&self, granularity: GranularityIndex) -> i64 {
        self.granularities[granularity].width_ms
    }

    /// Divides a range into intervals, oldest first. The granularity `asked` answers where it is
    /// complete. Finer granularities answer where only they are complete. Coarser granularities
    /// answer the rest, the next coarser one first.
    pub fn intervals(&self, asked: GranularityIndex, range: Range<UnixMillis>) -> Vec<Interval> {
        let all = Times::one(range);
        let mut rest = all.clone();
        let mut taken: Vec<(GranularityIndex, Times)> = Vec::new();
        for index in asked.coarser().all_finer() {
            let serves = rest.within(&self.holding(index).whole);
            rest = rest.without(&serves);
            taken.push((index, serves));
        }
        let coarser =
            self.granularities.indexed().map(|(index, _)| index).filter(|index| *index > asked);
        for index in coarser {
            // A coarser slot must not contain samples that finer slots show too.
            let serves = rest.within(&self.holding(index).whole);
            let serves = serves.widened(self.width(index)).within(&all);
            for (_, finer) in &mut taken {
                *finer = finer.without(&serves);
            }
            rest = rest.without(&serves);
            taken.push((index, serves));
        }
        taken.push(self.incomplete(&all, &rest));
        let mut intervals: Vec<_> = taken
            .iter()
            .flat_map(|(index, times)| times.ranges().iter().map(|part| (*index, part.clone())))
            .map(|(index, part)| self.interval(index, part))
            .collect();
        intervals.sort_by_key(|interval| interval.range.start);
        intervals.dedup_by(|next, last| {
            let joins = last.granularity == next.granularity && last.range.end == next.range.start;
            if joins {
                last.range.end = next.range.end;
            }
            joins
        });
        intervals
    }

    /// Returns the coarsest granularity, and the times for which it answers although no granularity
    /// has all samples: it keeps these times, and has late samples there.
    fn incomplete(&self, asked: &Times, rest: &Times) -> (GranularityIndex, Times) {
        let coarsest = self.coarsest;
        let width = self.width(coarsest);
        let ends = |part: &Range<UnixMillis>| {
            let is_end = |at: UnixMillis| !asked.covers(&(at.minus(1)..at.plus(1)));
            let start = if is_end(part.start) { floor(part.start, width) } else { part.start };
            start..if is_end(part.end) { ceil(part.end, width) } else { part.end }
        };
        let slots = Times::new(rest.ranges().iter().map(ends)).shrunk(width);
        let kept = Times::one(self.holding(coarsest).kept_from..UnixMillis::LATEST);
        (coarsest, slots.within(&kept).within(asked))
    }

    /// Replaces the end of the last interval by intervals of finer granularities, as far as these
    /// are complete: samples in the last slot after the end of the range must not count.
    pub fn with_fine_end(&self, mut intervals: Vec<Interval>) -> Vec<Interval> {
        let Some(Interval { granularity: coarsest, range, .. }) = intervals.pop() else {
            return intervals;
        };
        let Range { mut start, end } = range;
        for index in coarsest.coarser().all_finer() {
            let border = self.granularities[index].slot_start(end).max(start);
            let continues = index.finer().is_some_and(|finer| self.is_whole(finer, &(border..end)));
            let ends_here = !continues;
            let upto = if ends_here { end } else { border };
            if start < upto {
                intervals.push(self.interval(index, start..upto));
                start = upto;
            }
            if ends_here {
                break;
            }
        }
        intervals
    }

    /// Returns the number of slots in all intervals.
    pub fn slots_of(&self, intervals: &[Interval]) -> i64 {
        let slots = |interval: &Interval| {
            let width = self.width(interval.granularity);
            ceil(interval.range.end, width).since(floor(interval.range.start, width)) / width
        };
        intervals.iter().map(slots).sum()
    }

    /// Returns the notes for the reader of these intervals.
    pub fn notes(
        &self,
        granularity: GranularityIndex,
        intervals: &[Interval],
        range: &Range<UnixMillis>,
    ) -> Vec<String> {
        let name = |index: GranularityIndex| &self.granularities[index].name;
        let mut notes = Vec::new();
        for interval in intervals {
            if interval.granularity > granularity {
                let (why, shown) =
                    (self.why_not(granularity, &interval.range), name(interval.granularity));
                notes.push(format!("{why}: {shown} is shown there"));
            }
            if !self.is_whole(interval.granularity, &interval.range) {
                let why = self.why_not(interval.granularity, &interval.range);
                notes.push(format!("{why}: samples may be missing there"));
            }
        }
        let retired =
            intervals.iter().rfind(|interval| self.stopped(interval.granularity).is_some());
        if let Some((interval, until)) =
            retired.and_then(|interval| Some((interval, self.stopped(interval.granularity)?)))
        {
            notes.push(format!(
                "{} has accepted no samples since {until}: later samples are missing from its part",
                name(interval.granularity)
            ));
        }
        let ends =
            iter::once(range.start).chain(intervals.iter().map(|interval| interval.range.end));
        let starts =
            intervals.iter().map(|interval| interval.range.start).chain(iter::once(range.end));
        for gap in ends.zip(starts).map(|(from, until)| from..until).filter(|gap| !gap.is_empty()) {
            let mut all = self.granularities.indexed().map(|(index, _)| index);
            notes.push(match all.find(|index| self.keeps(*index, gap.start)) {
                Some(finest) => format!("{}: nothing is shown there", self.why_not(finest, &gap)),
                None => format!("nothing is kept before {}", gap.end),
            });
        }
        notes
    }

    /// Returns the time of the last samples of a granularity that no longer accepts any.
    fn stopped(&self, granularity: GranularityIndex) -> Option<UnixMillis> {
        let until = self.holding(granularity).gaps.complete_until;
        (until != UnixMillis::MAX).then_some(until)
    }

    /// Returns the rule of retention that leaves out a granularity in a part of a range; damaged
    /// documents come first.
    fn rule_of(&self, granularity: GranularityIndex, part: &Range<UnixMillis>) -> Option<&str> {
        let holding = self.holding(granularity);
        let overlaps = |hole: &Range<UnixMillis>| hole.start < part.end && part.start < hole.end;
        let is_damaged = holding.gaps.holes.iter().any(overlaps);
        let found = holding.left_out.iter().find(|(times, _)| overlaps(times));
        found.filter(|_| !is_damaged).map(|(_, rule)| &**rule)
    }

    /// Describes why a granularity does not answer a part of a range.
    pub fn why_not(&self, granularity: GranularityIndex, part: &Range<UnixMillis>) -> String {
        let name = &self.granularities[granularity].name;
        let gaps = &self.holding(granularity).gaps;
        if !self.keeps(granularity, part.start) {
            match self.rule_of(granularity, part) {
                Some(rule) => format!("{name} is not kept before {} by rule {rule}", part.end),
                None => format!("{name} is no longer kept before {}", part.end),
            }
        } else if part.start < gaps.complete_since {
            format!("{name} does not have all samples before {}", part.end)
        } else if let Some(until) = self.stopped(granularity).filter(|until| part.end > *until) {
            format!("{name} has accepted no samples since {until}")
        } else if let Some(rule) = self.rule_of(granularity, part) {
            format!("{name} is not kept from {} to {} by rule {rule}", part.start, part.end)
        } else {
            format!(
                "documents of {name} are damaged or missing from {} to {}",
                part.start, part.end
            )
        }
    }
}

impl Holding {
    fn new(
        stored: GranularityIndex,
        granularity: &Granularity,
        gaps: Gaps,
        now: UnixMillis,
    ) -> Self {
        let kept_from = granularity.kept_from(now);
        let until = match gaps.complete_until {
            UnixMillis::MAX => UnixMillis::LATEST,
            until => until,
        };
        let kept = Times::one(kept_from.max(gaps.complete_since)..until);
        let complete = kept.without(&Times::new(gaps.holes.iter().cloned()));
        let whole = complete.shrunk(granularity.width_ms);
        Self { stored, kept_from, complete, whole, gaps, left_out: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
