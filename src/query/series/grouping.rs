//! Grouping of series into lines, and ranking of lines.
//!
//! Must never know: cells or slots, apart from the number by which lines are ranked.

use std::collections::BTreeMap;

use crate::model::{Cell, Kind, SeriesId, SeriesInfo, SeriesKey, UnixMillis};
use crate::query::{Budget, Display, QueryError, QueryLimits, SeriesEntry};

/// Minimum elapsed time of the current slot, for rates.
const SHORTEST_MS: i64 = 1000;

/// The merging of series into lines of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SeriesMerge {
    /// Each series is a line.
    #[default]
    Nothing,
    /// All series form one line.
    All,
    /// Series with equal values of these tags form one line.
    By(Vec<String>),
}

/// A selection of the highest or lowest lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// Number of lines to show.
    pub count: usize,
    /// The number to rank by; the displayed number when `None`.
    pub by: Option<Display>,
    /// True for the lowest lines, false for the highest.
    pub lowest: bool,
}

/// The series of one line.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The metric and tags that all members share.
    pub(crate) entry: SeriesEntry,
    /// True when the line is the result of merging, even of a single series.
    pub(crate) merged: bool,
    pub(crate) members: Vec<SeriesId>,
    /// The number of members, with those of other shards.
    pub(crate) count: usize,
    /// True when all members have the same kind.
    pub(crate) is_one_kind: bool,
}

impl Group {
    fn single((id, info): &(SeriesId, SeriesInfo)) -> Self {
        let entry = SeriesEntry::new(info);
        Self { entry, merged: false, members: vec![*id], count: 1, is_one_kind: true }
    }

    fn of<'a>(members: &[&'a (SeriesId, SeriesInfo)], tags: BTreeMap<String, String>) -> Self {
        let infos = || members.iter().map(|(_, info)| info);
        let first: Option<&'a SeriesInfo> = members.first().map(|(_, info)| info);
        let kind = first.map_or(Kind::Gauge, |info| info.kind);
        let common = |read: fn(&SeriesInfo) -> &str| {
            let text = first.map_or("", read);
            if infos().all(|info| read(info) == text) { text.to_owned() } else { String::new() }
        };
        let entry = SeriesEntry {
            metric: common(|info| info.key.metric()),
            tags,
            kind,
            unit: common(|info| &info.unit),
        };
        Self {
            entry,
            merged: true,
            members: members.iter().map(|(id, _)| *id).collect(),
            count: members.len(),
            is_one_kind: infos().all(|info| info.kind == kind),
        }
    }
}

impl Group {
    /// Returns the displayed number of a slot, given the slot's start and width. In the current
    /// slot, a rate is taken over the elapsed time. The rate of a counter is limited to the largest
    /// rate between two readings, because the first increase in the slot began before the slot.
    pub(crate) fn number(
        &self,
        display: Display,
        cell: &Cell,
        (start, width): (i64, i64),
        now: UnixMillis,
    ) -> Option<f64> {
        let passed = now.0.saturating_sub(start);
        if !display.is_per_second() || passed < 0 || passed >= width {
            return display.of_cell(cell, width);
        }
        let number = display.of_cell(cell, passed.max(SHORTEST_MS.min(width)))?;
        let largest = cell.max * self.count as f64;
        let is_bounded = self.entry.kind == Kind::Counter && largest.is_finite();
        Some(if is_bounded { number.min(largest) } else { number })
    }
}

/// Groups series. `found` is in order of keys, and the result is in order of tags.
///
/// # Errors
/// When the query's memory is used up.
pub(crate) fn group(
    found: &[(SeriesId, SeriesInfo)],
    merge: &SeriesMerge,
    budget: &Budget,
) -> Result<Vec<Group>, QueryError> {
    budget.check()?;
    let bytes = match merge {
        SeriesMerge::Nothing => {
            let entries = found.iter().map(|(_, info)| SeriesEntry::bytes_of(info));
            size_of::<Group>() * found.len() + entries.sum::<usize>()
        }
        // A reference, an ID, and the values of the tags.
        SeriesMerge::All | SeriesMerge::By(_) => found.len() * 4 * size_of::<usize>(),
    };
    budget.reserve(bytes)?;
    Ok(groups(found, merge))
}

fn groups(found: &[(SeriesId, SeriesInfo)], merge: &SeriesMerge) -> Vec<Group> {
    match merge {
        SeriesMerge::Nothing => found.iter().map(Group::single).collect(),
        SeriesMerge::All if found.is_empty() => Vec::new(),
        SeriesMerge::All => {
            let members: Vec<_> = found.iter().collect();
            let tags = common_tags(found.iter().map(|(_, info)| &info.key));
            vec![Group::of(&members, tags)]
        }
        SeriesMerge::By(names) => {
            let mut groups: BTreeMap<Vec<&str>, Vec<&(SeriesId, SeriesInfo)>> = BTreeMap::new();
            for series in found {
                let values = names.iter().map(|name| series.1.key.tag(name).unwrap_or_default());
                groups.entry(values.collect()).or_default().push(series);
            }
            let line = |(values, members): (Vec<&str>, Vec<_>)| {
                let tags = names.iter().zip(values).filter(|(_, value)| !value.is_empty());
                Group::of(&members, tags.map(|(n, v)| (n.clone(), v.to_owned())).collect())
            };
            groups.into_iter().map(line).collect()
        }
    }
}

/// Rejects a query with more lines than an answer may have.
pub(crate) fn check_lines(lines: usize, limits: &QueryLimits) -> Result<(), QueryError> {
    if lines > limits.lines_max {
        return Err(QueryError::TooMuch(format!(
            "{lines} lines exceed the limit of {}: group by fewer tags, select by more tags or \
             rank the lines",
            limits.lines_max
        )));
    }
    Ok(())
}

fn common_tags<'a>(mut keys: impl Iterator<Item = &'a SeriesKey>) -> BTreeMap<String, String> {
    let owned_pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut tags: BTreeMap<_, _> =
        keys.next().map(|key| key.tags().map(owned_pair).collect()).unwrap_or_default();
    for key in keys {
        tags.retain(|name, value| key.tag(name) == Some(value));
    }
    tags
}

/// The highest or lowest lines so far.
pub(crate) struct Ranking<T> {
    rank: Rank,
    lines: Vec<(f64, T)>,
}

impl<T> Ranking<T> {
    pub(crate) fn new(rank: Rank) -> Self {
        Self { rank, lines: Vec::new() }
    }

    /// Returns the maximum number of lines in memory.
    pub(crate) fn lines_in_memory_max(rank: Rank) -> usize {
        rank.count.saturating_mul(2).saturating_add(8)
    }

    /// Adds a line. Lines without a number are dropped.
    pub(crate) fn push(&mut self, number: Option<f64>, line: T) {
        let Some(number) = number else { return };
        self.lines.push((number, line));
        if self.lines.len() >= Self::lines_in_memory_max(self.rank) {
            self.drop_surplus();
        }
    }

    fn drop_surplus(&mut self) {
        // The sort is stable: equal lines keep their order.
        let lowest = self.rank.lowest;
        self.lines.sort_by(|(a, _), (b, _)| if lowest { a.total_cmp(b) } else { b.total_cmp(a) });
        self.lines.truncate(self.rank.count);
    }

    /// Returns the ranked lines, best first.
    pub(crate) fn finish(mut self) -> impl Iterator<Item = T> {
        self.drop_surplus();
        self.lines.into_iter().map(|(_, line)| line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup;

    fn series(id: u32, tags: &[(&str, &str)]) -> (SeriesId, SeriesInfo) {
        let info = setup::series("m", tags, Kind::Gauge);
        (SeriesId(id), SeriesInfo { unit: "bytes".into(), ..info })
    }

    #[test]
    fn series_are_grouped_by_tags_and_series_without_the_tags_come_first() {
        let found = [
            series(0, &[("core", "0"), ("host", "b"), ("zone", "z")]),
            series(1, &[("core", "1"), ("host", "a"), ("zone", "z")]),
            series(2, &[("core", "1"), ("host", "b"), ("zone", "z")]),
            series(3, &[("zone", "z")]),
        ];
        let members = |merge: &SeriesMerge| {
            let groups = groups(&found, merge).into_iter();
            let shown = groups.map(|group| {
                let tags: Vec<_> = group.entry.tags.into_values().collect();
                (tags.join(" "), group.members.iter().map(|id| id.0).collect::<Vec<_>>())
            });
            shown.collect::<Vec<_>>()
        };
        let group = |tags: &str, ids: &[u32]| (tags.to_owned(), ids.to_vec());
        assert_eq!(members(&SeriesMerge::All), [group("z", &[0, 1, 2, 3])]);
        assert_eq!(
            members(&SeriesMerge::By(vec!["host".into()])),
            [group("", &[3]), group("a", &[1]), group("b", &[0, 2])]
        );
        assert_eq!(members(&SeriesMerge::Nothing).len(), 4);
        assert!(groups(&[], &SeriesMerge::All).is_empty());
    }

    #[test]
    fn the_best_lines_come_first_and_equal_lines_keep_their_order() {
        let ranked = |lowest, count| {
            let mut ranking = Ranking::new(Rank { count, by: None, lowest });
            for line in 0..100 {
                let number = if line == 50 { None } else { Some(f64::from(line / 2)) };
                ranking.push(number, line);
            }
            ranking.finish().collect::<Vec<_>>()
        };
        assert_eq!(ranked(false, 3), [98, 99, 96]);
        assert_eq!(ranked(true, 3), [0, 1, 2]);
        assert!(ranked(true, 0).is_empty());
    }
}
