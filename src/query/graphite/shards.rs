//! Graphite's queries in a store with several shards: each shard answers with its names, or with
//! the cells of its series, which are merged by series and slot.
//!
//! First, the shards count the series of a pattern, because the width of the slots depends on all
//! of them. Must never know: where the shards are, functions.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    fetch::{FetchRequest, SLOT_BYTES},
    line::Line,
    paths::{FoundSeries, KEY_LIMITS, NodeKinds, Paths},
    tags::{TagsRequest, list_tags_here},
};
use crate::{
    model::{
        Cell, SeriesInfo, SeriesKey, UnixMillis,
        graphite::{GraphiteName, Template},
    },
    query::{
        Budget, ExpressionLimits, GRAPHITE, QueryError, SeriesEntry,
        cells::{axis::Axis, reader::CellReader},
        chart::{GroupPart, Part, common_slots, put_axis, put_group},
        messages::{ask_all, damaged_answer, read_question, written},
        series::grouping::Group,
    },
    store::Store,
};

/// A search for series.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Search {
    /// The series of a pattern of paths.
    Path(String),
    /// The series that fulfil conditions on their tags.
    Tags(Vec<String>),
}

/// A question for a shard.
#[derive(Debug, Serialize, Deserialize)]
struct Question {
    templates: Vec<Template>,
    ask: Ask,
}

#[derive(Debug, Serialize, Deserialize)]
enum Ask {
    Count(Search),
    Cells { search: Search, slots: Slots },
    Nodes(String),
    Names(Vec<String>),
    Tags(TagsRequest),
}

/// The slots of lines.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Slots {
    start: i64,
    end: i64,
    now: i64,
    points: usize,
    /// The number of series of all shards.
    series: usize,
    width_ms: Option<i64>,
}

impl Search {
    /// Returns the series of this shard in order of their names.
    pub(super) fn found(&self, paths: Paths<'_>) -> Result<Vec<FoundSeries>, QueryError> {
        match self {
            Self::Path(pattern) => paths.series(pattern),
            Self::Tags(conditions) => paths.by_tag(conditions),
        }
    }

    fn name_of(&self, key: &SeriesKey, templates: &[Template]) -> GraphiteName {
        match self {
            Self::Path(_) => GraphiteName::of(key, templates),
            // Without templates, all tags are in the name.
            Self::Tags(_) => GraphiteName::of(key, &[]),
        }
    }
}

impl Paths<'_> {
    fn question(&self, ask: Ask) -> Question {
        Question { templates: self.templates.to_vec(), ask }
    }
}

/// Answers another node's question.
///
/// # Errors
/// When the question is damaged, a limit is exceeded, the budget is used up, or the store cannot be
/// read.
pub fn graphite_of_question(
    store: &Store,
    question: &[u8],
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<u8>, QueryError> {
    let Question { templates, ask } = read_question(question)?;
    let paths = Paths { store, templates: &templates, limits };
    match ask {
        Ask::Count(search) => written(&search.found(paths)?.len()),
        Ask::Nodes(pattern) => written(&paths.nodes(&pattern)?),
        Ask::Names(conditions) => written(&names_here(paths, &conditions)?),
        Ask::Tags(request) => written(&list_tags_here(store, &request, limits)?),
        Ask::Cells { search, slots } => {
            let request = FetchRequest {
                store,
                limits,
                now: UnixMillis(slots.now),
                range: UnixMillis(slots.start)..UnixMillis(slots.end),
                points: slots.points,
                aggregation: None,
                origin: "",
            };
            cells_here(&request, search.found(paths)?, &slots)
        }
    }
}

/// Returns the cells of series of this shard as bytes.
fn cells_here(
    request: &FetchRequest<'_>,
    found: Vec<FoundSeries>,
    slots: &Slots,
) -> Result<Vec<u8>, QueryError> {
    let mut out = Vec::new();
    if found.is_empty() || request.range.start >= request.range.end {
        put_axis(&Axis::of_slots(String::new(), Vec::new()), 0, &mut out);
        return Ok(out);
    }
    let ids: Vec<_> = found.iter().map(|series| series.id).collect();
    let axis = request.axis_of(&ids, slots.series, slots.width_ms)?;
    let before = request.limits.budget.reserved();
    request.limits.reserve(axis.len().saturating_mul(SLOT_BYTES))?;
    put_axis(&axis, found.len(), &mut out);
    let mut reader = CellReader::new(request.store, request.limits.budget, &axis, ids);
    let (mut cells, mut reserved) = (vec![Cell::EMPTY; axis.len()], 0);
    for FoundSeries { info, .. } in found {
        cells.fill(Cell::EMPTY);
        reader.merge_next(&mut cells)?;
        let entry = SeriesEntry::new(&info);
        let (merged, members, count, is_one_kind) = (false, Vec::new(), 1, true);
        let group = Group { entry, merged, members, count, is_one_kind };
        put_group(&group, &cells, &[], &mut out);
        let grown = out.capacity() - reserved;
        reserved = out.capacity();
        request.limits.reserve(grown)?;
    }
    // The slots are released.
    request.limits.budget.shrink_to(before + reserved);
    Ok(out)
}

/// A series of some shards, with the slots and cells of each of its parts.
type FoundParts<'p> = (SeriesInfo, Vec<(&'p [(i64, i64)], &'p GroupPart<'p>)>);

/// Reads the lines of all shards.
pub(super) fn lines_of_shards(
    request: &FetchRequest<'_>,
    paths: Paths<'_>,
    search: &Search,
) -> Result<Vec<Line>, QueryError> {
    let (start, end) = (request.range.start.0, request.range.end.0);
    let own = || Ok(search.found(paths)?.len());
    let series = ask(paths, Ask::Count(search.clone()), own)?.into_iter().sum();
    paths.check_count(series)?;
    if series == 0 || start >= end {
        return Ok(Vec::new());
    }
    let (now, points) = (request.now.0, request.points);
    let cells = |width_ms| {
        let slots = Slots { start, end, now, points, series, width_ms };
        let question = written(&paths.question(Ask::Cells { search: search.clone(), slots }))?;
        let own = || cells_here(request, search.found(paths)?, &slots);
        request.limits.budget.ask_shards(GRAPHITE, &question, own)
    };
    let mut answers = cells(None)?;
    let budget = request.limits.budget;
    let reserved = budget.reserved();
    let mut parts = decoded(&answers, budget)?;
    let widths: BTreeSet<i64> =
        parts.iter().flat_map(|part| &part.slots).map(|(_, width)| *width).collect();
    if let Some(widest) = widths.last().filter(|_| widths.len() > 1) {
        drop(parts);
        budget.shrink_to(reserved);
        answers = cells(Some(*widest))?;
        parts = decoded(&answers, budget)?;
    }
    let axis = Axis::of_slots(String::new(), common_slots(&parts));
    let found = found_parts(&parts, paths, search)?;
    let (mut all, mut members) = (Vec::new(), Vec::new());
    for ((name, _), (info, parts)) in found {
        all.push((info, name));
        members.push(parts);
    }
    request.lines_on(&axis, all, &mut |index, cells| {
        request.limits.budget.check()?;
        for (slots, part) in &members[index] {
            part.merge_cells(slots, &axis, cells).ok_or_else(damaged_answer)?;
        }
        Ok(())
    })
}

fn decoded<'a>(answers: &'a [Vec<u8>], budget: &Budget) -> Result<Vec<Part<'a>>, QueryError> {
    answers.iter().map(|answer| Part::decode(answer, budget)).collect()
}

/// Returns the series of all parts in order of their names.
fn found_parts<'p>(
    parts: &'p [Part<'p>],
    paths: Paths<'_>,
    search: &Search,
) -> Result<BTreeMap<(GraphiteName, SeriesKey), FoundParts<'p>>, QueryError> {
    let mut found: BTreeMap<_, FoundParts<'p>> = BTreeMap::new();
    for part in parts {
        paths.limits.budget.check()?;
        for group_part in &part.groups {
            let entry = &group_part.group.entry;
            let tags = entry.tags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let key =
                SeriesKey::new(&entry.metric, tags, &KEY_LIMITS).map_err(|_| damaged_answer())?;
            paths.limits.reserve(3 * entry.bytes())?;
            let name = search.name_of(&key, paths.templates);
            let info = SeriesInfo {
                key: key.clone(),
                kind: entry.kind,
                unit: entry.unit.as_str().into(),
                sender: "".into(),
            };
            let (_, members) = found.entry((name, key)).or_insert((info, Vec::new()));
            members.push((part.slots.as_slice(), group_part));
        }
    }
    Ok(found)
}

/// Returns the nodes of all shards that a pattern matches.
pub(super) fn nodes(
    paths: Paths<'_>,
    pattern: &str,
) -> Result<BTreeMap<String, NodeKinds>, QueryError> {
    if paths.limits.budget.others().is_none() {
        return paths.nodes(pattern);
    }
    let mut whole: BTreeMap<String, NodeKinds> = BTreeMap::new();
    for nodes in ask(paths, Ask::Nodes(pattern.to_owned()), || paths.nodes(pattern))? {
        for (path, NodeKinds { is_leaf, is_branch }) in nodes {
            let node = whole.entry(path).or_default();
            node.is_leaf |= is_leaf;
            node.is_branch |= is_branch;
        }
    }
    paths.check_count(whole.len())?;
    Ok(whole)
}

/// Returns the names of the series of all shards that fulfil conditions on their tags, in order.
pub(super) fn names(paths: Paths<'_>, conditions: &[String]) -> Result<Vec<String>, QueryError> {
    let own = || names_here(paths, conditions);
    if paths.limits.budget.others().is_none() {
        return own();
    }
    let mut all = ask(paths, Ask::Names(conditions.to_vec()), own)?.concat();
    // Names are sorted by path, then by tags.
    all.sort_by(|one, other| one.split(';').cmp(other.split(';')));
    all.dedup();
    paths.check_count(all.len())?;
    Ok(all)
}

fn names_here(paths: Paths<'_>, conditions: &[String]) -> Result<Vec<String>, QueryError> {
    let found = paths.by_tag(conditions)?;
    Ok(found.iter().map(|series| series.name.to_string()).collect())
}

/// Lists the names of tags, or the values of a tag, in order.
///
/// # Errors
/// When a condition is malformed, a limit is exceeded, the budget is used up, or a shard does not
/// answer.
pub fn list_tags(
    store: &Store,
    request: &TagsRequest,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<String>, QueryError> {
    let own = || list_tags_here(store, request, limits);
    if limits.budget.others().is_none() {
        return own();
    }
    let paths = Paths { store, templates: &[], limits };
    let mut all = ask(paths, Ask::Tags(request.clone()), own)?.concat();
    all.sort_unstable();
    all.dedup();
    all.truncate(request.limit);
    Ok(all)
}

/// Asks all shards a question whose answers are JSON. `own` returns the answer of this shard.
fn ask<T: DeserializeOwned>(
    paths: Paths<'_>,
    ask: Ask,
    own: impl FnOnce() -> Result<T, QueryError>,
) -> Result<Vec<T>, QueryError> {
    ask_all(paths.limits.budget, (GRAPHITE, &paths.question(ask)), own)
}
