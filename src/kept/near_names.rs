//! New metrics whose names differ in one letter from a known metric of the same sender, which may
//! be a typo. These metrics are stored like all others, and a note lists them.
//!
//! Must never know: who shows the notes.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use parking_lot::Mutex;
use strsim::osa_distance;

use crate::{
    model::{
        DEFAULT_PROJECT, METRIC_TAG, ProjectName, SeriesId, UnixMillis, split_stored_name,
        with_noun,
    },
    store::Store,
};

/// The maximum number of new metrics that one run compares; the next run continues.
const COMPARED_MAX: usize = 64;
/// Number of series, or of names, that are read while the dictionary is locked.
const CHUNK: usize = 4096;
/// The maximum number of series of a known metric whose senders are compared.
const SERIES_MAX: usize = 1000;
/// The maximum number of notes; a new note replaces the oldest.
const NOTES_MAX: usize = 20;
/// The number of notes in a warning.
const SHOWN_MAX: usize = 3;
/// The time for which a note is shown.
const SHOWN_MS: i64 = 86_400_000;
/// Minimum length of a name; shorter names often differ in one letter by chance.
const NAME_CHARS_MIN: usize = 5;

/// A new metric, and the known metric with nearly the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearName {
    /// The new metric.
    pub metric: String,
    /// The known metric.
    pub known: String,
    /// The stored name of the sender of both.
    pub sender: Arc<str>,
    /// The time at which the new metric was noticed.
    pub at: UnixMillis,
}

/// The notes. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct NearNames(Arc<Mutex<NoteState>>);

#[derive(Debug, Default)]
struct NoteState {
    /// The number of series that were compared; `None` before the first run.
    compared: Option<u32>,
    notes: VecDeque<NearName>,
}

impl NearNames {
    /// Compares the metrics that are new since the last call, and returns the new notes. The first
    /// call only counts the known series.
    pub fn compare(&self, store: &Store, now: UnixMillis) -> Vec<NearName> {
        let count = store.all_series().id_count() as u32;
        let Some(known) = self.0.lock().compared.replace(count) else { return Vec::new() };
        let (new, end) = new_metrics(store, known..count);
        let mut found = Vec::new();
        for (metric, sender) in new {
            if let Some(near) = near_metric(store, &metric, &sender, known) {
                found.push(NearName { metric, known: near, sender, at: now });
            }
        }
        let mut state = self.0.lock();
        state.compared = Some(end);
        state.notes.extend(found.iter().cloned());
        let surplus = state.notes.len().saturating_sub(NOTES_MAX);
        state.notes.drain(..surplus);
        found
    }

    /// Returns a text about the notes of the last day, if there are any.
    pub fn warning(&self, now: UnixMillis) -> Option<String> {
        let state = self.0.lock();
        let notes: Vec<_> =
            state.notes.iter().filter(|note| now.since(note.at) < SHOWN_MS).collect();
        let shown =
            notes.iter().rev().take(SHOWN_MAX).map(|NearName { metric, known, sender, .. }| {
                let (project, sender) = split_stored_name(sender);
                let project = match project {
                    DEFAULT_PROJECT => String::new(),
                    project => format!(" of project {project}"),
                };
                format!("{metric} (like {known}, from {sender}{project})")
            });
        let shown = shown.collect::<Vec<_>>().join(", ");
        let count = with_noun(notes.len() as u64, "new metric");
        (!notes.is_empty()).then(|| {
            format!(
                "{count} may be typos, because they differ in one letter from known metrics of the \
                 same sender: {shown}"
            )
        })
    }
}

/// Returns metrics whose first series are in a range of IDs, each with the sender of that series,
/// and the ID at which the search ended.
fn new_metrics(store: &Store, ids: Range<u32>) -> (Vec<(String, Arc<str>)>, u32) {
    let mut found = Vec::new();
    for first in ids.clone().step_by(CHUNK) {
        let dictionary = store.all_series();
        for id in (first..ids.end.min(first + CHUNK as u32)).map(SeriesId) {
            let Some(key) = dictionary.key(id) else { continue };
            let Some(info) = dictionary.info(id) else { continue };
            if !dictionary.is_first(&info, id) || key.metric().chars().count() < NAME_CHARS_MIN {
                continue;
            }
            if found.len() == COMPARED_MAX {
                return (found, id.0);
            }
            found.push((key.metric().to_owned(), info.sender));
        }
    }
    (found, ids.end)
}

/// Returns a metric that nearly equals another and of which the sender, by its stored name, has one
/// of the first `known` series.
fn near_metric(store: &Store, metric: &str, sender: &str, known: u32) -> Option<String> {
    let (project, sender) = split_stored_name(sender);
    let store = store.for_project(&ProjectName::new(project).ok()?);
    let mut after: Option<Box<str>> = None;
    loop {
        let dictionary = store.dictionary();
        let mut near = Vec::new();
        after = dictionary.visit_values(METRIC_TAG, after.as_deref(), CHUNK, |name| {
            if differ_in_a_letter(metric, name) {
                near.push(name.to_owned());
            }
        });
        let has_sender = |name: &String| {
            let series = dictionary.with_tag(METRIC_TAG, name).iter().take(SERIES_MAX);
            let mut older = series.take_while(|id| id.0 < known);
            older.any(|id| dictionary.info(*id).is_some_and(|info| *info.sender == *sender))
        };
        let found = near.into_iter().find(has_sender);
        if found.is_some() || after.is_none() {
            return found;
        }
    }
}

/// Returns true when two names differ in one letter, or in the order of two letters. Names that
/// differ in a digit are usually meant.
fn differ_in_a_letter(first: &str, second: &str) -> bool {
    if first.len().abs_diff(second.len()) > 4 || first == second {
        return false;
    }
    let without_digits = |name: &str| name.replace(|c: char| c.is_ascii_digit(), "");
    osa_distance(first, second) == 1 && without_digits(first) != without_digits(second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::Kind,
        setup::{NOW, define, open, series},
    };

    #[test]
    fn names_that_differ_in_a_letter_are_near() {
        for (first, second, expected) in [
            ("http_requests_total", "http_request_total", true),
            ("cpu_user", "cpu_usre", true),
            ("cpu_user", "cpu_usar", true),
            ("core_0", "core_1", false),
            ("latency_p9", "latency_p95", false),
            ("cpu_user", "cpu_user", false),
            ("cpu_user", "cpu_users_x", false),
        ] {
            assert_eq!(differ_in_a_letter(first, second), expected, "{first} {second}");
        }
    }

    #[test]
    fn a_new_metric_is_noted_when_the_sender_has_a_near_one() {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = open(dir.path(), NOW);
        let names = NearNames::default();
        let mut add = |metric: &str, sender: &str| {
            let info = series(metric, &[], Kind::Gauge);
            define(
                &mut appender,
                &[crate::model::SeriesInfo { sender: sender.into(), ..info }],
                NOW,
            );
        };
        add("requests", "web");
        add("responses", "other");
        assert_eq!(names.compare(&store, NOW), []);
        assert_eq!(names.warning(NOW), None);
        add("reqests", "web");
        add("responces", "web");
        add("bytes", "web");
        add("bites", "web");
        let found = names.compare(&store, NOW);
        let found: Vec<_> = found.iter().map(|note| (&*note.metric, &*note.known)).collect();
        assert_eq!(found, [("reqests", "requests")], "the others are new or of another sender");
        let warning = names.warning(NOW).unwrap();
        assert!(warning.contains("1 new metric") && warning.contains("reqests"), "{warning}");
        assert_eq!(names.warning(NOW.plus(SHOWN_MS)), None);
        assert_eq!(names.compare(&store, NOW), []);
    }
}
