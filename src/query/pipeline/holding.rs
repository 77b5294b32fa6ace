//! The stages that hold documents or values: they sort, group or count these before the first
//! result.
//!
//! Must never know: the store, the syntax of stages. A quota limits what each stage holds.

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
    quota::Share,
    value::{Fields, Value},
};
use crate::query::QueryError;

/// The number of comparisons of rows between checks of the budget.
const ROWS_AT_A_TIME: usize = 1024;

/// Sorts documents by the values of several fields, each in ascending order or not.
pub(super) fn sort_documents<'a>(
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

/// The names of computed fields, each with its accumulator.
type Accumulators = [(Arc<str>, Accumulator)];

/// Returns one document for each value of an expression; `by_count` sorts the documents by their
/// second field, in descending order.
pub(super) fn group_documents<'a>(
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
pub(super) fn bucket_documents<'a>(
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

/// Returns the distinct values of a field; elements of lists count one by one.
pub(super) fn distinct_values<'a>(
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
