//! How documents flow through the stages of a pipeline.
//!
//! Must never know: the store, and how stages are written. Documents come one by one; only
//! `$group`, `$sort` and the answer hold them, each within a bound, and the work of all is bounded
//! too.

use std::{cell::Cell, collections::BTreeMap, sync::Arc};

use super::{
    accumulator::{Accumulator, Gathered},
    expression::Expression,
    path::Path,
    stage::Stage,
    value::{DEPTH_MAX, Fields, Key, Value, compare},
};
use crate::query::QueryError;

/// Values that may pass through stages, as a multiple of those that may be held.
const STEPS_PER_HELD: usize = 20;

/// Documents on their way.
pub(super) type Documents<'a> = Box<dyn Iterator<Item = Result<Fields, QueryError>> + 'a>;

/// Runs documents through all stages.
///
/// # Errors
/// When more is held or done than `values_max` allows, or the source fails.
pub(super) fn run<'a>(
    stages: &'a [Stage],
    source: Documents<'a>,
    values_max: usize,
) -> Result<Vec<Fields>, QueryError> {
    let bounds = Bounds { values_max, steps: Cell::new(0) };
    let mut documents: Documents<'_> = source;
    for (index, stage) in stages.iter().enumerate() {
        documents = stage.apply(index, documents, &bounds)?;
    }
    let mut held = bounds.holder(stages.len());
    let mut out = Vec::new();
    for document in documents {
        let document = document?;
        held.hold(document.size())?;
        out.push(document);
    }
    Ok(out)
}

/// What a pipeline may hold and do.
struct Bounds {
    values_max: usize,
    steps: Cell<usize>,
}

/// Counts what one stage holds.
struct Holder<'b> {
    bounds: &'b Bounds,
    index: usize,
    held: usize,
}

impl Bounds {
    fn holder(&self, index: usize) -> Holder<'_> {
        Holder { bounds: self, index, held: 0 }
    }

    /// Counts a document on its way into a stage.
    fn step(&self, index: usize, document: &Fields) -> Result<(), QueryError> {
        let size = document.size().ok_or_else(|| too_deep(index))?;
        let steps = self.steps.get().saturating_add(size);
        self.steps.set(steps);
        if steps > self.values_max.saturating_mul(STEPS_PER_HELD) {
            return Err(QueryError::TooMuch(format!(
                "more than {STEPS_PER_HELD} times {} values pass through the pipeline: match \
                 fewer series or a shorter range, or raise limits.query_points_max",
                self.values_max
            )));
        }
        Ok(())
    }
}

impl Holder<'_> {
    fn hold(&mut self, size: Option<usize>) -> Result<(), QueryError> {
        let size = size.ok_or_else(|| too_deep(self.index))?;
        self.held = self.held.saturating_add(size);
        if self.held > self.bounds.values_max {
            return Err(QueryError::TooMuch(format!(
                "pipeline[{}] would hold more than {} values: match or group to fewer, or raise \
                 limits.query_points_max",
                self.index, self.bounds.values_max
            )));
        }
        Ok(())
    }
}

fn too_deep(index: usize) -> QueryError {
    QueryError::TooMuch(format!("documents of pipeline[{index}] nest deeper than {DEPTH_MAX}"))
}

impl Stage {
    fn apply<'a>(
        &'a self,
        index: usize,
        input: Documents<'a>,
        bounds: &'a Bounds,
    ) -> Result<Documents<'a>, QueryError> {
        let input = input.map(move |document| {
            let document = document?;
            bounds.step(index, &document)?;
            Ok(document)
        });
        let held =
            |documents: Vec<Fields>| -> Documents<'a> { Box::new(documents.into_iter().map(Ok)) };
        Ok(match self {
            Self::Match(predicate) => Box::new(
                input.filter(|document| document.as_ref().map_or(true, |own| predicate.holds(own))),
            ),
            Self::Unwind { path, keeps_empty } => {
                Box::new(input.flat_map(move |document| match document {
                    Ok(document) => elements(document, path, *keeps_empty),
                    Err(cause) => Box::new(std::iter::once(Err(cause))),
                }))
            }
            Self::Project(projection) => {
                Box::new(input.map(move |document| Ok(projection.apply(document?))))
            }
            Self::AddFields(fields) => Box::new(input.map(move |document| {
                let before = document?;
                let mut after = before.clone();
                for (path, expression) in fields {
                    match expression.evaluate(&before) {
                        Some(value) => path.set(&mut after, value),
                        None => path.remove(&mut after),
                    }
                }
                Ok(after)
            })),
            Self::Limit(count) => Box::new(input.take(*count)),
            Self::Skip(count) => Box::new(input.skip(*count)),
            Self::Count(name) => {
                let counted = input.map(|document| document.map(|_| 1)).sum::<Result<i64, _>>()?;
                let document = std::iter::once((name.clone(), Value::Int(counted))).collect();
                held(if counted > 0 { vec![document] } else { Vec::new() })
            }
            Self::Sort(keys) => held(sorted(input, keys, bounds.holder(index))?),
            Self::Group { id, fields } => held(grouped(input, id, fields, bounds.holder(index))?),
        })
    }
}

/// The document once for each element of a list.
fn elements(mut document: Fields, path: &Path, keeps_empty: bool) -> Documents<'_> {
    match path.take(&mut document) {
        Some(Value::List(values)) if !values.is_empty() => {
            Box::new(values.into_iter().map(move |value| {
                let mut own = document.clone();
                path.set(&mut own, value);
                Ok(own)
            }))
        }
        None | Some(Value::Null | Value::List(_)) => {
            path.remove(&mut document);
            Box::new(keeps_empty.then_some(Ok(document)).into_iter())
        }
        Some(single) => {
            path.set(&mut document, single);
            Box::new(std::iter::once(Ok(document)))
        }
    }
}

fn sorted(
    input: impl Iterator<Item = Result<Fields, QueryError>>,
    keys: &[(Path, bool)],
    mut held: Holder<'_>,
) -> Result<Vec<Fields>, QueryError> {
    let mut rows: Vec<(Vec<Value>, Fields)> = Vec::new();
    for document in input {
        let document = document?;
        let row = keys.iter().map(|(path, _)| path.get(&document).unwrap_or(Value::Null));
        let row: Vec<_> = row.collect();
        held.hold(document.size())?;
        rows.push((row, document));
    }
    rows.sort_by(|(a, _), (b, _)| {
        let orders = keys
            .iter()
            .zip(a.iter().zip(b))
            .map(|((_, ascending), (a, b))| if *ascending { compare(a, b) } else { compare(b, a) });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    Ok(rows.into_iter().map(|(_, document)| document).collect())
}

fn grouped(
    input: impl Iterator<Item = Result<Fields, QueryError>>,
    id: &Expression,
    fields: &[(Arc<str>, Accumulator)],
    mut held: Holder<'_>,
) -> Result<Vec<Fields>, QueryError> {
    let mut groups: BTreeMap<Key, Vec<Gathered>> = BTreeMap::new();
    for document in input {
        let document = document?;
        let key = Key(id.evaluate(&document).unwrap_or(Value::Null));
        if !groups.contains_key(&key) {
            held.hold(key.0.size().map(|size| size + fields.len()))?;
        }
        let gathered = groups.entry(key).or_insert_with(|| vec![Gathered::Nothing; fields.len()]);
        for ((_, accumulator), gathered) in fields.iter().zip(gathered) {
            held.hold(accumulator.take(gathered, &document))?;
        }
    }
    let document = |(Key(id), gathered): (Key, Vec<Gathered>)| {
        let own = fields.iter().zip(gathered);
        let own = own.map(|((name, own), gathered)| (name.clone(), own.finish(gathered)));
        std::iter::once(("_id".into(), id)).chain(own).collect()
    };
    Ok(groups.into_iter().map(document).collect())
}
