//! A minute in one document with a number for each second, or an hour with the numbers of 60
//! minutes of 60 seconds, or of 3,600 seconds.
//!
//! `values` are measured values; `seconds` count events. The metric is the field `type`, or else
//! the collection with the name of the total, such as `views` of `total_views`. Such a document is
//! inserted with zeros, which look like written ones. A zero of `seconds` is skipped: it is not an
//! event. A zero of `values` is skipped unless `num_samples` says that all slots were written, or
//! there is no `num_samples`.

use bson::{Bson, Document};

use super::emit::{Emitter, Tags, number, time};
use crate::model::{Kind, UnixMillis};

const TYPE: &str = "type";
/// The name of the number of written slots.
const COUNT: &str = "num_samples";
/// The fields with the numbers, and the kind of their values.
const NUMBERS: [(&str, Kind); 2] = [("values", Kind::Gauge), ("seconds", Kind::Delta)];
/// The fields with the start of the document, and its length in seconds.
const TIMES: [(&str, usize); 2] = [("timestamp_minute", 60), ("timestamp_hour", 3600)];

/// Reads a document of this shape; returns false for another.
pub(super) fn read(document: &Document, emitter: &mut Emitter<'_, '_>) -> bool {
    let start = TIMES.iter().find_map(|(name, length)| Some((time(document.get(name))?, *length)));
    let numbers = NUMBERS.iter().find_map(|(name, kind)| Some((document.get(name)?, name, *kind)));
    let (Some((start, length)), Some((slots, name, kind))) = (start, numbers) else { return false };
    let total = document.keys().find_map(|key| key.strip_prefix("total_"));
    let total = total.filter(|total| *total != "samples");
    let metric = match document.get_str(TYPE) {
        Ok(metric) => metric.to_owned(),
        Err(_) => emitter.metric(total.unwrap_or(name)),
    };
    let tags = Tags::from_document(document, |name| {
        let is_time = TIMES.iter().any(|(time, _)| *time == name);
        let is_numbers = NUMBERS.iter().any(|(numbers, _)| *numbers == name);
        let is_own = ["_id", TYPE, COUNT].contains(&name) || name.starts_with("total_");
        !is_time && !is_numbers && !is_own
    });
    let mut found = Vec::new();
    let bad = collect(slots, length, 0, &mut found);
    let written = document.get(COUNT).and_then(number);
    let keeps_zeros =
        kind == Kind::Gauge && written.is_none_or(|written| written >= found.len() as f64);
    let series = emitter.series(&metric, &tags, kind);
    for (second, value) in found.into_iter().filter(|(_, value)| keeps_zeros || *value != 0.0) {
        emitter.push(series, UnixMillis(start.0 + 1000 * second as i64), value);
    }
    if bad > 0 {
        emitter.refuse(bad, || {
            format!("field {name} has slots that are not numbers of seconds 0 to {}", length - 1)
        });
    }
    true
}

/// Collects the numbers of slots by their second; returns the number of bad slots. The slots of an
/// hour are seconds, or minutes with seconds.
fn collect(slots: &Bson, length: usize, base: usize, out: &mut Vec<(usize, f64)>) -> u64 {
    let entries: Vec<(Option<usize>, &Bson)> = if let Bson::Document(slots) = slots {
        slots.iter().map(|(name, value)| (name.parse().ok(), value)).collect()
    } else if let Bson::Array(slots) = slots {
        slots.iter().enumerate().map(|(at, value)| (Some(at), value)).collect()
    } else {
        return 1;
    };
    let mut bad = 0;
    for (slot, value) in entries {
        let is_minute = matches!(value, Bson::Document(_) | Bson::Array(_));
        match (slot, number(value)) {
            (Some(minute), _) if is_minute && length == 3600 && base == 0 && minute < 60 => {
                bad += collect_minute(value, 60 * minute, out);
            }
            (Some(second), Some(number)) if second < length => out.push((base + second, number)),
            // A slot that was never written may be null.
            (Some(_), None) if *value == Bson::Null => {}
            _ => bad += 1,
        }
    }
    bad
}

fn collect_minute(slots: &Bson, base: usize, out: &mut Vec<(usize, f64)>) -> u64 {
    let before = out.len();
    let bad = collect(slots, 60, 0, out);
    out.iter_mut().skip(before).for_each(|(second, _)| *second += base);
    bad
}
