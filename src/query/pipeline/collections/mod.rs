//! The collections that a pipeline begins with: their documents, read from the store one by one.
//!
//! The only room that reads the store. A collection named after a granularity holds its slots, every
//! other name stands for the months: one document a tag set, days > hours > minutes, with a field for
//! each metric. Must never know: stages.

mod months;
mod selection;
mod slots;

use super::{document::Documents, quota::Quota};
use crate::{
    model::{Granularity, GranularityIndex, UnixMillis},
    query::{Budget, QueryError, QueryLimits, documents::levels::PARTS_MS},
    store::Store,
};
use months::{Months, months};
pub(super) use selection::{CollectionRequest, note_of_texts};
use selection::{overlap, select};
use slots::Slots;

/// A collection that is read.
pub(super) enum Collection {
    Months(Months),
    Slots(Slots),
}

impl Collection {
    /// Decides what is read and begins.
    ///
    /// # Errors
    /// When it is too much, the budget is used up, or the store cannot be read.
    pub(super) fn open(
        store: &Store,
        budget: &Budget,
        request: &CollectionRequest<'_>,
        limits: &QueryLimits,
        now: UnixMillis,
    ) -> Result<Self, QueryError> {
        let granularities = store.granularities();
        let all = store.all_granularities();
        let named = request.collection.and_then(|name| all.iter().position(|own| own.name == name));
        let (oldest, latest) = kept(&granularities[granularities.coarsest()], now);
        let asked = request.range.cloned().unwrap_or(oldest..latest);
        let Some(index) = named.map(GranularityIndex) else {
            return Ok(Self::Months(months(store, budget, request, &asked, limits, now)?));
        };
        let granularity = store.granularity(index);
        let found = select(store, budget, request, limits, true)?;
        let range = overlap(&asked, &request.wanted.dates);
        let range = overlap(&range, &(kept(granularity, now).0..UnixMillis::MAX));
        let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
        let view = store.view(index, range, &ids)?;
        Ok(Self::Slots(Slots { view, granularity: granularity.clone(), found }))
    }

    /// The documents, in order of series and time.
    pub(super) fn documents<'a>(&'a self, quota: &'a Quota<'a>) -> Documents<'a> {
        match self {
            Self::Months(months) => months.documents(quota),
            Self::Slots(slots) => slots.documents(quota),
        }
    }
}

/// From when on a granularity is kept, and the latest time that samples can have by now.
fn kept(granularity: &Granularity, now: UnixMillis) -> (UnixMillis, UnixMillis) {
    let from = granularity.partition_start(granularity.retention.before(now).plus(1));
    (from, now.plus(PARTS_MS[0]))
}
