//! The slots of a chart: slots of a granularity, or calendar buckets.
//!
//! Must never know: which series are shown, or how.

use std::ops::Range;

use jiff::tz::TimeZone;

use crate::{
    model::{Cell, GranularityIndex, Span, UnixMillis},
    policy::{
        coverage::{Coverage, Interval},
        query_plan,
    },
    query::{
        CalendarUnit, QueryError, QueryLimits, Resolution,
        cells::neighbours::SlotGap,
        cells::spacing::SpacingSearch,
        time::resolution::{
            AUTO_POINTS, auto_width, granularity_of_width, named_width, slot_start, whole_slots,
        },
    },
    store::Slot,
};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 86_400_000;

/// The inputs from which the slots are chosen.
pub(crate) struct AxisRequest<'a> {
    pub(crate) resolution: &'a Resolution,
    pub(crate) range: &'a Range<UnixMillis>,
    pub(crate) zone: Option<&'a TimeZone>,
    /// Maximum number of slots with automatic resolution.
    pub(crate) points: Option<usize>,
    /// Number of series to read.
    pub(crate) series: usize,
    /// Number of lines to show.
    pub(crate) lines: usize,
    /// Source of the spacing of readings. Automatic resolution is never finer than that spacing.
    pub(crate) readings: Option<&'a SpacingSearch<'a>>,
}

/// The slots of a chart and the granularities that they are read from.
#[derive(Debug)]
pub(crate) struct Axis {
    /// The slot width, or the name of the calendar unit.
    pub(crate) resolution: String,
    /// The granularity of each part of the range, oldest part first.
    pub(crate) intervals: Vec<Interval>,
    /// The start and width of each slot, in ascending order.
    slots: Vec<(i64, i64)>,
    /// Remarks for the reader of the chart.
    pub(crate) notes: Vec<String>,
}

impl Axis {
    /// Chooses the slots.
    ///
    /// # Errors
    /// When the resolution is unknown, or there are too many slots.
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
                let (width, note) = request.auto_width(coverage, points)?;
                if request.has_local_zone() && width % DAY_MS == 0 {
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
        let intervals = coverage.intervals(granularity, whole_slots(width, request.range));
        request.check(coverage, &intervals, limits)?;
        let mut slots: Vec<(i64, i64)> = Vec::new();
        for interval in &intervals {
            let step = common_multiple(width, granularities[interval.granularity].width_ms);
            let mut start = slot_start(step, interval.range.start).0;
            while start < interval.range.end.0 {
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
        let mut notes = coverage.notes(granularity, &intervals, request.range);
        if request.has_local_zone() && width > HOUR_MS {
            notes.push(format!(
                "slots of {resolution} are aligned to UTC; use resolution=day, week or month for \
                 slots in the time zone"
            ));
        }
        Ok(Self { resolution, intervals, slots, notes })
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
        let intervals = coverage.intervals(granularity, range.clone());
        request.check(coverage, &intervals, limits)?;
        let mut notes = coverage.notes(granularity, &intervals, &range);
        let cuts =
            |interval: &&Interval| aligned.is_none_or(|aligned| interval.granularity > aligned);
        if let Some(cut) = intervals.iter().find(cuts) {
            notes.push(format!(
                "slots of {} do not end where each {} begins in {}: samples near a border may be \
                 counted in the neighbouring {}",
                granularities[cut.granularity].name,
                unit.name(),
                zone.iana_name().unwrap_or("this time zone"),
                unit.name(),
            ));
        }
        let oldest = intervals.first().map_or(range.end, |interval| interval.range.start);
        let pairs = borders.windows(2).map(|pair| (pair[0].0, pair[1].0));
        let kept = pairs.filter(|(_, end)| *end > oldest.0);
        let slots = kept.map(|(start, end)| (start, end - start)).collect();
        Ok(Self { resolution: unit.name().into_owned(), intervals, slots, notes })
    }

    /// Creates an axis of slots that several stores share. It cannot be read from one store.
    pub(crate) fn of_slots(resolution: String, slots: Vec<(i64, i64)>) -> Self {
        Self { resolution, intervals: Vec::new(), slots, notes: Vec::new() }
    }

    /// Returns the number of slots.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the start and width of each slot.
    pub(crate) fn slots(&self) -> &[(i64, i64)] {
        &self.slots
    }

    /// Returns the start of the first slot, or `at` when there are no slots.
    pub(crate) fn start_or(&self, at: UnixMillis) -> i64 {
        self.slots.first().map_or(at.0, |(start, _)| *start)
    }

    /// Returns the end of the last slot, or `at` when there are no slots.
    pub(crate) fn end_or(&self, at: UnixMillis) -> i64 {
        self.slots.last().map_or(at.0, |(start, width)| start + width)
    }

    /// Returns the start of the first slot that ends after `now`.
    pub(crate) fn incomplete_from(&self, now: UnixMillis) -> Option<i64> {
        let ended = self.slots.partition_point(|(start, width)| start + width <= now.0);
        self.slots.get(ended).map(|(start, _)| *start)
    }

    /// Distributes a counter's growth in a gap over the slots of the gap. A slot without a reading
    /// gets the rate of the gap as its min and max.
    pub(crate) fn spread(&self, SlotGap { gap, slot_start }: &SlotGap, cells: &mut [Cell]) {
        let (from, to) = gap.times();
        // A stored slot that crosses a border of the axis counts entirely in one slot of the axis.
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

    /// Merges the cell of a slot that begins at a time and has a width of its own.
    pub(crate) fn merge_cell(&self, (start, width): (i64, i64), cell: &Cell, cells: &mut [Cell]) {
        let Some(index) = self.index_of(start) else { return };
        let (own, own_width) = self.slots[index];
        if (own, own_width) == (start, width) {
            cells[index].merge(cell);
        } else {
            cells[index].merge(&cell_in_slot(own_width, start - own, cell));
        }
    }

    /// Returns the index of the slot that contains a time at or after the start of the axis.
    pub(crate) fn index_of(&self, at: i64) -> Option<usize> {
        self.slots.partition_point(|(start, _)| *start <= at).checked_sub(1)
    }

    /// Merges the slots of one series and interval, ascending, into the cells of this axis.
    pub(crate) fn merge(&self, filled: &[Slot], cells: &mut [Cell]) {
        assert_eq!(cells.len(), self.slots.len(), "one cell per slot");
        let mut index = 0;
        for slot in filled {
            while self.slots.get(index + 1).is_some_and(|(next, _)| *next <= slot.start.0) {
                index += 1;
            }
            let Some((start, width)) = self.slots.get(index) else { return };
            cells[index].merge(&cell_in_slot(*width, slot.start.0 - start, &slot.cell));
        }
    }
}

/// Returns a cell whose offsets count from the start of a wider slot. When the offsets do not fit
/// into 32 bits, their unit is longer than a millisecond.
fn cell_in_slot(width: i64, shift: i64, cell: &Cell) -> Cell {
    let unit = width / i64::from(u32::MAX) + 1;
    let offset = |at: u32| u32::try_from((shift + i64::from(at)) / unit).unwrap_or(0);
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

    fn has_local_zone(&self) -> bool {
        self.zone.is_some_and(|zone| *zone != TimeZone::UTC)
    }

    /// Returns the maximum number of slots of a line.
    fn slots_max(&self, limits: &QueryLimits) -> usize {
        limits.points_max / self.lines.max(self.series).max(1)
    }

    /// Returns the slot width for automatic resolution, and a remark when slots are wider because
    /// of the spacing of the readings.
    fn auto_width(
        &self,
        coverage: &Coverage<'_>,
        points: usize,
    ) -> Result<(i64, Option<String>), QueryError> {
        let finest = auto_width(coverage, self.range, points, 0);
        let Some(readings) = self.readings else { return Ok((finest, None)) };
        // Readings may arrive a little late.
        let is_finer = |spacing: &f64| *spacing > finest as f64 * 1.1;
        let Some(spacing) = readings.spacing_ms(finest)?.filter(is_finer) else {
            return Ok((finest, None));
        };
        let width = auto_width(coverage, self.range, points, (spacing * 0.9) as i64);
        let seconds = |ms: f64| Span::Fixed(((ms / 1000.0).round() as i64).max(1) * 1000);
        let note = format!(
            "readings arrive every {}: slots of {} would be finer",
            seconds(spacing),
            Span::Fixed(finest)
        );
        Ok((width, Some(note)))
    }

    /// Returns a number of local days per slot, so that there are at most `points` slots.
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

    /// Rejects a query that would read too many slots.
    fn check(
        &self,
        coverage: &Coverage<'_>,
        intervals: &[Interval],
        limits: &QueryLimits,
    ) -> Result<(), QueryError> {
        let slots = coverage.slots_of(intervals);
        if slots.saturating_mul(self.series.max(1) as i64) > limits.points_max as i64 {
            return Err(QueryError::TooMuch(format!(
                "{} series of {slots} slots exceed the {} slots that a query may read: ask \
                 for a shorter range, a coarser resolution or fewer series, or raise \
                 limits.query_points_max",
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
        "{lines} series of {slots} slots exceed the limit of {}: ask for a shorter range, a \
         coarser resolution or fewer series, or raise limits.query_points_max",
        limits.points_max
    ))
}
