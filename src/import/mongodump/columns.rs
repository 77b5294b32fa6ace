//! A bucket of a time series collection: `control`, `meta`, and `data` with a column for each
//! field, whose keys are the numbers of the measurements.
//!
//! Version 1 is read. Later versions compress their columns in a binary form that only MongoDB
//! documents in its sources: a dump of the collection's view has plain measurements.

use std::collections::BTreeMap;

use bson::{Bson, Document};

use super::emit::{Emitter, Tags, number, time};
use crate::model::{Kind, UnixMillis};

/// The maximum depth of measured documents.
const DEPTH_MAX: usize = 8;

/// Reads a document of this shape; returns false for another.
pub(super) fn read(document: &Document, emitter: &mut Emitter<'_, '_>) -> bool {
    let (Ok(control), Ok(data)) = (document.get_document("control"), document.get_document("data"))
    else {
        return false;
    };
    let version = control.get("version").and_then(number).unwrap_or(1.0);
    if version > 1.0 || data.values().any(|column| matches!(column, Bson::Binary(_))) {
        let count = control.get("count").and_then(number).unwrap_or(1.0).max(1.0);
        emitter.refuse(count as u64, || {
            format!(
                "the columns of this bucket are compressed (control.version {version}): copy the \
                 collection with $out to a plain one with buckets of measurements, or export it as \
                 CSV with mongoexport"
            )
        });
        return true;
    }
    let Some((time_field, times)) = times_of(control, data) else {
        emitter
            .refuse(1, || "no column of data contains dates, although control.min does".to_owned());
        return true;
    };
    let mut tags = Tags::default();
    if let Some(meta) = document.get("meta") {
        tags.add("meta", meta, 0);
    }
    for (field, column) in data.iter().filter(|(field, _)| *field != time_field) {
        if let Bson::Document(column) = column {
            read_column(field, column, &times, &tags, emitter);
        } else {
            emitter.refuse(1, || format!("data.{field} is not a column"));
        }
    }
    true
}

/// The time of each measurement by its key.
type Times<'a> = BTreeMap<&'a str, UnixMillis>;

/// Returns the time field and the time of each measurement: the column whose least value is a date.
fn times_of<'a>(control: &Document, data: &'a Document) -> Option<(&'a String, Times<'a>)> {
    let minimum = control.get_document("min").ok()?;
    let is_time = |field: &str| matches!(minimum.get(field), Some(Bson::DateTime(_)));
    let (field, column) = data.iter().find(|(field, column)| {
        is_time(field)
            && column.as_document().is_some_and(|column| {
                column.values().all(|value| matches!(value, Bson::DateTime(_)))
            })
    })?;
    let column = column.as_document()?;
    let times = column.iter().filter_map(|(key, value)| Some((key.as_str(), time(Some(value))?)));
    Some((field, times.collect()))
}

fn read_column(
    field: &str,
    column: &Document,
    times: &Times<'_>,
    tags: &Tags,
    emitter: &mut Emitter<'_, '_>,
) {
    for (key, value) in column {
        match times.get(key.as_str()) {
            Some(at) => read_value(field, value, *at, tags, emitter, 0),
            None => emitter.refuse(1, || format!("data.{field}.{key} has no time")),
        }
    }
}

fn read_value(
    field: &str,
    value: &Bson,
    at: UnixMillis,
    tags: &Tags,
    emitter: &mut Emitter<'_, '_>,
    depth: usize,
) {
    match (value, number(value)) {
        // The `_id` of a measurement is not a value.
        (Bson::ObjectId(_), _) if field == "_id" => {}
        (_, Some(value)) => {
            let metric = emitter.metric(field);
            let series = emitter.series(&metric, tags, Kind::Gauge);
            emitter.push(series, at, value);
        }
        (Bson::Document(inner), _) if depth < DEPTH_MAX => {
            for (name, value) in inner {
                read_value(&format!("{field}_{name}"), value, at, tags, emitter, depth + 1);
            }
        }
        _ => emitter.refuse_text(field, 1),
    }
}
