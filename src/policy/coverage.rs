//! Coverage: the times for which each granularity is complete, and the granularities that answer a
//! range.
//!
//! A granularity answers where it is kept and complete. Elsewhere finer granularities fill its slots,
//! and where these are gone as well, the next coarser one continues.

use std::{borrow::Cow, iter, ops::Range};

use super::times::{Times, ceil, floor};
use crate::model::{Gaps, Granularity, GranularityIndex, GranularitySet, UnixMillis};

/// A part of a range, and the granularity that answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The granularity, among those of the coverage.
    pub granularity: GranularityIndex,
    /// The granularity's index in the store.
    pub stored: GranularityIndex,
    /// The part of the range: whole slots of this granularity, except at the ends of the range.
    pub range: Range<UnixMillis>,
}

/// The complete times of all granularities.
#[derive(Debug)]
pub struct Coverage<'a> {
    granularities: Cow<'a, GranularitySet>,
    holdings: Vec<Holding>,
    /// The coarsest that takes samples.
    coarsest: GranularityIndex,
}

/// The complete times of one granularity.
#[derive(Debug)]
struct Holding {
    /// The granularity's index in the store.
    stored: GranularityIndex,
    /// The start of the oldest partition that retention keeps.
    kept_from: UnixMillis,
    gaps: Gaps,
    /// The times with all samples, in whole slots.
    whole: Times,
}

impl<'a> Coverage<'a> {
    /// The coverage of granularities at a time, given the gaps of each.
    pub fn new(granularities: &'a GranularitySet, gaps: Vec<Gaps>, now: UnixMillis) -> Self {
        let all = granularities.indexed().zip(gaps);
        let holdings = all.map(|((stored, own), gaps)| Holding::new(stored, own, gaps, now));
        let coarsest = granularities.coarsest();
        Self { holdings: holdings.collect(), granularities: Cow::Borrowed(granularities), coarsest }
    }

    /// Adds a granularity that is no longer in the settings, with the index `stored` in the store,
    /// if it has documents of a range.
    #[must_use]
    pub fn with_retired(
        mut self,
        stored: GranularityIndex,
        own: &Granularity,
        gaps: Gaps,
        range: &Range<UnixMillis>,
        now: UnixMillis,
    ) -> Self {
        let holding = Holding::new(stored, own, gaps, now);
        let asked = Times::one(range.clone());
        let holds = !holding.whole.within(&asked).stretches().is_empty();
        if holds && let Some((index, granularities)) = self.granularities.with(own) {
            self.granularities = Cow::Owned(granularities);
            self.holdings.insert(index.0, holding);
            if index <= self.coarsest {
                self.coarsest = self.coarsest.coarser();
            }
        }
        self
    }

    /// The granularities.
    pub fn granularities(&self) -> &GranularitySet {
        &self.granularities
    }

    /// Returns the index in the store of a granularity of the coverage.
    pub fn stored(&self, granularity: GranularityIndex) -> GranularityIndex {
        self.holding(granularity).stored
    }

    fn holding(&self, granularity: GranularityIndex) -> &Holding {
        &self.holdings[granularity.0]
    }

    fn segment(&self, granularity: GranularityIndex, range: Range<UnixMillis>) -> Segment {
        Segment { granularity, stored: self.stored(granularity), range }
    }

    /// Returns whether retention still keeps a time in a granularity.
    pub fn keeps(&self, granularity: GranularityIndex, at: UnixMillis) -> bool {
        at >= self.holding(granularity).kept_from
    }

    /// Returns whether a granularity has all samples of the slots that overlap a range.
    pub fn is_whole(&self, granularity: GranularityIndex, range: &Range<UnixMillis>) -> bool {
        let width = self.width(granularity);
        let slots = floor(range.start, width)..ceil(range.end, width);
        range.is_empty() || self.holding(granularity).whole.covers(&slots)
    }

    /// Returns whether a granularity's slots are complete, from its documents or from finer ones.
    pub fn makes_whole(&self, granularity: GranularityIndex, range: &Range<UnixMillis>) -> bool {
        let segments = self.segments(granularity, range.clone());
        let answered: i64 = segments.iter().map(|own| own.range.end.since(own.range.start)).sum();
        answered == range.end.since(range.start)
            && segments.iter().all(|own| {
                own.granularity <= granularity && self.is_whole(own.granularity, &own.range)
            })
    }

    /// The granularity that holds all samples of a range and is as fine as can be.
    pub fn finest_whole(&self, range: &Range<UnixMillis>) -> Option<GranularityIndex> {
        let mut all = self.granularities.indexed().map(|(index, _)| index);
        all.find(|own| self.is_whole(*own, range))
    }

    fn width(&self, granularity: GranularityIndex) -> i64 {
        self.granularities[granularity].width_ms
    }

    /// Cuts a range into parts, oldest first. `asked` answers where it is complete, then finer
    /// granularities, then the coarser ones, the next one first.
    pub fn segments(&self, asked: GranularityIndex, range: Range<UnixMillis>) -> Vec<Segment> {
        let all = Times::one(range);
        let mut rest = all.clone();
        let mut taken: Vec<(GranularityIndex, Times)> = Vec::new();
        for own in asked.coarser().all_finer() {
            let serves = rest.within(&self.holding(own).whole);
            rest = rest.without(&serves);
            taken.push((own, serves));
        }
        let coarser = self.granularities.indexed().map(|(own, _)| own).filter(|own| *own > asked);
        for own in coarser {
            // A coarser slot must not hold samples that finer slots show too.
            let serves = rest.within(&self.holding(own).whole);
            let serves = serves.widened(self.width(own)).within(&all);
            for (_, finer) in &mut taken {
                *finer = finer.without(&serves);
            }
            rest = rest.without(&serves);
            taken.push((own, serves));
        }
        taken.push(self.incomplete(&all, &rest));
        let mut segments: Vec<_> = taken
            .iter()
            .flat_map(|(own, times)| times.stretches().iter().map(|part| (*own, part.clone())))
            .map(|(own, part)| self.segment(own, part))
            .collect();
        segments.sort_by_key(|own| own.range.start);
        segments.dedup_by(|next, last| {
            let joins = last.granularity == next.granularity && last.range.end == next.range.start;
            if joins {
                last.range.end = next.range.end;
            }
            joins
        });
        segments
    }

    /// Returns the times that no granularity has completely, as far as the coarsest one is kept:
    /// late samples are there.
    fn incomplete(&self, asked: &Times, rest: &Times) -> (GranularityIndex, Times) {
        let coarsest = self.coarsest;
        let width = self.width(coarsest);
        let ends = |own: &Range<UnixMillis>| {
            let is_end = |at: UnixMillis| !asked.covers(&(at.minus(1)..at.plus(1)));
            let start = if is_end(own.start) { floor(own.start, width) } else { own.start };
            start..if is_end(own.end) { ceil(own.end, width) } else { own.end }
        };
        let slots = Times::new(rest.stretches().iter().map(ends)).shrunk(width);
        let kept = Times::one(self.holding(coarsest).kept_from..UnixMillis::LATEST);
        (coarsest, slots.within(&kept).within(asked))
    }

    /// Lets finer granularities answer in the slot in which the last segment ends, as far as they
    /// are complete, because the rest of that slot must not count.
    pub fn with_fine_end(&self, mut segments: Vec<Segment>) -> Vec<Segment> {
        let Some(Segment { granularity: coarsest, range, .. }) = segments.pop() else {
            return segments;
        };
        let Range { mut start, end } = range;
        for own in coarsest.coarser().all_finer() {
            let border = self.granularities[own].slot_start(end).max(start);
            let goes_on = own.finer().is_some_and(|finer| self.is_whole(finer, &(border..end)));
            let ends_here = !goes_on;
            let upto = if ends_here { end } else { border };
            if start < upto {
                segments.push(self.segment(own, start..upto));
                start = upto;
            }
            if ends_here {
                break;
            }
        }
        segments
    }

    /// The number of slots of all segments.
    pub fn slots_of(&self, segments: &[Segment]) -> i64 {
        let slots = |own: &Segment| {
            let width = self.width(own.granularity);
            ceil(own.range.end, width).since(floor(own.range.start, width)) / width
        };
        segments.iter().map(slots).sum()
    }

    /// Returns notes for the reader of these segments: incomplete, coarser and retired
    /// granularities.
    pub fn notes(
        &self,
        granularity: GranularityIndex,
        segments: &[Segment],
        range: &Range<UnixMillis>,
    ) -> Vec<String> {
        let name = |own: GranularityIndex| &self.granularities[own].name;
        let mut notes = Vec::new();
        for own in segments {
            if own.granularity > granularity {
                let (why, shown) = (self.why_not(granularity, &own.range), name(own.granularity));
                notes.push(format!("{why}: {shown} is shown there"));
            }
            if !self.is_whole(own.granularity, &own.range) {
                let why = self.why_not(own.granularity, &own.range);
                notes.push(format!("{why}: samples may be missing there"));
            }
        }
        let retired = segments.iter().rfind(|own| self.stopped(own.granularity).is_some());
        if let Some((own, until)) =
            retired.and_then(|own| Some((own, self.stopped(own.granularity)?)))
        {
            notes.push(format!(
                "{} takes no samples since {until}: what came later is not in its part",
                name(own.granularity)
            ));
        }
        let ends = iter::once(range.start).chain(segments.iter().map(|own| own.range.end));
        let starts = segments.iter().map(|own| own.range.start).chain(iter::once(range.end));
        for gap in ends.zip(starts).map(|(from, until)| from..until).filter(|gap| !gap.is_empty()) {
            let mut all = self.granularities.indexed().map(|(index, _)| index);
            notes.push(match all.find(|index| self.keeps(*index, gap.start)) {
                Some(finest) => format!("{}: nothing is shown there", self.why_not(finest, &gap)),
                None => format!("nothing is kept before {}", gap.end),
            });
        }
        notes
    }

    /// The time at which a retired granularity got its last samples; `None` for granularities in
    /// the settings.
    fn stopped(&self, granularity: GranularityIndex) -> Option<UnixMillis> {
        let until = self.holding(granularity).gaps.complete_until;
        (until != UnixMillis::MAX).then_some(until)
    }

    /// The reason for which a granularity does not answer a part of a range.
    pub fn why_not(&self, granularity: GranularityIndex, part: &Range<UnixMillis>) -> String {
        let name = &self.granularities[granularity].name;
        let gaps = &self.holding(granularity).gaps;
        if !self.keeps(granularity, part.start) {
            format!("{name} is no longer kept before {}", part.end)
        } else if part.start < gaps.complete_since {
            format!("{name} does not hold all samples before {}", part.end)
        } else if let Some(until) = self.stopped(granularity).filter(|until| part.end > *until) {
            format!("{name} takes no samples since {until}")
        } else {
            format!(
                "documents of {name} are damaged or missing from {} to {}",
                part.start, part.end
            )
        }
    }
}

impl Holding {
    fn new(stored: GranularityIndex, own: &Granularity, gaps: Gaps, now: UnixMillis) -> Self {
        let kept_from = own.kept_from(now);
        let until = match gaps.complete_until {
            UnixMillis::MAX => UnixMillis::LATEST,
            until => until,
        };
        let complete = Times::one(kept_from.max(gaps.complete_since)..until);
        let whole = complete.without(&Times::new(gaps.holes.iter().cloned()));
        Self { stored, kept_from, whole: whole.shrunk(own.width_ms), gaps }
    }
}

#[cfg(test)]
mod tests;
