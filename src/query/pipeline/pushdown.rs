//! What is pushed down to reading: which series, which times and how deep a pipeline can see at all, read
//! from its first stages, so that nothing else is read.
//!
//! Must never know: the store. What is found may be too much and is never too little: the stages
//! themselves decide.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use super::{
    path::Path,
    predicate::{Comparison, Predicate, Test},
    projection::Projection,
    stage::Stage,
    value::Value,
};
use crate::model::UnixMillis;

/// Fields that hold other fields: to name one is to want all that is in it.
const CONTAINERS: [&str; 4] = ["days", "hours", "minutes", "counts"];

/// Which of the names in a document are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    /// Every name and text of the pipeline.
    words: BTreeSet<String>,
    /// Documents are shown, or passed on, whole.
    everything: bool,
}

impl Words {
    pub(super) fn of(pipeline: &Value, stages: &[Stage]) -> Self {
        let everything = !stages.iter().any(narrows);
        let mut own = Self { words: BTreeSet::new(), everything };
        own.note_stages(pipeline, stages);
        own
    }

    fn note_stages(&mut self, pipeline: &Value, stages: &[Stage]) {
        let Value::List(values) = pipeline else { return };
        for (stage, value) in stages.iter().zip(values) {
            if let (Stage::Facet(facets), Value::Fields(fields)) = (stage, value)
                && let Some(("$facet", Value::Fields(fields))) = fields.single()
            {
                for ((_, stages), (_, pipeline)) in facets.iter().zip(fields.iter()) {
                    self.note_stages(pipeline, stages);
                }
                continue;
            }
            self.note(value, matches!(stage, Stage::Unwind { .. } | Stage::Match(_)));
        }
    }

    fn note(&mut self, value: &Value, passes_through: bool) {
        match value {
            Value::Text(text) => {
                self.note_text(text, passes_through || !text.starts_with('$'));
            }
            Value::List(values) => values.iter().for_each(|own| self.note(own, passes_through)),
            Value::Fields(fields) => {
                for (name, value) in fields.iter() {
                    // A name is kept as it is only by `name: 1`.
                    let is_kept = matches!(value, Value::Bool(true)) || value.number().is_some();
                    let shows = !passes_through && is_kept;
                    self.note_text(name, !shows);
                    self.note(value, passes_through);
                }
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Date(_) => {}
        }
    }

    fn note_text(&mut self, text: &str, passes_through: bool) {
        self.everything |= text == "$$ROOT";
        let names = text.trim_start_matches('$').split('.');
        self.everything |= !passes_through
            && names.clone().next_back().is_some_and(|last| CONTAINERS.contains(&last));
        self.words.extend(names.map(str::to_owned));
    }

    /// Whether a field of this name is wanted.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.everything || self.words.contains(name)
    }

    /// The names that are wanted; `None` when all are.
    pub(super) fn names(&self) -> Option<impl Iterator<Item = &str>> {
        (!self.everything).then(|| self.words.iter().map(String::as_str))
    }
}

/// What the first stages ask of the fields of the documents that come from the store.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// Tests that fields must pass, which may be tags.
    pub(super) tests: Vec<(String, Test)>,
    /// `date` of the document.
    pub(super) dates: Range<UnixMillis>,
    /// `date` of the elements of `days`, once those are documents of their own.
    pub(super) days: Range<UnixMillis>,
    /// Paths of lists that are left out before anything sees them.
    pub(super) hidden: BTreeSet<String>,
}

impl Wanted {
    pub(super) fn of(pipeline: &Value, stages: &[Stage]) -> Self {
        let always = UnixMillis::MIN..UnixMillis::MAX;
        let hidden = hidden(pipeline, stages);
        let mut own = Self { tests: Vec::new(), dates: always.clone(), days: always, hidden };
        let mut unwound: Vec<&Path> = Vec::new();
        let mut sees_all_days = false;
        for stage in stages {
            match stage {
                Stage::Match(predicate) => {
                    let is_whole = !unwound.iter().any(|path| path.is("days"));
                    predicate.for_each_field(&mut |path| {
                        let names_days =
                            path.is_none_or(|path| path.names().first().is_some_and(is_days));
                        sees_all_days |= is_whole && names_days;
                    });
                    own.note(predicate, &unwound);
                }
                Stage::Unwind { path, .. } => unwound.push(path),
                Stage::Group { .. }
                | Stage::Project(_)
                | Stage::AddFields(_)
                | Stage::Sort(_)
                | Stage::Limit(_)
                | Stage::Skip(_)
                | Stage::Count(_)
                | Stage::Distinct(_)
                | Stage::Buckets { .. }
                | Stage::Replace(_)
                | Stage::Facet(_) => break,
            }
        }
        if sees_all_days {
            own.days = UnixMillis::MIN..UnixMillis::MAX;
        }
        own
    }

    fn note(&mut self, predicate: &Predicate, unwound: &[&Path]) {
        predicate.for_each_must(&mut |path, test| {
            let is_unwound = |name: &str| unwound.iter().any(|path| path.is(name));
            if path.is("date") {
                narrow(&mut self.dates, test);
            } else if path.is("days.date") && is_unwound("days")
                || path.is("days.hours.date") && is_unwound("days.hours")
                || path.is("days.hours.minutes.date") && is_unwound("days.hours.minutes")
            {
                narrow(&mut self.days, test);
            } else if let [name] = path.names() {
                self.tests.push((name.to_string(), test.clone()));
            }
        });
    }
}

/// Whether no later stage sees more of a document than this one names.
fn narrows(stage: &Stage) -> bool {
    match stage {
        Stage::Group { .. }
        | Stage::Count(_)
        | Stage::Distinct(_)
        | Stage::Buckets { .. }
        | Stage::Project(Projection::Include(_)) => true,
        Stage::Facet(facets) => facets.iter().all(|(_, own)| own.iter().any(narrows)),
        Stage::Match(_)
        | Stage::Unwind { .. }
        | Stage::Replace(_)
        | Stage::Project(Projection::Exclude(_))
        | Stage::AddFields(_)
        | Stage::Sort(_)
        | Stage::Limit(_)
        | Stage::Skip(_) => false,
    }
}

/// The paths that a `$project` leaves out, when no stage before it names any list.
fn hidden(pipeline: &Value, stages: &[Stage]) -> BTreeSet<String> {
    let Value::List(values) = pipeline else { return BTreeSet::new() };
    for (stage, value) in stages.iter().zip(values) {
        if let Stage::Project(Projection::Exclude(paths)) = stage {
            return paths.iter().map(|path| path.names().join(".")).collect();
        }
        let mut words = Words { words: BTreeSet::new(), everything: false };
        words.note(value, true);
        let makes_others = match stage {
            Stage::Project(_) | Stage::Facet(_) | Stage::Replace(_) => true,
            other => narrows(other),
        };
        if makes_others || CONTAINERS.iter().any(|name| words.wants(name)) {
            break;
        }
    }
    BTreeSet::new()
}

fn is_days(name: &Arc<str>) -> bool {
    &**name == "days"
}

/// Leaves out the times that a test rules out; both ends may stay a moment too far out.
fn narrow(range: &mut Range<UnixMillis>, test: &Test) {
    let Test::Compare(comparison, literal) = test else { return };
    let Some(at) = literal.as_date() else { return };
    let (from, to) = match comparison {
        Comparison::Equal => (Some(at), Some(at)),
        Comparison::Greater | Comparison::GreaterOrEqual => (Some(at), None),
        Comparison::Less | Comparison::LessOrEqual => (None, Some(at)),
    };
    range.start = from.map_or(range.start, |from| range.start.max(from));
    range.end = to.map_or(range.end, |to| range.end.min(to.plus(1)));
}
