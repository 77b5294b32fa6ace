//! The parts of a request's rows by shard, and their encoding between nodes.
//!
//! A series is in the shard that a hash of its key names, so that all its samples meet there,
//! whichever sender they come from. Must never know: protocols, nodes.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::{DecodedRows, DescribedSeries, KindOf, Row, Rows, TargetKind};
use crate::{
    ingest::{refusals::Refusals, series_cache::Fingerprint},
    model::{Histogram, Kind, SeriesKey, UnixMillis},
};

/// Separates fingerprints of parts from those of protocols.
const PROTOCOL: u8 = 7;
/// The bytes of a sample in a part.
const SAMPLE_BYTES: usize = 28;

/// Returns the shard of a series.
pub fn shard_of_series(key: &SeriesKey, shards: u16) -> u16 {
    shard_of(key.as_bytes(), shards)
}

/// Returns the shard of a sender that numbers its batches.
pub fn shard_of_sender(sender: &str, shards: u16) -> u16 {
    shard_of(sender.as_bytes(), shards)
}

fn shard_of(name: &[u8], shards: u16) -> u16 {
    (xxh3_64(name) % u64::from(shards.max(1))) as u16
}

/// The rows of a request by shard.
#[derive(Debug)]
pub struct SplitRows {
    /// The encoded rows of each shard that has some.
    pub parts: Vec<(u16, Vec<u8>)>,
    /// The samples that are refused before they are split.
    pub refused: Refusals,
    /// The number of points with refused samples, before they are split.
    pub refused_points: u64,
}

/// The rows of a shard before they are encoded.
#[derive(Default)]
struct Part {
    series: Vec<u8>,
    indexes: HashMap<u32, u32>,
    points: Vec<u8>,
    last_point: Option<usize>,
    /// The index of the sample and the bytes of each histogram.
    histograms: Vec<u8>,
    samples: Vec<u8>,
}

impl DecodedRows {
    /// Splits rows that were decoded without knowledge of any series.
    pub fn split(mut self, shards: u16) -> SplitRows {
        let mut refused = std::mem::take(&mut self.refused);
        let refused_points = self.points.iter().filter(|point| point.is_refused).count() as u64;
        let mut parts: Vec<_> = (0..shards).map(|_| Part::default()).collect();
        let shards_of: Vec<_> =
            self.definitions.iter().map(|(_, info)| shard_of_series(&info.key, shards)).collect();
        let mut point = 0;
        let mut histograms = self.histograms.iter().peekable();
        for (index, row) in self.samples.iter().enumerate() {
            while self.points.get(point + 1).is_some_and(|next| next.first as usize <= index) {
                point += 1;
            }
            let histogram = histograms.next_if(|sample| sample.index as usize == index);
            match row.target {
                TargetKind::New(new) => {
                    let part = &mut parts[usize::from(shards_of[new as usize])];
                    if !self.points.is_empty() && part.last_point.replace(point) != Some(point) {
                        part.points.extend(part.len().to_le_bytes());
                    }
                    if let Some(sample) = histogram {
                        part.histograms.extend(part.len().to_le_bytes());
                        sample.histogram.encode(&mut part.histograms);
                    }
                    part.add(&self, new, row);
                }
                TargetKind::Refused(reason) => {
                    refused.add_many(reason, 1, || reason.remedy().to_owned());
                }
                // The rows were decoded without a cache.
                TargetKind::Series(_) => {}
            }
        }
        let is_used = |(_, part): &(u16, Part)| !part.samples.is_empty();
        let parts = (0..shards).zip(parts).filter(is_used);
        let parts = parts.map(|(shard, part)| (shard, part.encode())).collect();
        SplitRows { parts, refused, refused_points }
    }
}

impl Part {
    /// Returns the number of samples.
    fn len(&self) -> u32 {
        (self.samples.len() / SAMPLE_BYTES) as u32
    }

    fn add(&mut self, rows: &DecodedRows, new: u32, row: &Row) {
        let next = self.indexes.len() as u32;
        let index = *self.indexes.entry(new).or_insert_with(|| {
            let (_, info) = &rows.definitions[new as usize];
            let mut described = vec![info.kind.code(), rows.declared[new as usize] as u8];
            put_bytes(info.unit.as_bytes(), &mut described);
            put_bytes(info.key.as_bytes(), &mut described);
            put_bytes(&described, &mut self.series);
            next
        });
        self.samples.extend(index.to_le_bytes());
        self.samples.extend(row.at.0.to_le_bytes());
        self.samples.extend(row.value.to_bits().to_le_bytes());
        self.samples.extend(row.start.to_le_bytes());
    }

    fn encode(self) -> Vec<u8> {
        let mut out = (self.indexes.len() as u32).to_le_bytes().to_vec();
        out.extend(self.series);
        put_bytes(&self.points, &mut out);
        put_bytes(&self.histograms, &mut out);
        out.extend(self.samples);
        out
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

/// Decodes a part.
///
/// # Errors
/// The part is damaged.
pub(crate) fn decode_part(body: &[u8], rows: &mut Rows<'_>) -> Result<(), String> {
    read_part(body, rows).ok_or_else(|| "the rows from another node are damaged".to_owned())
}

fn read_part(mut body: &[u8], rows: &mut Rows<'_>) -> Option<()> {
    let count = take_u32(&mut body)?;
    // Each series takes more than four bytes.
    let mut targets = Vec::with_capacity((count as usize).min(body.len() / 4));
    for _ in 0..count {
        let described = take_bytes(&mut body)?;
        let (key, kind, kind_of, unit) = describe(described)?;
        let fingerprint = Fingerprint::new(PROTOCOL, described);
        let is_declared = kind_of == KindOf::Declared;
        let describe =
            move |_: &_| Ok(DescribedSeries { key, kind, is_declared, unit: unit.into() });
        targets.push(match kind_of {
            KindOf::End => rows.ended_series(fingerprint, fingerprint, describe),
            KindOf::Guessed | KindOf::Declared | KindOf::Observed => {
                rows.series(fingerprint, describe)
            }
        });
    }
    let points = take_bytes(&mut body)?;
    let mut points = points.chunks_exact(4).filter_map(|first| first.first_chunk::<4>());
    let mut next_point = points.next().map(|first| u32::from_le_bytes(*first));
    let mut histograms = take_bytes(&mut body)?;
    let mut next_histogram = take_u32(&mut histograms);
    for (index, mut sample) in (0..).zip(body.chunks(SAMPLE_BYTES)) {
        let target = *targets.get(take_u32(&mut sample)? as usize)?;
        let at = i64::from_le_bytes(take(&mut sample)?);
        let value = f64::from_bits(u64::from_le_bytes(take(&mut sample)?));
        let start = i64::from_le_bytes(take(&mut sample)?);
        if next_point == Some(index) {
            rows.begin_point();
            next_point = points.next().map(|first| u32::from_le_bytes(*first));
        }
        if next_histogram == Some(index) {
            let histogram = Histogram::decode(&mut histograms).ok()?;
            rows.push_histogram(target, UnixMillis(at), Ok(histogram), start);
            next_histogram = take_u32(&mut histograms);
        } else {
            rows.push(target, UnixMillis(at), value, start);
        }
        if rows.is_full() {
            break;
        }
    }
    Some(())
}

fn describe(mut described: &[u8]) -> Option<(SeriesKey, Kind, KindOf, &str)> {
    let [kind, kind_of] = take(&mut described)?;
    let unit = std::str::from_utf8(take_bytes(&mut described)?).ok()?;
    let key = SeriesKey::from_bytes(take_bytes(&mut described)?)?;
    let kind = *Kind::ALL.get(usize::from(kind))?;
    let all = [KindOf::Guessed, KindOf::Declared, KindOf::End];
    Some((key, kind, *all.get(usize::from(kind_of))?, unit))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes).map(u32::from_le_bytes)
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_u32(bytes)? as usize;
    let (first, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ingest::series_cache::SeriesCache, model::SeriesLimits};

    fn rows(fill: impl FnOnce(&mut Rows<'_>)) -> DecodedRows {
        let (mut cache, limits) = (SeriesCache::default(), SeriesLimits::default());
        let none = |_: &SeriesKey| None;
        let mut rows = Rows::new(&mut cache, &none, &limits, "ann");
        fill(&mut rows);
        rows.finish()
    }

    fn series(rows: &mut Rows<'_>, name: &str, kind: Kind) -> super::super::Target {
        rows.series(Fingerprint::new(0, name.as_bytes()), |limits| {
            let key = SeriesKey::new(name, [("host", "a")], limits).unwrap();
            Ok(DescribedSeries { key, kind, is_declared: kind == Kind::Counter, unit: "s".into() })
        })
    }

    #[test]
    fn each_sample_is_in_the_part_of_its_series_and_comes_back_as_it_was() {
        let decoded = rows(|rows| {
            for number in 0..30_u32 {
                let kind = Kind::ALL[number as usize % 3];
                let target = series(rows, &format!("m{}", number % 10), kind);
                rows.begin_point();
                let value = if number == 7 { f64::from_bits(0x7ff0_0000_0000_0002) } else { 0.5 };
                rows.push(target, UnixMillis(i64::from(number)), value, 4);
            }
        });
        let whole: Vec<_> =
            decoded.samples.iter().map(|row| (row.at, row.value.to_bits())).collect();
        let split = decoded.split(4);
        assert!(split.parts.len() > 1 && split.refused_points == 0);
        let mut found = Vec::new();
        for (shard, part) in &split.parts {
            let part = rows(|rows| decode_part(part, rows).unwrap());
            assert_eq!(part.points(), part.len(), "each sample is a point");
            for (index, (_, info)) in part.definitions.iter().enumerate() {
                assert_eq!(shard_of_series(&info.key, 4), *shard);
                assert_eq!(part.declared[index] == KindOf::Declared, info.kind == Kind::Counter);
                assert_eq!((&*info.unit, info.key.tag("host")), ("s", Some("a")));
            }
            found.extend(part.samples.iter().map(|row| (row.at, row.value.to_bits())));
            assert!(part.samples.iter().all(|row| row.start == 4));
        }
        found.sort();
        assert_eq!(found, whole);
    }

    /// Adds a histogram with a sum, so that a part with it can be recognized.
    fn push_histogram(rows: &mut Rows<'_>, name: &str, sum: f64) {
        let target = series(rows, name, Kind::Histogram);
        let histogram = Histogram { sum, count: 0.0, ..Histogram::empty(3) };
        rows.push_histogram(target, UnixMillis(sum as i64), Ok(histogram), 9);
    }

    #[test]
    fn histograms_stay_with_the_samples_that_they_are() {
        let decoded = rows(|rows| {
            for number in 0..40_u32 {
                let name = format!("m{}", number % 8);
                if number % 8 < 4 {
                    push_histogram(rows, &name, f64::from(number));
                } else {
                    let target = series(rows, &name, Kind::Gauge);
                    rows.push(target, UnixMillis(i64::from(number)), 0.5, 0);
                }
            }
        });
        assert_eq!(decoded.histograms.len(), 20);
        let mut found = Vec::new();
        let split = decoded.split(3);
        assert!(split.parts.len() > 1);
        for (_, part) in &split.parts {
            let part = rows(|rows| decode_part(part, rows).unwrap());
            for sample in &part.histograms {
                let row = &part.samples[sample.index as usize];
                assert_eq!((row.at.0, row.start), (sample.histogram.sum as i64, 9));
                assert_eq!(sample.histogram.schema, 3);
                found.push(row.at.0);
            }
            let is_gauge = |row: &&Row| row.value == 0.5;
            let gauges = part.samples.iter().filter(is_gauge).count();
            assert_eq!(gauges + part.histograms.len(), part.samples.len());
        }
        found.sort_unstable();
        assert_eq!(found, (0..40).filter(|number| number % 8 < 4).collect::<Vec<i64>>());
    }

    #[test]
    fn a_damaged_part_is_refused_and_never_a_panic() {
        let decoded = rows(|rows| {
            push_histogram(rows, "h", 7.0);
            let target = series(rows, "m", Kind::Gauge);
            rows.push(target, UnixMillis(1), 1.0, 0);
        });
        let (_, part) = decoded.split(1).parts.remove(0);
        rows(|rows| decode_part(&part, rows).unwrap());
        for length in 0..part.len() {
            rows(|rows| {
                let cut = decode_part(&part[..length], rows);
                // A part without its last samples is one, too.
                let lacks_samples = [1, 2].contains(&((part.len() - length) / SAMPLE_BYTES))
                    && (part.len() - length).is_multiple_of(SAMPLE_BYTES);
                assert!(cut.is_err() || lacks_samples, "{length}");
            });
        }
        for index in 0..part.len() {
            let mut changed = part.clone();
            changed[index] ^= 0xff;
            rows(|rows| drop(decode_part(&changed, rows)));
        }
    }
}
