//! The request body of stored batches.
//!
//! Must never know: when and where the body is sent.

use std::collections::{BTreeMap, BTreeSet};

use granary_protocol::{
    Batch, DecodeError, SeriesDefinition, decode_batch, encode_batch, pack, read_histograms,
};

use crate::spool::StoredBatch;

/// The size above which bodies are compressed.
const COMPRESS_ABOVE_BYTES: usize = 256;
/// The level of bodies up to `SMALL_BODY_BYTES`, such as a host agent's rounds: 4 % fewer bytes
/// than `ZSTD_LEVEL`, for at most a millisecond.
const ZSTD_LEVEL_SMALL: i32 = 15;
const SMALL_BODY_BYTES: usize = 16 * 1024;
/// A fast level for large bodies: the agent must not burden its host.
const ZSTD_LEVEL: i32 = 3;

/// The format of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Form {
    /// BSON, which all daemons accept.
    #[default]
    Bson,
    /// Packed columns, which take fewer bytes.
    Packed,
}

/// A request body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    pub(crate) form: Form,
    pub(crate) is_zstd: bool,
}

/// Builds the body of batches in `epoch`. The first batch contains the time of sending. With
/// `definitions`, the first batch of each agent defines all refs of the request. `ahead_of` returns
/// how far the clock was ahead when a batch was stored. A form without histograms omits them.
pub(crate) fn build_body(
    stored: &[StoredBatch],
    epoch: i64,
    sent_ms: i64,
    definitions: Option<&BTreeMap<u32, SeriesDefinition>>,
    (form, has_histograms): (Form, bool),
    ahead_of: &dyn Fn(u64) -> i64,
) -> Result<Body, DecodeError> {
    let mut batches = Vec::with_capacity(stored.len());
    let mut used = match definitions {
        Some(_) => refs_by_agent(stored, has_histograms)?,
        None => BTreeMap::new(),
    };
    for (index, stored) in stored.iter().enumerate() {
        let mut batch = Batch { epoch, ..Batch::from(&decode_batch(&stored.bytes)?) };
        if !has_histograms {
            batch.remove_histograms()?;
        }
        if index == 0 {
            batch.sent = sent_ms;
        }
        subtract_lead(&mut batch, ahead_of(stored.seq));
        if let (Some(refs), Some(definitions)) = (used.remove(&batch.agent), definitions) {
            batch.series = refs.iter().filter_map(|r| definitions.get(r)).cloned().collect();
        }
        batches.push(batch);
    }
    let mut bytes = Vec::new();
    match form {
        Form::Bson => batches.iter().for_each(|batch| encode_batch(batch, &mut bytes)),
        Form::Packed => bytes = pack(&batches),
    }
    Ok(compress(bytes, form))
}

/// Corrects the times of a clock that was ahead.
fn subtract_lead(batch: &mut Batch, ahead_ms: i64) {
    if ahead_ms == 0 {
        return;
    }
    let times = batch.times.iter_mut().chain(batch.starts.iter_mut().filter(|start| **start != 0));
    times.for_each(|time| *time = time.saturating_sub(ahead_ms));
}

/// Returns the refs in the batches of each agent.
fn refs_by_agent(
    batches: &[StoredBatch],
    has_histograms: bool,
) -> Result<BTreeMap<String, BTreeSet<u32>>, DecodeError> {
    let mut used: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for stored in batches {
        let mut batch = Batch::from(&decode_batch(&stored.bytes)?);
        if !has_histograms {
            batch.remove_histograms()?;
        }
        used.entry(batch.agent).or_default().extend(batch.refs);
    }
    Ok(used)
}

/// Returns the refs of these batches.
pub(crate) fn refs_in(
    batches: &[StoredBatch],
    has_histograms: bool,
) -> Result<BTreeSet<u32>, DecodeError> {
    Ok(refs_by_agent(batches, has_histograms)?.into_values().flatten().collect())
}

/// Returns the number of histograms in these batches.
pub(crate) fn count_histograms(batches: &[StoredBatch]) -> u64 {
    let count = |stored: &StoredBatch| {
        let view = decode_batch(&stored.bytes).ok()?;
        Some(read_histograms(view.histograms, view.len()).count() as u64)
    };
    batches.iter().filter_map(count).sum()
}

fn compress(bytes: Vec<u8>, form: Form) -> Body {
    let level = if bytes.len() <= SMALL_BODY_BYTES { ZSTD_LEVEL_SMALL } else { ZSTD_LEVEL };
    if bytes.len() > COMPRESS_ABOVE_BYTES
        && let Ok(compressed) = zstd::bulk::compress(&bytes, level)
    {
        return Body { bytes: compressed, form, is_zstd: true };
    }
    Body { bytes, form, is_zstd: false }
}

#[cfg(test)]
mod tests {
    use granary_histogram::Histogram;
    use granary_protocol::{push_histogram, split_batches, unpack};

    use super::*;

    fn stored_batch(agent: &str, seq: u64, refs: &[u32]) -> StoredBatch {
        let batch = Batch {
            agent: agent.to_owned(),
            epoch: 5,
            seq,
            refs: refs.to_vec(),
            times: vec![1000],
            values: refs.iter().map(|r| f64::from(*r)).collect(),
            ..Batch::default()
        };
        let mut bytes = Vec::new();
        encode_batch(&batch, &mut bytes);
        StoredBatch { seq, bytes }
    }

    /// Decodes the batches of a BSON body.
    fn decode_parts(body: &Body) -> Vec<Vec<u8>> {
        let plain = || zstd::bulk::decompress(&body.bytes, 100_000).unwrap();
        let plain = if body.is_zstd { plain() } else { body.bytes.clone() };
        split_batches(&plain).unwrap().into_iter().map(<[u8]>::to_vec).collect()
    }

    fn definition(reference: u32) -> SeriesDefinition {
        SeriesDefinition {
            reference,
            metric: format!("m{reference}"),
            ..SeriesDefinition::default()
        }
    }

    #[test]
    fn the_first_batch_contains_the_time_of_sending_and_samples_are_unchanged() {
        let batches = [stored_batch("a", 1, &[1, 2]), stored_batch("a", 2, &[2])];
        let body = build_body(&batches, 5, 777, None, (Form::Bson, true), &|_| 0).unwrap();
        let parts = decode_parts(&body);
        let views: Vec<_> = parts.iter().map(|part| decode_batch(part).unwrap()).collect();
        assert_eq!(views.iter().map(|v| (v.seq, v.sent)).collect::<Vec<_>>(), [(1, 777), (2, 0)]);
        assert_eq!(views[0].values().collect::<Vec<_>>(), [1.0, 2.0]);
        assert_eq!(parts[1], batches[1].bytes);
    }

    #[test]
    fn times_of_a_clock_that_was_ahead_are_set_back() {
        let batches = [stored_batch("a", 1, &[1]), stored_batch("a", 2, &[2])];
        let ahead_of = |seq| if seq == 1 { 300 } else { 0 };
        let body = build_body(&batches, 5, 777, None, (Form::Bson, true), &ahead_of).unwrap();
        let parts = decode_parts(&body);
        let times = parts.iter().filter_map(|part| decode_batch(part).unwrap().times().max());
        assert_eq!(times.collect::<Vec<_>>(), [700, 1000]);
        let mut batch = Batch { times: vec![5000], starts: vec![0, 900], ..Batch::default() };
        subtract_lead(&mut batch, -100);
        assert_eq!((batch.times, batch.starts), (vec![5100], vec![0, 1000]));
    }

    #[test]
    fn batches_of_an_earlier_epoch_are_sent_in_the_new_epoch() {
        let batches = [stored_batch("a", 1, &[1]), stored_batch("a", 2, &[2])];
        let body = build_body(&batches, 6, 0, None, (Form::Bson, true), &|_| 0).unwrap();
        let parts = decode_parts(&body);
        let numbers: Vec<_> = parts
            .iter()
            .map(|part| decode_batch(part).map(|view| (view.epoch, view.seq, view.len())).unwrap())
            .collect();
        assert_eq!(numbers, [(6, 1, 1), (6, 2, 1)]);
    }

    #[test]
    fn the_first_batch_of_each_agent_defines_all_refs() {
        let batches =
            [stored_batch("a", 1, &[1]), stored_batch("a", 2, &[1, 2]), stored_batch("b", 3, &[3])];
        let definitions = (1..5).map(|r| (r, definition(r))).collect();
        let body =
            build_body(&batches, 5, 777, Some(&definitions), (Form::Bson, true), &|_| 0).unwrap();
        let parts = decode_parts(&body);
        let defined: Vec<Vec<u32>> = parts
            .iter()
            .map(|part| decode_batch(part).unwrap().series.iter().map(|s| s.reference).collect())
            .collect();
        assert_eq!(defined, [vec![1, 2], vec![], vec![3]]);
    }

    #[test]
    fn a_packed_body_contains_the_same_batches_as_a_bson_body() {
        let batches =
            [stored_batch("a", 1, &[1]), stored_batch("a", 2, &[1, 2]), stored_batch("b", 3, &[3])];
        let definitions = (1..5).map(|r| (r, definition(r))).collect();
        let body =
            |form| build_body(&batches, 6, 777, Some(&definitions), (form, true), &|_| 0).unwrap();
        let decoded = |bytes: &Vec<u8>| Batch::from(&decode_batch(bytes).unwrap());
        let plain: Vec<_> = decode_parts(&body(Form::Bson)).iter().map(decoded).collect();
        let packed = body(Form::Packed);
        assert_eq!((packed.form, packed.is_zstd), (Form::Packed, false));
        assert_eq!(unpack(&packed.bytes).unwrap(), plain);
    }

    #[test]
    fn only_long_bodies_are_compressed() {
        let short = stored_batch("a", 1, &[1]);
        let short = build_body(&[short], 5, 1, None, (Form::Packed, true), &|_| 0).unwrap();
        assert!(!short.is_zstd && short.bytes.len() < 40);
        let long = stored_batch("a", 1, &(0..500).collect::<Vec<_>>());
        let body = build_body(std::slice::from_ref(&long), 5, 0, None, (Form::Bson, true), &|_| 0)
            .unwrap();
        assert!(body.is_zstd);
        assert_eq!(zstd::bulk::decompress(&body.bytes, 100_000).unwrap(), long.bytes);
    }

    #[test]
    fn a_body_without_histograms_has_only_numbers() {
        let mut batch = Batch {
            agent: "a".to_owned(),
            epoch: 5,
            seq: 1,
            refs: vec![1, 2, 3],
            times: vec![10, 20, 30],
            values: vec![1.0, 2.0, 3.0],
            ..Batch::default()
        };
        for index in [0, 2] {
            push_histogram(&mut batch.histograms, index, &Histogram::stale());
        }
        let mut bytes = Vec::new();
        encode_batch(&batch, &mut bytes);
        let stored = [StoredBatch { seq: 1, bytes }];
        let definitions = (1..4).map(|r| (r, definition(r))).collect();
        let body = |form| build_body(&stored, 5, 1, Some(&definitions), form, &|_| 0).unwrap();
        let parts = decode_parts(&body((Form::Bson, false)));
        let found = Batch::from(&decode_batch(&parts[0]).unwrap());
        assert_eq!((found.refs, found.times, found.values), (vec![2], vec![20], vec![2.0]));
        assert_eq!(found.series, [definition(2)]);
        assert!(found.histograms.is_empty());
        let packed = body((Form::Packed, true));
        let plain = if packed.is_zstd {
            zstd::bulk::decompress(&packed.bytes, 100_000).unwrap()
        } else {
            packed.bytes
        };
        assert_eq!(unpack(&plain).unwrap()[0].histograms, batch.histograms);
        assert_eq!(count_histograms(&stored), 2);
    }
}
