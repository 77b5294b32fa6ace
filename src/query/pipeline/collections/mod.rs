//! The collections of the store: their documents, read one at a time.
//!
//! No other part of the pipeline reads the store. A collection named after a granularity contains
//! its slots. Any other name selects the months: one document per tag set, days > hours > minutes,
//! with a field per metric. Must never know: stages.

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
pub(super) use selection::{CollectionRequest, note_of_text_values};
use selection::{overlap, select};
use slots::{DISTRIBUTION, Shells, Slots};

/// A collection that is read.
pub(super) enum Collection {
    Months(Months),
    Slots(Box<Slots>),
}

impl Collection {
    /// Opens a collection.
    ///
    /// # Errors
    /// When the query would read too much, the budget is used up, or the store cannot be read.
    pub(super) fn open(
        store: &Store,
        budget: &Budget,
        request: &CollectionRequest<'_>,
        limits: &QueryLimits,
        now: UnixMillis,
    ) -> Result<Self, QueryError> {
        let granularities = store.granularities();
        let all = store.all_granularities();
        let named = request
            .collection
            .and_then(|name| all.iter().position(|granularity| granularity.name == name));
        let coarsest = &granularities[granularities.coarsest()];
        let (oldest, latest) = time_bounds(store, coarsest, now);
        let requested = request.range.cloned().unwrap_or(oldest..latest);
        let Some(index) = named.map(GranularityIndex) else {
            if request.shells {
                let names: Vec<_> =
                    all.iter().map(|granularity| granularity.name.as_str()).collect();
                let message = format!(
                    "shells: true needs the slots of a resolution: use one of {} as the collection",
                    names.join(", ")
                );
                return Err(QueryError::Invalid(message));
            }
            return Ok(Self::Months(months(store, budget, request, &requested, limits, now)?));
        };
        let granularity = store.granularity(index);
        let found = select(store, budget, request, limits, true)?;
        let range = overlap(&requested, &request.conditions.dates);
        let range = overlap(&range, &(time_bounds(store, granularity, now).0..UnixMillis::MAX));
        let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
        let shells =
            request.shells.then(|| Shells::open(store, index, &range, &ids)).transpose()?;
        let view = store.view(index, range, &ids)?;
        Ok(Self::Slots(Box::new(Slots {
            view,
            shells,
            granularity: granularity.clone(),
            has_distributions: request.needed.names_field(DISTRIBUTION),
            series: found,
        })))
    }

    /// Returns the documents in order of series and time.
    pub(super) fn documents<'a>(&'a self, quota: &'a Quota<'a>) -> Documents<'a> {
        match self {
            Self::Months(months) => months.documents(quota),
            Self::Slots(slots) => slots.documents(quota),
        }
    }
}

/// Returns the earliest time that a granularity, or a rule's level of its width, retains, and the
/// latest possible time of a sample.
fn time_bounds(
    store: &Store,
    granularity: &Granularity,
    now: UnixMillis,
) -> (UnixMillis, UnixMillis) {
    let kept_from = granularity.kept_from(now);
    let levels = store.levels().iter().filter(|level| level.width_ms == granularity.width_ms);
    let kept_from = levels.fold(kept_from, |kept_from, level| kept_from.min(level.kept_from(now)));
    (kept_from, now.plus(PARTS_MS[0]))
}
