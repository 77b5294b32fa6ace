//! Documents by levels of all shards: the months of each shard as bytes, and their sums.
//!
//! Must never know: how levels are read, where the shards are.

use std::collections::{BTreeMap, btree_map::Entry};

use crate::{
    model::{Kind, UnixMillis},
    query::{
        Budget, DocumentsAnswer, LevelPart, LevelsDocument, QueryError, QueryLimits, SeriesEntry,
        SeriesMerge, Timestamp,
        chart::{identity, join_entries},
        messages::{damaged_answer, damaged_question},
        series::{grouping::check_lines, suggestion},
        wire::{count, has_element, number, put_count, put_element, put_end, put_text, put_value},
        wire::{take, text, value},
    },
};

/// Returns the months of one shard as bytes.
pub(super) fn encoded(answer: DocumentsAnswer) -> Result<Vec<u8>, QueryError> {
    let DocumentsAnswer::Levels { documents, notes } = answer else {
        return Err(damaged_question());
    };
    let mut out = Vec::new();
    put_count(notes.len(), &mut out);
    for note in &notes {
        put_text(note, &mut out);
    }
    for LevelsDocument { series, date, days, .. } in &documents {
        put_element(&mut out);
        put_text(&series.metric, &mut out);
        put_count(series.tags.len(), &mut out);
        for (name, value) in &series.tags {
            put_text(name, &mut out);
            put_text(value, &mut out);
        }
        put_text(&series.unit, &mut out);
        out.push(series.kind.code());
        out.extend(date.0.0.to_le_bytes());
        put_parts(days, &mut out);
    }
    put_end(&mut out);
    Ok(out)
}

fn put_parts(parts: &[LevelPart], out: &mut Vec<u8>) {
    put_count(parts.len(), out);
    for LevelPart { date, num_samples, total_samples, hours, minutes } in parts {
        out.extend(date.0.0.to_le_bytes());
        out.extend(num_samples.to_le_bytes());
        put_value(*total_samples, out);
        for below in [hours, minutes] {
            out.push(u8::from(below.is_some()));
            if let Some(below) = below {
                put_parts(below, out);
            }
        }
    }
}

/// A line with its months.
type Months = (SeriesEntry, BTreeMap<i64, LevelsDocument>);

/// Adds up the months of all shards.
pub(super) fn added(
    answers: &[Vec<u8>],
    budget: &Budget,
    merge: &SeriesMerge,
    limits: &QueryLimits,
) -> Result<DocumentsAnswer, QueryError> {
    let mut lines = BTreeMap::<(String, Option<u8>), Months>::new();
    let mut all_notes = Vec::new();
    for mut bytes in answers.iter().map(Vec::as_slice) {
        all_notes.push(notes(&mut bytes).ok_or_else(damaged_answer)?);
        while has_element(&mut bytes).ok_or_else(damaged_answer)? {
            budget.check()?;
            let month = month(&mut bytes).ok_or_else(damaged_answer)?;
            budget.reserve(2 * month.series.bytes() + memory(&month.days))?;
            // The same name with two kinds in two shards is two series.
            let kind = (*merge == SeriesMerge::Nothing).then(|| month.series.kind.code());
            let (entry, months) = lines
                .entry((identity(&month.series, merge), kind))
                .or_insert_with(|| (month.series.clone(), BTreeMap::new()));
            join_entries(entry, &month.series);
            match months.entry(month.date.0.0) {
                Entry::Vacant(entry) => drop(entry.insert(month)),
                Entry::Occupied(mut entry) => entry.get_mut().add(month),
            }
        }
    }
    check_lines(lines.len(), limits)?;
    let mut documents = Vec::new();
    for (series, months) in lines.into_values() {
        let months = months.into_values();
        documents.extend(months.map(|month| LevelsDocument { series: series.clone(), ..month }));
    }
    Ok(DocumentsAnswer::Levels { documents, notes: suggestion::of_shards(all_notes) })
}

fn notes(bytes: &mut &[u8]) -> Option<Vec<String>> {
    (0..count(bytes)?).map(|_| text(bytes).map(str::to_owned)).collect()
}

fn month(bytes: &mut &[u8]) -> Option<LevelsDocument> {
    let metric = text(bytes)?.to_owned();
    let mut tags = BTreeMap::new();
    for _ in 0..count(bytes)? {
        tags.insert(text(bytes)?.to_owned(), text(bytes)?.to_owned());
    }
    let unit = text(bytes)?.to_owned();
    let [kind] = take(bytes)?;
    let series = SeriesEntry { metric, tags, kind: *Kind::ALL.get(usize::from(kind))?, unit };
    let date = Timestamp(UnixMillis(number(bytes)?));
    Some(LevelsDocument::of_days(series, date, parts(bytes, DEPTH)?))
}

/// The number of levels: days, hours and minutes.
const DEPTH: usize = 3;

fn parts(bytes: &mut &[u8], depth: usize) -> Option<Vec<LevelPart>> {
    let below = depth.checked_sub(1)?;
    let part = |bytes: &mut &[u8]| {
        let date = Timestamp(UnixMillis(number(bytes)?));
        let num_samples = take(bytes).map(u64::from_le_bytes)?;
        let total_samples = value(bytes)?;
        let mut next = || match take(bytes)? {
            [0] => Some(None),
            [_] => parts(bytes, below).map(Some),
        };
        let (hours, minutes) = (next()?, next()?);
        Some(LevelPart { date, num_samples, total_samples, hours, minutes })
    };
    (0..count(bytes)?).map(|_| part(bytes)).collect()
}

/// Returns the memory of parts and of the parts below.
fn memory(parts: &[LevelPart]) -> usize {
    let below = parts.iter().flat_map(|part| [&part.hours, &part.minutes]).flatten();
    size_of_val(parts) + below.map(|parts| memory(parts)).sum::<usize>()
}

impl LevelsDocument {
    fn of_days(series: SeriesEntry, date: Timestamp, days: Vec<LevelPart>) -> Self {
        let num_samples = days.iter().map(|day| day.num_samples).sum();
        let total_samples = days.iter().map(|day| day.total_samples).sum();
        Self { series, date, num_samples, total_samples, days }
    }

    /// Adds the same month of another shard.
    fn add(&mut self, other: Self) {
        let days = sums(std::mem::take(&mut self.days), other.days);
        *self = Self::of_days(self.series.clone(), self.date, days);
    }
}

/// Returns the sums of the parts that both shards have stored.
fn sums(parts: Vec<LevelPart>, others: Vec<LevelPart>) -> Vec<LevelPart> {
    let others = others.into_iter().map(|part| (part.date.0.0, part));
    let mut others: BTreeMap<i64, LevelPart> = others.collect();
    let below = |parts: Option<Vec<LevelPart>>, others: Option<Vec<LevelPart>>| {
        parts.zip(others).map(|(parts, others)| sums(parts, others))
    };
    let both = parts.into_iter().filter_map(|part| {
        let other = others.remove(&part.date.0.0)?;
        Some(LevelPart {
            date: part.date,
            num_samples: part.num_samples.saturating_add(other.num_samples),
            total_samples: part.total_samples + other.total_samples,
            hours: below(part.hours, other.hours),
            minutes: below(part.minutes, other.minutes),
        })
    });
    both.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup;

    const LIMITS: QueryLimits = QueryLimits { lines_max: 1, series_max: 1, points_max: 1 };

    fn part(at: i64, n: u64, hours: Option<Vec<LevelPart>>) -> LevelPart {
        let (date, total_samples) = (Timestamp(UnixMillis(at)), n as f64 / 3.0);
        LevelPart { date, num_samples: n, total_samples, hours, minutes: None }
    }

    fn answer(days: Vec<LevelPart>) -> DocumentsAnswer {
        let info = setup::series("m", &[("host", "a")], Kind::Gauge);
        let (series, date) = (SeriesEntry::new(&info), Timestamp(UnixMillis(0)));
        let documents = vec![LevelsDocument::of_days(series, date, days)];
        DocumentsAnswer::Levels { documents, notes: Vec::new() }
    }

    fn sum_of(answers: &[Vec<u8>]) -> Result<DocumentsAnswer, QueryError> {
        added(answers, &Budget::UNLIMITED, &SeriesMerge::Nothing, &LIMITS)
    }

    #[test]
    fn months_come_back_exactly_and_no_prefix_is_whole() {
        let month = answer(vec![part(0, 7, Some(vec![part(0, 7, None)])), part(9, 1, None)]);
        let bytes = encoded(month.clone()).unwrap();
        assert_eq!(sum_of(std::slice::from_ref(&bytes)).unwrap(), month);
        assert!((0..bytes.len()).all(|length| sum_of(&[bytes[..length].to_vec()]).is_err()));
    }

    #[test]
    fn series_of_one_name_and_two_kinds_are_two_lines_unless_they_are_merged() {
        let of_kind = |kind| {
            let DocumentsAnswer::Levels { mut documents, .. } = answer(vec![part(0, 3, None)])
            else {
                panic!("the answer has levels")
            };
            documents[0].series.kind = kind;
            DocumentsAnswer::Levels { documents, notes: Vec::new() }
        };
        let answers = [Kind::Gauge, Kind::Counter].map(|kind| encoded(of_kind(kind)).unwrap());
        let limits = QueryLimits { lines_max: 2, ..LIMITS };
        let counts = |merge| {
            let found = added(&answers, &Budget::UNLIMITED, &merge, &limits).unwrap();
            let DocumentsAnswer::Levels { documents, .. } = found else {
                panic!("the answer has levels")
            };
            documents.iter().map(|document| document.num_samples).collect::<Vec<_>>()
        };
        assert_eq!(counts(SeriesMerge::Nothing), [3, 3]);
        assert_eq!(counts(SeriesMerge::All), [6]);
    }

    #[test]
    fn the_sum_of_two_shards_has_the_parts_that_both_have_stored() {
        let hours = |n| Some(vec![part(0, n, None)]);
        let one = encoded(answer(vec![part(0, 3, hours(3)), part(9, 6, hours(6))])).unwrap();
        let other = encoded(answer(vec![part(9, 9, None), part(20, 1, None)])).unwrap();
        assert_eq!(sum_of(&[one, other]).unwrap(), answer(vec![part(9, 15, None)]));
    }
}
