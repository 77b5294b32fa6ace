//! The fields that `$project` keeps, removes and computes.
//!
//! Must never know: other stages.

use std::sync::Arc;

use super::{
    document::Document,
    expression::Expression,
    path::Path,
    quota::Share,
    value::{Fields, Value},
};
use crate::query::QueryError;

/// The fields of a document that the result contains.
#[derive(Debug, Clone)]
pub(super) enum Projection {
    /// Only these fields.
    Include(Vec<(Arc<str>, ProjectedField)>),
    /// All fields except these.
    Exclude(Vec<Path>),
}

/// A field of the result.
#[derive(Debug, Clone)]
pub(super) enum ProjectedField {
    Unchanged,
    Computed(Expression),
    Parts(Vec<(Arc<str>, ProjectedField)>),
}

impl Projection {
    /// Parses the document of a `$project`.
    ///
    /// # Errors
    /// When the fields contradict each other.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        let Value::Fields(fields) = value else {
            return Err("takes a document, such as {host: 1, total: \"$sum\"}".to_owned());
        };
        let mut projected = Vec::new();
        let mut hidden = Vec::new();
        let mut shows_id = true;
        for (name, value) in fields.iter() {
            let is_off = matches!(value, Value::Bool(_) | Value::Int(_) | Value::Float(_))
                && !value.is_truthy();
            match (&**name, is_off) {
                ("_id", true) => shows_id = false,
                (path, true) => hidden.push(Path::parse(path)?),
                (path, false) => insert(&mut projected, Path::parse(path)?.names(), value)?,
            }
        }
        if projected.is_empty() {
            if !shows_id {
                hidden.push(Path::parse("_id")?);
            }
            if hidden.is_empty() {
                return Err("names no field".to_owned());
            }
            return Ok(Self::Exclude(hidden));
        }
        if !hidden.is_empty() {
            return Err("cannot both keep and leave out fields; only _id: 0 may be added".into());
        }
        if shows_id && !projected.iter().any(|(name, _)| &**name == "_id") {
            projected.insert(0, ("_id".into(), ProjectedField::Unchanged));
        }
        Ok(Self::Include(projected))
    }

    pub(super) fn apply<'a>(
        &self,
        mut fields: Fields,
        share: Share<'a>,
    ) -> Result<Document<'a>, QueryError> {
        match self {
            Self::Include(projected) => {
                let mut projected_share = share.sibling();
                let fields = include(projected, &fields, &fields, &mut projected_share)?;
                Ok(Document { fields, share: projected_share })
            }
            Self::Exclude(paths) => {
                for path in paths {
                    path.remove(&mut fields);
                }
                Ok(Document { fields, share })
            }
        }
    }
}

/// Inserts a field into the tree of the projection.
fn insert(
    tree: &mut Vec<(Arc<str>, ProjectedField)>,
    names: &[Arc<str>],
    value: &Value,
) -> Result<(), String> {
    let Some((first, rest)) = names.split_first() else { return Ok(()) };
    let is_known = tree.iter().any(|(name, _)| name == first);
    let twice = || format!("{first} is specified twice");
    if rest.is_empty() {
        if is_known {
            return Err(twice());
        }
        tree.push((first.clone(), projected_field(value)?));
        return Ok(());
    }
    if !is_known {
        tree.push((first.clone(), ProjectedField::Parts(Vec::new())));
    }
    match tree.iter_mut().find(|(name, _)| name == first) {
        Some((_, ProjectedField::Parts(parts))) => insert(parts, rest, value),
        _ => Err(twice()),
    }
}

fn projected_field(value: &Value) -> Result<ProjectedField, String> {
    match value {
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => Ok(ProjectedField::Unchanged),
        Value::Fields(fields) if fields.iter().all(|(name, _)| !name.starts_with('$')) => {
            let mut parts = Vec::new();
            for (name, value) in fields.iter() {
                insert(&mut parts, Path::parse(name)?.names(), value)?;
            }
            Ok(ProjectedField::Parts(parts))
        }
        other => Ok(ProjectedField::Computed(Expression::parse(other)?)),
    }
}

/// Returns the shown fields of `part`, a part of the document `whole`.
fn include(
    tree: &[(Arc<str>, ProjectedField)],
    part: &Fields,
    whole: &Fields,
    share: &mut Share<'_>,
) -> Result<Fields, QueryError> {
    share.charge(1)?;
    let mut out = Fields::default();
    for (name, value) in part.iter() {
        match tree.iter().find(|(known, _)| known == name) {
            Some((_, ProjectedField::Unchanged)) => out.set(name.clone(), share.copy(value)?),
            Some((_, ProjectedField::Parts(parts))) => {
                if let Some(value) = include_value(parts, value, whole, share)? {
                    out.set(name.clone(), value);
                }
            }
            Some((_, ProjectedField::Computed(_))) | None => {}
        }
    }
    for (name, projected) in tree {
        match projected {
            ProjectedField::Computed(expression) => {
                if let Some(value) = expression.evaluate(whole, share)? {
                    out.set(name.clone(), value);
                }
            }
            ProjectedField::Parts(parts) if part.get(name).is_none() => {
                let computed = include(parts, &Fields::default(), whole, share)?;
                if !computed.is_empty() {
                    out.set(name.clone(), Value::Fields(computed));
                }
            }
            ProjectedField::Parts(_) | ProjectedField::Unchanged => {}
        }
    }
    Ok(out)
}

fn include_value(
    tree: &[(Arc<str>, ProjectedField)],
    value: &Value,
    whole: &Fields,
    share: &mut Share<'_>,
) -> Result<Option<Value>, QueryError> {
    Ok(match value {
        Value::Fields(fields) => Some(Value::Fields(include(tree, fields, whole, share)?)),
        Value::List(values) => {
            share.charge(1)?;
            let mut shown_values = Vec::new();
            for value in values {
                shown_values.extend(include_value(tree, value, whole, share)?);
            }
            Some(Value::List(shown_values))
        }
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Date(_) => None,
    })
}
