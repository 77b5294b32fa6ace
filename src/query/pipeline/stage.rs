//! The stages of a pipeline and their syntax.
//!
//! Must never know: the store, the execution of stages.

use std::sync::Arc;

use super::{
    accumulator::Accumulator,
    expression::Expression,
    path::Path,
    predicate::Predicate,
    projection::Projection,
    value::{Fields, Value},
};
use crate::query::QueryError;

/// Maximum number of stages in a pipeline.
const STAGES_MAX: usize = 50;

/// A stage.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    Match(Predicate),
    Unwind {
        path: Path,
        keeps_empty: bool,
    },
    Group {
        id: Expression,
        fields: Vec<(Arc<str>, Accumulator)>,
        /// True for descending order of the first field, false for the order of the IDs.
        by_count: bool,
    },
    /// The stage `$bucketAuto`: at most `count` groups of about equal size.
    Buckets {
        by: Expression,
        count: usize,
        fields: Vec<(Arc<str>, Accumulator)>,
    },
    /// Several pipelines over the same documents.
    Facet(Vec<(Arc<str>, Vec<Stage>)>),
    Project(Projection),
    AddFields(Vec<(Path, Expression)>),
    Replace(Expression),
    /// Paths, each with true for ascending order.
    Sort(Vec<(Path, bool)>),
    Limit(usize),
    Skip(usize),
    Count(Arc<str>),
    /// The distinct values of a field, for `distinct`.
    Distinct(Path),
}

const STAGE_NAMES: &str = "$match, $unwind, $group, $bucket, $bucketAuto, $sortByCount, $facet, \
                           $project, $addFields, $set, $unset, $replaceRoot, $replaceWith, $sort, \
                           $limit, $skip or $count";

/// Parses the stages of a pipeline.
///
/// # Errors
/// When a stage is invalid; the message contains the index of the stage, from 0.
pub(super) fn parse(pipeline: &Value) -> Result<Vec<Stage>, QueryError> {
    let Value::List(values) = pipeline else {
        return Err(QueryError::Invalid("pipeline must be a list of stages".to_owned()));
    };
    let stages = parse_list(values, "pipeline").map_err(QueryError::Invalid)?;
    let facet_stages = |stage: &Stage| match stage {
        Stage::Facet(facets) => facets.iter().map(|(_, stages)| stages.len()).sum(),
        _ => 0,
    };
    let count = stages.len() + stages.iter().map(facet_stages).sum::<usize>();
    if count > STAGES_MAX {
        return Err(QueryError::Invalid(format!(
            "{count} stages exceed the limit of {STAGES_MAX}"
        )));
    }
    Ok(stages)
}

fn parse_list(stages: &[Value], location: &str) -> Result<Vec<Stage>, String> {
    let stage = |(index, stage): (usize, &Value)| {
        let single = if let Value::Fields(fields) = stage { fields.single() } else { None };
        let Some((name, argument)) = single else {
            return Err(format!(
                "{location}[{index}] is not a stage; a stage is a document with one of \
                 {STAGE_NAMES}"
            ));
        };
        Stage::parse(name, argument)
            .map_err(|fault| format!("{location}[{index}]: {name}: {fault}"))
    };
    stages.iter().enumerate().map(stage).collect()
}

impl Stage {
    /// Parses a stage.
    ///
    /// # Errors
    /// When the stage is invalid.
    pub(super) fn parse(name: &str, argument: &Value) -> Result<Self, String> {
        match name {
            "$match" => Ok(Self::Match(Predicate::parse(argument)?)),
            "$unwind" => unwind(argument),
            "$group" => group(argument),
            "$bucket" => bucket(argument),
            "$bucketAuto" => bucket_auto(argument),
            "$sortByCount" => Ok(Self::Group {
                id: Expression::parse(argument)?,
                fields: default_output(),
                by_count: true,
            }),
            "$facet" => facet(argument),
            "$project" => Ok(Self::Project(Projection::parse(argument)?)),
            "$addFields" | "$set" => {
                let fields = document(argument, "{total: {$add: [\"$a\", \"$b\"]}}")?;
                let field = |(name, value): (&Arc<str>, &Value)| {
                    Ok((Path::parse(name)?, Expression::parse(value)?))
                };
                let fields: Result<_, String> = fields.iter().map(field).collect();
                Ok(Self::AddFields(fields?))
            }
            "$unset" => unset(argument),
            "$replaceRoot" => {
                let fields = document(argument, "{newRoot: \"$days\"}")?;
                reject_unknown(fields, &["newRoot"])?;
                Ok(Self::Replace(Expression::parse(fields.get("newRoot").unwrap_or(&Value::Null))?))
            }
            "$replaceWith" => Ok(Self::Replace(Expression::parse(argument)?)),
            "$sort" => sort(argument),
            "$limit" => Ok(Self::Limit(count(argument, 1)?)),
            "$skip" => Ok(Self::Skip(count(argument, 0)?)),
            "$count" => match argument.as_text() {
                Some(name) if Path::parse(name)?.names().len() == 1 => {
                    Ok(Self::Count(name.clone()))
                }
                _ => Err("takes the name of a field".to_owned()),
            },
            _ => Err(format!("is not known; use {STAGE_NAMES}")),
        }
    }
}

/// Rejects unknown fields.
fn reject_unknown(fields: &Fields, known: &[&str]) -> Result<(), String> {
    match fields.iter().find(|(name, _)| !known.contains(&&***name)) {
        Some((other, _)) => Err(format!("{other} is not known; use {}", known.join(" and "))),
        None => Ok(()),
    }
}

fn document<'v>(value: &'v Value, example: &str) -> Result<&'v Fields, String> {
    match value {
        Value::Fields(fields) if !fields.is_empty() => Ok(fields),
        _ => Err(format!("takes a document, such as {example}")),
    }
}

fn field_path(value: &Value) -> Result<Path, String> {
    let text = value.as_text().and_then(|text| text.strip_prefix('$'));
    Path::parse(text.ok_or("takes a field path, such as \"$days\"")?)
}

fn unwind(argument: &Value) -> Result<Stage, String> {
    let Value::Fields(fields) = argument else {
        return Ok(Stage::Unwind { path: field_path(argument)?, keeps_empty: false });
    };
    reject_unknown(fields, &["path", "preserveNullAndEmptyArrays"])?;
    let path = field_path(fields.get("path").unwrap_or(&Value::Null))?;
    let keeps_empty = fields.get("preserveNullAndEmptyArrays").is_some_and(Value::is_truthy);
    Ok(Stage::Unwind { path, keeps_empty })
}

fn group(argument: &Value) -> Result<Stage, String> {
    let example = "{_id: \"$host\", total: {$sum: \"$sum\"}}";
    let (ids, others): (Vec<_>, Vec<_>) =
        document(argument, example)?.iter().partition(|(name, _)| &***name == "_id");
    let [(_, id)] = ids[..] else {
        return Err("_id is missing; _id: null groups all documents".to_owned());
    };
    let id = Expression::parse(id)?;
    Ok(Stage::Group { id, fields: accumulators(others.into_iter())?, by_count: false })
}

fn accumulators<'v>(
    fields: impl Iterator<Item = (&'v Arc<str>, &'v Value)>,
) -> Result<Vec<(Arc<str>, Accumulator)>, String> {
    let field = |(name, value): (&Arc<str>, &Value)| {
        if Path::parse(name)?.names().len() > 1 {
            return Err(format!("{name} must not contain dots"));
        }
        let accumulator = Accumulator::parse(value).map_err(|fault| format!("{name}: {fault}"))?;
        Ok((name.clone(), accumulator))
    };
    fields.map(field).collect()
}

/// Returns the default output of a group: the number of documents.
fn default_output() -> Vec<(Arc<str>, Accumulator)> {
    vec![("count".into(), Accumulator::count())]
}

/// Parses the `output` of buckets.
fn output(fields: &Fields) -> Result<Vec<(Arc<str>, Accumulator)>, String> {
    match fields.get("output") {
        None => Ok(default_output()),
        Some(Value::Fields(output)) => accumulators(output.iter()),
        Some(_) => Err("output must be a document of accumulators".to_owned()),
    }
}

/// Converts a `$bucket` to a `$group` by the bucket's lower boundary.
fn bucket(argument: &Value) -> Result<Stage, String> {
    let fields = document(argument, "{groupBy: \"$max\", boundaries: [0, 10, 100]}")?;
    reject_unknown(fields, &["groupBy", "boundaries", "default", "output"])?;
    let (Some(by), Some(boundaries)) = (fields.get("groupBy"), fields.get("boundaries")) else {
        return Err("takes groupBy and boundaries".to_owned());
    };
    let id = Expression::bucket(by, boundaries, fields.get("default"))?;
    Ok(Stage::Group { id, fields: output(fields)?, by_count: false })
}

fn bucket_auto(argument: &Value) -> Result<Stage, String> {
    let fields = document(argument, "{groupBy: \"$max\", buckets: 4}")?;
    reject_unknown(fields, &["groupBy", "buckets", "output"])?;
    let (Some(by), Some(buckets)) = (fields.get("groupBy"), fields.get("buckets")) else {
        return Err("takes groupBy and buckets".to_owned());
    };
    let count = count(buckets, 1).map_err(|fault| format!("buckets {fault}"))?;
    Ok(Stage::Buckets { by: Expression::parse(by)?, count, fields: output(fields)? })
}

fn facet(argument: &Value) -> Result<Stage, String> {
    let facets =
        document(argument, "{by_host: [{$group: {_id: \"$host\"}}], all: [{$count: \"n\"}]}")?;
    let facet = |(name, value): (&Arc<str>, &Value)| {
        let Value::List(values) = value else { return Err(format!("{name} takes a pipeline")) };
        if Path::parse(name)?.names().len() > 1 {
            return Err(format!("{name} must not contain dots"));
        }
        let is_facet = |value: &Value| matches!(value, Value::Fields(fields) if fields.get("$facet").is_some());
        if values.iter().any(is_facet) {
            return Err(format!("{name} must not contain $facet"));
        }
        Ok((name.clone(), parse_list(values, name)?))
    };
    Ok(Stage::Facet(facets.iter().map(facet).collect::<Result<_, _>>()?))
}

fn unset(argument: &Value) -> Result<Stage, String> {
    let names = match argument {
        Value::List(values) if !values.is_empty() => &values[..],
        single => std::slice::from_ref(single),
    };
    let path = |name: &Value| {
        let name = name.as_text().ok_or("takes the name of a field or a list of names")?;
        Path::parse(name)
    };
    let paths = names.iter().map(path).collect::<Result<_, String>>()?;
    Ok(Stage::Project(Projection::Exclude(paths)))
}

fn sort(argument: &Value) -> Result<Stage, String> {
    let keys = document(argument, "{date: 1, total: -1}")?;
    let key = |(name, direction): (&Arc<str>, &Value)| match direction.number() {
        Some(1.0) => Ok((Path::parse(name)?, true)),
        Some(-1.0) => Ok((Path::parse(name)?, false)),
        _ => Err(format!("{name} takes 1 or -1")),
    };
    Ok(Stage::Sort(keys.iter().map(key).collect::<Result<_, String>>()?))
}

fn count(argument: &Value, least: usize) -> Result<usize, String> {
    let whole_number = argument.number().filter(|number| number.fract() == 0.0 && *number < 1e15);
    let count = whole_number.filter(|number| *number >= least as f64);
    count.map(|number| number as usize).ok_or_else(|| format!("takes a number of at least {least}"))
}
