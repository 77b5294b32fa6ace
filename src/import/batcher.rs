//! Cutting of samples into numbered batches. The same samples always produce the same batches,
//! regardless of the daemon's responses, so that the daemon recognizes repeated batches by number.

use granary_protocol::{Batch, push_histogram};

use super::Location;
use crate::{
    ingest::rows::NumberedSample,
    model::{Histogram, Kind, SeriesId, SeriesInfo},
};

/// The number of samples in a batch.
const SAMPLES_MAX: usize = 10_000;
/// The maximum size of the keys of a batch's series: all series may have to be defined again.
const KEY_BYTES_MAX: usize = 512 * 1024;
/// The bytes of histograms after which a batch ends: with the samples, the keys and one more
/// histogram, a batch must fit the smallest limit of a request, 1 MiB.
const HISTOGRAM_BYTES_MAX: usize = 128 * 1024;
/// The size of a definition without its key.
const DEFINITION_BYTES: usize = 64;
/// The epoch of all batches. The sender's name depends on the content, so one epoch suffices.
pub const EPOCH: i64 = 1;

/// A batch with the data needed to send it.
#[derive(Debug)]
pub struct NumberedBatch {
    /// The samples, without definitions.
    pub batch: Batch,
    /// New series of the file, in the order of their refs.
    pub new: Vec<SeriesInfo>,
    /// The locations of the first and the last sample.
    pub locations: (Location, Location),
}

/// The open batch, and the defined series.
#[derive(Debug)]
pub struct Batcher {
    sender: String,
    seq: u64,
    open: NumberedBatch,
    key_bytes: usize,
    /// The series by their refs.
    series: Vec<DefinedSeries>,
}

/// The state of a defined series.
#[derive(Debug)]
struct DefinedSeries {
    kind: Kind,
    /// The size of the definition.
    bytes: u32,
    /// The number of the last batch that used the series.
    used: u64,
}

impl Batcher {
    /// Creates a batcher for `sender`.
    pub fn new(sender: String) -> Self {
        let open = empty(&sender, 1);
        Self { sender, seq: 1, open, key_bytes: 0, series: Vec::new() }
    }

    /// Returns the number of defined series.
    pub fn series(&self) -> usize {
        self.series.len()
    }

    /// Returns the kind of a defined series.
    pub fn kind(&self, series: SeriesId) -> Option<Kind> {
        self.series.get(series.0 as usize).map(|known| known.kind)
    }

    /// Defines a new series.
    pub fn define(&mut self, definition: SeriesInfo) -> SeriesId {
        let bytes = definition.key.as_bytes().len() + definition.unit.len() + DEFINITION_BYTES;
        let reference = self.series.len() as u32;
        self.series.push(DefinedSeries { kind: definition.kind, bytes: bytes as u32, used: 0 });
        self.open.new.push(definition);
        SeriesId(reference)
    }

    /// Adds a sample, which may have a histogram, and returns the batch when it is full.
    pub fn add(
        &mut self,
        series: SeriesId,
        (sample, histogram): (&NumberedSample, Option<&Histogram>),
        location: Location,
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
        if let Some(histogram) = histogram {
            push_histogram(&mut batch.histograms, batch.refs.len() as u32, histogram);
        }
        batch.refs.push(series.0);
        batch.times.push(sample.at.0);
        batch.values.push(sample.value);
        if batch.refs.len() == 1 {
            self.open.locations.0 = location;
        }
        self.open.locations.1 = location;
        let full = batch.refs.len() >= SAMPLES_MAX
            || batch.histograms.len() >= HISTOGRAM_BYTES_MAX
            || self.key_bytes >= KEY_BYTES_MAX;
        if full { self.close() } else { None }
    }

    /// Returns the open batch if it has samples, and starts the next one.
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
    NumberedBatch { batch, new: Vec::new(), locations: (0, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::UnixMillis, setup::series};

    fn definition(metric: &str) -> SeriesInfo {
        series(metric, &[], Kind::Gauge)
    }

    fn sample(at: i64, start: i64) -> NumberedSample {
        NumberedSample { series: Ok(SeriesId(0)), at: UnixMillis(at), value: 1.0, start }
    }

    #[test]
    fn batches_are_numbered_and_bounded_by_samples() {
        let mut batcher = Batcher::new("a".into());
        let series = batcher.define(definition("m"));
        let mut full = Vec::new();
        for at in 0..SAMPLES_MAX as i64 * 2 + 5 {
            full.extend(batcher.add(
                series,
                (&sample(at, i64::from(at == 7)), None),
                at as u64 + 1,
            ));
        }
        full.extend(batcher.close());
        assert!(batcher.close().is_none());
        let seqs: Vec<_> =
            full.iter().map(|numbered| (numbered.batch.seq, numbered.batch.refs.len())).collect();
        assert_eq!(seqs, [(1, SAMPLES_MAX), (2, SAMPLES_MAX), (3, 5)]);
        assert_eq!(full[0].batch.starts.len(), SAMPLES_MAX);
        assert_eq!(full[0].batch.starts[6..9], [0, 1, 0]);
        assert!(full[1].batch.starts.is_empty());
        assert_eq!(full[1].locations, (10_001, 20_000));
        assert_eq!((full[0].new.len(), full[1].new.len()), (1, 0));
    }

    #[test]
    fn batches_are_bounded_by_the_bytes_of_their_histograms() {
        let mut batcher = Batcher::new("a".into());
        let series = batcher.define(definition("m"));
        let mut large = Histogram::sketch();
        (0..2000).for_each(|power| large.observe(1.006_f64.powi(power), 1.0));
        let mut bytes = Vec::new();
        large.encode(&mut bytes);
        let per_batch = HISTOGRAM_BYTES_MAX.div_ceil(bytes.len());
        let mut full = Vec::new();
        for at in 0..per_batch as i64 * 2 {
            full.extend(batcher.add(series, (&sample(at, 0), Some(&large)), 1));
        }
        let lengths: Vec<_> = full.iter().map(|numbered| numbered.batch.refs.len()).collect();
        // An index of a sample takes another byte or two.
        assert!(
            lengths.len() == 2 && lengths.iter().all(|len| per_batch - len <= 2),
            "{lengths:?}"
        );
    }

    #[test]
    fn batches_are_bounded_by_the_keys_of_their_series() {
        let mut batcher = Batcher::new("a".into());
        let long_metric = "m".repeat(200);
        let mut batches = 0;
        for _ in 0..2 {
            for index in 0..3000 {
                let series = match batcher.series() {
                    3000 => SeriesId(index),
                    _ => batcher.define(definition(&format!("{long_metric}{index}"))),
                };
                batches += usize::from(batcher.add(series, (&sample(1, 0), None), 1).is_some());
            }
        }
        assert_eq!(batches, 3);
    }
}
