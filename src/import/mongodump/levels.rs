//! A month in one document: `days`, each with `hours`, each with `minutes`. Every level has a
//! `date` and the sums of all fields; levels may be missing.
//!
//! The finest sums are the samples: numbers of events. A zero is skipped, because such a document
//! is inserted full of zeros, and a count of events is not zero.

use bson::{Bson, Document};

use super::emit::{Emitter, Tags, number, time};
use crate::model::{Kind, UnixMillis};

/// The arrays of each level, from the document down.
const LEVELS: [&str; 3] = ["days", "hours", "minutes"];
const DATE: &str = "date";

/// Reads a document of this shape; returns false for another.
pub(super) fn read(document: &Document, emitter: &mut Emitter<'_, '_>) -> bool {
    let Some(first) = LEVELS.iter().position(|level| document.get_array(level).is_ok()) else {
        return false;
    };
    let mut fields = Vec::new();
    let mut sums = Vec::new();
    collect_sums(document, first, &mut fields, &mut sums);
    let tags = Tags::from_document(document, |name| {
        !["_id", DATE].contains(&name) && !LEVELS.contains(&name) && !is_field(name, &fields)
    });
    for (field, at, sum) in sums {
        match at {
            Some(at) if sum != 0.0 => {
                let metric = emitter.metric(field);
                let series = emitter.series(&metric, &tags, Kind::Delta);
                emitter.push(series, at, sum);
            }
            Some(_) => {}
            None => emitter.refuse(1, || format!("field {field} is in a level without a date")),
        }
    }
    true
}

fn is_field(name: &str, fields: &[&str]) -> bool {
    fields.contains(&name)
}

/// A field with the time and the sum of a finest level.
type FieldSum<'a> = (&'a str, Option<UnixMillis>, f64);

/// Collects the sums of the finest levels below a document, and the names of their fields.
fn collect_sums<'a>(
    document: &'a Document,
    level: usize,
    fields: &mut Vec<&'a str>,
    sums: &mut Vec<FieldSum<'a>>,
) {
    let at = time(document.get(DATE));
    for (next, name) in LEVELS.iter().enumerate().skip(level) {
        if let Ok(parts) = document.get_array(name) {
            for part in parts {
                if let Bson::Document(part) = part {
                    collect_sums(part, next + 1, fields, sums);
                }
            }
            return;
        }
    }
    for (name, value) in document {
        if name == DATE || name == "_id" {
            continue;
        }
        if let Some(sum) = number(value) {
            if !fields.contains(&name.as_str()) {
                fields.push(name);
            }
            sums.push((name, at, sum));
        }
    }
}
