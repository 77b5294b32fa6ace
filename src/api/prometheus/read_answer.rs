//! The two forms of an answer to remote read: one compressed message of samples, or frames of XOR
//! chunks.
//!
//! Memory is reserved as the answer grows. Must never know: requests, the store.

use prost::{Message, encoding};
use rusty_chunkenc::xor::{XORChunk, XORSample};

use super::read_messages::{
    Chunk, ChunkedReadResponse, ChunkedSeries, Encoding, HistogramMessage, LabelPair, RESULTS,
    Sample, TimeSeries,
};
use crate::query::{ExpressionLimits, QueryError, SeriesReadings};

/// The number of samples in a chunk, as in Prometheus.
const CHUNK_SAMPLES: usize = 120;
/// The number of chunks in a frame: at most 240 KB, as a sample takes at most 18 bytes.
const FRAME_CHUNKS: usize = 110;

/// An answer that grows series by series.
pub(super) trait ReadAnswer {
    fn begin_query(
        &mut self,
        index: usize,
        limits: &ExpressionLimits<'_>,
    ) -> Result<(), QueryError>;
    fn add(
        &mut self,
        series: &SeriesReadings,
        limits: &ExpressionLimits<'_>,
    ) -> Result<(), QueryError>;
    fn end_query(&mut self, limits: &ExpressionLimits<'_>) -> Result<(), QueryError>;
}

fn labels_of(series: &SeriesReadings) -> Vec<LabelPair> {
    let pair =
        |(name, value): (&str, &str)| LabelPair { name: name.to_owned(), value: value.to_owned() };
    series.labels.iter().map(pair).collect()
}

/// A message `ReadResponse` with samples.
#[derive(Debug, Default)]
pub(super) struct SamplesAnswer {
    message: Vec<u8>,
    /// The result of the current query.
    result: Vec<u8>,
    /// The bytes for which memory is reserved.
    reserved_bytes: usize,
}

impl SamplesAnswer {
    fn reserve(&mut self, limits: &ExpressionLimits<'_>) -> Result<(), QueryError> {
        let room = self.message.capacity() + self.result.capacity();
        let growth = room.saturating_sub(self.reserved_bytes);
        self.reserved_bytes += growth;
        limits.reserve(growth)
    }

    /// Returns the compressed message.
    pub(super) fn finish(self, limits: &ExpressionLimits<'_>) -> Result<Vec<u8>, QueryError> {
        limits.reserve(snap::raw::max_compress_len(self.message.len()))?;
        let compressed = snap::raw::Encoder::new().compress_vec(&self.message);
        compressed.map_err(|cause| {
            QueryError::TooMuch(format!(
                "the answer cannot be compressed: {cause}; ask for a shorter range or fewer series"
            ))
        })
    }
}

impl ReadAnswer for SamplesAnswer {
    fn begin_query(&mut self, _: usize, _: &ExpressionLimits<'_>) -> Result<(), QueryError> {
        self.result.clear();
        Ok(())
    }

    fn add(
        &mut self,
        series: &SeriesReadings,
        limits: &ExpressionLimits<'_>,
    ) -> Result<(), QueryError> {
        let sample = |(at_ms, value): &(i64, f64)| Sample { at_ms: *at_ms, value: *value };
        let samples = series.readings.iter().map(sample).collect();
        let histograms = series.histograms.iter();
        let histograms = histograms.map(|(at_ms, found)| HistogramMessage::new(*at_ms, found));
        let histograms = histograms.collect();
        let message = TimeSeries { labels: labels_of(series), samples, histograms };
        encoding::message::encode(RESULTS, &message, &mut self.result);
        self.reserve(limits)
    }

    fn end_query(&mut self, limits: &ExpressionLimits<'_>) -> Result<(), QueryError> {
        encoding::encode_key(RESULTS, encoding::WireType::LengthDelimited, &mut self.message);
        encoding::encode_varint(self.result.len() as u64, &mut self.message);
        self.message.extend_from_slice(&self.result);
        self.reserve(limits)
    }
}

/// Frames of XOR chunks. A frame is the length of its message as a varint, the message's CRC-32C in
/// big-endian order, and the message.
#[derive(Debug, Default)]
pub(super) struct FramesAnswer {
    pub(super) frames: Vec<Vec<u8>>,
    /// True when series of histograms were left out: only samples contain them.
    pub(super) lacks_histograms: bool,
    query_index: i64,
}

impl ReadAnswer for FramesAnswer {
    fn begin_query(&mut self, index: usize, _: &ExpressionLimits<'_>) -> Result<(), QueryError> {
        self.query_index = index as i64;
        Ok(())
    }

    fn add(
        &mut self,
        series: &SeriesReadings,
        limits: &ExpressionLimits<'_>,
    ) -> Result<(), QueryError> {
        if !series.histograms.is_empty() {
            self.lacks_histograms = true;
            return Ok(());
        }
        let labels = labels_of(series);
        // A series without samples also has a frame, because a lookup requests only labels.
        let no_samples = series.readings.is_empty().then_some(&[][..]);
        let parts = series.readings.chunks(CHUNK_SAMPLES * FRAME_CHUNKS);
        for part in no_samples.into_iter().chain(parts) {
            limits.budget.check()?;
            let chunks = part.chunks(CHUNK_SAMPLES).map(chunk).collect::<Result<_, _>>()?;
            let series = vec![ChunkedSeries { labels: labels.clone(), chunks }];
            let message = ChunkedReadResponse { series, query_index: self.query_index };
            let message = message.encode_to_vec();
            let mut frame = Vec::with_capacity(message.len() + 14);
            encoding::encode_varint(message.len() as u64, &mut frame);
            frame.extend_from_slice(&crc32c::crc32c(&message).to_be_bytes());
            frame.extend_from_slice(&message);
            limits.reserve(frame.capacity() + size_of::<Vec<u8>>())?;
            self.frames.push(frame);
        }
        Ok(())
    }

    fn end_query(&mut self, _: &ExpressionLimits<'_>) -> Result<(), QueryError> {
        Ok(())
    }
}

fn chunk(part: &[(i64, f64)]) -> Result<Chunk, QueryError> {
    let sample = |(at_ms, value): &(i64, f64)| XORSample { timestamp: *at_ms, value: *value };
    let mut data = Vec::new();
    XORChunk::new(part.iter().map(sample).collect())
        .write(&mut data)
        .map_err(|cause| QueryError::Execution(format!("encode a chunk: {cause}")))?;
    let (min_ms, max_ms) = (part.first().map_or(0, |s| s.0), part.last().map_or(0, |s| s.0));
    Ok(Chunk { min_ms, max_ms, encoding: Encoding::Xor.into(), data })
}
