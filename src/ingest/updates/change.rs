//! The samples of one update or insert: increments of slots are counts, assignments are readings.
//!
//! Must never know: the transport of updates.

use granary_protocol::Kind;

use super::{
    document_part::{Document, DocumentPart, Unit, is_container},
    settling::{Entry, Sample, UpdateChanges, is_made_of_slots},
};
use crate::shell::{
    notation::date,
    value::{Fields, Value},
};

/// The fields that contain a document's start, and the unit of the document.
const STARTS: [(&str, Unit); 5] = [
    ("timestamp_minute", Unit::Minute),
    ("timestamp_hour", Unit::Hour),
    ("timestamp_day", Unit::Day),
    ("timestamp_month", Unit::Month),
    ("date", Unit::Month),
];

/// The tags and samples of an update.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct UpdateSamples {
    pub(super) tags: Vec<(String, String)>,
    pub(super) samples: Vec<Sample>,
}

/// The document that an update changes.
#[derive(Debug, Default)]
struct TargetDocument {
    document: Option<Document>,
    /// A field and its value, which is the metric if slots have no names, and a tag otherwise.
    metric: Option<(String, String)>,
    tags: Vec<(String, String)>,
    /// A time field that does not define the unit of the document.
    other_time: Option<String>,
}

/// Returns the samples of an update.
///
/// # Errors
/// The reason why the update cannot be expressed as samples.
pub(super) fn update_samples(
    collection: &str,
    query: &Fields,
    change: &Value,
) -> Result<UpdateSamples, String> {
    let target = TargetDocument::of(query)?;
    let Value::Fields(operators) = change else {
        return Err("a pipeline as an update is not supported; use $inc, $set and $push".to_owned());
    };
    if operators.iter().any(|(name, _)| !name.starts_with('$')) {
        return Err("a whole document cannot be replaced; use $inc, $set and $push".to_owned());
    }
    let mut changes = UpdateChanges::default();
    for (operator, fields) in operators.iter() {
        let Value::Fields(fields) = fields else {
            return Err(format!("{operator} takes a document"));
        };
        for (path, value) in fields.iter() {
            changes
                .add(operator, path, value, &target, collection)
                .map_err(|fault| format!("{operator}: {fault}"))?;
        }
    }
    let mut tags = target.tags;
    if let Some((name, metric)) = target.metric.filter(|_| !changes.has_plain_values) {
        tags.push((name, metric));
    }
    Ok(UpdateSamples { tags, samples: changes.into_samples()? })
}

/// Returns the samples of an inserted document: a reading with numbers at one time; an empty shell
/// has none.
///
/// # Errors
/// The reason why the document cannot be expressed as samples.
pub(super) fn insert_samples(document: &Fields) -> Result<UpdateSamples, String> {
    if let Some((name, _)) =
        document.iter().find(|(name, value)| is_container(name) && !is_zero(value))
    {
        return Err(format!("{name} is not empty; add its slots with $inc or $set"));
    }
    if document.iter().any(|(name, _)| is_container(name)) {
        return Ok(UpdateSamples::default());
    }
    let mut tags = Vec::new();
    let mut others = Fields::default();
    for (name, value) in document.iter() {
        match value {
            _ if &**name == "_id" => {}
            Value::Fields(inner) => {
                for (name, value) in inner.iter() {
                    tags.push(tag(name, value)?);
                }
            }
            Value::Text(text) => tags.push((name.to_string(), text.to_string())),
            other => others.set(name.clone(), other.clone()),
        }
    }
    let samples = readings(&others)?;
    Ok(UpdateSamples { tags, samples })
}

/// Returns true when a value contains only zeros, names and times.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Int(_) | Value::Float(_) => value.number() == Some(0.0),
        Value::List(values) => values.iter().all(is_zero),
        Value::Fields(fields) => fields.iter().all(|(_, value)| is_zero(value)),
        Value::Null | Value::Bool(_) | Value::Text(_) | Value::Date(_) => true,
    }
}

/// Returns the samples of a document with one time and numbers.
fn readings(document: &Fields) -> Result<Vec<Sample>, String> {
    let mut times = document.iter().filter_map(|(_, value)| value.as_date());
    let (Some(at), None) = (times.next(), times.next()) else {
        return Err("a reading has one time, such as timestamp: ISODate(...)".to_owned());
    };
    let mut samples = Vec::new();
    for (name, value) in document.iter().filter(|(_, cell)| cell.as_date().is_none()) {
        let Some(value) = value.number() else {
            return Err(format!("{name} is {}, not a number", value.kind()));
        };
        samples.push(Sample { metric: name.to_string(), kind: Kind::Gauge, at, value });
    }
    if samples.is_empty() {
        return Err("a reading needs a number in addition to its time".to_owned());
    }
    Ok(samples)
}

fn tag(name: &str, value: &Value) -> Result<(String, String), String> {
    let text = match value {
        Value::Text(text) => text.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Fields(fields) => match fields.single() {
            Some(("$eq", operand)) => return tag(name, operand),
            _ => return Err(format!("{name}: the filter of a tag must be its value")),
        },
        other => return Err(format!("{name} is {}; tags are texts and numbers", other.kind())),
    };
    Ok((name.to_owned(), text))
}

impl TargetDocument {
    fn of(query: &Fields) -> Result<Self, String> {
        let mut target = Self::default();
        let metric_name = if query.get("metric").is_some() { "metric" } else { "type" };
        for (name, value) in query.iter() {
            let time = value.as_date().or_else(|| date(value.as_text()?));
            match STARTS.iter().find(|(known, _)| *known == &**name) {
                Some((_, unit)) => {
                    let start =
                        time.ok_or_else(|| format!("{name} is not a time; use ISODate(...)"))?;
                    if target.document.replace(Document::new(name, start, *unit)?).is_some() {
                        return Err(format!("{name} is a second start of the document"));
                    }
                }
                None if value.as_date().is_some() => target.other_time = Some(name.to_string()),
                None if name.starts_with('$') => {
                    return Err(format!("{name}: identify the document by its time and tags"));
                }
                None if &**name == "_id" => {
                    return Err(
                        "_id cannot be chosen; identify the document by time and tags".to_owned()
                    );
                }
                // Conditions on the number of entries in a bucket are ignored.
                None if is_condition(value) && is_made_of_slots(name) => {}
                None if is_condition(value) && is_range_of_times(value) => {}
                None if &**name == metric_name => target.metric = Some(tag(name, value)?),
                None => target.tags.push(tag(name, value)?),
            }
        }
        Ok(target)
    }

    fn document_part(&self, path: &str) -> Result<Option<DocumentPart>, String> {
        match (&self.document, &self.other_time) {
            (Some(document), _) => document.document_part(path),
            (None, _) if path.split('.').next().is_none_or(|first| !is_container(first)) => {
                Ok(None)
            }
            (None, other) => {
                let known = STARTS.map(|(name, _)| name).join(", ");
                let other =
                    other.as_deref().map_or(String::new(), |name| format!("; {name} does not"));
                Err(format!("{path}: the filter needs a start in one of {known}{other}"))
            }
        }
    }
}

fn is_condition(value: &Value) -> bool {
    matches!(value, Value::Fields(fields) if fields.iter().all(|(name, _)| name.starts_with('$')))
}

fn is_range_of_times(value: &Value) -> bool {
    matches!(value, Value::Fields(fields) if fields.iter().all(|(_, value)| value.as_date().is_some()))
}

impl UpdateChanges {
    fn add(
        &mut self,
        operator: &str,
        path: &str,
        value: &Value,
        target: &TargetDocument,
        collection: &str,
    ) -> Result<(), String> {
        match operator {
            "$setOnInsert" if is_zero(value) => return Ok(()),
            "$setOnInsert" => return Err(format!("{path} is not zero; every slot begins empty")),
            "$push" => return self.push(path, value),
            "$inc" | "$set" | "$min" | "$max" => {}
            _ => return Err("is not supported; use $inc, $set, $push and $setOnInsert".to_owned()),
        }
        let Some(number) = value.number() else {
            return Err(format!("{path} is {}; a sample is a number", value.kind()));
        };
        let part = target.document_part(path)?;
        let is_total = |name: &str| name == "num_samples" || name == "total_samples";
        match (operator, part) {
            ("$inc", _) if number < 0.0 => {
                return Err(format!("{path}: a count cannot be taken back"));
            }
            ("$inc", None) => self.roots.push((path.to_owned(), number)),
            ("$inc", Some(part)) if part.name.as_deref().is_some_and(is_total) => {
                self.totals.push((part, number));
            }
            ("$inc" | "$set", Some(part)) => {
                let metric = match &part.name {
                    Some(name) if operator == "$set" && is_total(name) => {
                        return Err(format!("{path} follows from its slots"));
                    }
                    Some(name) => name.clone(),
                    None => {
                        self.has_plain_values = true;
                        let named = target.metric.as_ref().map(|(_, metric)| metric.as_str());
                        named.unwrap_or(collection).to_owned()
                    }
                };
                let kind = if operator == "$inc" { Kind::Delta } else { Kind::Gauge };
                let (at, unit) = (part.at, part.unit);
                self.entries.push(Entry { metric, kind, at, unit, value: number });
            }
            ("$set", None) if is_made_of_slots(path) => {
                return Err(format!("{path} follows from its slots; set these"));
            }
            ("$set", None) => return Err(format!("{path} names no slot, so it has no time")),
            (_, None) => self.extremes.push((path.to_owned(), number)),
            (_, Some(_)) => {
                return Err(format!("{path}: every slot keeps its minimum and maximum"));
            }
        }
        Ok(())
    }

    fn push(&mut self, path: &str, value: &Value) -> Result<(), String> {
        let Value::Fields(fields) = value else {
            return Err(format!("{path} takes documents with a time and numbers"));
        };
        let each = match fields.single() {
            Some(("$each", Value::List(values))) => &values[..],
            _ => std::slice::from_ref(value),
        };
        for reading in each {
            let Value::Fields(reading) = reading else {
                return Err(format!("{path} takes documents with a time and numbers"));
            };
            for Sample { metric, kind, at, value } in readings(reading)? {
                self.entries.push(Entry { metric, kind, at, unit: Unit::Second, value });
            }
        }
        self.pushed += each.len();
        Ok(())
    }
}
