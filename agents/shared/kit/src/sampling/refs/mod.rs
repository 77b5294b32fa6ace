//! Refs: small numbers that stand for series, so that the batches of a round do not repeat names.
//!
//! Must never know: the schedule of rounds, and the delivery of batches.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write,
    sync::atomic::{AtomicU32, Ordering},
};

use granary_histogram::Histogram;
use granary_protocol::{Batch, Kind, SeriesDefinition, push_histogram};

use self::columns::{start_in_column, tidied};
use crate::{
    Readings, Series,
    sampling::{
        readings::Reading,
        relabel::{self, Labels, Rule},
        series::Assignment,
    },
    spool::{SERIES_BYTES_MAX, SERIES_MAX},
};

mod columns;

/// The maximum number of samples in a batch; a larger round is split.
const BATCH_SAMPLES_MAX: usize = 25_000;
/// The maximum number of definitions in a batch.
const BATCH_DEFINITIONS_MAX: usize = 5_000;
/// The size of the histograms of a batch at which the next batch begins.
const BATCH_HISTOGRAM_BYTES: usize = 512 << 10;

/// The label that contains the metric's name in rules.
const NAME: &str = "__name__";

/// The refs of the spool's epoch.
#[derive(Debug)]
pub(crate) struct Refs {
    /// The number of this table in the assignments that series remember; never 0.
    id: u32,
    /// The rules that apply to series before refs are assigned.
    rules: Vec<Rule>,
    /// Refs by the canonical text of the series.
    by_key: HashMap<String, u32>,
    /// The results of the rules, by the canonical text of the original series.
    assignments: HashMap<String, Assignment>,
    /// The total size of the texts.
    key_bytes: usize,
    next_ref: u32,
    /// The last round and time of each ref.
    last_samples: Vec<(u64, i64)>,
    round: u64,
}

/// The error for a series that gets no ref, because the table is full.
#[derive(Clone, Copy)]
struct TableFull;

impl Refs {
    /// Creates an empty table. The rules apply to series without a ref.
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        Self {
            id: new_id(),
            rules,
            by_key: HashMap::new(),
            assignments: HashMap::new(),
            key_bytes: 0,
            next_ref: 0,
            last_samples: Vec::new(),
            round: 0,
        }
    }

    /// Adds a series that the spool already defines.
    pub(crate) fn remember(&mut self, definition: &SeriesDefinition) {
        let key = key_of(definition);
        self.key_bytes += key.len();
        self.by_key.insert(key, definition.reference);
        self.next_ref = self.next_ref.max(definition.reference.saturating_add(1));
    }

    /// Replaces the rules, for all series.
    pub(crate) fn set_rules(&mut self, rules: Vec<Rule>) {
        if self.rules != rules {
            let removed_bytes: usize = self.assignments.drain().map(|(key, _)| key.len()).sum();
            self.key_bytes = self.key_bytes.saturating_sub(removed_bytes);
            self.rules = rules;
            // With a new number, the assignments that series remember are no longer valid.
            self.id = new_id();
        }
    }

    /// Passes the batches of a round, at least one, to `write`. The batches have no epoch or number
    /// yet. A second reading of a series at the same time is ignored, and so are new series beyond
    /// the limit; both are reported as problems.
    ///
    /// # Errors
    /// The first error of `write`.
    pub(crate) fn batches<E>(
        &mut self,
        (agent, time_ms): (&str, i64),
        readings: &Readings,
        problems: &mut BTreeMap<String, String>,
        mut write: impl FnMut(Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        self.round += 1;
        let new = || Batch { agent: agent.to_owned(), ..Batch::default() };
        let mut batch = new();
        let mut pass_if_full = |batch: &mut Batch| {
            let is_full = batch.values.len() >= BATCH_SAMPLES_MAX
                || batch.series.len() >= BATCH_DEFINITIONS_MAX
                || batch.histograms.len() >= BATCH_HISTOGRAM_BYTES;
            if is_full { write(tidied(std::mem::replace(batch, new()), time_ms)) } else { Ok(()) }
        };
        let mut key = String::new();
        for reading in readings.as_slice() {
            pass_if_full(&mut batch)?;
            key.clear();
            let tags = reading.tags.iter().map(|(k, v)| (k.as_ref(), v.as_str()));
            write_key(&mut key, &reading.metric, reading.kind, &reading.unit, tags);
            let assignment = self.assign(&key, || define(reading), &mut batch.series);
            let start = start_in_column(reading.kind, reading.start_ms);
            let sample = (reading.value, time_ms, start);
            self.push_sample(assignment, sample, &reading.metric, &mut batch, problems);
        }
        for reading in readings.known() {
            pass_if_full(&mut batch)?;
            let assignment = self.assign_known(&reading.series, readings, &mut batch.series);
            let start = start_in_column(reading.series.kind(), reading.start_ms);
            let sample = (reading.value, reading.time_ms, start);
            let index = batch.values.len() as u32;
            self.push_sample(assignment, sample, reading.series.metric(), &mut batch, problems);
            let is_histogram = reading.series.kind().is_histogram();
            if is_histogram && batch.values.len() > index as usize {
                // Without a histogram, the reading is a stale marker.
                let stale = Histogram::stale();
                let histogram = reading.histogram.as_deref().unwrap_or(&stale);
                push_histogram(&mut batch.histograms, index, histogram);
            }
        }
        write(tidied(batch, time_ms))
    }

    fn assign_known(
        &mut self,
        series: &Series,
        readings: &Readings,
        new_definitions: &mut Vec<SeriesDefinition>,
    ) -> Result<Assignment, TableFull> {
        if let Some(assignment) = series.assignment(self.id) {
            return Ok(assignment);
        }
        let definition = series.define(readings.common());
        let key = key_of(&definition);
        let assignment = self.assign(&key, || definition, new_definitions)?;
        series.set_assignment(self.id, assignment);
        Ok(assignment)
    }

    fn push_sample(
        &mut self,
        assignment: Result<Assignment, TableFull>,
        (value, time_ms, start): (f64, i64, i64),
        metric: &str,
        batch: &mut Batch,
        problems: &mut BTreeMap<String, String>,
    ) {
        let reference = match assignment {
            Ok(Assignment::Ref(reference)) => reference,
            Ok(Assignment::Dropped) => return,
            Err(TableFull) => {
                let cause = format!(
                    "more than {SERIES_MAX}, or names and tags of more than {SERIES_BYTES_MAX} \
                     bytes; restart the agent"
                );
                problems.insert("series of this spool".to_owned(), cause);
                return;
            }
        };
        let index = reference as usize;
        if self.last_samples.len() <= index {
            self.last_samples.resize(index + 1, (0, 0));
        }
        if std::mem::replace(&mut self.last_samples[index], (self.round, time_ms))
            == (self.round, time_ms)
        {
            problems
                .insert(format!("series {metric}"), "two readings have the same time".to_owned());
            return;
        }
        batch.refs.push(reference);
        batch.values.push(value);
        batch.times.push(time_ms);
        batch.starts.push(start);
    }

    /// Returns the assignment of a series; a new definition is added to `new_definitions`.
    fn assign(
        &mut self,
        key: &str,
        define: impl FnOnce() -> SeriesDefinition,
        new_definitions: &mut Vec<SeriesDefinition>,
    ) -> Result<Assignment, TableFull> {
        if self.rules.is_empty() {
            if let Some(reference) = self.by_key.get(key) {
                return Ok(Assignment::Ref(*reference));
            }
            return self.add(key.to_owned(), define(), new_definitions);
        }
        if let Some(assignment) = self.assignments.get(key) {
            return Ok(*assignment);
        }
        if self.key_bytes + key.len() > SERIES_BYTES_MAX {
            return Err(TableFull);
        }
        let assignment = match apply_rules(&self.rules, define()) {
            None => Assignment::Dropped,
            Some(definition) => {
                let key = key_of(&definition);
                match self.by_key.get(&key) {
                    Some(reference) => Assignment::Ref(*reference),
                    None => self.add(key, definition, new_definitions)?,
                }
            }
        };
        self.key_bytes += key.len();
        self.assignments.insert(key.to_owned(), assignment);
        Ok(assignment)
    }

    fn add(
        &mut self,
        key: String,
        definition: SeriesDefinition,
        new_definitions: &mut Vec<SeriesDefinition>,
    ) -> Result<Assignment, TableFull> {
        let bytes = self.key_bytes + key.len();
        if self.next_ref >= SERIES_MAX || bytes > SERIES_BYTES_MAX {
            return Err(TableFull);
        }
        let reference = self.next_ref;
        self.next_ref += 1;
        self.key_bytes = bytes;
        self.by_key.insert(key, reference);
        new_definitions.push(SeriesDefinition { reference, ..definition });
        Ok(Assignment::Ref(reference))
    }
}

/// Returns a number that is unique in this process.
fn new_id() -> u32 {
    static IDS: AtomicU32 = AtomicU32::new(1);
    IDS.fetch_add(1, Ordering::Relaxed)
}

/// Applies the rules to a series. Returns `None` when they drop it.
fn apply_rules(rules: &[Rule], definition: SeriesDefinition) -> Option<SeriesDefinition> {
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
