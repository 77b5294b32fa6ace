//! From samples to numbered batches: the same samples give the same batches, whatever the daemon
//! answers and however fast it is, so that a batch that is sent again is known by its number.

use granary_protocol::Batch;

use super::Place;
use crate::{
    ingest::rows::Numbered,
    model::{Kind, SeriesId, SeriesInfo},
};

/// Samples of a batch.
const SAMPLES_MAX: usize = 10_000;
/// Bytes that the keys of a batch's series may take: all of them may have to be defined again.
const KEY_BYTES_MAX: usize = 512 * 1024;
/// What a definition takes besides its key.
const DEFINITION_BYTES: usize = 64;
/// All batches of a file are of one epoch: the file's content is the sender.
pub const EPOCH: i64 = 1;

/// A batch with what is needed to send it.
#[derive(Debug)]
pub struct NumberedBatch {
    /// The samples; definitions are not filled in.
    pub batch: Batch,
    /// Series that are new to the file, in order of their refs.
    pub new: Vec<SeriesInfo>,
    /// Where the first and the last sample come from.
    pub places: (Place, Place),
}

/// The batch under way, and the series that are defined.
#[derive(Debug)]
pub struct Batcher {
    sender: String,
    seq: u64,
    open: NumberedBatch,
    key_bytes: usize,
    /// By ref.
    series: Vec<Known>,
}

/// What is remembered of a series.
#[derive(Debug)]
struct Known {
    kind: Kind,
    /// Bytes of its definition.
    bytes: u32,
    /// The last batch that used it.
    used: u64,
}

impl Batcher {
    /// No samples yet; the batches are those of `sender`.
    pub fn new(sender: String) -> Self {
        let open = empty(&sender, 1);
        Self { sender, seq: 1, open, key_bytes: 0, series: Vec::new() }
    }

    /// Series so far.
    pub fn series(&self) -> usize {
        self.series.len()
    }

    /// The kind of a series that was numbered.
    pub fn kind(&self, series: SeriesId) -> Option<Kind> {
        self.series.get(series.0 as usize).map(|known| known.kind)
    }

    /// Numbers a new series.
    pub fn define(&mut self, definition: SeriesInfo) -> SeriesId {
        let bytes = definition.key.as_bytes().len() + definition.unit.len() + DEFINITION_BYTES;
        let reference = self.series.len() as u32;
        self.series.push(Known { kind: definition.kind, bytes: bytes as u32, used: 0 });
        self.open.new.push(definition);
        SeriesId(reference)
    }

    /// Adds a sample; returns a batch when it is full.
    pub fn add(
        &mut self,
        series: SeriesId,
        sample: &Numbered,
        place: Place,
    ) -> Option<NumberedBatch> {
        let known = &mut self.series[series.0 as usize];
        if known.used != self.seq {
            known.used = self.seq;
            self.key_bytes += known.bytes as usize;
        }
        let batch = &mut self.open.batch;
        if sample.start != 0 && batch.starts.is_empty() {
            batch.starts.resize(batch.refs.len(), 0);
        }
        if sample.start != 0 || !batch.starts.is_empty() {
            batch.starts.push(sample.start);
        }
        batch.refs.push(series.0);
        batch.times.push(sample.at.0);
        batch.values.push(sample.value);
        if batch.refs.len() == 1 {
            self.open.places.0 = place;
        }
        self.open.places.1 = place;
        let full = batch.refs.len() >= SAMPLES_MAX || self.key_bytes >= KEY_BYTES_MAX;
        if full { self.close() } else { None }
    }

    /// The last batch, if any samples are left.
    pub fn close(&mut self) -> Option<NumberedBatch> {
        if self.open.batch.refs.is_empty() {
            return None;
        }
        self.seq += 1;
        self.key_bytes = 0;
        let next = empty(&self.sender, self.seq);
        Some(std::mem::replace(&mut self.open, next))
    }
}

fn empty(sender: &str, seq: u64) -> NumberedBatch {
    let batch = Batch { agent: sender.to_owned(), epoch: EPOCH, seq, ..Batch::default() };
    NumberedBatch { batch, new: Vec::new(), places: (0, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::UnixMillis, setup::series};

    fn definition(metric: &str) -> SeriesInfo {
        series(metric, &[], Kind::Gauge)
    }

    fn sample(at: i64, start: i64) -> Numbered {
        Numbered { series: Ok(SeriesId(0)), at: UnixMillis(at), value: 1.0, start }
    }

    #[test]
    fn batches_are_numbered_and_bounded_by_samples() {
        let mut batcher = Batcher::new("a".into());
        let series = batcher.define(definition("m"));
        let mut full = Vec::new();
        for at in 0..SAMPLES_MAX as i64 * 2 + 5 {
            full.extend(batcher.add(series, &sample(at, i64::from(at == 7)), at as u64 + 1));
        }
        full.extend(batcher.close());
        assert!(batcher.close().is_none());
        let seqs: Vec<_> = full.iter().map(|own| (own.batch.seq, own.batch.refs.len())).collect();
        assert_eq!(seqs, [(1, SAMPLES_MAX), (2, SAMPLES_MAX), (3, 5)]);
        assert_eq!(full[0].batch.starts.len(), SAMPLES_MAX);
        assert_eq!(full[0].batch.starts[6..9], [0, 1, 0]);
        assert!(full[1].batch.starts.is_empty());
        assert_eq!(full[1].places, (10_001, 20_000));
        assert_eq!((full[0].new.len(), full[1].new.len()), (1, 0));
    }

    #[test]
    fn batches_are_bounded_by_the_keys_of_their_series() {
        let mut batcher = Batcher::new("a".into());
        let long = "m".repeat(200);
        let mut batches = 0;
        for _ in 0..2 {
            for index in 0..3000 {
                let series = match batcher.series() {
                    3000 => SeriesId(index),
                    _ => batcher.define(definition(&format!("{long}{index}"))),
                };
                batches += usize::from(batcher.add(series, &sample(1, 0), 1).is_some());
            }
        }
        assert_eq!(batches, 3);
    }
}
