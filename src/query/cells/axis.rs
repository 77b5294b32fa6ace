//! The slots of a chart: of a granularity as they are, or merged to buckets of the calendar.
//!
//! Must never know: which series are shown, or how.

use std::ops::Range;

use jiff::tz::TimeZone;

use crate::{
    model::{Cell, GranularityIndex, Span, UnixMillis},
    policy::{
        coverage::{Coverage, Segment},
        query_plan,
    },
    query::{
        CalendarUnit, QueryError, QueryLimits, Resolution,
        cells::neighbours::SlotGap,
        cells::spacing::Readings,
        time::resolution::{
            AUTO_POINTS, auto_width, granularity_of_width, named_width, slot_start, whole_slots,
        },
    },
    store::Slot,
};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 86_400_000;

/// What the slots depend on.
pub(crate) struct AxisRequest<'a> {
    pub(crate) resolution: &'a Resolution,
    pub(crate) range: &'a Range<UnixMillis>,
    pub(crate) zone: Option<&'a TimeZone>,
    /// Slots at most, when the resolution is left to the daemon.
    pub(crate) points: Option<usize>,
    /// Series that are read.
    pub(crate) series: usize,
    /// Lines that are shown of them.
    pub(crate) lines: usize,
    /// What tells how often readings come, where slots must not be finer when the resolution is
    /// left to the daemon.
    pub(crate) readings: Option<&'a Readings<'a>>,
}

/// The slots of a chart and the granularities that they are read from.
#[derive(Debug)]
pub(crate) struct Axis {
    /// Width of the slots, or the calendar's unit.
    pub(crate) resolution: String,
    /// Which granularity is read where, oldest part first.
    pub(crate) segments: Vec<Segment>,
    /// Start and width of each slot, ascending.
    slots: Vec<(i64, i64)>,
    /// What a reader should know.
    pub(crate) notes: Vec<String>,
}

impl Axis {
    /// Chooses the slots.
    ///
    /// # Errors
    /// When the resolution is not known, or there are too many slots.
    pub(crate) fn plan(
        coverage: &Coverage<'_>,
        request: &AxisRequest<'_>,
        limits: &QueryLimits,
    ) -> Result<Self, QueryError> {
        let width = match request.resolution {
            Resolution::Calendar(unit) => {
                return Self::of_calendar(coverage, *unit, request, limits);
            }
            Resolution::Named(name) => named_width(coverage.granularities(), name)?,
            Resolution::Auto => {
                let points = request.points.unwrap_or(AUTO_POINTS);
                let points = points.min(request.slots_max(limits)).max(1);
                let (width, note) = request.auto(coverage, points)?;
                if request.is_elsewhere() && width % DAY_MS == 0 {
                    let unit = request.local_days(width / DAY_MS, points);
                    return Self::of_calendar(coverage, unit, request, limits);
                }
                let mut axis = Self::of_width(coverage, width, request, limits)?;
                axis.notes.extend(note);
                return Ok(axis);
            }
        };
        Self::of_width(coverage, width, request, limits)
    }

    fn of_width(
        coverage: &Coverage<'_>,
        width: i64,
        request: &AxisRequest<'_>,
        limits: &QueryLimits,
    ) -> Result<Self, QueryError> {
        let granularities = coverage.granularities();
        let granularity =
            granularity_of_width(granularities, width).unwrap_or(GranularityIndex::FINEST);
        let segments = coverage.segments(granularity, whole_slots(width, request.range));
        request.check(coverage, &segments, limits)?;
        let mut slots: Vec<(i64, i64)> = Vec::new();
        for segment in &segments {
            let step = common_multiple(width, granularities[segment.granularity].width_ms);
            let mut start = slot_start(step, segment.range.start).0;
            while start < segment.range.end.0 {
                let end = start.saturating_add(step);
                let from = slots.last().map_or(start, |(last, width)| start.max(last + width));
                if from < end {
                    slots.push((from, end - from));
                }
                start = end;
            }
        }
        request.check_points(slots.len(), limits)?;
        let resolution = Span::Fixed(width).to_string();
        let mut notes = coverage.notes(granularity, &segments, request.range);
        if request.is_elsewhere() && width > HOUR_MS {
            notes.push(format!(
                "the slots of {resolution} begin by UTC; resolution=day, week or month gives those \
                 of the time zone"
            ));
        }
        Ok(Self { resolution, segments, slots, notes })
    }

    fn of_calendar(
        coverage: &Coverage<'_>,
        unit: CalendarUnit,
        request: &AxisRequest<'_>,
        limits: &QueryLimits,
    ) -> Result<Self, QueryError> {
        let granularities = coverage.granularities();
        let (zone, slots_max) = (request.zone(), request.slots_max(limits));
        let Some(borders) = unit.borders(request.range, &zone, slots_max) else {
            return Err(too_much(request.lines, &format!("more than {slots_max}"), limits));
        };
        let aligned = query_plan::granularity_for_borders(granularities, &borders);
        let granularity = aligned.unwrap_or(GranularityIndex::FINEST);
        let range = borders[0]..borders[borders.len() - 1];
        let segments = coverage.segments(granularity, range.clone());
        request.check(coverage, &segments, limits)?;
        let mut notes = coverage.notes(granularity, &segments, &range);
        let cuts = |segment: &&Segment| aligned.is_none_or(|aligned| segment.granularity > aligned);
        if let Some(cut) = segments.iter().find(cuts) {
            notes.push(format!(
                "slots of {} do not end where each {} begins in {}: near the borders samples are \
                 counted in the neighbouring one",
                granularities[cut.granularity].name,
                unit.name(),
                zone.iana_name().unwrap_or("this time zone"),
            ));
        }
        let oldest = segments.first().map_or(range.end, |segment| segment.range.start);
        let pairs = borders.windows(2).map(|pair| (pair[0].0, pair[1].0));
        let kept = pairs.filter(|(_, end)| *end > oldest.0);
        let slots = kept.map(|(start, end)| (start, end - start)).collect();
        Ok(Self { resolution: unit.name().into_owned(), segments, slots, notes })
    }

    /// Number of slots.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Start and width of each slot.
    pub(crate) fn slots(&self) -> &[(i64, i64)] {
        &self.slots
    }

    /// Start of the first slot, or `at` when there is none.
    pub(crate) fn start_or(&self, at: UnixMillis) -> i64 {
        self.slots.first().map_or(at.0, |(start, _)| *start)
    }

    /// End of the last slot, or `at` when there is none.
    pub(crate) fn end_or(&self, at: UnixMillis) -> i64 {
        self.slots.last().map_or(at.0, |(start, width)| start + width)
    }

    /// Start of the slot that is not over yet; the last one, unless the range lies ahead.
    pub(crate) fn incomplete_from(&self, now: UnixMillis) -> Option<i64> {
        let over = self.slots.partition_point(|(start, width)| start + width <= now.0);
        self.slots.get(over).map(|(start, _)| *start)
    }

    /// Moves what a counter grew in a gap to the slots that the gap covers. A slot without a reading
    /// has the rate of the gap as its smallest and largest.
    pub(crate) fn spread(&self, SlotGap { gap, slot_start }: &SlotGap, cells: &mut [Cell]) {
        let (from, to) = gap.times();
        // A slot of a granularity that does not end where one of the axis does is in one as a whole.
        let carried = |edge: i64| if edge <= *slot_start { gap.carried(edge) } else { 0.0 };
        let first = self.slots.partition_point(|(start, width)| start + width <= from);
        let touched = self.slots.iter().zip(cells).skip(first);
        for ((start, width), cell) in touched.take_while(|((start, _), _)| *start <= to) {
            let end = start + width;
            let is_empty = from < *start && end <= *slot_start;
            let rate = is_empty.then(|| gap.rate());
            cell.merge(&Cell::correction(carried(end) - carried(*start), rate));
        }
    }

    /// Merges the slots of one series and segment, ascending, into this axis' cells.
    pub(crate) fn merge(&self, filled: &[Slot], cells: &mut [Cell]) {
        assert_eq!(cells.len(), self.slots.len(), "one cell a slot");
        let mut index = 0;
        for slot in filled {
            while self.slots.get(index + 1).is_some_and(|(next, _)| *next <= slot.start.0) {
                index += 1;
            }
            let Some((start, width)) = self.slots.get(index) else { return };
            cells[index].merge(&within(*width, slot.start.0 - start, &slot.cell));
        }
    }
}

/// A cell as part of a slot that begins some time earlier. Offsets in a slot that is longer than
/// they can tell are counted in longer units than milliseconds.
fn within(width: i64, later: i64, cell: &Cell) -> Cell {
    let unit = width / i64::from(u32::MAX) + 1;
    let offset = |own: u32| u32::try_from((later + i64::from(own)) / unit).unwrap_or(0);
    Cell { first_at: offset(cell.first_at), last_at: offset(cell.last_at), ..*cell }
}

fn common_multiple(a: i64, b: i64) -> i64 {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}

impl AxisRequest<'_> {
    fn zone(&self) -> TimeZone {
        self.zone.cloned().unwrap_or(TimeZone::UTC)
    }

    fn is_elsewhere(&self) -> bool {
        self.zone.is_some_and(|zone| *zone != TimeZone::UTC)
    }

    /// Slots of a line, at most.
    fn slots_max(&self, limits: &QueryLimits) -> usize {
        limits.points_max / self.lines.max(self.series).max(1)
    }

    /// The width of slots that is left to the daemon, and what a reader should know of it: slots are
    /// not finer than readings come.
    fn auto(
        &self,
        coverage: &Coverage<'_>,
        points: usize,
    ) -> Result<(i64, Option<String>), QueryError> {
        let finest = auto_width(coverage, self.range, points, 0);
        let Some(readings) = self.readings else { return Ok((finest, None)) };
        // They may come a little late.
        let is_finer = |spacing: &f64| *spacing > finest as f64 * 1.1;
        let Some(spacing) = readings.spacing_ms(finest)?.filter(is_finer) else {
            return Ok((finest, None));
        };
        let width = auto_width(coverage, self.range, points, (spacing * 0.9) as i64);
        let seconds = |ms: f64| Span::Fixed(((ms / 1000.0).round() as i64).max(1) * 1000);
        let note = format!(
            "readings come each {}: slots of {} would be finer",
            seconds(spacing),
            Span::Fixed(finest)
        );
        Ok((width, Some(note)))
    }

    /// Days of the zone, so many together that their slots are not more than `points`.
    fn local_days(&self, days: i64, points: usize) -> CalendarUnit {
        let mut unit = CalendarUnit::of_days(days);
        for doubled in (1..32).map(|times| days.saturating_mul(1 << times)) {
            if unit.borders(self.range, &self.zone(), points).is_some() {
                break;
            }
            unit = CalendarUnit::of_days(doubled);
        }
        unit
    }

    /// Refuses to read more slots than allowed.
    fn check(
        &self,
        coverage: &Coverage<'_>,
        segments: &[Segment],
        limits: &QueryLimits,
    ) -> Result<(), QueryError> {
        let slots = coverage.slots_of(segments);
        if slots.saturating_mul(self.series.max(1) as i64) > limits.points_max as i64 {
            return Err(QueryError::TooMuch(format!(
                "{} series of {slots} slots are more than {} that may be read: ask for a shorter \
                 range, a coarser resolution or fewer series, or raise limits.query_points_max",
                self.series, limits.points_max
            )));
        }
        Ok(())
    }

    fn check_points(&self, slots: usize, limits: &QueryLimits) -> Result<(), QueryError> {
        if slots.saturating_mul(self.lines.max(1)) > limits.points_max {
            return Err(too_much(self.lines, &slots.to_string(), limits));
        }
        Ok(())
    }
}

fn too_much(lines: usize, slots: &str, limits: &QueryLimits) -> QueryError {
    QueryError::TooMuch(format!(
        "{lines} series of {slots} slots are more than {}: ask for a shorter range, a coarser \
         resolution or fewer series, or raise limits.query_points_max",
        limits.points_max
    ))
}
