//! The samples that follow from the changes of an update: the finest slots, after a check of all
//! totals.
//!
//! Totals are never stored but computed from their slots, so an update with a different total is
//! refused. Must never know: the syntax of updates.

use std::collections::BTreeMap;

use granary_protocol::Kind;

use super::document_part::{DocumentPart, Unit};
use crate::model::UnixMillis;

/// The maximum number of totals in an update.
const TOTALS_MAX: usize = 64;

/// A sample of an update; it has the tags of the update.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) metric: String,
    pub(super) kind: Kind,
    pub(super) at: UnixMillis,
    pub(super) value: f64,
}

/// A slot, or a part that consists of slots.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) metric: String,
    pub(super) kind: Kind,
    pub(super) at: UnixMillis,
    pub(super) unit: Unit,
    pub(super) value: f64,
}

/// The changes of an update by type.
#[derive(Debug, Default)]
pub(super) struct UpdateChanges {
    pub(super) entries: Vec<Entry>,
    /// The increments of fields that are not in lists of slots, such as the count of all samples.
    pub(super) roots: Vec<(String, f64)>,
    /// The increments of parts' counts and sums.
    pub(super) totals: Vec<(DocumentPart, f64)>,
    /// The values of `$min` and `$max`.
    pub(super) extremes: Vec<(String, f64)>,
    /// The number of documents pushed to a list.
    pub(super) pushed: usize,
    /// True when slots are plain values instead of documents.
    pub(super) has_plain_values: bool,
}

/// Returns true for a field that is computed from slots.
pub(super) fn is_made_of_slots(name: &str) -> bool {
    let begins = ["num_", "total_", "sum_", "avg_", "min_", "max_"];
    let suffixes = ["_count", "_total", "_sum", "_min", "_max"];
    ["n", "count", "total", "sum", "min", "max"].contains(&name)
        || begins.iter().any(|affix| name.starts_with(affix))
        || suffixes.iter().any(|affix| name.ends_with(affix))
}

impl UpdateChanges {
    /// Returns the slots after checking all totals.
    pub(super) fn into_samples(mut self) -> Result<Vec<Sample>, String> {
        let kinds: BTreeMap<&str, Kind> =
            self.entries.iter().map(|entry| (&*entry.metric, entry.kind)).collect();
        if let Some(entry) =
            self.entries.iter().find(|entry| kinds.get(&*entry.metric) != Some(&entry.kind))
        {
            return Err(format!("{} cannot be counted and set at once", entry.metric));
        }
        drop(kinds);
        let samples = finest(std::mem::take(&mut self.entries))?;
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for sample in &samples {
            *sums.entry(&sample.metric).or_default() += sample.value;
        }
        let sum = sums.values().sum::<f64>();
        let counts = [samples.len() as f64, self.pushed as f64];
        for (name, number) in &self.roots {
            let agrees = match sums.get(&**name) {
                Some(sum) => is_same(*sum, *number),
                None if samples.is_empty() || !is_made_of_slots(name) => {
                    return Err(format!(
                        "{name} names no slot, so it has no time; also name a slot"
                    ));
                }
                None => {
                    let computed = sums.values().chain([&sum]).chain(&counts);
                    computed.into_iter().any(|computed| is_same(*computed, *number))
                }
            };
            if !agrees {
                return Err(format!(
                    "{name} would grow by {number}, and its slots by {sum} in {} samples",
                    samples.len()
                ));
            }
        }
        if self.totals.len() > TOTALS_MAX {
            return Err(format!("more than {TOTALS_MAX} totals of parts; leave them out"));
        }
        for (part, number) in &self.totals {
            let end = part.unit.end(part.at);
            let in_part = samples.iter().filter(|sample| part.at <= sample.at && sample.at < end);
            let computed =
                in_part.fold((0.0, 0.0), |(n, sum), sample| (n + 1.0, sum + sample.value));
            if !is_same(computed.0, *number) && !is_same(computed.1, *number) {
                let name = part.name.as_deref().unwrap_or_default();
                return Err(format!(
                    "{name} would grow by {number}, and its slots by {}",
                    computed.1
                ));
            }
        }
        for (name, number) in &self.extremes {
            if !samples.iter().any(|sample| sample.value == *number) {
                return Err(format!("{name} follows from its slots, of which none is {number}"));
            }
        }
        Ok(samples)
    }
}

fn is_same(computed: f64, number: f64) -> bool {
    (computed - number).abs() <= 1e-9 * computed.abs().max(number.abs())
}

/// A part that contains the current entry.
struct OpenPart {
    entry: Entry,
    end: UnixMillis,
    /// The sum of the inner slots so far.
    inside: Option<f64>,
}

/// Returns the finest entries. Entries that contain finer ones must be their sums.
fn finest(mut entries: Vec<Entry>) -> Result<Vec<Sample>, String> {
    entries.sort_by(|a, b| (&a.metric, a.at, a.unit).cmp(&(&b.metric, b.at, b.unit)));
    let mut samples = Vec::with_capacity(entries.len());
    let mut open_parts: Vec<OpenPart> = Vec::new();
    for entry in entries {
        while open_parts
            .last()
            .is_some_and(|outer| outer.entry.metric != entry.metric || outer.end <= entry.at)
        {
            close(&mut open_parts, &mut samples)?;
        }
        if open_parts
            .last()
            .is_some_and(|outer| outer.entry.at == entry.at && outer.entry.unit == entry.unit)
        {
            return Err(format!("{} has two values at {}", entry.metric, entry.at));
        }
        let end = entry.unit.end(entry.at);
        open_parts.push(OpenPart { entry, end, inside: None });
    }
    while !open_parts.is_empty() {
        close(&mut open_parts, &mut samples)?;
    }
    Ok(samples)
}

fn close(open: &mut Vec<OpenPart>, samples: &mut Vec<Sample>) -> Result<(), String> {
    let Some(OpenPart { entry, inside, .. }) = open.pop() else { return Ok(()) };
    let Entry { metric, kind, at, value, .. } = entry;
    if let Some(outer) = open.last_mut() {
        *outer.inside.get_or_insert(0.0) += inside.unwrap_or(value);
    }
    match inside {
        None => samples.push(Sample { metric, kind, at, value }),
        Some(inside) if is_same(inside, value) && kind == Kind::Delta => {}
        Some(inside) => {
            return Err(format!(
                "{metric} from {at} on would grow by {value}, and its slots by {inside}"
            ));
        }
    }
    Ok(())
}
