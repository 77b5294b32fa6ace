//! Execution of a pipeline: a stream of documents passes through the stages.
//!
//! Must never know: the store, the syntax of stages. Documents are processed one at a time. Only
//! `$group`, `$sort` and the answer hold documents, each within a limit, and the total work is
//! limited too.

use std::sync::Arc;

use super::{
    document::{Document, Documents},
    expression::Expression,
    holding::{bucket_documents, distinct_values, group_documents, sort_documents},
    path::Path,
    quota::Quota,
    stage::Stage,
    value::{Fields, Value},
};
use crate::query::QueryError;

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
