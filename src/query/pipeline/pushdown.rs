//! Predicate pushdown: derives from the first stages which series, times and levels a pipeline
//! needs, so that nothing else is read.
//!
//! Must never know: the store. The result may contain too much but never too little; the stages
//! make the final decision.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use super::{
    path::Path,
    predicate::{Comparison, Predicate, Test},
    projection::Projection,
    stage::Stage,
    value::Value,
};
use crate::model::UnixMillis;

/// Fields that contain other fields. A pipeline that names such a field needs its entire content.
const CONTAINERS: [&str; 4] = ["days", "hours", "minutes", "counts"];

/// The names in a document that a pipeline needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NeededNames {
    /// Every name and text of the pipeline.
    names: BTreeSet<String>,
    /// True when whole documents are shown or passed on.
    needs_all: bool,
}

impl NeededNames {
    pub(super) fn of(pipeline: &Value, stages: &[Stage]) -> Self {
        let needs_all = !stages.iter().any(narrows);
        let mut needed = Self { names: BTreeSet::new(), needs_all };
        needed.note_stages(pipeline, stages);
        needed
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
            self.note_names(value, matches!(stage, Stage::Unwind { .. } | Stage::Match(_)));
        }
    }

    /// Records the names in a value. `passes_through` is true when a stage reads fields without
    /// showing them.
    fn note_names(&mut self, value: &Value, passes_through: bool) {
        match value {
            Value::Text(text) => {
                self.note_text(text, passes_through || !text.starts_with('$'));
            }
            Value::List(values) => {
                for value in values {
                    self.note_names(value, passes_through);
                }
            }
            Value::Fields(fields) => {
                for (name, value) in fields.iter() {
                    // A name is shown unchanged only by `name: 1`.
                    let is_kept = matches!(value, Value::Bool(true)) || value.number().is_some();
                    let shows = !passes_through && is_kept;
                    self.note_text(name, !shows);
                    self.note_names(value, passes_through);
                }
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Date(_) => {}
        }
    }

    fn note_text(&mut self, text: &str, passes_through: bool) {
        self.needs_all |= text == "$$ROOT";
        let names = text.trim_start_matches('$').split('.');
        self.needs_all |= !passes_through
            && names.clone().next_back().is_some_and(|last| CONTAINERS.contains(&last));
        self.names.extend(names.map(str::to_owned));
    }

    /// Returns true when the pipeline needs a field with this name.
    pub(super) fn needs(&self, name: &str) -> bool {
        self.needs_all || self.names.contains(name)
    }

    /// Returns true when the pipeline names a field; showing whole documents does not count.
    pub(super) fn names_field(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the needed names; `None` when all are needed.
    pub(super) fn names(&self) -> Option<impl Iterator<Item = &str>> {
        (!self.needs_all).then(|| self.names.iter().map(String::as_str))
    }
}

/// The conditions of the first stages on documents from the store.
#[derive(Debug, Clone)]
pub(super) struct Conditions {
    /// Tests that fields must pass; the fields may be tags.
    pub(super) tests: Vec<(String, Test)>,
    /// The range of the document's `date`.
    pub(super) dates: Range<UnixMillis>,
    /// The range of `days.date`, after the days were unwound.
    pub(super) days: Range<UnixMillis>,
    /// Paths of lists that are removed before any stage uses them.
    pub(super) hidden: BTreeSet<String>,
}

impl Conditions {
    pub(super) fn of(pipeline: &Value, stages: &[Stage]) -> Self {
        let always = UnixMillis::MIN..UnixMillis::MAX;
        let hidden = hidden_paths(pipeline, stages);
        let mut conditions =
            Self { tests: Vec::new(), dates: always.clone(), days: always, hidden };
        let mut unwound: Vec<&Path> = Vec::new();
        let mut sees_all_days = false;
        for stage in stages {
            match stage {
                Stage::Match(predicate) => {
                    let has_nested_days = !unwound.iter().any(|path| path.equals("days"));
                    predicate.for_each_field(&mut |path| {
                        let names_days =
                            path.is_none_or(|path| path.names().first().is_some_and(is_days));
                        sees_all_days |= has_nested_days && names_days;
                    });
                    conditions.note_names(predicate, &unwound);
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
            conditions.days = UnixMillis::MIN..UnixMillis::MAX;
        }
        conditions
    }

    fn note_names(&mut self, predicate: &Predicate, unwound: &[&Path]) {
        predicate.for_each_required_test(&mut |path, test| {
            let is_unwound = |name: &str| unwound.iter().any(|path| path.equals(name));
            if path.equals("date") {
                narrow_range(&mut self.dates, test);
            } else if path.equals("days.date") && is_unwound("days")
                || path.equals("days.hours.date") && is_unwound("days.hours")
                || path.equals("days.hours.minutes.date") && is_unwound("days.hours.minutes")
            {
                narrow_range(&mut self.days, test);
            } else if let [name] = path.names() {
                self.tests.push((name.to_string(), test.clone()));
            }
        });
    }
}

/// Returns true when later stages only see fields that this stage names.
fn narrows(stage: &Stage) -> bool {
    match stage {
        Stage::Group { .. }
        | Stage::Count(_)
        | Stage::Distinct(_)
        | Stage::Buckets { .. }
        | Stage::Project(Projection::Include(_)) => true,
        Stage::Facet(facets) => facets.iter().all(|(_, inner)| inner.iter().any(narrows)),
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

/// Returns the paths that a `$project` removes, provided that no earlier stage names a list.
fn hidden_paths(pipeline: &Value, stages: &[Stage]) -> BTreeSet<String> {
    let Value::List(values) = pipeline else { return BTreeSet::new() };
    for (stage, value) in stages.iter().zip(values) {
        if let Stage::Project(Projection::Exclude(paths)) = stage {
            return paths.iter().map(|path| path.names().join(".")).collect();
        }
        let mut needed = NeededNames { names: BTreeSet::new(), needs_all: false };
        needed.note_names(value, true);
        let makes_new_documents = match stage {
            Stage::Project(_) | Stage::Facet(_) | Stage::Replace(_) => true,
            other => narrows(other),
        };
        if makes_new_documents || CONTAINERS.iter().any(|name| needed.needs(name)) {
            break;
        }
    }
    BTreeSet::new()
}

fn is_days(name: &Arc<str>) -> bool {
    &**name == "days"
}

/// Excludes the times that fail a test. The range may remain a millisecond too long at either end.
fn narrow_range(range: &mut Range<UnixMillis>, test: &Test) {
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
