//! Documents in three forms: nested as stored, by levels of a month, and as rows.
//!
//! Must never know: HTTP.

mod inspection;
pub(super) mod levels;
pub(super) mod nested;
mod preallocation;
mod request;
mod rows;
mod shards;
mod shells;

pub use inspection::{
    CellLocation, ShownDocument, ShownPart, ShownSlot, StoredCell, StoredDocumentAnswer,
    StoredDocumentRequest, StoredPartition, stored_document,
};
pub use levels::{LevelPart, LevelsDocument};
pub use nested::{MinuteTotals, NestedDocument, SlotNumber, SlotValue, SlotValues};
pub use preallocation::{PreallocateAnswer, PreallocateRequest, PreallocatedLevel, preallocate};

pub use shards::{DocumentsStep, documents_of_shards, documents_step};

pub use request::{DocumentRow, DocumentsAnswer, DocumentsForm, DocumentsRequest};

use std::ops::Range;

use jiff::tz::TimeZone;

use crate::{
    model::{Cell, UnixMillis},
    policy::coverage::Coverage,
    query::{
        Budget, QueryError, QueryLimits, Resolution, SeriesMerge,
        cells::axis::{Axis, AxisRequest},
        cells::coverage::coverage,
        cells::reader::CellReader,
        cells::spacing::SpacingSearch,
        documents::levels::{LevelPlan, SeriesParts, levels_document},
        documents::nested::plan::NestedPlan,
        series::grouping::{Group, check_lines, group},
        series::suggestion,
        time::resolution::{AUTO_POINTS, granularity_of_documents},
    },
    store::Store,
};

const DAY_MS: i64 = 86_400_000;

/// Answers a request for documents.
///
/// # Errors
/// When the resolution is unknown, the answer is too large, the budget is used up, or the store
/// cannot be read.
pub fn documents(
    store: &Store,
    budget: &Budget,
    request: &DocumentsRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<DocumentsAnswer, QueryError> {
    documents_here((store, budget), request, limits, None, now)
}

/// Answers a request for the documents of this shard. `of_all` is the number of matching series of
/// all shards.
fn documents_here(
    (store, budget): (&Store, &Budget),
    request: &DocumentsRequest,
    limits: &QueryLimits,
    of_all: Option<usize>,
    now: UnixMillis,
) -> Result<DocumentsAnswer, QueryError> {
    let merges = request.merge != SeriesMerge::Nothing;
    let found = request.selector.select_within(store, budget, limits, merges)?;
    let groups = group(&found, &request.merge, budget)?;
    check_lines(groups.len(), limits)?;
    let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
    let coverage = coverage(store, &ids, &request.range, now);
    let series = of_all.unwrap_or(found.len());
    let query = DocumentsQuery { store, budget, request, limits, coverage, series, now };
    let mut answer = match request.form {
        DocumentsForm::Levels => query.levels(&groups),
        DocumentsForm::Nested => query.nested(&groups),
        DocumentsForm::Rows => query.rows(&groups),
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
            "{slots} slots exceed the limit of {}: ask for a shorter range or fewer series, or \
             raise limits.query_points_max",
            limits.points_max
        )));
    }
    Ok(())
}

impl DocumentsRequest {
    /// Returns the range and the time zone.
    fn zoned_range(&self) -> (Range<UnixMillis>, Option<&TimeZone>) {
        (self.range.clone(), self.time_zone.as_ref())
    }
}

/// A request with the inputs of its answer.
struct DocumentsQuery<'a> {
    store: &'a Store,
    budget: &'a Budget,
    request: &'a DocumentsRequest,
    limits: &'a QueryLimits,
    coverage: Coverage<'a>,
    /// The number of series of all shards.
    series: usize,
    now: UnixMillis,
}

impl DocumentsQuery<'_> {
    fn axis(
        &self,
        groups: &[Group],
        resolution: &Resolution,
        range: &Range<UnixMillis>,
    ) -> Result<Axis, QueryError> {
        let ids: Vec<_> = groups.iter().flat_map(|group| &group.members).copied().collect();
        let source = (self.store, self.budget);
        let readings = SpacingSearch::new(source, &self.coverage, ids.into_iter(), range);
        let axis_request = AxisRequest {
            resolution,
            range,
            zone: self.request.time_zone.as_ref(),
            points: self.request.points,
            series: groups.iter().map(|group| group.members.len()).sum(),
            lines: groups.len(),
            readings: Some(&readings),
        };
        Axis::plan(&self.coverage, &axis_request, self.limits)
    }

    /// Calls `visit` with the cells of each group, either as stored or with the growth of counters
    /// spread over gaps.
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
        self.budget.reserve(axis.len() * size_of::<Cell>())?;
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

    fn nested(&self, groups: &[Group]) -> Result<DocumentsAnswer, QueryError> {
        let request = self.request;
        let points = request.points.unwrap_or(AUTO_POINTS);
        let granularity =
            granularity_of_documents(&self.coverage, &request.resolution, &request.range, points)?;
        let plan =
            NestedPlan::new(self.coverage.granularities(), granularity, request.zoned_range());
        let mut axis = self.axis(groups, &plan.resolution(), &plan.whole_documents())?;
        let shells = request.shells.then(|| self.shells(groups, granularity)).transpose()?;
        let mut documents = Vec::new();
        self.read(&axis, groups, false, |group, cells| {
            let shells = shells.as_ref().map(|shells| shells.starts(&group.members)).transpose()?;
            let shells = shells.unwrap_or_default();
            documents.extend(plan.nest(group, (&axis, cells), shells, self.budget)?);
            Ok(())
        })?;
        Ok(DocumentsAnswer::Documents { documents, notes: std::mem::take(&mut axis.notes) })
    }

    fn levels(&self, groups: &[Group]) -> Result<DocumentsAnswer, QueryError> {
        let refused = |message: &str| Err(QueryError::Invalid(message.to_owned()));
        let request = self.request;
        if request.resolution != Resolution::Auto || request.points.is_some() {
            return refused(
                "form=levels returns every stored level; leave resolution and points out",
            );
        }
        if request.time_zone.as_ref().is_some_and(|zone| *zone != TimeZone::UTC) {
            return refused("form=levels uses days in UTC; use nested or rows with tz");
        }
        let members: Vec<_> = groups.iter().flat_map(|group| &group.members).copied().collect();
        // The number of days is checked before the months are listed.
        let days = (request.range.end.0 - request.range.start.0) / DAY_MS;
        check_count(days, self.series, self.limits)?;
        let everything = UnixMillis::MIN..UnixMillis::MAX;
        let plan = LevelPlan::new(&self.coverage, &request.range, &everything, 3);
        check_count(plan.parts(), self.series, self.limits)?;
        let reader = plan.open(self.store, &members)?;
        let mut documents = Vec::new();
        let mut reserved = 0;
        for group in groups {
            let parts = reader.read_merged(&group.members, self.budget)?;
            let bytes = parts.iter().map(SeriesParts::bytes).sum::<usize>();
            self.budget.reserve(bytes.saturating_sub(reserved))?;
            reserved = reserved.max(bytes);
            for month in reader.plan.months() {
                self.budget.reserve(group.entry.bytes())?;
                documents.extend(levels_document(&group.entry, month, &parts, self.budget)?);
            }
        }
        Ok(DocumentsAnswer::Levels { documents, notes: Vec::new() })
    }
}
