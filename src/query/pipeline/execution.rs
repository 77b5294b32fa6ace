//! The execution of a pipeline: how documents flow through its stages.
//!
//! Must never know: the store, and how stages are written. Documents come one by one; only
//! `$group`, `$sort` and the answer hold them, each within a bound, and the work of all is bounded
//! too.

use std::{cell::Cell, collections::BTreeMap, sync::Arc};

use super::{
    accumulator::{Accumulator, Gathered},
    document::{Document, Documents},
    expression::Expression,
    path::Path,
    quota::{Quota, Taken},
    stage::Stage,
    value::{Fields, Key, Value, compare},
};
use crate::query::QueryError;

/// Rows that are compared between checks of the budget.
const ROWS_AT_A_TIME: usize = 1024;

/// Runs documents through all stages.
///
/// # Errors
/// When more is held or done than the budget has, or the source fails.
pub(super) fn run<'a>(
    stages: &'a [Stage],
    source: Documents<'a>,
    quota: &'a Quota<'a>,
) -> Result<Vec<Fields>, QueryError> {
    let mut documents: Documents<'_> = source;
    for (index, stage) in stages.iter().enumerate() {
        documents = stage.apply(index, documents, quota)?;
    }
    let mut held = quota.begin(stages.len());
    let mut out = Vec::new();
    for document in documents {
        let Document { fields, .. } = document?;
        held.take_sized(fields.size())?;
        out.push(fields);
    }
    Ok(out)
}

impl Stage {
    fn apply<'a>(
        &'a self,
        index: usize,
        input: Documents<'a>,
        quota: &'a Quota<'a>,
    ) -> Result<Documents<'a>, QueryError> {
        let input = input.map(move |document| {
            let mut document = document?;
            document.taken.enter(index, &document.fields)?;
            Ok(document)
        });
        Ok(match self {
            Self::Match(predicate) => Box::new(input.filter(|document| {
                document.as_ref().map_or(true, |own| predicate.holds(&own.fields))
            })),
            Self::Unwind { path, keeps_empty } => {
                Box::new(input.flat_map(move |document| match document {
                    Ok(document) => elements(document, path, *keeps_empty),
                    Err(cause) => Box::new(std::iter::once(Err(cause))),
                }))
            }
            Self::Project(projection) => Box::new(input.map(move |document| {
                let Document { fields, taken } = document?;
                projection.apply(fields, taken)
            })),
            Self::AddFields(added) => Box::new(input.map(move |document| add(document?, added))),
            Self::Limit(count) => Box::new(input.take(*count)),
            Self::Skip(count) => Box::new(input.skip(*count)),
            Self::Count(name) => {
                let counted = input.map(|document| document.map(|_| 1)).sum::<Result<i64, _>>()?;
                let fields = std::iter::once((name.clone(), Value::Int(counted))).collect();
                let document = Document { fields, taken: quota.begin(index) };
                Box::new((counted > 0).then_some(Ok(document)).into_iter())
            }
            Self::Sort(keys) => sorted(input, keys, quota.begin(index))?,
            Self::Group { id, fields } => grouped(input, id, fields, quota.begin(index))?,
        })
    }
}

/// Every expression sees the document as it came.
fn add<'a>(
    document: Document<'a>,
    added: &[(Path, Expression)],
) -> Result<Document<'a>, QueryError> {
    let Document { mut fields, mut taken } = document;
    let values = added.iter().map(|(_, expression)| expression.evaluate(&fields, &mut taken));
    let values: Vec<_> = values.collect::<Result<_, _>>()?;
    for ((path, _), value) in added.iter().zip(values) {
        match value {
            Some(value) => path.set(&mut fields, value, &mut taken)?,
            None => path.remove(&mut fields),
        }
    }
    Ok(Document { fields, taken })
}

/// The document once for each element of a list.
fn elements<'a>(document: Document<'a>, path: &'a Path, keeps_empty: bool) -> Documents<'a> {
    let Document { mut fields, mut taken } = document;
    match path.take(&mut fields) {
        Some(Value::List(values)) if !values.is_empty() => {
            // Lives as long as the values that are still to come.
            let whole = taken;
            Box::new(values.into_iter().map(move |value| {
                let mut taken = whole.another();
                taken.take_sized(value.size())?;
                let mut own = taken.copy_fields(&fields)?;
                path.set(&mut own, value, &mut taken)?;
                Ok(Document { fields: own, taken })
            }))
        }
        None | Some(Value::Null | Value::List(_)) => {
            path.remove(&mut fields);
            Box::new(keeps_empty.then_some(Ok(Document { fields, taken })).into_iter())
        }
        Some(single) => {
            let set = path.set(&mut fields, single, &mut taken);
            Box::new(std::iter::once(set.map(|()| Document { fields, taken })))
        }
    }
}

fn sorted<'a>(
    input: impl Iterator<Item = Result<Document<'a>, QueryError>>,
    keys: &[(Path, bool)],
    mut held: Taken<'a>,
) -> Result<Documents<'a>, QueryError> {
    let mut rows: Vec<(Vec<Value>, Fields)> = Vec::new();
    for document in input {
        let Document { fields, .. } = document?;
        held.take_sized(fields.size())?;
        let key =
            |(path, _): &(Path, bool)| Ok(path.get(&fields, &mut held)?.unwrap_or(Value::Null));
        let row = keys.iter().map(key).collect::<Result<_, QueryError>>()?;
        rows.push((row, fields));
    }
    // What waits in vain for a turn here ends right after.
    let (budget, compared) = (held.budget(), Cell::new(0_usize));
    rows.sort_by(|(a, _), (b, _)| {
        compared.set(compared.get() + 1);
        if compared.get().is_multiple_of(ROWS_AT_A_TIME) {
            budget.check().ok();
        }
        let orders = keys
            .iter()
            .zip(a.iter().zip(b))
            .map(|((_, ascending), (a, b))| if *ascending { compare(a, b) } else { compare(b, a) });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    budget.check()?;
    Ok(of_held(rows.into_iter().map(|(_, fields)| Ok(fields)), held))
}

/// Documents that a stage held, one after the other.
fn of_held<'a>(
    documents: impl Iterator<Item = Result<Fields, QueryError>> + 'a,
    held: Taken<'a>,
) -> Documents<'a> {
    Box::new(documents.map(move |fields| Ok(Document { fields: fields?, taken: held.another() })))
}

fn grouped<'a>(
    input: impl Iterator<Item = Result<Document<'a>, QueryError>>,
    id: &Expression,
    fields: &'a [(Arc<str>, Accumulator)],
    mut held: Taken<'a>,
) -> Result<Documents<'a>, QueryError> {
    let mut groups: BTreeMap<Key, Vec<Gathered>> = BTreeMap::new();
    for document in input {
        let Document { fields: document, mut taken } = document?;
        let key = Key(id.evaluate(&document, &mut taken)?.unwrap_or(Value::Null));
        if !groups.contains_key(&key) {
            held.take_sized(key.0.size().map(|size| size + fields.len()))?;
        }
        let gathered = groups.entry(key).or_insert_with(|| vec![Gathered::Nothing; fields.len()]);
        for ((_, accumulator), gathered) in fields.iter().zip(gathered) {
            held.take_sized(accumulator.take(gathered, &document, &mut taken)?)?;
        }
    }
    let document = |(Key(id), gathered): (Key, Vec<Gathered>)| {
        let own = fields.iter().zip(gathered);
        let own = own.map(|((name, own), gathered)| (name.clone(), own.finish(gathered)));
        Ok(std::iter::once(("_id".into(), id)).chain(own).collect())
    };
    Ok(of_held(groups.into_iter().map(document), held))
}
