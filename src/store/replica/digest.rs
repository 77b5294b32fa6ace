//! The digest of a store: equal for replicas that applied the same records, whenever each of them
//! ran its checkpoints, sealed documents or was restarted.
//!
//! A digest covers what queries see and what later records depend on: levels, series with their
//! classes, states of series, windows of senders, objects, hosts, and the cells of memory, head and
//! documents. It omits deleted series, slots beyond the present and earlier retentions, and the
//! times since which levels are complete, because these depend on the time of local work. The order
//! of additions changes the last bits of a cell's sum and second moment, so these are added up and
//! compared with a tolerance; all else is hashed.
//!
//! Must never know: who compares digests.

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_64;

use crate::{
    model::{Cell, GranularityIndex, Histogram, HistogramCell, SeriesId, UnixMillis},
    store::{
        dictionary::Dictionary,
        documents::{Columns, Documents},
        error::StoreError,
        file::names::JOURNAL_FILE,
        handle::{CHUNK, Store},
        histograms::{
            cell_bytes::put_cell,
            map::{HistogramsOfLevel, merger},
        },
    },
};

/// The number of groups of series whose sums are added up apart, so that large values of one group
/// hide no difference of another.
const GROUPS: usize = 16;
/// The largest difference of two sums, relative to the size of all values.
const TOLERANCE: f64 = 1e-9;
/// The rounding of a second moment, relative to the sum of the squared values.
const ROUNDING_OF_MOMENT: f64 = 1e-14;

/// Sums of cells, and the size of the values that they add up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Sum {
    total: f64,
    size: f64,
}

/// The digest of a store's state after a record.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreDigest {
    applied: u64,
    /// The hash of each part of the state, by the name of the part.
    hashes: BTreeMap<String, u64>,
    /// The sums and the second moments of the cells of each level, by groups of series.
    sums: BTreeMap<String, [Sum; GROUPS]>,
}

/// The first part in which two states differ.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part} differ")]
pub struct DigestDifference {
    /// The name of the part.
    pub part: String,
}

impl StoreDigest {
    /// Returns the last record that the state includes.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Compares the digests of two replicas.
    ///
    /// # Errors
    /// When the states differ.
    pub fn compare(&self, other: &Self) -> Result<(), DigestDifference> {
        let differ = |part: &str| Err(DigestDifference { part: part.to_owned() });
        if self.applied != other.applied {
            return differ("the numbers of the last records");
        }
        for (part, _) in self.hashes.iter().chain(&other.hashes) {
            if self.hashes.get(part) != other.hashes.get(part) {
                return differ(part);
            }
        }
        let is_near = |(ours, theirs): (Sum, Sum)| {
            let most = ours.size.max(theirs.size) * TOLERANCE;
            (ours.total - theirs.total).abs() <= most
        };
        for (part, _) in self.sums.iter().chain(&other.sums) {
            let [ours, theirs] =
                [self, other].map(|digest| digest.sums.get(part).copied().unwrap_or_default());
            if !ours.into_iter().zip(theirs).all(is_near) {
                return differ(part);
            }
        }
        Ok(())
    }

    fn add(&mut self, part: &str, bytes: &[u8]) {
        // The hashes are added up, so that their order does not matter.
        let hash = self.hashes.entry(part.to_owned()).or_default();
        *hash = hash.wrapping_add(xxh3_64(bytes));
    }

    fn add_cell(&mut self, part: &str, level: &str, (series, start): (SeriesId, i64), cell: &Cell) {
        let group = series.0 as usize % GROUPS;
        let moment = &mut self.sums.entry(format!("moments of {level}")).or_default()[group];
        if cell.m2.is_finite() {
            let squares = cell.sum * cell.sum / f64::from(cell.n.max(1));
            let rounding = ROUNDING_OF_MOMENT / TOLERANCE * squares;
            moment.total += cell.m2;
            moment.size += cell.m2 + if rounding.is_finite() { rounding } else { 0.0 };
        }
        let sum = &mut self.sums.entry(format!("sums of {level}")).or_default()[group];
        let mut bytes = [series.0.to_le_bytes().as_slice(), &start.to_le_bytes()].concat();
        if cell.sum.is_finite() {
            let bounds = [cell.min, cell.max, cell.first, cell.last];
            let finite = bounds.iter().filter(|value| value.is_finite());
            let largest = finite.fold(0.0_f64, |most, value| most.max(value.abs()));
            sum.total += cell.sum;
            sum.size += cell.sum.abs() + largest * f64::from(cell.n.max(1));
        } else {
            bytes.extend_from_slice(&plain(cell.sum).to_le_bytes());
        }
        if cell.n > 0 || cell.max > f64::NEG_INFINITY {
            for number in [cell.n, cell.first_at, cell.last_at] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            for value in [cell.min, cell.max, cell.first, cell.last] {
                bytes.extend_from_slice(&plain(value).to_le_bytes());
            }
            self.add(part, &bytes);
        }
    }

    /// Adds a cell of histograms without the sum of its total, which depends on the order.
    fn add_histogram(&mut self, part: &str, (series, start): (SeriesId, i64), cell: HistogramCell) {
        let total = Histogram { sum: 0.0, ..cell.total.clone() };
        let mut bytes = [series.0.to_le_bytes().as_slice(), &start.to_le_bytes()].concat();
        if cell.n > 0 {
            put_cell(&HistogramCell { total, ..cell }, &mut bytes);
            self.add(part, &bytes);
        }
    }
}

/// Returns the bits of a number; all NaN, and both zeros, have the same bits.
fn plain(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() }
}

impl Store {
    /// Returns the digest of the state, of cells that the levels keep at `now`. It reads all files,
    /// and completes a stored erasure. While it runs, no record may be applied.
    ///
    /// # Errors
    /// When a file cannot be read, or contains records that are not applied yet.
    pub fn digest(&self, now: UnixMillis) -> Result<StoreDigest, StoreError> {
        let _no_checkpoint = self.inner.checkpointing.lock();
        let applied = self.inner.catalog.read().applied();
        let files_through = self.inner.files_through.load(std::sync::atomic::Ordering::Relaxed);
        if applied < files_through {
            let problem =
                format!("the files contain record {files_through}, but {applied} is applied");
            return Err(StoreError::Mismatch { file: JOURNAL_FILE.to_owned(), problem });
        }
        self.settle_erasure()?;
        let (hashes, sums) = Default::default();
        let mut digest = StoreDigest { applied, hashes, sums };
        let series = self.digest_series(&mut digest);
        self.digest_states(&series, &mut digest);
        self.inner.objects.digest(applied, &mut |part, bytes| digest.add(part, bytes))?;
        for index in (0..self.all_granularities().len()).map(GranularityIndex) {
            self.digest_level(index, now, &series, &mut digest)?;
        }
        Ok(digest)
    }

    /// Adds the series; returns those that queries can see, with their parts.
    fn digest_series(&self, digest: &mut StoreDigest) -> Vec<SeriesId> {
        let dictionary = self.all_series();
        let catalog = self.inner.catalog.read();
        let all = (0..dictionary.id_count() as u32).map(SeriesId);
        let is_read =
            |id: &SeriesId| dictionary.key(*id).is_some() || dictionary.whole_of(*id).is_some();
        for id in all.clone() {
            let class = catalog.series_classes().at(id, UnixMillis::LATEST);
            let class = &self.inner.classes.get(class).name;
            let text = format!("{id:?} {} {class}", describe(&dictionary, id));
            digest.add("series", text.as_bytes());
        }
        all.filter(is_read).collect()
    }

    fn digest_states(&self, series: &[SeriesId], digest: &mut StoreDigest) {
        let catalog = self.inner.catalog.read();
        for id in series {
            let state = catalog.state_bytes_of(*id);
            digest.add("states", &[&id.0.to_le_bytes(), state.as_slice()].concat());
        }
        for (name, window) in catalog.senders().iter() {
            digest.add("senders", &[name.as_bytes(), &[0], &window.to_bytes()].concat());
        }
    }

    fn digest_level(
        &self,
        index: GranularityIndex,
        now: UnixMillis,
        series: &[SeriesId],
        digest: &mut StoreDigest,
    ) -> Result<(), StoreError> {
        let level = self.granularity(index);
        let (document, partition, retention) = (level.document, level.partition, level.retention());
        let text = format!("{} {document} {partition} {retention}", level.name);
        digest.add("levels", text.as_bytes());
        let since = self.inner.journal.kept_since(&level.name)?;
        let (part, mut slots) = (format!("cells of {}", level.name), Vec::new());
        let is_kept = |start: UnixMillis| start >= since && level.keeps(start, now);
        for span in self.spans_with_cells(index)? {
            for ids in series.chunks(CHUNK) {
                let times = UnixMillis(span.start)..UnixMillis(span.end);
                let view = self.view_level(index, times, ids.to_vec())?;
                let mut histograms = HistogramsOfLevel::new();
                for id in ids {
                    let _all = view.each_histogram(*id, &mut merger(*id, &mut histograms))?;
                    view.slots_into(*id, Columns::ALL, &mut slots)?;
                    for slot in slots.iter().filter(|slot| is_kept(slot.start)) {
                        digest.add_cell(&part, &level.name, (*id, slot.start.0), &slot.cell);
                    }
                }
                let part = format!("histograms of {}", level.name);
                for (key, cell) in
                    histograms.into_iter().filter(|((_, at), _)| is_kept(UnixMillis(*at)))
                {
                    digest.add_histogram(&part, key, cell);
                }
            }
        }
        Ok(())
    }

    /// Returns the spans of partitions that may have cells in memory, in the head or in documents,
    /// ascending and without overlap.
    fn spans_with_cells(
        &self,
        index: GranularityIndex,
    ) -> Result<Vec<std::ops::Range<i64>>, StoreError> {
        let documents = &self.inner.documents;
        let of_head = self.inner.head.read(index)?.slots(0..i64::MAX)?;
        let mut starts: BTreeSet<i64> = of_head.into_iter().collect();
        starts.extend(self.inner.catalog.read().slot_starts(index));
        let mut grids = documents.grids(index, i64::MIN..i64::MAX);
        grids.extend(starts.into_iter().map(|start| documents.grid(index, UnixMillis(start))));
        let mut spans: Vec<_> = grids.iter().map(|grid| grid.id.start.0..grid.end.0).collect();
        spans.sort_unstable_by_key(|span| (span.start, span.end));
        spans.dedup();
        let mut end = i64::MIN;
        for span in &mut spans {
            span.start = span.start.max(end);
            end = end.max(span.end);
        }
        spans.retain(|span| !span.is_empty());
        Ok(spans)
    }
}

/// Describes a series; of a deleted one, only the kind.
fn describe(dictionary: &Dictionary, id: SeriesId) -> String {
    let (kind, whole) = (dictionary.kind(id), dictionary.whole_of(id));
    match dictionary.info(id) {
        Some(info) => format!("{kind:?} {} {:?} {:?}", info.key, info.unit, info.sender),
        None => format!("{kind:?} {whole:?}"),
    }
}
