//! Months as documents: one per tag set, with days > hours > minutes, and a field per metric.
//!
//! Must never know: how series are selected, and the slots of single series.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use super::selection::{CollectionRequest, field_name, overlap, select, tag_fields};
use crate::{
    model::{SeriesId, UnixMillis},
    query::{
        Budget, QueryError, QueryLimits,
        cells::coverage::coverage,
        documents::levels::{LevelPlan, LevelReader, PARTS_MS, SeriesParts},
        pipeline::{
            document::{Document, Documents},
            quota::{Quota, Share},
            value::{Fields, Value},
        },
    },
    store::Store,
};

/// Names of the lists of each level.
const LISTS: [&str; 3] = ["days", "hours", "minutes"];

/// The field name of a metric, and the ID of its series.
type Metric = (Arc<str>, SeriesId);

/// The documents of months.
pub(in crate::pipeline) struct Months {
    reader: LevelReader,
    /// The tag sets with their metrics.
    tag_sets: Vec<(Fields, Vec<Metric>)>,
    /// The days in the documents, if days are shown; the sums of the document always cover the
    /// whole month.
    days: Option<Range<i64>>,
    with_total: bool,
    with_counts: bool,
}

/// Selects the series of the months, and opens their levels.
pub(super) fn months(
    store: &Store,
    budget: &Budget,
    request: &CollectionRequest<'_>,
    requested: &Range<UnixMillis>,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<Months, QueryError> {
    let found = select(store, budget, request, limits, false)?;
    // A month is read when its date and at least one of its days match.
    let day = |at: UnixMillis, added_ms: i64| {
        (at.0.saturating_add(added_ms)).div_euclid(PARTS_MS[0]).saturating_mul(PARTS_MS[0])
    };
    let days = overlap(requested, &request.conditions.days);
    let days = day(days.start, 0)..day(days.end, PARTS_MS[0] - 1);
    let month_start = crate::model::Span::Months(1).start_of(UnixMillis(days.start));
    let months_range = overlap(&(month_start..UnixMillis(days.end)), &request.conditions.dates);
    let depth = (0..LISTS.len()).rfind(|depth| shows_list(request, *depth));
    let fine_range = UnixMillis(days.start)..UnixMillis(days.end);
    let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
    let coverage = coverage(store, &ids, &months_range, now);
    let plan =
        LevelPlan::new(&coverage, &months_range, &fine_range, depth.map_or(1, |depth| depth + 1));
    let reader = plan.open(store, &ids)?;
    let mut tag_sets: BTreeMap<Vec<(&str, &str)>, Vec<Metric>> = BTreeMap::new();
    for (id, info) in &found {
        let metric = field_name(info.key.metric()).into();
        tag_sets.entry(info.key.tags().collect()).or_default().push((metric, *id));
    }
    let tag_sets =
        tag_sets.into_iter().map(|(tags, series)| (tag_fields(tags.into_iter()), series));
    let tag_sets = if months_range.is_empty() { Vec::new() } else { tag_sets.collect() };
    let days = depth.map(|_| days);
    let is_needed = |name: &str| request.needed.needs(name);
    let (with_total, with_counts) = (is_needed("num_samples"), is_needed("counts"));
    Ok(Months { reader, tag_sets, days, with_total, with_counts })
}

/// Returns true when a pipeline uses the list at a depth.
fn shows_list(request: &CollectionRequest<'_>, depth: usize) -> bool {
    LISTS.get(depth).is_some_and(|list| request.needed.needs(list))
        && (0..=depth).all(|outer| !request.conditions.hidden.contains(&LISTS[..=outer].join(".")))
}

impl Months {
    /// Returns a document for each tag set and month.
    pub(super) fn documents<'a>(&'a self, quota: &'a Quota<'a>) -> Documents<'a> {
        Box::new(self.tag_sets.iter().flat_map(move |(tags, series)| -> Documents<'a> {
            // The quota is held as long as the cells that were read.
            let mut held_share = quota.new_share(0);
            let read = |(name, id): &Metric| {
                let parts = self.reader.read(*id, quota.budget())?;
                held_share.charge_bytes(parts.iter().map(SeriesParts::bytes).sum())?;
                Ok((name.clone(), parts))
            };
            let levels: Result<Vec<_>, QueryError> = series.iter().map(read).collect();
            match levels {
                Ok(levels) => {
                    let days = levels.iter().filter_map(|(_, parts)| parts.first());
                    let months: BTreeMap<i64, Range<UnixMillis>> = days
                        .flat_map(SeriesParts::months)
                        .map(|month| (month.start.0, month))
                        .collect();
                    let document = move |month| {
                        self.month(tags, &month, &levels, held_share.sibling()).transpose()
                    };
                    Box::new(months.into_values().filter_map(document))
                }
                Err(cause) => Box::new(std::iter::once(Err(cause))),
            }
        }))
    }

    /// Builds the document of a month; `None` when the month is empty.
    fn month<'a>(
        &self,
        tags: &Fields,
        month: &Range<UnixMillis>,
        levels: &[(Arc<str>, Vec<SeriesParts>)],
        mut share: Share<'a>,
    ) -> Result<Option<Document<'a>>, QueryError> {
        let range = month.start.0..month.end.0;
        let names: Vec<_> = tags
            .iter()
            .filter_map(|(name, tag)| Some(format!("{name}={}", tag.as_text()?)))
            .collect();
        share.charge_read(LISTS.len() + 3 + tags.len() + 2 * levels.len())?;
        let mut out = Fields::default();
        out.set("_id".into(), Value::text(&format!("{} {}", month.start, names.join(","))));
        out.set("date".into(), Value::Date(month.start));
        for (name, tag) in tags.iter() {
            out.set(name.clone(), tag.clone());
        }
        let mut counts = Fields::default();
        for (name, parts) in levels {
            let Some(days) = parts.first() else { continue };
            let cells = days.non_empty_parts(range.clone());
            let n: u64 = cells.iter().map(|(_, cell)| u64::from(cell.n)).sum();
            if n > 0 {
                let sum = cells.iter().map(|(_, cell)| cell.sum).sum();
                out.set(name.clone(), Value::Float(sum));
                counts.set(name.clone(), Value::Int(n as i64));
            }
        }
        if counts.is_empty() {
            return Ok(None);
        }
        self.set_counts(&mut out, counts);
        if let Some(days) = &self.days {
            let shown_days = range.start.max(days.start)..range.end.min(days.end);
            let days = self.level_parts(levels, 0, shown_days, &mut share)?.unwrap_or_default();
            out.set(LISTS[0].into(), Value::List(days));
        }
        Ok(Some(Document { fields: out, share }))
    }

    /// Sets the number of samples of a part: of all its metrics, and per metric.
    fn set_counts(&self, part: &mut Fields, counts: Fields) {
        if self.with_total {
            let counted = counts.iter().filter_map(|(_, count)| count.as_whole());
            part.set("num_samples".into(), Value::Int(counted.sum()));
        }
        if self.with_counts {
            part.set("counts".into(), Value::Fields(counts));
        }
    }

    /// Returns the parts of one level over a range; `None` when the level is not stored.
    fn level_parts(
        &self,
        levels: &[(Arc<str>, Vec<SeriesParts>)],
        depth: usize,
        range: Range<i64>,
        share: &mut Share<'_>,
    ) -> Result<Option<Vec<Value>>, QueryError> {
        let parts = levels.first().and_then(|(_, parts)| parts.get(depth));
        let Some(parts) = parts else { return Ok(None) };
        let part = |at: i64| {
            // One value each for the part, its date, its two counts and its list.
            share.charge_read(5)?;
            let mut out = Fields::default();
            out.set("date".into(), Value::Date(UnixMillis(at)));
            let mut counts = Fields::default();
            for (name, parts) in levels {
                let cell = parts.get(depth).and_then(|parts| parts.cell(at));
                // Empty cells have no field, so that averages do not count them.
                if let Some(cell) = cell.filter(|cell| cell.n > 0) {
                    share.charge_read(if self.with_counts { 2 } else { 1 })?;
                    out.set(name.clone(), Value::Float(cell.sum));
                    counts.set(name.clone(), Value::Int(i64::from(cell.n)));
                }
            }
            self.set_counts(&mut out, counts);
            let finer_parts =
                self.level_parts(levels, depth + 1, at..at + PARTS_MS[depth], share)?;
            if let (Some(finer_parts), Some(list)) = (finer_parts, LISTS.get(depth + 1)) {
                out.set((*list).into(), Value::List(finer_parts));
            }
            Ok(Value::Fields(out))
        };
        let found = parts.starts(range).map(part).collect::<Result<Vec<_>, QueryError>>()?;
        Ok((!found.is_empty()).then_some(found))
    }
}
