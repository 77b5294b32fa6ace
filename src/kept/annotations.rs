//! The annotations of a store, up to a limit; the oldest are removed.
//!
//! Must never know: HTTP, the detection of hosts' events.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use serde::Serialize;

use super::{
    Annotation, NewAnnotation, ObjectFault, Records,
    annotation::{SPAN_MAX_MS, first_id, id, parse_id},
};
use crate::{
    model::UnixMillis,
    store::{ObjectKind, Store},
};

/// The maximum number of annotations in a response; the newest of the range are returned.
pub const ANNOTATIONS_ANSWERED_MAX: usize = 1000;

/// The number of annotations that one insertion may remove, after the limit was lowered.
const REMOVED_AT_ONCE_MAX: usize = 100;

/// The annotations of a store. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Annotations {
    records: Records<Annotation>,
    count_max: usize,
    /// The names of all annotations; `None` until they are read. Changes hold the lock, so that
    /// they run one at a time.
    names: Arc<Mutex<Option<BTreeSet<String>>>>,
}

/// A query for annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationsQuery {
    /// The start of the range.
    pub start: UnixMillis,
    /// The end of the range, exclusive.
    pub end: UnixMillis,
    /// The tags: annotations with other values of these tags are excluded.
    pub tags: Vec<(String, String)>,
}

/// Annotations in the order of their times.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct AnnotationsAnswer {
    annotations: Vec<Annotation>,
    /// The minimum number of earlier annotations in the range that were cut off.
    left_out: usize,
}

impl AnnotationsAnswer {
    /// Returns the newest of the annotations, which may be in any order.
    fn newest(mut all: Vec<Annotation>) -> Self {
        all.sort_by(|a, b| (a.time, &a.id).cmp(&(b.time, &b.id)));
        let left_out = all.len().saturating_sub(ANNOTATIONS_ANSWERED_MAX);
        Self { annotations: all.split_off(left_out), left_out }
    }
}

impl Annotations {
    /// Returns the annotations of a store, which keeps at most `count_max`.
    pub fn new(store: &Store, count_max: usize) -> Self {
        let records = Records::new(store, ObjectKind::Annotation);
        Self { records, count_max, names: Arc::default() }
    }

    /// Returns the matching annotations, together with `others`, such as events of hosts.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(
        &self,
        query: &AnnotationsQuery,
        others: impl IntoIterator<Item = Annotation>,
    ) -> Result<AnnotationsAnswer, ObjectFault> {
        let AnnotationsQuery { start, end, tags } = query;
        let matches_query = |annotation: &Annotation| annotation.is_about(*start, *end, tags);
        let mut found: Vec<_> = others.into_iter().collect();
        // An annotation that began before the range may extend into it.
        let earliest = start.minus(SPAN_MAX_MS).max(UnixMillis::MIN);
        let names = first_id(earliest)..first_id(*end);
        let names = names.start.as_str()..names.end.as_str();
        // A damaged annotation must not hide the others.
        let read = self.records.range(names)?.into_iter().filter_map(|(_, read)| read.ok());
        found.extend(read.filter(matches_query));
        Ok(AnnotationsAnswer::newest(found))
    }

    /// Creates an annotation, durably. Returns its name, and the number of old annotations that
    /// were removed.
    ///
    /// # Errors
    /// The annotation is invalid, the store has no room for it, or the store cannot be written.
    pub fn add(&self, new: NewAnnotation, now: UnixMillis) -> Result<(String, usize), ObjectFault> {
        let mut annotation = new.check(now)?;
        let time = UnixMillis(annotation.time);
        self.change(|names| {
            let mut removed = 0;
            while names.len() >= self.count_max
                && removed < REMOVED_AT_ONCE_MAX
                && let Some(oldest) = names.first().cloned()
            {
                self.records.remove(&oldest)??;
                names.remove(&oldest);
                removed += 1;
            }
            let last = names.range(first_id(time)..first_id(time.plus(1))).next_back();
            let index = last.and_then(|last| parse_id(last)).map_or(0, |(_, index)| index + 1);
            annotation.id = id(time, index);
            self.records.put(&annotation.id, &annotation, now)??;
            names.insert(annotation.id.clone());
            Ok((annotation.id.clone(), removed))
        })
    }

    /// Deletes an annotation, durably.
    ///
    /// # Errors
    /// There is no such annotation, or the store cannot be written.
    pub fn delete(&self, id: &str) -> Result<(), ObjectFault> {
        self.change(|names| {
            if !names.contains(id) {
                let message = format!("there is no posted annotation {id:?}");
                return Err(ObjectFault::NotFound(message));
            }
            self.records.remove(id)??;
            names.remove(id);
            Ok(())
        })
    }

    /// Makes a change that needs the names of all annotations. After a failure the names are read
    /// again, because the outcome is unknown.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut BTreeSet<String>) -> Result<T, ObjectFault>,
    ) -> Result<T, ObjectFault> {
        let mut cached = self.names.lock();
        let mut names = match cached.take() {
            Some(names) => names,
            None => self.records.names()?.into_iter().collect(),
        };
        let outcome = change(&mut names);
        let is_certain = !matches!(outcome, Err(ObjectFault::Store(_) | ObjectFault::Refused(_)));
        *cached = is_certain.then_some(names);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::setup::{self, NOW};

    #[test]
    fn the_oldest_annotations_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _appender) = setup::open(dir.path(), NOW);
        let annotations = Annotations::new(&store, 3);
        let add = |minute: i64| {
            let time = NOW.0 + minute * 60_000;
            let new = json!({ "text": "deploy", "time": time });
            annotations.add(serde_json::from_value(new).unwrap(), NOW).unwrap()
        };
        let names: Vec<_> = [0, 2, 1]
            .map(add)
            .into_iter()
            .map(|(name, removed)| {
                assert_eq!(removed, 0);
                name
            })
            .collect();
        assert_eq!(add(3).1, 1);
        assert!(matches!(annotations.delete(&names[0]), Err(ObjectFault::NotFound(_))));
        assert!(annotations.delete(&names[1]).is_ok() && annotations.delete(&names[2]).is_ok());
    }
}
