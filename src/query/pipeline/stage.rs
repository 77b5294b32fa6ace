//! The stages of a pipeline, as they are written.
//!
//! Must never know: the store, and how documents flow through them.

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

/// Stages of a pipeline, at most.
const STAGES_MAX: usize = 50;

/// One stage.
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
    },
    Project(Projection),
    AddFields(Vec<(Path, Expression)>),
    /// Paths, and whether ascending.
    Sort(Vec<(Path, bool)>),
    Limit(usize),
    Skip(usize),
    Count(Arc<str>),
}

const KNOWN: &str =
    "$match, $unwind, $group, $project, $addFields, $set, $sort, $limit, $skip or $count";

/// Reads the stages of a pipeline.
///
/// # Errors
/// With the number of the stage, from 0, and what is wrong.
pub(super) fn parse(pipeline: &Value) -> Result<Vec<Stage>, QueryError> {
    let Value::List(stages) = pipeline else {
        return Err(QueryError::Invalid("pipeline is a list of stages".to_owned()));
    };
    if stages.len() > STAGES_MAX {
        let count = stages.len();
        return Err(QueryError::Invalid(format!("{count} stages are more than {STAGES_MAX}")));
    }
    let stage = |(index, stage): (usize, &Value)| {
        let single = if let Value::Fields(fields) = stage { fields.single() } else { None };
        let Some((name, argument)) = single else {
            return Err(QueryError::Invalid(format!(
                "pipeline[{index}] is no stage; a stage is a document with one of {KNOWN}"
            )));
        };
        Stage::parse(name, argument)
            .map_err(|fault| QueryError::Invalid(format!("pipeline[{index}]: {name}: {fault}")))
    };
    stages.iter().enumerate().map(stage).collect()
}

impl Stage {
    fn parse(name: &str, argument: &Value) -> Result<Self, String> {
        match name {
            "$match" => Ok(Self::Match(Predicate::parse(argument)?)),
            "$unwind" => unwind(argument),
            "$group" => group(argument),
            "$project" => Ok(Self::Project(Projection::parse(argument)?)),
            "$addFields" | "$set" => {
                let fields = document(argument, "{total: {$add: [\"$a\", \"$b\"]}}")?;
                let field = |(name, value): (&Arc<str>, &Value)| {
                    Ok((Path::parse(name)?, Expression::parse(value)?))
                };
                let fields: Result<_, String> = fields.iter().map(field).collect();
                Ok(Self::AddFields(fields?))
            }
            "$sort" => sort(argument),
            "$limit" => Ok(Self::Limit(count(argument, 1)?)),
            "$skip" => Ok(Self::Skip(count(argument, 0)?)),
            "$count" => match argument.as_text() {
                Some(name) if Path::parse(name)?.names().len() == 1 => {
                    Ok(Self::Count(name.clone()))
                }
                _ => Err("takes the name of a field".to_owned()),
            },
            _ => Err(format!("is not known; use {KNOWN}")),
        }
    }
}

fn document<'v>(value: &'v Value, example: &str) -> Result<&'v Fields, String> {
    match value {
        Value::Fields(fields) if fields.len() > 0 => Ok(fields),
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
    let known = ["path", "preserveNullAndEmptyArrays"];
    if let Some((other, _)) = fields.iter().find(|(name, _)| !known.contains(&&***name)) {
        return Err(format!("{other} is not known; use {}", known.join(" and ")));
    }
    let path = field_path(fields.get("path").unwrap_or(&Value::Null))?;
    let keeps_empty = fields.get("preserveNullAndEmptyArrays").is_some_and(Value::holds);
    Ok(Stage::Unwind { path, keeps_empty })
}

fn group(argument: &Value) -> Result<Stage, String> {
    let example = "{_id: \"$host\", total: {$sum: \"$sum\"}}";
    let mut id = None;
    let mut fields = Vec::new();
    for (name, value) in document(argument, example)?.iter() {
        if &**name == "_id" {
            id = Some(Expression::parse(value)?);
        } else if Path::parse(name)?.names().len() > 1 {
            return Err(format!("{name} may not have dots"));
        } else {
            let own = Accumulator::parse(value).map_err(|fault| format!("{name}: {fault}"))?;
            fields.push((name.clone(), own));
        }
    }
    let id = id.ok_or("_id is missing; _id: null makes one group of all")?;
    Ok(Stage::Group { id, fields })
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
    let whole = argument.number().filter(|number| number.fract() == 0.0 && *number < 1e15);
    let count = whole.filter(|number| *number >= least as f64);
    count.map(|number| number as usize).ok_or_else(|| format!("takes a number from {least} on"))
}
