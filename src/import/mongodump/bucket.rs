//! An hour, or another span of time, in one document with a list `measurements`: each has a
//! `timestamp` and values. The document's own sums and counts are not read.

use bson::{Bson, Document};

use super::emit::{Emitter, Tags, number, time};
use crate::model::Kind;

const LIST: &str = "measurements";
const TIMES: [&str; 3] = ["timestamp", "time", "date"];

/// Reads a document of this shape; returns false for another.
pub(super) fn read(document: &Document, emitter: &mut Emitter<'_, '_>) -> bool {
    let Ok(measurements) = document.get_array(LIST) else { return false };
    let fields: Vec<_> = measurements
        .iter()
        .filter_map(Bson::as_document)
        .flat_map(Document::keys)
        .map(String::as_str)
        .collect();
    // `sum_temperature` and `transaction_count` are computed from the measurements.
    let is_computed = |name: &str| {
        let of_field =
            |prefix: &str| name.strip_prefix(prefix).is_some_and(|field| fields.contains(&field));
        ["sum_", "min_", "max_", "avg_", "count_"].into_iter().any(of_field)
            || ["transaction_count", "count", "nsamples", "num_samples"].contains(&name)
    };
    let tags = Tags::from_document(document, |name| {
        !["_id", "start_date", "end_date", LIST].contains(&name) && !is_computed(name)
    });
    for measurement in measurements {
        let Bson::Document(measurement) = measurement else {
            emitter.refuse(1, || "a measurement is not a document".to_owned());
            continue;
        };
        let Some(at) = TIMES.iter().find_map(|name| time(measurement.get(name))) else {
            emitter.refuse(1, || "a measurement has no timestamp that is a date".to_owned());
            continue;
        };
        for (field, value) in measurement.iter().filter(|(name, _)| !TIMES.contains(&name.as_str()))
        {
            match number(value) {
                Some(value) => {
                    let metric = emitter.metric(field);
                    let series = emitter.series(&metric, &tags, Kind::Gauge);
                    emitter.push(series, at, value);
                }
                None => emitter.refuse_text(field, 1),
            }
        }
    }
    true
}
