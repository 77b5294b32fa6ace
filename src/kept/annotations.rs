//! The annotations of a store: the newest ones, up to a limit.
//!
//! Must never know: HTTP, and how the events of hosts are known.

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

/// Annotations of one answer; the newest of the range.
pub const ANNOTATIONS_ANSWERED_MAX: usize = 1000;

/// Annotations that make room for one, after the limit was lowered.
const ROOM_AT_ONCE: usize = 100;

/// The annotations of a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Annotations {
    records: Records<Annotation>,
    count_max: usize,
    /// The names of all, once they were read. Held through each change, so that there is one at a
    /// time.
    names: Arc<Mutex<Option<BTreeSet<String>>>>,
}

/// Which annotations are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationsWanted {
    /// They are about some time from here ...
    pub start: UnixMillis,
    /// ... to before here,
    pub end: UnixMillis,
    /// and have no other values of these tags.
    pub tags: Vec<(String, String)>,
}

/// Annotations in the order of their times.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct AnnotationsAnswer {
    annotations: Vec<Annotation>,
    /// The least number of earlier ones in the range, for which there was no room.
    left_out: usize,
}

impl AnnotationsAnswer {
    /// The newest of `all`, whatever their order.
    fn newest(mut all: Vec<Annotation>) -> Self {
        all.sort_by(|a, b| (a.time, &a.id).cmp(&(b.time, &b.id)));
        let left_out = all.len().saturating_sub(ANNOTATIONS_ANSWERED_MAX);
        Self { annotations: all.split_off(left_out), left_out }
    }
}

impl Annotations {
    /// The annotations of a store, which keeps at most `count_max`.
    pub fn new(store: &Store, count_max: usize) -> Self {
        let records = Records::new(store, ObjectKind::Annotation);
        Self { records, count_max, names: Arc::default() }
    }

    /// The annotations that are wanted, with others that are, such as events of hosts.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(
        &self,
        wanted: &AnnotationsWanted,
        others: impl IntoIterator<Item = Annotation>,
    ) -> Result<AnnotationsAnswer, ObjectFault> {
        let AnnotationsWanted { start, end, tags } = wanted;
        let is_wanted = |own: &Annotation| own.is_about(*start, *end, tags);
        let mut found: Vec<_> = others.into_iter().collect();
        // One that began before the range may go on in it.
        let earliest = start.minus(SPAN_MAX_MS).max(UnixMillis::MIN);
        let names = first_id(earliest)..first_id(*end);
        let names = names.start.as_str()..names.end.as_str();
        // A damaged one is no reason to show none.
        let read = self.records.range(names)?.into_iter().filter_map(|(_, read)| read.ok());
        found.extend(read.filter(is_wanted));
        Ok(AnnotationsAnswer::newest(found))
    }

    /// Makes an annotation, durably; returns its name, and how many others made room for it.
    ///
    /// # Errors
    /// When it cannot be as it is, there is no room, or the store cannot be written.
    pub fn add(&self, new: NewAnnotation, now: UnixMillis) -> Result<(String, usize), ObjectFault> {
        let mut annotation = new.check(now)?;
        let time = UnixMillis(annotation.time);
        self.change(|names| {
            let mut forgotten = 0;
            while names.len() >= self.count_max
                && forgotten < ROOM_AT_ONCE
                && let Some(oldest) = names.first().cloned()
            {
                self.records.remove(&oldest)??;
                names.remove(&oldest);
                forgotten += 1;
            }
            let last = names.range(first_id(time)..first_id(time.plus(1))).next_back();
            let index = last.and_then(|last| parse_id(last)).map_or(0, |(_, index)| index + 1);
            annotation.id = id(time, index);
            self.records.put(&annotation.id, &annotation, now)??;
            names.insert(annotation.id.clone());
            Ok((annotation.id.clone(), forgotten))
        })
    }

    /// Deletes an annotation, durably.
    ///
    /// # Errors
    /// When there is none, or the store cannot be written.
    pub fn delete(&self, id: &str) -> Result<(), ObjectFault> {
        self.change(|names| {
            if !names.contains(id) {
                let message = format!("there is no annotation {id:?} that somebody posted");
                return Err(ObjectFault::NotFound(message));
            }
            self.records.remove(id)??;
            names.remove(id);
            Ok(())
        })
    }

    /// Makes a change with all names at hand. After a failure they are read anew: the change may be
    /// there or not.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut BTreeSet<String>) -> Result<T, ObjectFault>,
    ) -> Result<T, ObjectFault> {
        let mut own = self.names.lock();
        let mut names = match own.take() {
            Some(names) => names,
            None => self.records.names()?.into_iter().collect(),
        };
        let outcome = change(&mut names);
        let is_certain = !matches!(outcome, Err(ObjectFault::Store(_) | ObjectFault::Refused(_)));
        *own = is_certain.then_some(names);
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
            .map(|(name, forgotten)| {
                assert_eq!(forgotten, 0);
                name
            })
            .collect();
        assert_eq!(add(3).1, 1);
        assert!(matches!(annotations.delete(&names[0]), Err(ObjectFault::NotFound(_))));
        assert!(annotations.delete(&names[1]).is_ok() && annotations.delete(&names[2]).is_ok());
    }
}
