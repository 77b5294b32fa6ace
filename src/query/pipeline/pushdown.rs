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
const CONTAINERS: [&str; 4] = ["days", "hours", "minutes", "num_samples"];

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
        let narrows = |stage: &Stage| match stage {
            Stage::Group { .. } | Stage::Count(_) | Stage::Project(Projection::Include(_)) => true,
            Stage::Match(_)
            | Stage::Unwind { .. }
            | Stage::Project(Projection::Exclude(_))
            | Stage::AddFields(_)
            | Stage::Sort(_)
            | Stage::Limit(_)
            | Stage::Skip(_) => false,
        };
        let everything = !stages.iter().any(narrows);
        let mut own = Self { words: BTreeSet::new(), everything };
        if let Value::List(values) = pipeline {
            for (stage, value) in stages.iter().zip(values) {
                own.note(value, matches!(stage, Stage::Unwind { .. } | Stage::Match(_)));
            }
        }
        own
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Fields that must have one of these texts.
    pub(super) texts: Vec<(String, Vec<String>)>,
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
        let mut own = Self { texts: Vec::new(), dates: always.clone(), days: always, hidden };
        let mut unwound: Vec<&Path> = Vec::new();
        let mut sees_all_days = false;
        for stage in stages {
            match stage {
                Stage::Match(predicate) => {
                    let is_whole = !unwound.iter().any(|path| path.is("days"));
                    predicate.for_each_field(&mut |path| {
                        sees_all_days |= is_whole && path.names().first().is_some_and(is_days);
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
                | Stage::Count(_) => break,
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
                let texts: Option<Vec<String>> = match test {
                    Test::Compare(Comparison::Equal, literal) => {
                        literal.as_tag().map(|tag| vec![tag.to_owned()])
                    }
                    Test::In(literals) => {
                        let tag = |tag: Option<&str>| tag.map(str::to_owned);
                        literals.iter().map(|literal| tag(literal.as_tag())).collect()
                    }
                    Test::Compare(..) | Test::Exists(_) | Test::Not(_) => None,
                };
                self.texts.extend(texts.map(|texts| (name.to_string(), texts)));
            }
        });
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
        let narrows = matches!(stage, Stage::Group { .. } | Stage::Project(_) | Stage::Count(_));
        if narrows || CONTAINERS.iter().any(|name| words.wants(name)) {
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
