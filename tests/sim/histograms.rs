//! Histograms in the simulation. The content of each one follows from its number of observations,
//! so senders and oracle store only this number.

use std::collections::BTreeMap;

use fastrand::Rng;
use granary::{
    model::{
        Cell, Histogram, HistogramCell, HistogramSample, Kind, SeriesId,
        histogram::{Bucket, ResetHint, ZERO_THRESHOLD},
    },
    store::{StoreError, View},
};

use crate::setup::MINUTE;

/// Series of histograms have names from this number up to that of recorded series.
pub(crate) const FIRST_HISTOGRAM_NAME: u32 = 20_000;
/// The number of series of histograms from agents, and then from foreign senders.
const NAMES: [u32; 2] = [9, 4];
const KINDS: [Kind; 3] = [Kind::Histogram, Kind::GaugeHistogram, Kind::DeltaHistogram];
/// The finer one of the two schemas.
const SCHEMA: i8 = 3;
/// The number of observations from which on a counter has the coarser schema, as if it had too many
/// buckets: it has one observation per millisecond since its start.
const COARSE_FROM: f64 = (30 * MINUTE) as f64;

/// The histograms of the store, by series and slot.
pub(crate) type FoundHistograms = BTreeMap<(SeriesId, i64), HistogramCell>;

/// Returns the name of a series of histograms from an agent.
pub(crate) fn name_of_agent(rng: &mut Rng) -> u32 {
    FIRST_HISTOGRAM_NAME + rng.u32(0..NAMES[0])
}

/// Returns the name of a series of histograms from a foreign sender.
pub(crate) fn foreign_name(rng: &mut Rng) -> u32 {
    FIRST_HISTOGRAM_NAME + NAMES[0] + rng.u32(0..NAMES[1])
}

/// Returns the kind of a series of histograms.
pub(crate) fn kind(name: u32) -> Kind {
    KINDS[(name - FIRST_HISTOGRAM_NAME) as usize % KINDS.len()]
}

fn is_coarse(kind: Kind, count: f64) -> bool {
    if kind == Kind::Histogram { count >= COARSE_FROM } else { count % 2.0 == 1.0 }
}

/// Returns the histogram of a number of observations. Each observation is in the bucket of its
/// number modulo 7, so no bucket shrinks while the number grows.
fn histogram(kind: Kind, count: f64) -> Histogram {
    let seventh = |first: f64| ((count + 7.0 - first) / 7.0).floor();
    let side = |buckets: &[(i32, f64)]| {
        let filled = buckets.iter().filter(|(_, count)| *count > 0.0);
        filled.map(|(index, count)| Bucket { index: *index, count: *count }).collect()
    };
    let [zero_count, negative, low, middle] = [1.0, 2.0, 3.0, 4.0].map(seventh);
    let high = count - zero_count - negative - low - middle;
    let has_hint = kind != Kind::Histogram && count % 3.0 == 1.0;
    let mut histogram = Histogram {
        zero_threshold: ZERO_THRESHOLD,
        zero_count,
        count,
        sum: 2.0 * count,
        // The coarser schema merges the first two of these buckets.
        positive: side(&[(3, low), (4, middle), (10, high)]),
        negative: side(&[(2, negative)]),
        hint: if has_hint { ResetHint::Gauge } else { ResetHint::Unknown },
        ..Histogram::empty(SCHEMA)
    };
    if is_coarse(kind, count) {
        histogram.lower_schema(SCHEMA - 1);
    }
    histogram
}

/// Returns the histogram of a sample at a position of its batch; `None` for a number.
pub(crate) fn sample(kind: Kind, index: usize, count: f64) -> Option<HistogramSample> {
    let is_histogram = KINDS.contains(&kind);
    is_histogram.then(|| HistogramSample { index: index as u32, histogram: histogram(kind, count) })
}

/// Adds the histograms of a series to those of the store.
pub(crate) fn find(
    view: &View,
    series: SeriesId,
    found: &mut FoundHistograms,
) -> Result<(), StoreError> {
    let slots = view.histogram_slots::<StoreError>(series, &mut |_| Ok(()))?;
    found.extend(slots.into_iter().map(|slot| ((series, slot.start.0), slot.cell)));
    Ok(())
}

/// The counts of a histogram at the coarser schema: of all observations, their sum, and by side and
/// index.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    count: f64,
    sum: f64,
    zero_count: f64,
    buckets: BTreeMap<(bool, i32), f64>,
}

impl Counts {
    /// Adds the counts of a histogram, or subtracts them if the sign is -1.
    fn add(&mut self, histogram: &Histogram, sign: f64) {
        self.count += sign * histogram.count;
        self.sum += sign * histogram.sum;
        self.zero_count += sign * histogram.zero_count;
        for (is_negative, side) in [(false, &histogram.positive), (true, &histogram.negative)] {
            for Bucket { index, count } in side {
                // A bucket of the coarser schema contains two of the finer one.
                let is_fine = histogram.schema == SCHEMA;
                let index = if is_fine { (index + 1).div_euclid(2) } else { *index };
                *self.buckets.entry((is_negative, index)).or_default() += sign * count;
            }
        }
        self.buckets.retain(|_, count| *count != 0.0);
    }
}

/// Compares the histograms of a slot with its counts, which were compared. `total` has the numbers
/// of observations of which the total consists, each with its sign; `None` if no total is
/// guaranteed. Returns true if the total was compared.
pub(crate) fn check(
    kind: Kind,
    counts: &Cell,
    total: Option<&[(f64, f64)]>,
    found: Option<&HistogramCell>,
) -> Result<bool, String> {
    if !KINDS.contains(&kind) {
        return if found.is_none() { Ok(false) } else { Err("histograms of numbers".to_owned()) };
    }
    let Some(found) = found else { return Err("no histograms".to_owned()) };
    let times = (found.n, found.first_at, found.last_at);
    if times != (counts.n, counts.first_at, counts.last_at) {
        return Err(format!("number and times {times:?} of histograms"));
    }
    for (end, count) in [(&found.first, counts.first), (&found.last, counts.last)] {
        if *end != histogram(kind, count) {
            return Err(format!("{end:?} instead of the histogram of {count}"));
        }
    }
    let Some(total) = total else { return Ok(false) };
    let (mut expected, mut compared) = (Counts::default(), Counts::default());
    for (count, sign) in total {
        expected.add(&histogram(kind, *count), *sign);
    }
    compared.add(&found.total, 1.0);
    if compared == expected {
        return Ok(true);
    }
    Err(format!("total {compared:?} instead of {expected:?} of {total:?}"))
}
