//! The cells of a selector in chunks of series, so that the memory does not depend on the number of
//! series.
//!
//! A chunk has neighbouring series in the order of labels, and is read in the order of IDs, in
//! which the store keeps series. Must never know: how the cells are used.

use std::rc::Rc;

use super::{
    Selectors,
    plan::{PlannedRead, ReadPlan},
    request::{Held, NeededCells, ReadRequest},
    selected::{PlannedSeries, SelectedSeries},
};
use crate::query::{QueryError, budget::cache::MatchingSeries};
use crate::{
    policy::coverage::Interval,
    query::promql::value::range_vector::{CellMatrix, CellSeries},
};

/// A visitor of cells.
pub(super) type VisitCells<'v> = dyn FnMut(Rc<CellMatrix>) -> Result<(), QueryError> + 'v;

impl Selectors<'_> {
    /// Calls `visit` with the cells of all series in order of labels, some series at a time. The
    /// memory of a chunk is released before the next chunk is read. Cells are kept for other uses
    /// of the same selector if it is repeated and its cells fit in one chunk.
    pub(super) fn cells_in_chunks(
        &self,
        request: &ReadRequest<'_>,
        visit: &mut VisitCells<'_>,
    ) -> Result<(), QueryError> {
        if let Some(cells) = self.cells_of_shards(request)? {
            return visit(cells);
        }
        let visit: &mut VisitCells<'_> = &mut |cells| {
            self.list(&cells);
            if self.ends_early() { Ok(()) } else { visit(cells) }
        };
        let (plan, series) = match self.plan(request)? {
            PlannedRead::Read(cells) => return visit(cells),
            PlannedRead::ToRead(plan, series) => (*plan, series),
        };
        let found = match series {
            PlannedSeries::Found(found) => found,
            PlannedSeries::InChunks(matching) => {
                return self.read_chunks(&plan, &matching, request, visit);
            }
        };
        let is_used_once = request.needed == NeededCells::All && !self.is_repeated(request.text);
        if is_used_once && found.len() <= self.sizes.view {
            return self.read_parts(&plan, found, request.held, visit);
        }
        visit(self.read(plan, found, request.windows)?)
    }

    fn read_chunks(
        &self,
        plan: &ReadPlan<'_>,
        matching: &MatchingSeries,
        request: &ReadRequest<'_>,
        visit: &mut VisitCells<'_>,
    ) -> Result<(), QueryError> {
        let MatchingSeries { ids, positions } = matching;
        self.bounds.reserve(size_of_val(&**positions))?;
        let mut order = vec![0; positions.len()];
        for (index, position) in (0_u32..).zip(&**positions) {
            order[*position as usize] = index;
        }
        let has_histograms = self.has_histograms(ids)?;
        let size = self.chunk_size((plan.cells_max, has_histograms), request.windows.count);
        for chunk in order.chunks_mut(size) {
            if self.ends_early() {
                break;
            }
            self.bounds.released(|| {
                chunk.sort_unstable();
                let of_index = |index: &u32| (ids[*index as usize], positions[*index as usize]);
                let (ids, positions): (Vec<_>, Vec<_>) = chunk.iter().map(of_index).unzip();
                let found = self.found(&ids, &positions, plan.since)?;
                let series = self.read_found(plan, found, request.windows)?;
                visit(Rc::new(plan.matrix(series)))
            })?;
        }
        Ok(())
    }

    /// Reads the series of one view, a few at a time, so that the cells stay in the CPU cache.
    fn read_parts(
        &self,
        plan: &ReadPlan<'_>,
        mut found: Vec<SelectedSeries>,
        held: Held,
        visit: &mut VisitCells<'_>,
    ) -> Result<(), QueryError> {
        let ids: Vec<_> = found.iter().map(|selected| selected.id).collect();
        let view =
            |interval: &Interval| self.store.view(interval.stored, interval.range.clone(), &ids);
        let views = plan.intervals.iter().map(view).collect::<Result<Vec<_>, _>>()?;
        found.sort_unstable_by_key(|selected| selected.position);
        let (mut found, mut slots) = (found.into_iter(), Vec::new());
        while !found.as_slice().is_empty() && !self.ends_early() {
            let mut read = || {
                let mut part = Vec::with_capacity(self.sizes.part);
                let mut ids = Vec::with_capacity(self.sizes.part);
                for selected in found.by_ref().take(self.sizes.part) {
                    let (id, mut series) = (selected.id, CellSeries::from(selected));
                    for view in &views {
                        self.append(view, id, plan.columns, &mut series, &mut slots)?;
                    }
                    ids.push(id);
                    part.push(series);
                }
                if let Some(gap_search) = &plan.gap_search {
                    self.add_neighbours(gap_search, &ids, &mut part)?;
                }
                visit(Rc::new(plan.matrix(part)))
            };
            match held {
                Held::All => read()?,
                Held::Chunk => self.bounds.released(read)?,
            }
        }
        Ok(())
    }
}
