//! Paths to fields, through documents and lists.
//!
//! Must never know: the use of the values.

use std::sync::Arc;

use super::{
    quota::Share,
    value::{DEPTH_MAX, Fields, Value},
};
use crate::query::QueryError;

/// The path to a field, such as `days.date`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path(Vec<Arc<str>>);

impl Path {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let names: Vec<Arc<str>> = text.split('.').map(Into::into).collect();
        if names.len() > DEPTH_MAX || names.iter().any(|name| name.is_empty()) {
            return Err(format!("{text:?} is not a field path"));
        }
        if let Some(name) = names.iter().find(|name| name.starts_with('$')) {
            return Err(format!("{name:?} in {text:?} is not a field name"));
        }
        Ok(Self(names))
    }

    pub(super) fn names(&self) -> &[Arc<str>] {
        &self.0
    }

    pub(super) fn equals(&self, text: &str) -> bool {
        self.0.iter().map(|name| &**name).eq(text.split('.'))
    }

    /// Returns a copy of the value that an expression sees. For a list of documents, the value is
    /// the list of the values in its documents.
    pub(super) fn get(
        &self,
        document: &Fields,
        share: &mut Share<'_>,
    ) -> Result<Option<Value>, QueryError> {
        let Some((first, rest)) = self.0.split_first() else { return Ok(None) };
        document.get(first).map_or(Ok(None), |value| copy_along(rest, value, share))
    }

    /// Removes the value and leaves `Null` in its place. Lists on the path are not entered.
    pub(super) fn take_value(&self, document: &mut Fields) -> Option<Value> {
        let (last, parents) = self.0.split_last()?;
        let mut fields = document;
        for name in parents {
            let Some(Value::Fields(inner)) = fields.get_mut(name) else { return None };
            fields = inner;
        }
        fields.get_mut(last).map(|value| std::mem::replace(value, Value::Null))
    }

    /// Sets the value. Missing documents on the path are created; in a list, the value of each
    /// document is set.
    pub(super) fn set(
        &self,
        document: &mut Fields,
        value: Value,
        share: &mut Share<'_>,
    ) -> Result<(), QueryError> {
        set_along(&self.0, document, value, share)
    }

    pub(super) fn remove(&self, document: &mut Fields) {
        remove_along(&self.0, document);
    }

    /// Calls `visit` with every value that a condition sees, until `visit` returns true. Conditions
    /// see each document of a list, the element at a numeric position, and the elements of a final
    /// list. Returns true when `visit` did.
    pub(super) fn any_value(
        &self,
        document: &Fields,
        visit: &mut dyn FnMut(&Value) -> bool,
    ) -> bool {
        let Some((first, rest)) = self.0.split_first() else { return false };
        document.get(first).is_some_and(|value| any_along(rest, value, visit))
    }
}

fn copy_along(
    names: &[Arc<str>],
    value: &Value,
    share: &mut Share<'_>,
) -> Result<Option<Value>, QueryError> {
    match (names.split_first(), value) {
        (None, _) => share.copy(value).map(Some),
        (Some((first, rest)), Value::Fields(fields)) => {
            fields.get(first).map_or(Ok(None), |value| copy_along(rest, value, share))
        }
        (Some(_), Value::List(values)) => {
            share.charge(1)?;
            let mut out = Vec::new();
            for value in values {
                out.extend(copy_along(names, value, share)?);
            }
            Ok(Some(Value::List(out)))
        }
        (Some(_), _) => Ok(None),
    }
}

fn any_along(names: &[Arc<str>], value: &Value, visit: &mut dyn FnMut(&Value) -> bool) -> bool {
    match (names.split_first(), value) {
        (None, Value::List(values)) => visit(value) || values.iter().any(visit),
        (None, _) => visit(value),
        (Some((first, rest)), Value::Fields(fields)) => {
            fields.get(first).is_some_and(|value| any_along(rest, value, visit))
        }
        (Some((first, rest)), Value::List(values)) => {
            // A number is a position in the list, or the name of a field of its documents.
            let position = Some(first).filter(|name| is_number(name));
            let position = position.and_then(|name| name.parse::<usize>().ok());
            let at_position = position.and_then(|position| values.get(position));
            if at_position.is_some_and(|value| any_along(rest, value, visit)) {
                return true;
            }
            let mut documents = values.iter().filter(|value| matches!(value, Value::Fields(_)));
            documents.any(|value| any_along(names, value, visit))
        }
        (Some(_), _) => false,
    }
}

/// Returns true when a name is a position as MongoDB writes it: digits without leading zeros.
fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'))
}

fn set_along(
    names: &[Arc<str>],
    fields: &mut Fields,
    value: Value,
    share: &mut Share<'_>,
) -> Result<(), QueryError> {
    let Some((first, rest)) = names.split_first() else { return Ok(()) };
    if rest.is_empty() {
        fields.set(first.clone(), value);
        return Ok(());
    }
    match fields.get_mut(first) {
        Some(Value::Fields(inner)) => set_along(rest, inner, value, share)?,
        Some(Value::List(values)) => {
            for element in values {
                if let Value::Fields(inner) = element {
                    let copy = share.copy(&value)?;
                    set_along(rest, inner, copy, share)?;
                }
            }
        }
        _ => {
            share.charge(1)?;
            let mut inner = Fields::default();
            set_along(rest, &mut inner, value, share)?;
            fields.set(first.clone(), Value::Fields(inner));
        }
    }
    Ok(())
}

fn remove_along(names: &[Arc<str>], fields: &mut Fields) {
    let Some((first, rest)) = names.split_first() else { return };
    if rest.is_empty() {
        return fields.remove(first);
    }
    match fields.get_mut(first) {
        Some(Value::Fields(inner)) => remove_along(rest, inner),
        Some(Value::List(values)) => {
            for element in values {
                if let Value::Fields(inner) = element {
                    remove_along(rest, inner);
                }
            }
        }
        _ => {}
    }
}
