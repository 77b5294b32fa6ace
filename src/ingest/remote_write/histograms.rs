//! Native histograms, which both versions send in the same message.
//!
//! Must never know: labels.

use granary_exposition::{
    buckets::{ReceivedHistogram, deltas, doubles, span, zigzag},
    wire::{Fields, Value, WireFault},
};

use crate::{
    ingest::{
        rows::{DescribedSeries, Rows},
        series_cache::Fingerprint,
    },
    model::{Histogram, HistogramFault, Kind, ResetHint, SeriesLimits, UnixMillis},
    policy::RefusalReason,
};

/// A histogram with its time.
pub(super) struct TimedHistogram {
    pub(super) at: UnixMillis,
    /// The start of the counter, 0 if unknown.
    pub(super) start: i64,
    pub(super) histogram: Result<Histogram, HistogramFault>,
}

impl TimedHistogram {
    /// Adds the histogram to the rows; `plain` is the fingerprint of numbers of the series. Only a
    /// histogram that is neither bad nor a stale marker sets the kind of the series.
    pub(super) fn push(
        self,
        rows: &mut Rows<'_>,
        plain: Fingerprint,
        start: i64,
        describe: impl FnOnce(Kind, &SeriesLimits) -> Result<DescribedSeries, String>,
    ) {
        let kind = self.kind();
        let own = plain.with_kind(kind);
        match self.histogram {
            Ok(histogram) => {
                let describe = |limits: &SeriesLimits| describe(kind, limits);
                let target = if histogram.is_stale() {
                    rows.ended_series(plain, own, describe)
                } else {
                    rows.series(own, describe)
                };
                rows.push_histogram(target, self.at, Ok(histogram), start);
            }
            Err(fault) => rows.refuse(RefusalReason::BadHistogram, 1, || fault.to_string()),
        }
    }

    /// Returns the kind of the series.
    fn kind(&self) -> Kind {
        match &self.histogram {
            Ok(histogram) if histogram.hint == ResetHint::Gauge => Kind::GaugeHistogram,
            _ => Kind::Histogram,
        }
    }

    /// Decodes `Histogram` of both versions: count 1 or 2, sum 3, schema 4, zero threshold 5, zero
    /// count 6 or 7, the negative side 8 to 10, the positive side 11 to 13, reset hint 14, timestamp
    /// 15, custom bounds 16, and in 2.0 start timestamp 17.
    pub(super) fn read(message: &[u8]) -> Result<Self, WireFault> {
        let (mut at, mut start, mut reset_hint) = (0, 0, ResetHint::Unknown);
        let mut received = ReceivedHistogram::default();
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next_field()? {
            let ReceivedHistogram { numbers, schema, positive, negative, .. } = &mut received;
            match (field, value) {
                (1, Value::Varint(number)) => numbers.count = number as f64,
                (2, value) => (numbers.count, numbers.is_float) = (value.double(), true),
                (3, value) => numbers.sum = value.double(),
                (4, Value::Varint(number)) => *schema = zigzag(number),
                (5, value) => numbers.zero_threshold = value.double(),
                (6, Value::Varint(number)) => numbers.zero_count = number as f64,
                (7, value) => numbers.zero_count = value.double(),
                (8, value) => negative.push_span(span(value.bytes())?),
                (9, value) => deltas(value, negative)?,
                (10, value) => doubles(value, &mut |count| negative.push_count(count)),
                (11, value) => positive.push_span(span(value.bytes())?),
                (12, value) => deltas(value, positive)?,
                (13, value) => doubles(value, &mut |count| positive.push_count(count)),
                (14, value) => reset_hint = hint(value.int()),
                (15, value) => at = value.int(),
                (16, value) => doubles(value, &mut |bound| received.push_bound(bound)),
                (17, value) => start = value.int(),
                _ => {}
            }
        }
        let histogram = received.checked().map(|mut histogram| {
            if !histogram.is_stale() {
                histogram.hint = reset_hint;
            }
            histogram
        });
        Ok(Self { at: UnixMillis(at), start, histogram })
    }
}

fn hint(code: i64) -> ResetHint {
    match code {
        1 => ResetHint::Reset,
        2 => ResetHint::NotReset,
        3 => ResetHint::Gauge,
        _ => ResetHint::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        ingest::series_cache::SeriesCache,
        model::{SeriesId, SeriesKey, histogram::Bucket},
    };

    fn varint(mut number: u64, out: &mut Vec<u8>) {
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }

    fn int(field: u8, number: u64, out: &mut Vec<u8>) {
        out.push(field << 3);
        varint(number, out);
    }

    fn double(field: u8, number: f64, out: &mut Vec<u8>) {
        out.push(field << 3 | 1);
        out.extend(number.to_le_bytes());
    }

    fn bytes(field: u64, part: &[u8], out: &mut Vec<u8>) {
        varint(field << 3 | 2, out);
        varint(part.len() as u64, out);
        out.extend(part);
    }

    fn zigzag_of(number: i64) -> u64 {
        ((number << 1) ^ (number >> 63)).cast_unsigned()
    }

    /// Returns a histogram of integers with two spans of positive buckets, and changes to it.
    fn integers(change: impl Fn(&mut Vec<u8>)) -> TimedHistogram {
        let mut out = Vec::new();
        int(1, 10, &mut out);
        double(3, 7.5, &mut out);
        int(4, zigzag_of(2), &mut out);
        double(5, 0.001, &mut out);
        int(6, 1, &mut out);
        for (offset, length) in [(-3, 2), (4, 1)] {
            let mut span = Vec::new();
            int(1, zigzag_of(offset), &mut span);
            int(2, length, &mut span);
            bytes(11, &span, &mut out);
        }
        let deltas: Vec<_> = [3, 1, -2].map(|delta| zigzag_of(delta) as u8).into();
        bytes(12, &deltas, &mut out);
        int(14, 2, &mut out);
        int(15, 1500, &mut out);
        change(&mut out);
        TimedHistogram::read(&out).unwrap()
    }

    /// Returns the numbers of samples and of definitions of a histogram for a known series.
    fn pushed(histogram: Result<Histogram, HistogramFault>, known: Kind) -> (usize, Vec<Kind>) {
        let (limits, mut cache) = (SeriesLimits::default(), SeriesCache::default());
        let find = |_: &SeriesKey| Some((SeriesId(3), known));
        let mut rows = Rows::new(&mut cache, &find, &limits, "");
        let describe = |kind: Kind, limits: &SeriesLimits| {
            let key = SeriesKey::new("delays", [], limits).map_err(|fault| fault.to_string())?;
            Ok(DescribedSeries { key, kind, is_declared: true, unit: "".into() })
        };
        let timed = TimedHistogram { at: UnixMillis(5), start: 0, histogram };
        timed.push(&mut rows, Fingerprint::new(1, b"delays"), 0, describe);
        let rows = rows.finish();
        (rows.len(), rows.definitions().iter().map(|info| info.kind).collect())
    }

    #[test]
    fn only_a_sound_histogram_that_is_no_stale_marker_sets_the_kind_of_a_series() {
        let histogram = Histogram::sketch();
        let gauge = Histogram { hint: ResetHint::Gauge, ..Histogram::sketch() };
        let (counts, gauges) = (Kind::Histogram, Kind::GaugeHistogram);
        assert_eq!(pushed(Ok(histogram.clone()), gauges), (1, vec![counts]));
        assert_eq!(pushed(Ok(gauge), counts), (1, vec![gauges]));
        assert_eq!(pushed(Ok(histogram), counts), (1, vec![]));
        for known in [counts, gauges, Kind::DeltaHistogram] {
            assert_eq!(pushed(Ok(Histogram::stale()), known), (1, vec![]), "{known:?}");
            assert_eq!(pushed(Err(HistogramFault::TooManyBuckets), known), (0, vec![]));
        }
    }

    #[test]
    fn integers_are_differences_in_spans() {
        let found = integers(|_| ());
        assert_eq!((found.at, found.start, found.kind()), (UnixMillis(1500), 0, Kind::Histogram));
        let bucket = |index, count| Bucket { index, count };
        let expected = Histogram {
            zero_threshold: 0.001,
            zero_count: 1.0,
            count: 10.0,
            sum: 7.5,
            positive: vec![bucket(-3, 3.0), bucket(-2, 4.0), bucket(3, 2.0)],
            hint: ResetHint::NotReset,
            ..Histogram::empty(2)
        };
        assert_eq!(found.histogram, Ok(expected));
    }

    #[test]
    fn custom_bounds_floats_and_stale_markers_are_read() {
        let mut out = Vec::new();
        double(2, 4.5, &mut out);
        int(4, zigzag_of(-53), &mut out);
        bytes(11, &[0x08, 0, 0x10, 3], &mut out);
        for (field, numbers) in [(13, &[0.5, 0.0, 4.0][..]), (16, &[1.0, 2.5][..])] {
            let packed: Vec<_> = numbers.iter().copied().flat_map(f64::to_le_bytes).collect();
            bytes(field, &packed, &mut out);
        }
        int(14, 3, &mut out);
        varint(17 << 3, &mut out);
        varint(900, &mut out);
        let found = TimedHistogram::read(&out).unwrap();
        assert_eq!((found.start, found.kind()), (900, Kind::GaugeHistogram));
        let histogram = found.histogram.unwrap();
        assert_eq!(&*histogram.custom_bounds, [1.0, 2.5]);
        let buckets = [(0, 0.5), (2, 4.0)].map(|(index, count)| Bucket { index, count });
        assert_eq!(histogram.positive, buckets);
        let stale = integers(|out| double(3, crate::model::STALE_MARKER, out));
        assert!(stale.histogram.unwrap().is_stale());
    }

    #[test]
    fn faults_refuse_one_histogram() {
        let check = |change: fn(&mut Vec<u8>), expected: &str| {
            assert_eq!(integers(change).histogram.unwrap_err().to_string(), expected);
        };
        check(|out| int(1, 11, out), "the count is 11, but the buckets contain 10");
        check(
            |out| double(2, f64::NAN, out),
            "a count is NaN; counts must be numbers of at least 0",
        );
        check(|out| bytes(12, &[9], out), "the spans do not have one bucket per count");
        check(
            |out| bytes(11, &[0x08, 1, 0x10, 1], out),
            "a span begins before the end of the previous one, or beyond all numbers",
        );
        check(
            |out| int(4, zigzag_of(-5), out),
            "schema -5 does not exist; use -4 to 8, or -53 for custom bounds",
        );
        check(
            |out| bytes(12, &vec![0; 20_000], out),
            "more than 16384 buckets; use a coarser schema",
        );
        check(
            |out| double(5, -1.0, out),
            "the zero threshold is -1; it must be a number of at least 0",
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_histogram_or_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(TimedHistogram::read(&bytes));
            // Fields that are valid in themselves.
            let fields = bytes.chunks_exact(9).flat_map(|part| {
                let mut out = Vec::new();
                match part[0] % 3 {
                    0 => int(part[0] % 16, u64::from(part[1]), &mut out),
                    1 => super::tests::bytes(u64::from(part[0] % 18), &part[1..], &mut out),
                    _ => double(part[0] % 16, f64::from(part[1]), &mut out),
                }
                out
            });
            drop(TimedHistogram::read(&fields.collect::<Vec<_>>()));
        }
    }
}
