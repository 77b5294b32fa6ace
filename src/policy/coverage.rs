//! What each granularity holds whole, and which of them answers which part of a range.
//!
//! A granularity is asked where it is kept and holds all samples. Elsewhere finer ones make its
//! slots, and where those are gone too the next coarser one goes on.

use std::{borrow::Cow, ops::Range};

use super::times::{Times, ceil, floor};
use crate::model::{Gaps, Granularity, GranularitySet, UnixMillis};

/// A part of a range, and the granularity that answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Index of the granularity among those of the coverage.
    pub level: usize,
    /// Index of the granularity in the store.
    pub source: usize,
    /// The part, whole slots of this granularity but for the ends of the range.
    pub range: Range<UnixMillis>,
}

/// See the module.
#[derive(Debug)]
pub struct Coverage<'a> {
    granularities: Cow<'a, GranularitySet>,
    held: Vec<Held>,
    /// Index of the coarsest that takes samples.
    coarsest: usize,
}

/// Of one granularity.
#[derive(Debug)]
struct Held {
    /// Index in the store.
    source: usize,
    /// Since when its partitions are kept.
    kept_from: UnixMillis,
    gaps: Gaps,
    /// Where it holds all samples, in whole slots.
    whole: Times,
}

impl<'a> Coverage<'a> {
    /// Of granularities at a time, with the gaps of each.
    pub fn new(granularities: &'a GranularitySet, gaps: Vec<Gaps>, now: UnixMillis) -> Self {
        let levels = granularities.levels().iter().zip(gaps).enumerate();
        let held = levels.map(|(source, (level, gaps))| Held::new(source, level, gaps, now));
        let coarsest = granularities.count() - 1;
        Self { held: held.collect(), granularities: Cow::Borrowed(granularities), coarsest }
    }

    /// Adds a granularity that takes no samples any more, `source` being its index in the store, if
    /// it holds something of a range.
    #[must_use]
    pub fn with_retired(
        mut self,
        source: usize,
        level: &Granularity,
        gaps: Gaps,
        range: &Range<UnixMillis>,
        now: UnixMillis,
    ) -> Self {
        let held = Held::new(source, level, gaps, now);
        let asked = Times::one(range.start.0..range.end.0);
        let holds = !held.whole.within(&asked).stretches().is_empty();
        if holds && let Some((index, granularities)) = self.granularities.with(level) {
            self.granularities = Cow::Owned(granularities);
            self.held.insert(index, held);
            self.coarsest += usize::from(index <= self.coarsest);
        }
        self
    }

    /// The granularities.
    pub fn granularities(&self) -> &GranularitySet {
        &self.granularities
    }

    /// Index in the store of a granularity of the coverage.
    pub fn source(&self, level: usize) -> usize {
        self.held[level].source
    }

    fn segment(&self, level: usize, range: Range<UnixMillis>) -> Segment {
        Segment { level, source: self.source(level), range }
    }

    /// Whether a granularity still keeps a time.
    pub fn keeps(&self, level: usize, at: UnixMillis) -> bool {
        at >= self.held[level].kept_from
    }

    /// Whether a granularity holds all samples of the slots that overlap a range.
    pub fn is_whole(&self, level: usize, range: &Range<UnixMillis>) -> bool {
        let width = self.width(level);
        let slots = floor(range.start.0, width)..ceil(range.end.0, width);
        range.is_empty() || self.held[level].whole.covers(&slots)
    }

    /// Whether all slots of a granularity's width are there, from itself or from finer ones.
    pub fn makes_whole(&self, level: usize, range: &Range<UnixMillis>) -> bool {
        let segments = self.segments(level, range.clone());
        let answered: i64 = segments.iter().map(|own| own.range.end.0 - own.range.start.0).sum();
        answered == range.end.0 - range.start.0
            && segments.iter().all(|own| own.level <= level && self.is_whole(own.level, &own.range))
    }

    /// The granularity that holds all samples of a range and is as fine as can be.
    pub fn finest_whole(&self, range: &Range<UnixMillis>) -> Option<usize> {
        (0..self.held.len()).find(|level| self.is_whole(*level, range))
    }

    fn width(&self, level: usize) -> i64 {
        self.granularities.levels()[level].width_ms
    }

    /// Cuts a range, oldest part first: `level` answers where it is whole, finer ones where only
    /// they are, and coarser ones the rest, the next one first.
    pub fn segments(&self, level: usize, range: Range<UnixMillis>) -> Vec<Segment> {
        let asked = Times::one(range.start.0..range.end.0);
        let mut rest = asked.clone();
        let mut taken: Vec<(usize, Times)> = Vec::new();
        for own in (0..=level).rev() {
            let serves = rest.within(&self.held[own].whole);
            rest = rest.without(&serves);
            taken.push((own, serves));
        }
        for own in level + 1..self.held.len() {
            // A coarser slot must not hold samples that finer slots show too.
            let serves = rest.within(&self.held[own].whole);
            let serves = serves.widened(self.width(own)).within(&asked);
            for (_, finer) in &mut taken {
                *finer = finer.without(&serves);
            }
            rest = rest.without(&serves);
            taken.push((own, serves));
        }
        taken.push(self.incomplete(&asked, &rest));
        let mut segments: Vec<_> = taken
            .iter()
            .flat_map(|(level, own)| own.stretches().iter().map(|own| (*level, own.clone())))
            .map(|(level, own)| self.segment(level, UnixMillis(own.start)..UnixMillis(own.end)))
            .collect();
        segments.sort_by_key(|own| own.range.start);
        segments.dedup_by(|next, last| {
            let joins = last.level == next.level && last.range.end == next.range.start;
            if joins {
                last.range.end = next.range.end;
            }
            joins
        });
        segments
    }

    /// What no granularity holds whole, as far as the coarsest is kept: late samples are there.
    fn incomplete(&self, asked: &Times, rest: &Times) -> (usize, Times) {
        let coarsest = self.coarsest;
        let width = self.width(coarsest);
        let ends = |own: &Range<i64>| {
            let is_end = |at: i64| !asked.covers(&(at - 1..at + 1));
            let start = if is_end(own.start) { floor(own.start, width) } else { own.start };
            start..if is_end(own.end) { ceil(own.end, width) } else { own.end }
        };
        let slots = Times::new(rest.stretches().iter().map(ends)).shrunk(width);
        let kept = Times::one(self.held[coarsest].kept_from.0..i64::MAX);
        (coarsest, slots.within(&kept).within(asked))
    }

    /// Lets finer granularities answer for the slot that the last segment ends in, as far as they
    /// hold it: what lies in that slot behind the end is not to be counted.
    pub fn with_fine_end(&self, mut segments: Vec<Segment>) -> Vec<Segment> {
        let Some(Segment { level: coarsest, range, .. }) = segments.pop() else { return segments };
        let Range { mut start, end } = range;
        for level in (0..=coarsest).rev() {
            let border = self.granularities.levels()[level].slot_start(end).max(start);
            let ends_here = level == 0 || !self.is_whole(level - 1, &(border..end));
            let upto = if ends_here { end } else { border };
            if start < upto {
                segments.push(self.segment(level, start..upto));
                start = upto;
            }
            if ends_here {
                break;
            }
        }
        segments
    }

    /// Slots of all segments.
    pub fn slots_of(&self, segments: &[Segment]) -> i64 {
        let slots = |own: &Segment| {
            let width = self.width(own.level);
            (ceil(own.range.end.0, width) - floor(own.range.start.0, width)) / width
        };
        segments.iter().map(slots).sum()
    }

    /// What a reader of these segments should know.
    pub fn notes(
        &self,
        level: usize,
        segments: &[Segment],
        range: &Range<UnixMillis>,
    ) -> Vec<String> {
        let name = |level: usize| &self.granularities.levels()[level].name;
        let mut notes = Vec::new();
        for own in segments {
            if own.level > level {
                let (why, shown) = (self.why_not(level, &own.range), name(own.level));
                notes.push(format!("{why}: {shown} is shown there"));
            } else if !self.is_whole(own.level, &own.range) {
                let why = self.why_not(own.level, &own.range);
                notes.push(format!("{why}: samples may be missing there"));
            }
        }
        let retired = segments.iter().rfind(|own| self.stopped(own.level).is_some());
        if let Some((own, until)) = retired.and_then(|own| Some((own, self.stopped(own.level)?))) {
            notes.push(format!(
                "{} takes no samples since {until}: what came later is not in its part",
                name(own.level)
            ));
        }
        let oldest = segments.first().map_or(range.end, |own| own.range.start);
        if oldest > range.start {
            notes.push(format!("nothing is kept before {oldest}"));
        }
        notes
    }

    /// When a granularity took its last samples, if it takes none any more.
    fn stopped(&self, level: usize) -> Option<UnixMillis> {
        let until = self.held[level].gaps.complete_until;
        (until != UnixMillis::MAX).then_some(until)
    }

    /// Why a granularity does not answer for a part of a range.
    pub fn why_not(&self, level: usize, part: &Range<UnixMillis>) -> String {
        let name = &self.granularities.levels()[level].name;
        let gaps = &self.held[level].gaps;
        if !self.keeps(level, part.start) {
            format!("{name} is no longer kept before {}", part.end)
        } else if part.start < gaps.complete_since {
            format!("{name} does not hold all samples before {}", part.end)
        } else if let Some(until) = self.stopped(level).filter(|until| part.end > *until) {
            format!("{name} takes no samples since {until}")
        } else {
            format!(
                "documents of {name} are damaged or missing from {} to {}",
                part.start, part.end
            )
        }
    }
}

impl Held {
    fn new(source: usize, level: &Granularity, gaps: Gaps, now: UnixMillis) -> Self {
        let kept_from = level.kept_from(now);
        let holes = gaps.holes.iter().map(|hole| hole.start.0..hole.end.0);
        let since = kept_from.max(gaps.complete_since).0;
        let until =
            if gaps.complete_until == UnixMillis::MAX { i64::MAX } else { gaps.complete_until.0 };
        let whole = Times::one(since..until).without(&Times::new(holes));
        Self { source, kept_from, whole: whole.shrunk(level.width_ms), gaps }
    }
}

#[cfg(test)]
mod tests;
