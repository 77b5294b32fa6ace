//! Refs: small numbers that stand for series, so that the batches of a round do not repeat names.
//!
//! Must never know: the schedule of rounds, and the delivery of batches.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write,
    sync::atomic::{AtomicU32, Ordering},
};

use granary_protocol::{Batch, Kind, SeriesDefinition};

use crate::{
    Readings, Series,
    sampling::{
        readings::Reading,
        relabel::{self, Labels, Rule},
        series::Place,
    },
    spool::{SERIES_BYTES_MAX, SERIES_MAX},
};

/// The maximum number of samples in a batch; a larger round is split.
const BATCH_SAMPLES_MAX: usize = 25_000;
/// The maximum number of definitions in a batch.
const BATCH_DEFINITIONS_MAX: usize = 5_000;

/// The label that contains the metric's name in rules.
const NAME: &str = "__name__";

/// The refs of the spool's epoch.
#[derive(Debug)]
pub(crate) struct Refs {
    /// The owner number for the places of series; never 0.
    id: u32,
    /// The rules that apply to series before refs are assigned.
    rules: Vec<Rule>,
    /// Refs by the canonical text of the series.
    known: HashMap<String, u32>,
    /// The place that results from the rules, by the canonical text of the original series.
    ruled: HashMap<String, Place>,
    /// The total size of the texts.
    known_bytes: usize,
    next_ref: u32,
    /// The last round and time of each ref.
    seen: Vec<(u64, i64)>,
    round: u64,
}

/// The error for a series that gets no ref, because the table is full.
#[derive(Clone, Copy)]
struct Full;

impl Refs {
    /// Creates an empty table. The rules apply to series without a ref.
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        Self {
            id: new_id(),
            rules,
            known: HashMap::new(),
            ruled: HashMap::new(),
            known_bytes: 0,
            next_ref: 0,
            seen: Vec::new(),
            round: 0,
        }
    }

    /// Adds a series that the spool already defines.
    pub(crate) fn remember(&mut self, definition: &SeriesDefinition) {
        let key = key_of(definition);
        self.known_bytes += key.len();
        self.known.insert(key, definition.reference);
        self.next_ref = self.next_ref.max(definition.reference.saturating_add(1));
    }

    /// Replaces the rules, for all series.
    pub(crate) fn set_rules(&mut self, rules: Vec<Rule>) {
        if self.rules != rules {
            let taken: usize = self.ruled.drain().map(|(key, _)| key.len()).sum();
            self.known_bytes = self.known_bytes.saturating_sub(taken);
            self.rules = rules;
            // With a new number, the places that series remember are no longer valid.
            self.id = new_id();
        }
    }

    /// Passes the batches of a round, at least one, to `take`, without epoch and number. A second
    /// reading of a series at the same time is ignored, and so are new series beyond the limit;
    /// both become problems.
    ///
    /// # Errors
    /// The first error of `take`.
    pub(crate) fn batches<E>(
        &mut self,
        (agent, time_ms): (&str, i64),
        readings: &Readings,
        problems: &mut BTreeMap<String, String>,
        mut take: impl FnMut(Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        self.round += 1;
        let new = || Batch { agent: agent.to_owned(), ..Batch::default() };
        let mut batch = new();
        let mut pass_if_full = |batch: &mut Batch| {
            let is_full = batch.values.len() >= BATCH_SAMPLES_MAX
                || batch.series.len() >= BATCH_DEFINITIONS_MAX;
            if is_full { take(finish(std::mem::replace(batch, new()), time_ms)) } else { Ok(()) }
        };
        let mut key = String::new();
        for reading in readings.as_slice() {
            pass_if_full(&mut batch)?;
            key.clear();
            let tags = reading.tags.iter().map(|(k, v)| (k.as_ref(), v.as_str()));
            write_key(&mut key, &reading.metric, reading.kind, &reading.unit, tags);
            let place = self.place(&key, || define(reading), &mut batch.series);
            let sample = (reading.value, time_ms, reading.start_ms);
            self.push(place, sample, &reading.metric, &mut batch, problems);
        }
        for reading in readings.known() {
            pass_if_full(&mut batch)?;
            let place = self.place_known(&reading.series, readings, &mut batch.series);
            let sample = (reading.value, reading.time_ms, reading.start_ms);
            self.push(place, sample, reading.series.metric(), &mut batch, problems);
        }
        take(finish(batch, time_ms))
    }

    fn place_known(
        &mut self,
        series: &Series,
        readings: &Readings,
        added: &mut Vec<SeriesDefinition>,
    ) -> Result<Place, Full> {
        if let Some(place) = series.place(self.id) {
            return Ok(place);
        }
        let definition = series.define(readings.common());
        let key = key_of(&definition);
        let place = self.place(&key, || definition, added)?;
        series.set_place(self.id, place);
        Ok(place)
    }

    fn push(
        &mut self,
        place: Result<Place, Full>,
        (value, time_ms, start_ms): (f64, i64, Option<i64>),
        metric: &str,
        batch: &mut Batch,
        problems: &mut BTreeMap<String, String>,
    ) {
        let reference = match place {
            Ok(Place::Ref(reference)) => reference,
            Ok(Place::Dropped) => return,
            Err(Full) => {
                let cause = format!(
                    "more than {SERIES_MAX}, or names and tags of more than {SERIES_BYTES_MAX} \
                     bytes; restart the agent"
                );
                problems.insert("series of this spool".to_owned(), cause);
                return;
            }
        };
        let index = reference as usize;
        if self.seen.len() <= index {
            self.seen.resize(index + 1, (0, 0));
        }
        if std::mem::replace(&mut self.seen[index], (self.round, time_ms)) == (self.round, time_ms)
        {
            problems
                .insert(format!("series {metric}"), "two readings have the same time".to_owned());
            return;
        }
        batch.refs.push(reference);
        batch.values.push(value);
        batch.times.push(time_ms);
        batch.starts.push(start_ms.unwrap_or(0));
    }

    /// Returns the place of a series; a new definition is added to `added`.
    fn place(
        &mut self,
        key: &str,
        define: impl FnOnce() -> SeriesDefinition,
        added: &mut Vec<SeriesDefinition>,
    ) -> Result<Place, Full> {
        if self.rules.is_empty() {
            if let Some(reference) = self.known.get(key) {
                return Ok(Place::Ref(*reference));
            }
            return self.add(key.to_owned(), define(), added);
        }
        if let Some(place) = self.ruled.get(key) {
            return Ok(*place);
        }
        if self.known_bytes + key.len() > SERIES_BYTES_MAX {
            return Err(Full);
        }
        let place = match by_rules(&self.rules, define()) {
            None => Place::Dropped,
            Some(definition) => {
                let key = key_of(&definition);
                match self.known.get(&key) {
                    Some(reference) => Place::Ref(*reference),
                    None => self.add(key, definition, added)?,
                }
            }
        };
        self.known_bytes += key.len();
        self.ruled.insert(key.to_owned(), place);
        Ok(place)
    }

    fn add(
        &mut self,
        key: String,
        definition: SeriesDefinition,
        added: &mut Vec<SeriesDefinition>,
    ) -> Result<Place, Full> {
        let bytes = self.known_bytes + key.len();
        if self.next_ref >= SERIES_MAX || bytes > SERIES_BYTES_MAX {
            return Err(Full);
        }
        let reference = self.next_ref;
        self.next_ref += 1;
        self.known_bytes = bytes;
        self.known.insert(key, reference);
        added.push(SeriesDefinition { reference, ..definition });
        Ok(Place::Ref(reference))
    }
}

/// Removes columns whose values are equal for all samples.
fn finish(mut batch: Batch, time_ms: i64) -> Batch {
    if batch.starts.iter().all(|start| *start == 0) {
        batch.starts.clear();
    }
    if batch.times.iter().all(|time| *time == time_ms) {
        batch.times = vec![time_ms];
    }
    batch
}

/// Returns a number that is unique in this process.
fn new_id() -> u32 {
    static IDS: AtomicU32 = AtomicU32::new(1);
    IDS.fetch_add(1, Ordering::Relaxed)
}

/// Applies the rules to a series. Returns `None` when they drop it.
fn by_rules(rules: &[Rule], definition: SeriesDefinition) -> Option<SeriesDefinition> {
    let SeriesDefinition { metric, tags, .. } = &definition;
    let pairs = tags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut labels: Labels = pairs.chain([(NAME, metric.as_str())]).collect();
    if !relabel::apply(rules, &mut labels) || !labels.has(NAME) {
        return None;
    }
    let metric = labels.get(NAME).to_owned();
    labels.set(NAME, "");
    let tags = labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Some(SeriesDefinition { metric, tags, ..definition })
}

/// Returns the canonical text of a reading's series.
pub(crate) fn key_of_reading(reading: &Reading) -> String {
    let mut key = String::new();
    let tags = reading.tags.iter().map(|(k, v)| (k.as_ref(), v.as_str()));
    write_key(&mut key, &reading.metric, reading.kind, &reading.unit, tags);
    key
}

fn define(reading: &Reading) -> SeriesDefinition {
    SeriesDefinition {
        reference: 0,
        metric: reading.metric.to_string(),
        tags: reading.tags.iter().map(|(k, v)| (k.to_string(), v.clone())).collect(),
        kind: reading.kind,
        unit: reading.unit.to_string(),
    }
}

fn key_of(definition: &SeriesDefinition) -> String {
    let mut key = String::new();
    let tags = definition.tags.iter().map(|(k, v)| (k.as_str(), v.as_str()));
    write_key(&mut key, &definition.metric, definition.kind, &definition.unit, tags);
    key
}

fn write_key<'a>(
    key: &mut String,
    metric: &str,
    kind: Kind,
    unit: &str,
    tags: impl Iterator<Item = (&'a str, &'a str)>,
) {
    // Writing to a String cannot fail.
    let _ok = write!(key, "{metric}\0{kind}\0{unit}");
    for (name, value) in tags {
        let _ok = write!(key, "\0{name}\0{value}");
    }
}

#[cfg(test)]
mod tests;
