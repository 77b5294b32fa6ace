//! Documents nested, as the levels of a month, and unfolded into rows.
//!
//! Must never know: HTTP.

pub(super) mod levels;
pub(super) mod nested;
mod stored;

pub use levels::{LevelPart, LevelsDocument};
pub use nested::{MinuteTotals, NestedDocument, SlotNumber, SlotValue, SlotValues};
pub use stored::{
    CellPlace, ShownDocument, ShownPart, ShownSlot, StoredCell, StoredDocumentAnswer,
    StoredDocumentRequest, StoredPartition, StoredSeries, stored_document,
};

use std::collections::BTreeMap;
use std::ops::Range;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::{
    model::{Cell, UnixMillis},
    policy::coverage::Coverage,
    query::{
        Budget, Display, Merge, QueryError, QueryLimits, Resolution, Selector,
        cells::axis::{Axis, AxisRequest},
        cells::coverage::coverage,
        cells::reader::CellReader,
        cells::spacing::Readings,
        documents::levels::{Ladder, Parts, levels_document},
        documents::nested::{Nesting, SLOT_BYTES, nest},
        series::grouping::{Group, check_lines, group},
        series::suggestion,
        time::calendar::local_time,
        time::resolution::{AUTO_POINTS, granularity_of_documents, granularity_of_width},
    },
    store::Store,
};

const DAY_MS: i64 = 86_400_000;
/// Slots that become rows between checks of the budget.
const SLOTS_AT_A_TIME: usize = 512;

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentsRequest {
    /// Which series.
    pub selector: Selector,
    /// Granularity of the documents; of rows any width.
    pub resolution: Resolution,
    /// Documents that overlap this range are given whole.
    pub range: Range<UnixMillis>,
    /// What they look like.
    pub form: DocumentsForm,
    /// Which number an unfolded row shows; by kind when `None`.
    pub display: Option<Display>,
    /// Where hours, days and months begin; UTC when `None`.
    pub time_zone: Option<TimeZone>,
    /// Slots of a series, at most, when the resolution is left to the daemon.
    pub points: Option<usize>,
    /// What is merged.
    pub merge: Merge,
}

/// What documents look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DocumentsForm {
    /// As they are stored: the slots by number.
    #[default]
    Nested,
    /// A month each: days > hours > minutes.
    Levels,
    /// A row of date and value for each slot.
    Rows,
}

/// The answer: documents, or rows when they are unfolded. The notes are what a reader should know,
/// such as that a part comes from a coarser granularity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the types say it")]
pub enum DocumentsAnswer {
    /// In order of series and time.
    Documents { documents: Vec<NestedDocument>, notes: Vec<String> },
    /// In order of series and time.
    Levels { documents: Vec<LevelsDocument>, notes: Vec<String> },
    /// In order of time, then series; a slot without samples has a row without a value.
    Rows { rows: Vec<Row>, notes: Vec<String> },
}

/// A slot as a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Start of the slot, RFC 3339.
    pub date: String,
    /// The number that is shown; `None` where the slot is empty.
    pub value: Option<f64>,
    /// What is measured.
    pub metric: String,
    /// Where.
    pub tags: BTreeMap<String, String>,
}

/// Answers a request for documents.
///
/// # Errors
/// When the resolution is not known, the answer too large, the budget used up, or the store cannot
/// be read.
pub fn documents(
    store: &Store,
    budget: &Budget,
    request: &DocumentsRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<DocumentsAnswer, QueryError> {
    let merges = request.merge != Merge::Nothing;
    let found = request.selector.select_within(store, budget, limits, merges)?;
    let groups = group(&found, &request.merge, budget)?;
    check_lines(groups.len(), limits)?;
    let coverage = coverage(store, &request.range, now);
    let asked = Asked { store, budget, request, limits, coverage, now };
    let mut answer = match request.form {
        DocumentsForm::Levels => asked.levels(&groups),
        DocumentsForm::Nested => asked.nested(&groups),
        DocumentsForm::Rows => asked.rows(&groups),
    }?;
    let (DocumentsAnswer::Documents { notes, .. }
    | DocumentsAnswer::Levels { notes, .. }
    | DocumentsAnswer::Rows { notes, .. }) = &mut answer;
    if found.is_empty() {
        notes.extend(suggestion::note(store, &request.selector));
    }
    Ok(answer)
}

pub(crate) fn check_count(
    slots: i64,
    series: usize,
    limits: &QueryLimits,
) -> Result<(), QueryError> {
    let slots = slots.saturating_mul(series.max(1) as i64);
    if slots > limits.points_max as i64 {
        return Err(QueryError::TooMuch(format!(
            "{slots} slots are more than {}: ask for a shorter range or fewer series, or raise \
             limits.query_points_max",
            limits.points_max
        )));
    }
    Ok(())
}

/// A request and what it is answered from.
struct Asked<'a> {
    store: &'a Store,
    budget: &'a Budget,
    request: &'a DocumentsRequest,
    limits: &'a QueryLimits,
    coverage: Coverage<'a>,
    now: UnixMillis,
}

impl Asked<'_> {
    fn axis(
        &self,
        groups: &[Group],
        resolution: &Resolution,
        range: &Range<UnixMillis>,
    ) -> Result<Axis, QueryError> {
        let ids: Vec<_> = groups.iter().flat_map(|group| &group.members).copied().collect();
        let from = (self.store, self.budget);
        let readings = Readings::of(from, &self.coverage, ids.into_iter(), range);
        let asked = AxisRequest {
            resolution,
            range,
            zone: self.request.time_zone.as_ref(),
            points: self.request.points,
            series: groups.iter().map(|group| group.members.len()).sum(),
            lines: groups.len(),
            readings: Some(&readings),
        };
        Axis::plan(&self.coverage, &asked, self.limits)
    }

    /// Hands out the cells of each group: as they are kept, or with what counters grew in gaps spread.
    fn read(
        &self,
        axis: &Axis,
        groups: &[Group],
        spreads: bool,
        mut visit: impl FnMut(&Group, &[Cell]) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let members = groups.iter().flat_map(|group| &group.members).copied().collect();
        let mut reader = CellReader::new(self.store, self.budget, axis, members);
        if spreads {
            reader = reader.spreading(&self.coverage);
        }
        self.budget.take(axis.len() * size_of::<Cell>())?;
        let mut cells = vec![Cell::EMPTY; axis.len()];
        for group in groups {
            cells.fill(Cell::EMPTY);
            for _ in &group.members {
                reader.merge_next(&mut cells)?;
            }
            visit(group, &cells)?;
        }
        Ok(())
    }

    fn rows(&self, groups: &[Group]) -> Result<DocumentsAnswer, QueryError> {
        let axis = self.axis(groups, &self.request.resolution, &self.request.range)?;
        let zone = self.request.time_zone.clone().unwrap_or(TimeZone::UTC);
        self.budget.take(axis.len() * size_of::<Vec<Row>>())?;
        let mut by_slot: Vec<Vec<Row>> = vec![Vec::new(); axis.len()];
        let slots = || axis.slots().chunks(SLOTS_AT_A_TIME);
        self.read(&axis, groups, true, |group, cells| {
            let kind = group.entry.kind;
            let asked = self.request.display.map(|display| display.for_kind(kind));
            let display = asked.unwrap_or_else(|| Display::of_kind(kind));
            let row_bytes = size_of::<Row>() + group.entry.bytes();
            let cells = cells.chunks(SLOTS_AT_A_TIME);
            for ((slots, cells), rows) in
                slots().zip(cells).zip(by_slot.chunks_mut(SLOTS_AT_A_TIME))
            {
                self.budget.check()?;
                self.budget.take(cells.len() * row_bytes)?;
                for ((slot, cell), rows) in slots.iter().zip(cells).zip(rows) {
                    rows.push(Row {
                        date: local_time(UnixMillis(slot.0), &zone),
                        value: group.number(display, cell, *slot, self.now),
                        metric: group.entry.metric.clone(),
                        tags: group.entry.tags.clone(),
                    });
                }
            }
            Ok(())
        })?;
        let rows = by_slot.into_iter().flatten().collect();
        Ok(DocumentsAnswer::Rows { rows, notes: axis.notes })
    }

    fn nested(&self, groups: &[Group]) -> Result<DocumentsAnswer, QueryError> {
        let Range { start, end } = self.request.range;
        let points = self.request.points.unwrap_or(AUTO_POINTS);
        let resolution = &self.request.resolution;
        let granularity =
            granularity_of_documents(&self.coverage, resolution, &(start..end), points)?;
        let granularities = self.coverage.granularities();
        let zone = self.request.time_zone.as_ref();
        let nesting = |own| Nesting::new(own, zone, end.0.saturating_sub(start.0));
        let nestings: Vec<_> = granularities.iter().map(nesting).collect();
        let own = &nestings[granularity.0];
        let resolution = match own.local_slot() {
            Some(unit) => Resolution::Calendar(unit),
            None => Resolution::Named(granularities[granularity].name.clone()),
        };
        let mut axis = self.axis(groups, &resolution, &own.whole(&self.request.range))?;
        // Where a coarser granularity goes on, its documents do.
        let of_width = |width: i64| {
            let coarser = granularity_of_width(granularities, width);
            let coarser = coarser.filter(|_| own.local_slot().is_none());
            &nestings[coarser.map_or(granularity, |coarser| coarser.max(granularity)).0]
        };
        let mut documents = Vec::new();
        self.read(&axis, groups, false, |group, cells| {
            let merged = group.merged.then_some(group.members.len());
            let slots = axis.slots().iter().copied().zip(cells.iter().copied());
            self.budget.take(slots.len() * SLOT_BYTES)?;
            documents.extend(nest(&group.entry, merged, slots, of_width, self.budget)?);
            Ok(())
        })?;
        Ok(DocumentsAnswer::Documents { documents, notes: std::mem::take(&mut axis.notes) })
    }

    fn levels(&self, groups: &[Group]) -> Result<DocumentsAnswer, QueryError> {
        let refused = |message: &str| Err(QueryError::Invalid(message.to_owned()));
        let request = self.request;
        if request.resolution != Resolution::Auto || request.points.is_some() {
            return refused(
                "form=levels has every level that is kept; leave resolution and points out",
            );
        }
        if request.time_zone.as_ref().is_some_and(|zone| *zone != TimeZone::UTC) {
            return refused("form=levels has the days of UTC; use nested or rows with tz");
        }
        let members: Vec<_> = groups.iter().flat_map(|group| &group.members).copied().collect();
        // More days than points are refused before the months are listed.
        let days = (request.range.end.0 - request.range.start.0) / DAY_MS;
        check_count(days, members.len(), self.limits)?;
        let everything = UnixMillis::MIN..UnixMillis::MAX;
        let ladder = Ladder::new(&self.coverage, &request.range, &everything, 3);
        check_count(ladder.parts(), members.len(), self.limits)?;
        let open = ladder.open(self.store, &members)?;
        let mut documents = Vec::new();
        let mut read = 0;
        for group in groups {
            let parts = open.read_merged(&group.members, self.budget)?;
            let bytes = parts.iter().map(Parts::bytes).sum::<usize>();
            self.budget.take(bytes.saturating_sub(read))?;
            read = read.max(bytes);
            for month in open.ladder.months() {
                self.budget.take(group.entry.bytes())?;
                documents.extend(levels_document(&group.entry, month, &parts, self.budget)?);
            }
        }
        Ok(DocumentsAnswer::Levels { documents, notes: Vec::new() })
    }
}
