//! Execution of a pipeline: a stream of documents passes through the stages.
//!
//! Must never know: the store, the syntax of stages. Documents are processed one at a time. Only
//! `$group`, `$sort` and the answer hold documents, each within a limit, and the total work is
//! limited too.

use std::{
    cell::Cell,
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    accumulator::Accumulator,
    document::{Document, Documents},
    expression::Expression,
    operator::AccumulatorState,
    order::{GroupKey, compare},
    path::Path,
    quota::{Quota, Share},
    stage::Stage,
    value::{Fields, Value},
};
use crate::query::QueryError;

/// Number of comparisons of rows between checks of the budget.
const ROWS_AT_A_TIME: usize = 1024;

/// Runs documents through all stages.
///
/// # Errors
/// When a quota or the budget is used up, or the source fails.
pub(super) fn run<'a>(
    stages: &'a [Stage],
    source: Documents<'a>,
    quota: &'a Quota<'a>,
) -> Result<Vec<Fields>, QueryError> {
    run_at(stages, source, quota, None)
}

/// Runs documents through the stages. `facet` is the index of the `$facet` stage that contains the
/// stages.
fn run_at<'a>(
    stages: &'a [Stage],
    source: Documents<'a>,
    quota: &'a Quota<'a>,
    facet: Option<usize>,
) -> Result<Vec<Fields>, QueryError> {
    let mut documents: Documents<'_> = source;
    for (index, stage) in stages.iter().enumerate() {
        documents = stage.apply(facet.unwrap_or(index), documents, quota)?;
    }
    let mut stage_share = quota.new_share(facet.unwrap_or(stages.len()));
    let mut out = Vec::new();
    for document in documents {
        let Document { fields, .. } = document?;
        stage_share.charge_sized(fields.size())?;
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
            document.share.enter(index, &document.fields)?;
            Ok(document)
        });
        Ok(match self {
            Self::Match(predicate) => Box::new(input.filter_map(|document| {
                let matching = document.and_then(|Document { fields, mut share }| {
                    let holds = predicate.holds(&fields, &mut share)?;
                    Ok(holds.then_some(Document { fields, share }))
                });
                matching.transpose()
            })),
            Self::Unwind { path, keeps_empty } => {
                Box::new(input.flat_map(move |document| match document {
                    Ok(document) => unwind(document, path, *keeps_empty),
                    Err(cause) => Box::new(std::iter::once(Err(cause))),
                }))
            }
            Self::Project(projection) => Box::new(input.map(move |document| {
                let Document { fields, share } = document?;
                projection.apply(fields, share)
            })),
            Self::AddFields(added) => {
                Box::new(input.map(move |document| add_fields(document?, added)))
            }
            Self::Limit(count) => Box::new(input.take(*count)),
            Self::Skip(count) => Box::new(input.skip(*count)),
            Self::Count(name) => {
                let counted = input.map(|document| document.map(|_| 1)).sum::<Result<i64, _>>()?;
                let fields = std::iter::once((name.clone(), Value::Int(counted))).collect();
                let document = Document { fields, share: quota.new_share(index) };
                Box::new((counted > 0).then_some(Ok(document)).into_iter())
            }
            Self::Sort(keys) => sort_documents(input, keys, quota.new_share(index))?,
            Self::Group { id, fields, by_count } => {
                group_documents(input, id, (fields, *by_count), quota.new_share(index))?
            }
            Self::Buckets { by, count, fields } => {
                bucket_documents(input, by, *count, fields, quota.new_share(index))?
            }
            Self::Facet(facets) => run_facets(input, facets, index, quota)?,
            Self::Replace(expression) => {
                Box::new(input.map(move |document| replace_document(document?, expression)))
            }
            Self::Distinct(path) => distinct_values(input, path, quota.new_share(index))?,
        })
    }
}

/// Adds computed fields to a document. Every expression reads the original document.
fn add_fields<'a>(
    document: Document<'a>,
    added: &[(Path, Expression)],
) -> Result<Document<'a>, QueryError> {
    let Document { mut fields, mut share } = document;
    let values = added.iter().map(|(_, expression)| expression.evaluate(&fields, &mut share));
    let values: Vec<_> = values.collect::<Result<_, _>>()?;
    for ((path, _), value) in added.iter().zip(values) {
        match value {
            Some(value) => path.set(&mut fields, value, &mut share)?,
            None => path.remove(&mut fields),
        }
    }
    Ok(Document { fields, share })
}

/// Returns a copy of the document for each element of a list.
fn unwind<'a>(document: Document<'a>, path: &'a Path, keeps_empty: bool) -> Documents<'a> {
    let Document { mut fields, mut share } = document;
    match path.take_value(&mut fields) {
        Some(Value::List(values)) if !values.is_empty() => {
            // The list's quota is held until its last element has been copied.
            let list_share = share;
            Box::new(values.into_iter().map(move |value| {
                let mut share = list_share.sibling();
                share.charge_sized(value.size())?;
                let mut copy = share.copy_fields(&fields)?;
                path.set(&mut copy, value, &mut share)?;
                Ok(Document { fields: copy, share })
            }))
        }
        None | Some(Value::Null | Value::List(_)) => {
            path.remove(&mut fields);
            Box::new(keeps_empty.then_some(Ok(Document { fields, share })).into_iter())
        }
        Some(single) => {
            let set = path.set(&mut fields, single, &mut share);
            Box::new(std::iter::once(set.map(|()| Document { fields, share })))
        }
    }
}

fn sort_documents<'a>(
    input: impl Iterator<Item = Result<Document<'a>, QueryError>>,
    keys: &[(Path, bool)],
    mut stage_share: Share<'a>,
) -> Result<Documents<'a>, QueryError> {
    let mut rows: Vec<(Vec<Value>, Fields)> = Vec::new();
    for document in input {
        let Document { fields, .. } = document?;
        stage_share.charge_sized(fields.size())?;
        let key = |(path, _): &(Path, bool)| {
            Ok(path.get(&fields, &mut stage_share)?.unwrap_or(Value::Null))
        };
        let row = keys.iter().map(key).collect::<Result<_, QueryError>>()?;
        rows.push((row, fields));
    }
    sort_rows(&mut rows, &stage_share, |a: &Vec<Value>, b| {
        let orders = keys
            .iter()
            .zip(a.iter().zip(b))
            .map(|((_, ascending), (a, b))| if *ascending { compare(a, b) } else { compare(b, a) });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    })?;
    Ok(stream_of(rows.into_iter().map(|(_, fields)| Ok(fields)), stage_share))
}

/// Sorts rows by their keys, within the budget.
fn sort_rows<K>(
    rows: &mut [(K, Fields)],
    stage_share: &Share<'_>,
    order: impl Fn(&K, &K) -> Ordering,
) -> Result<(), QueryError> {
    // An error of the budget ends the query right after the sort.
    let (budget, compared) = (stage_share.budget(), Cell::new(0_usize));
    rows.sort_by(|(a, _), (b, _)| {
        compared.set(compared.get() + 1);
        if compared.get().is_multiple_of(ROWS_AT_A_TIME) {
            budget.check().ok();
        }
        order(a, b)
    });
    budget.check()?;
    Ok(())
}

/// Returns the documents that a stage held as a stream.
fn stream_of<'a>(
    documents: impl Iterator<Item = Result<Fields, QueryError>> + 'a,
    stage_share: Share<'a>,
) -> Documents<'a> {
    Box::new(
        documents.map(move |fields| Ok(Document { fields: fields?, share: stage_share.sibling() })),
    )
}

type Accumulators = [(Arc<str>, Accumulator)];

fn group_documents<'a>(
    input: impl Iterator<Item = Result<Document<'a>, QueryError>>,
    id: &Expression,
    (fields, by_count): (&'a Accumulators, bool),
    mut stage_share: Share<'a>,
) -> Result<Documents<'a>, QueryError> {
    let mut groups: BTreeMap<GroupKey, Vec<AccumulatorState>> = BTreeMap::new();
    for document in input {
        let Document { fields: document, mut share } = document?;
        let key = GroupKey(id.evaluate(&document, &mut share)?.unwrap_or(Value::Null));
        if !groups.contains_key(&key) {
            stage_share.charge_sized(key.0.size().map(|size| size + fields.len()))?;
        }
        let accumulated =
            groups.entry(key).or_insert_with(|| vec![AccumulatorState::Nothing; fields.len()]);
        accumulate(fields, accumulated, &document, &mut share, &mut stage_share)?;
    }
    let document = |(GroupKey(id), accumulated): (GroupKey, Vec<AccumulatorState>)| {
        group_document(id, fields, accumulated)
    };
    let documents = groups.into_iter().map(document);
    if !by_count {
        return Ok(stream_of(documents.map(Ok), stage_share));
    }
    let count =
        |fields: &Fields| fields.iter().nth(1).map_or(Value::Null, |(_, value)| value.clone());
    let mut rows: Vec<_> = documents.map(|fields| (count(&fields), fields)).collect();
    sort_rows(&mut rows, &stage_share, |a, b| compare(b, a))?;
    Ok(stream_of(rows.into_iter().map(|(_, fields)| Ok(fields)), stage_share))
}

fn accumulate(
    fields: &Accumulators,
    accumulated: &mut [AccumulatorState],
    document: &Fields,
    share: &mut Share<'_>,
    stage_share: &mut Share<'_>,
) -> Result<(), QueryError> {
    for ((_, accumulator), accumulated) in fields.iter().zip(accumulated) {
        stage_share.charge_sized(accumulator.accumulate(accumulated, document, share)?)?;
    }
    Ok(())
}

/// Builds the document of a group.
fn group_document(id: Value, fields: &Accumulators, accumulated: Vec<AccumulatorState>) -> Fields {
    let results = fields
        .iter()
        .zip(accumulated)
        .map(|((name, accumulator), accumulated)| (name.clone(), accumulator.finish(accumulated)));
    std::iter::once(("_id".into(), id)).chain(results).collect()
}

/// Creates at most `count` groups of about equal size, in the order of a value. Equal values share
/// a group.
fn bucket_documents<'a>(
    input: impl Iterator<Item = Result<Document<'a>, QueryError>>,
    by: &Expression,
    count: usize,
    fields: &'a Accumulators,
    mut stage_share: Share<'a>,
) -> Result<Documents<'a>, QueryError> {
    let mut rows: Vec<(Value, Fields)> = Vec::new();
    for document in input {
        let Document { fields, mut share } = document?;
        let key = by.evaluate(&fields, &mut share)?.unwrap_or(Value::Null);
        stage_share.charge_sized(fields.size())?;
        stage_share.charge_sized(key.size())?;
        rows.push((key, fields));
    }
    sort_rows(&mut rows, &stage_share, compare)?;
    let size = ((rows.len() as f64 / count as f64).round() as usize).max(1);
    let mut documents = Vec::new();
    let mut rest = &rows[..];
    while let [(low, _), ..] = rest {
        let is_last = documents.len() + 1 == count;
        let mut end = if is_last { rest.len() } else { size.min(rest.len()) };
        while end < rest.len() && compare(&rest[end].0, &rest[end - 1].0).is_eq() {
            end += 1;
        }
        let (bucket, others) = rest.split_at(end);
        let high = others.first().or(bucket.last()).map_or(&Value::Null, |(key, _)| key);
        stage_share
            .charge_sized(low.size().zip(high.size()).map(|(a, b)| 1 + a + b + fields.len()))?;
        let range = [("min".into(), low.clone()), ("max".into(), high.clone())];
        let mut accumulated = vec![AccumulatorState::Nothing; fields.len()];
        for (_, document) in bucket {
            accumulate(
                fields,
                &mut accumulated,
                document,
                &mut stage_share.sibling(),
                &mut stage_share,
            )?;
        }
        documents.push(group_document(
            Value::Fields(range.into_iter().collect()),
            fields,
            accumulated,
        ));
        rest = others;
    }
    Ok(stream_of(documents.into_iter().map(Ok), stage_share))
}

/// Returns one document with the results of several pipelines over the same documents.
fn run_facets<'a>(
    input: impl Iterator<Item = Result<Document<'a>, QueryError>>,
    facets: &'a [(Arc<str>, Vec<Stage>)],
    index: usize,
    quota: &'a Quota<'a>,
) -> Result<Documents<'a>, QueryError> {
    let mut stage_share = quota.new_share(index);
    let mut documents = Vec::new();
    for document in input {
        let Document { fields, .. } = document?;
        stage_share.charge_sized(fields.size())?;
        documents.push(fields);
    }
    let mut share = quota.new_share(index);
    let mut out = Fields::default();
    for (name, stages) in facets {
        let copy = |fields: &Fields| {
            let mut share = stage_share.sibling();
            let fields = share.copy_fields(fields)?;
            Ok(Document { fields, share })
        };
        let found = run_at(stages, Box::new(documents.iter().map(copy)), quota, Some(index))?;
        let found = Value::List(found.into_iter().map(Value::Fields).collect());
        share.charge_sized(found.size())?;
        out.set(name.clone(), found);
    }
    Ok(Box::new(std::iter::once(Ok(Document { fields: out, share }))))
}

fn replace_document<'a>(
    document: Document<'a>,
    expression: &Expression,
) -> Result<Document<'a>, QueryError> {
    let Document { fields, mut share } = document;
    match expression.evaluate(&fields, &mut share)? {
        Some(Value::Fields(fields)) => Ok(Document { fields, share }),
        other => {
            let kind = other.map_or("nothing", |value| value.kind());
            Err(QueryError::Invalid(format!("$replaceRoot takes a document, not {kind}")))
        }
    }
}

/// Returns the distinct values of a field; elements of lists count one by one.
fn distinct_values<'a>(
    input: impl Iterator<Item = Result<Document<'a>, QueryError>>,
    path: &Path,
    mut stage_share: Share<'a>,
) -> Result<Documents<'a>, QueryError> {
    let mut values: BTreeSet<GroupKey> = BTreeSet::new();
    for document in input {
        let Document { fields, .. } = document?;
        let mut fault = None;
        path.any_value(&fields, &mut |value| {
            let key = GroupKey(value.clone());
            if !matches!(value, Value::List(_)) && !values.contains(&key) {
                fault = stage_share.charge_sized(value.size().map(|size| size + 1)).err();
                values.insert(key);
            }
            fault.is_some()
        });
        fault.map_or(Ok(()), Err)?;
    }
    let document = |GroupKey(value)| Ok(std::iter::once(("_id".into(), value)).collect());
    Ok(stream_of(values.into_iter().map(document), stage_share))
}
