//! The refs of series: one round's readings become a batch that names series by them.
//!
//! Must never know: when a round is, and how batches are delivered.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    fmt::Write,
};

use granary_protocol::{Batch, Kind, SeriesDefinition};

use crate::{
    readings::Reading,
    spool::{SERIES_BYTES_MAX, SERIES_MAX},
};

/// The refs of the spool's epoch.
#[derive(Debug, Default)]
pub(crate) struct Refs {
    /// Canonical text of the series, to its ref and the last round that had it.
    known: HashMap<String, (u32, u64)>,
    /// Of the texts.
    known_bytes: usize,
    next_ref: u32,
    round: u64,
}

impl Refs {
    /// Goes on with the refs that the spool holds.
    pub(crate) fn new(definitions: &[SeriesDefinition]) -> Self {
        let mut refs = Self::default();
        for definition in definitions {
            let mut key = String::new();
            let tags = definition.tags.iter().map(|(k, v)| (k.as_str(), v.as_str()));
            write_key(&mut key, &definition.metric, definition.kind, &definition.unit, tags);
            refs.known_bytes += key.len();
            refs.known.insert(key, (definition.reference, 0));
            refs.next_ref = refs.next_ref.max(definition.reference.saturating_add(1));
        }
        refs
    }

    /// The batch of a round, without epoch and number. A series read twice in a round counts
    /// once, and past the limit no series is added; both become problems.
    pub(crate) fn batch(
        &mut self,
        agent: &str,
        time_ms: i64,
        readings: &[Reading],
        problems: &mut BTreeMap<String, String>,
    ) -> Batch {
        self.round += 1;
        let mut batch = Batch { agent: agent.to_owned(), times: vec![time_ms], ..Batch::default() };
        let mut key = String::new();
        for reading in readings {
            key.clear();
            let tags = reading.tags.iter().map(|(k, v)| (k.as_ref(), v.as_str()));
            write_key(&mut key, &reading.metric, reading.kind, &reading.unit, tags);
            let bytes = self.known_bytes + key.len();
            let is_full = self.next_ref >= SERIES_MAX || bytes > SERIES_BYTES_MAX;
            let reference = match self.known.entry(std::mem::take(&mut key)) {
                Entry::Occupied(mut known) => {
                    let (reference, last_round) = *known.get();
                    if last_round == self.round {
                        let place = format!("series {}", reading.metric);
                        problems.insert(place, format!("read twice: {:?}", reading.tags));
                        continue;
                    }
                    known.insert((reference, self.round));
                    reference
                }
                Entry::Vacant(_) if is_full => {
                    let cause = format!(
                        "more than {SERIES_MAX}, or names and tags of more than \
                         {SERIES_BYTES_MAX} bytes; restart the agent"
                    );
                    problems.insert("series of this spool".to_owned(), cause);
                    continue;
                }
                Entry::Vacant(free) => {
                    let reference = self.next_ref;
                    self.next_ref += 1;
                    self.known_bytes = bytes;
                    free.insert((reference, self.round));
                    batch.series.push(define(reference, reading));
                    reference
                }
            };
            batch.refs.push(reference);
            batch.values.push(reading.value);
            batch.starts.push(reading.start_ms.unwrap_or(0));
        }
        if batch.starts.iter().all(|start| *start == 0) {
            batch.starts.clear();
        }
        batch
    }
}

fn define(reference: u32, reading: &Reading) -> SeriesDefinition {
    SeriesDefinition {
        reference,
        metric: reading.metric.to_string(),
        tags: reading.tags.iter().map(|(k, v)| (k.to_string(), v.clone())).collect(),
        kind: reading.kind,
        unit: reading.unit.to_string(),
    }
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
mod tests {
    use super::*;
    use crate::Readings;

    fn readings() -> Readings {
        let mut readings = Readings::default();
        readings.gauge("load", "", &[("host", "a")], 1.5);
        readings.counter("reads", "operations", &[("disk", "sda"), ("host", "a")], 7.0, Some(99));
        readings
    }

    #[test]
    fn refs_are_defined_once_and_survive_a_restart() {
        let mut problems = BTreeMap::new();
        let mut refs = Refs::new(&[]);
        let first = refs.batch("a", 10, readings().as_slice(), &mut problems);
        assert_eq!((first.refs.clone(), first.starts.clone()), (vec![0, 1], vec![0, 99]));
        assert_eq!(first.series.len(), 2);
        let second = refs.batch("a", 20, readings().as_slice(), &mut problems);
        assert_eq!((second.refs, second.series), (vec![0, 1], vec![]));

        let mut restarted = Refs::new(&first.series);
        let mut more = readings();
        more.gauge("load", "", &[("host", "b")], 2.0);
        let third = restarted.batch("a", 30, more.as_slice(), &mut problems);
        assert_eq!(third.refs, [0, 1, 2]);
        assert_eq!(third.series.iter().map(|s| s.reference).collect::<Vec<_>>(), [2]);
        assert_eq!(problems, BTreeMap::new());
    }

    #[test]
    fn a_series_read_twice_counts_once() {
        let mut problems = BTreeMap::new();
        let mut twice = readings();
        twice.gauge("load", "", &[("host", "a")], 9.0);
        let batch = Refs::new(&[]).batch("a", 10, twice.as_slice(), &mut problems);
        assert_eq!(batch.values, [1.5, 7.0]);
        assert!(problems.contains_key("series load"));
    }

    #[test]
    fn past_the_limit_old_series_go_on_and_new_ones_are_refused() {
        let mut problems = BTreeMap::new();
        let mut refs = Refs::new(&[]);
        refs.batch("a", 10, readings().as_slice(), &mut problems);
        refs.next_ref = SERIES_MAX;
        let mut more = readings();
        more.gauge("load", "", &[("host", "b")], 2.0);
        let batch = refs.batch("a", 20, more.as_slice(), &mut problems);
        assert_eq!(batch.refs, [0, 1]);
        assert_eq!(problems.len(), 1);

        let mut refs = Refs::new(&[]);
        let mut long = readings();
        long.gauge("x".repeat(SERIES_BYTES_MAX), "", &[], 2.0);
        let batch = refs.batch("a", 30, long.as_slice(), &mut problems);
        assert_eq!((batch.refs, refs.known.len()), (vec![0, 1], 2));
    }
}
