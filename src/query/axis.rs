//! The slots of a chart: of a granularity as they are, or merged to buckets of the calendar.
//!
//! Must never know: which series are shown, or how.

use std::{ops::Range, str::FromStr};

use jiff::tz::TimeZone;

use super::{CalendarUnit, QueryError, QueryLimits};
use crate::{
    model::{Cell, Granularity, GranularitySet, UnixMillis},
    pipeline::query_plan::{self, Segment},
    store::Slot,
};

/// Slots of a chart whose resolution is left to the daemon, at most, unless told otherwise.
const AUTO_POINTS: usize = 1500;
const DAY_MS: i64 = 86_400_000;

/// Width of a chart's slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The finest granularity that gives a readable number of points.
    Auto,
    /// A granularity, by name.
    Named(String),
    /// Buckets of the calendar.
    Calendar(CalendarUnit),
}

impl FromStr for Resolution {
    type Err = std::convert::Infallible;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(match (word, CalendarUnit::named(word)) {
            ("auto", _) => Self::Auto,
            (_, Some(unit)) => Self::Calendar(unit),
            (name, None) => Self::Named(name.to_owned()),
        })
    }
}

/// What the slots depend on.
pub(super) struct AxisRequest<'a> {
    pub(super) resolution: &'a Resolution,
    pub(super) range: &'a Range<UnixMillis>,
    pub(super) zone: Option<&'a TimeZone>,
    /// Slots at most, when the resolution is left to the daemon.
    pub(super) points: Option<usize>,
    /// Series that are read.
    pub(super) series: usize,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Axis {
    /// Name of the granularity or of the calendar's unit.
    pub(super) resolution: String,
    /// Which granularity is read where, oldest part first.
    pub(super) segments: Vec<Segment>,
    /// Start and width of each slot, ascending.
    slots: Vec<(i64, i64)>,
    /// What a reader should know.
    pub(super) notes: Vec<String>,
}

impl Axis {
    /// Chooses the slots.
    ///
    /// # Errors
    /// When the resolution is not known, or there are too many slots.
    pub(super) fn plan(
        granularities: &GranularitySet,
        request: &AxisRequest<'_>,
        limits: &QueryLimits,
        now: UnixMillis,
    ) -> Result<Self, QueryError> {
        let utc = TimeZone::UTC;
        let zone = request.zone.unwrap_or(&utc);
        if let Resolution::Calendar(unit) = request.resolution {
            return Self::of_calendar(granularities, *unit, zone, request, limits, now);
        }
        let budget = limits.points_max / request.series.max(1);
        let points = request.points.unwrap_or(AUTO_POINTS).min(budget);
        let level = level_of(granularities, request.resolution, request.range, points, now)?;
        let granularity = &granularities.levels()[level];
        let elsewhere = request.zone.is_some_and(|zone| *zone != TimeZone::UTC);
        if elsewhere && granularity.width_ms == DAY_MS && *request.resolution == Resolution::Auto {
            return Self::of_calendar(granularities, CalendarUnit::Day, zone, request, limits, now);
        }
        let segments = query_plan::segments(granularities, level, request.range.clone(), now);
        check_count(slots_of(granularities, &segments), request.series, limits)?;
        let mut slots = Vec::with_capacity(slots_of(granularities, &segments) as usize);
        for segment in &segments {
            let granularity = &granularities.levels()[segment.level];
            let first = granularity.slot_start(segment.range.start).0;
            let starts = (first..segment.range.end.0).step_by(granularity.width_ms as usize);
            slots.extend(starts.map(|start| (start, granularity.width_ms)));
        }
        let mut notes = notes(granularities, level, &segments, request.range);
        if elsewhere && granularity.width_ms == DAY_MS {
            notes.push(format!(
                "the slots of {} are days in UTC; resolution=day gives those of the time zone",
                granularity.name
            ));
        }
        Ok(Self { resolution: granularity.name.clone(), segments, slots, notes })
    }

    fn of_calendar(
        granularities: &GranularitySet,
        unit: CalendarUnit,
        zone: &TimeZone,
        request: &AxisRequest<'_>,
        limits: &QueryLimits,
        now: UnixMillis,
    ) -> Result<Self, QueryError> {
        let buckets_max = limits.points_max / request.series.max(1);
        let Some(borders) = unit.borders(request.range, zone, buckets_max) else {
            return Err(too_much(request.series, &format!("more than {buckets_max}"), limits));
        };
        let aligned = query_plan::level_for_borders(granularities, &borders);
        let level = aligned.unwrap_or(0);
        let range = borders[0]..borders[borders.len() - 1];
        let segments = query_plan::segments(granularities, level, range.clone(), now);
        check_count(slots_of(granularities, &segments), request.series, limits)?;
        let mut notes = notes(granularities, level, &segments, &range);
        let cuts = |segment: &&Segment| aligned.is_none_or(|aligned| segment.level > aligned);
        if let Some(cut) = segments.iter().find(cuts) {
            notes.push(format!(
                "slots of {} do not end where each {} begins in {}: near the borders samples are \
                 counted in the neighbouring one",
                granularities.levels()[cut.level].name,
                unit.name(),
                zone.iana_name().unwrap_or("this time zone"),
            ));
        }
        let oldest = segments.first().map_or(range.end, |segment| segment.range.start);
        let pairs = borders.windows(2).map(|pair| (pair[0].0, pair[1].0));
        let kept = pairs.filter(|(_, end)| *end > oldest.0);
        let slots = kept.map(|(start, end)| (start, end - start)).collect();
        Ok(Self { resolution: unit.name().to_owned(), segments, slots, notes })
    }

    /// Number of slots.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Start and width of each slot.
    pub(super) fn slots(&self) -> &[(i64, i64)] {
        &self.slots
    }

    /// Start of the first slot, or `at` when there is none.
    pub(super) fn start_or(&self, at: UnixMillis) -> i64 {
        self.slots.first().map_or(at.0, |(start, _)| *start)
    }

    /// End of the last slot, or `at` when there is none.
    pub(super) fn end_or(&self, at: UnixMillis) -> i64 {
        self.slots.last().map_or(at.0, |(start, width)| start + width)
    }

    /// Start of the slot that is not over yet; the last one, unless the range lies ahead.
    pub(super) fn incomplete_from(&self, now: UnixMillis) -> Option<i64> {
        let over = self.slots.partition_point(|(start, width)| start + width <= now.0);
        self.slots.get(over).map(|(start, _)| *start)
    }

    /// Merges the slots of one series and segment, ascending, into this axis' cells.
    pub(super) fn merge(&self, filled: &[Slot], cells: &mut [Cell]) {
        assert_eq!(cells.len(), self.slots.len(), "one cell a slot");
        let mut index = 0;
        for slot in filled {
            while self.slots.get(index + 1).is_some_and(|(next, _)| *next <= slot.start.0) {
                index += 1;
            }
            let Some((start, _)) = self.slots.get(index) else { return };
            let shift = u32::try_from(slot.start.0 - start).unwrap_or(0);
            cells[index].merge(&slot.cell.shifted(shift));
        }
    }
}

fn slots_of(granularities: &GranularitySet, segments: &[Segment]) -> i64 {
    let count = |segment: &Segment| {
        let granularity = &granularities.levels()[segment.level];
        let first = granularity.slot_start(segment.range.start).0;
        (segment.range.end.0 - first + granularity.width_ms - 1) / granularity.width_ms
    };
    segments.iter().map(count).sum()
}

fn check_count(slots: i64, series: usize, limits: &QueryLimits) -> Result<(), QueryError> {
    if slots.saturating_mul(series.max(1) as i64) > limits.points_max as i64 {
        return Err(too_much(series, &slots.to_string(), limits));
    }
    Ok(())
}

fn too_much(series: usize, slots: &str, limits: &QueryLimits) -> QueryError {
    QueryError::TooMuch(format!(
        "{series} series of {slots} slots are more than {}: ask for a shorter range, a coarser \
         resolution or fewer series, or raise limits.query_points_max",
        limits.points_max
    ))
}

/// The granularity that is asked for.
pub(super) fn level_of(
    granularities: &GranularitySet,
    resolution: &Resolution,
    range: &Range<UnixMillis>,
    points: usize,
    now: UnixMillis,
) -> Result<usize, QueryError> {
    let known = || {
        let names: Vec<_> = granularities.levels().iter().map(|level| &*level.name).collect();
        names.join(", ")
    };
    match resolution {
        Resolution::Auto => Ok(query_plan::level_for_points(granularities, range, points, now)),
        Resolution::Named(name) => {
            granularities.named(name).map(|(level, _)| level).ok_or_else(|| {
                let units = CalendarUnit::ALL.map(|(_, unit)| unit).join(", ");
                QueryError::Invalid(format!(
                    "resolution={name:?} is not kept; use auto, one of {}, or for charts one of \
                     {units}",
                    known()
                ))
            })
        }
        Resolution::Calendar(unit) => Err(QueryError::Invalid(format!(
            "resolution={} is for charts; use auto or one of {}",
            unit.name(),
            known()
        ))),
    }
}

/// Slots of a document query whose resolution is left to the daemon.
pub(super) fn level_of_documents(
    granularities: &GranularitySet,
    resolution: &Resolution,
    range: &Range<UnixMillis>,
    now: UnixMillis,
) -> Result<usize, QueryError> {
    level_of(granularities, resolution, range, AUTO_POINTS, now)
}

fn notes(
    granularities: &GranularitySet,
    level: usize,
    segments: &[Segment],
    range: &Range<UnixMillis>,
) -> Vec<String> {
    let named = |level: usize| -> &Granularity { &granularities.levels()[level] };
    let coarser = segments.iter().filter(|segment| segment.level != level);
    let mut notes: Vec<_> = coarser
        .map(|segment| {
            format!(
                "{} is no longer kept before {}: {} is shown there",
                named(level).name,
                segment.range.end,
                named(segment.level).name
            )
        })
        .collect();
    let oldest = segments.first().map_or(range.end, |segment| segment.range.start);
    if oldest > range.start {
        notes.push(format!("nothing is kept before {oldest}"));
    }
    notes
}
