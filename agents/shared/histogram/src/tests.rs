//! Properties of merges, bytes and quantiles over random histograms.

use proptest::prelude::*;

use super::*;

fn side() -> impl Strategy<Value = Vec<Bucket>> {
    prop::collection::btree_map(-40..40_i32, 1..100_u32, 0..12).prop_map(|buckets| {
        buckets.into_iter().map(|(index, count)| Bucket { index, count: count.into() }).collect()
    })
}

fn custom() -> impl Strategy<Value = Histogram> {
    let bounds = prop::sample::subsequence(vec![-1.0, 0.0, 0.5, 1.0, 2.5, 10.0], 0..=6);
    (bounds, prop::collection::vec(0..9_u32, 7)).prop_map(|(bounds, counts)| {
        let mut histogram = Histogram::empty(CUSTOM_BOUNDS);
        for (index, count) in (0..=bounds.len() as i32).zip(counts) {
            histogram.positive.push(Bucket { index, count: count.into() });
        }
        histogram.custom_bounds = bounds.into();
        counted(histogram)
    })
}

fn exponential() -> impl Strategy<Value = Histogram> {
    let thresholds = prop::sample::select(vec![0.0, 0.001, 0.3, 1.0, 1.502, ZERO_THRESHOLD]);
    let hints = prop::sample::select(vec![
        ResetHint::Unknown,
        ResetHint::Reset,
        ResetHint::NotReset,
        ResetHint::Gauge,
    ]);
    (SCHEMA_MIN..=SCHEMA_MAX, thresholds, 0..50_u32, side(), side(), hints).prop_map(
        |(schema, zero_threshold, zero_count, positive, negative, hint)| {
            let zero_count = zero_count.into();
            let form = Histogram { zero_threshold, zero_count, hint, ..Histogram::empty(schema) };
            counted(Histogram { positive, negative, ..form })
        },
    )
}

/// Sets count and sum, and removes empty buckets.
fn counted(mut histogram: Histogram) -> Histogram {
    histogram.count = buckets_sum(&histogram);
    histogram.sum = histogram.count * 2.0;
    histogram.normalize();
    histogram
}

fn buckets_sum(histogram: &Histogram) -> f64 {
    histogram.ranges().map(|range| range.count).sum()
}

fn any_histogram() -> impl Strategy<Value = Histogram> {
    prop_oneof![4 => exponential(), 1 => custom()]
}

fn merged(mut left: Histogram, right: &Histogram) -> Histogram {
    left.merge(right);
    left
}

fn received_schema() -> impl Strategy<Value = i32> {
    prop_oneof![Just(-4), Just(8), -4..=52_i32]
}

/// Neighbouring buckets anywhere, in part beyond all numbers.
fn received_side() -> impl Strategy<Value = Vec<Bucket>> {
    let first = prop_oneof![4 => -80..80_i32, 1 => -300_000..300_000_i32, 1 => any::<i32>()];
    let len = prop_oneof![3 => 0..100_i32, 1 => 2000..4000_i32];
    (first, len).prop_map(|(first, len)| {
        let indexes = first..first.saturating_add(len);
        indexes.map(|index| Bucket { index, count: 1.0 }).collect()
    })
}

fn decoded(histogram: &Histogram) -> Result<Histogram, Corrupt> {
    let mut bytes = Vec::new();
    histogram.encode(&mut bytes);
    Histogram::decode(&mut &bytes[..])
}

proptest! {
    #[test]
    fn merge_is_associative_and_commutative(
        a in any_histogram(), b in any_histogram(), c in any_histogram()
    ) {
        prop_assert_eq!(merged(a.clone(), &b), merged(b.clone(), &a));
        prop_assert_eq!(merged(merged(a.clone(), &b), &c), merged(a, &merged(b, &c)));
    }

    #[test]
    fn merge_and_add_lose_no_observation(a in any_histogram(), b in any_histogram()) {
        let both = merged(a.clone(), &b);
        prop_assert_eq!(both.count, a.count + b.count);
        prop_assert_eq!(buckets_sum(&both), both.count);
        let mut sum = a.clone();
        if sum.add(&b).is_ok() {
            prop_assert_eq!(buckets_sum(&sum), both.count);
        } else {
            prop_assert_ne!(a.is_custom(), b.is_custom());
        }
    }

    #[test]
    fn a_subtracted_histogram_leaves_the_other_one(a in exponential(), b in exponential()) {
        let b = Histogram { schema: a.schema, zero_threshold: a.zero_threshold, ..b };
        let mut sum = a.clone();
        sum.add(&b).unwrap();
        sum.subtract(&b).unwrap();
        prop_assert_eq!(Histogram { hint: a.hint, ..sum }, a);
    }

    #[test]
    fn a_counter_that_grows_was_not_reset(a in exponential(), b in exponential()) {
        let mut later = a.clone();
        later.add(&b).unwrap();
        later.hint = ResetHint::Unknown;
        prop_assert!(!later.detect_reset(&a));
        let is_reset = Histogram { hint: ResetHint::Unknown, ..a.clone() }.detect_reset(&later);
        prop_assert_eq!(is_reset, b.count > 0.0 || later.zero_threshold > a.zero_threshold
            || a.schema > later.schema);
    }

    #[test]
    fn bytes_return_the_histogram(a in any_histogram(), factor in prop::sample::select(vec![1.0, 0.3, -1.0])) {
        let mut histogram = a;
        histogram.scale(factor);
        let mut bytes = Vec::new();
        histogram.encode(&mut bytes);
        bytes.push(7);
        let mut rest = &bytes[..];
        prop_assert_eq!(Histogram::decode(&mut rest), Ok(histogram));
        prop_assert_eq!(rest, &[7]);
        for len in 0..bytes.len() - 1 {
            prop_assert_eq!(Histogram::decode(&mut &bytes[..len]), Err(Corrupt));
        }
    }

    #[test]
    fn bytes_return_what_checks_accept_and_its_merges(
        sides in prop::collection::vec((received_schema(), received_side(), received_side()), 1..5)
    ) {
        let mut all = Histogram::empty(SCHEMA_MIN);
        for (schema, positive, negative) in sides {
            let received = Histogram { positive, negative, ..Histogram::empty(0) };
            if let Ok(accepted) = received.checked_parts(schema) {
                prop_assert_eq!(decoded(&accepted), Ok(accepted.clone()));
                all.merge(&accepted);
                prop_assert_eq!(decoded(&all), Ok(all.clone()));
            }
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(mut histogram) = Histogram::decode(&mut &bytes[..]) {
            histogram.lower_schema(SCHEMA_MIN);
            histogram.quantile(0.7);
            histogram.merge(&Histogram::sketch());
        }
    }

    #[test]
    fn a_number_is_in_the_bucket_of_its_index(
        schema in SCHEMA_MIN..=SCHEMA_MAX, exponent in -1000.0..1000.0_f64
    ) {
        let value = exponent.exp2();
        let index = bucket_index(schema, value);
        prop_assert!(bounds::lower_bound(schema, index) < value);
        prop_assert!(value <= upper_bound(schema, index));
        let coarser = limit::coarser_index(index, 1);
        prop_assert!(schema == SCHEMA_MIN || bucket_index(schema - 1, value) == coarser);
    }

    #[test]
    fn spans_return_the_buckets(buckets in side()) {
        let counts: Vec<_> = buckets.iter().map(|bucket| bucket.count).collect();
        prop_assert_eq!(Bucket::from_spans(Bucket::spans(&buckets), &counts), Ok(buckets));
    }
}

/// Returns latencies of three shapes in seconds.
fn latencies(shape: usize, seed: u64) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
    let latency = |_| match shape {
        0 => (normal() * 0.8 - 3.0).exp(),
        1 => 0.002 * (1.0 - (normal() + 6.0) / 12.001).powf(-1.2),
        _ if normal() < 0.5 => 0.01 * (normal() * 0.1).exp(),
        _ => 0.9 * (normal() * 0.3).exp(),
    };
    (0..20_000).map(latency).collect()
}

#[test]
fn quantiles_of_merged_sketches_are_at_most_one_percent_off() {
    for shape in 0..3 {
        let mut values = latencies(shape, 7);
        let sketches = values.chunks(100).map(|part| {
            let mut sketch = Histogram::sketch();
            for value in part {
                sketch.observe(*value, 1.0);
            }
            sketch
        });
        let all = sketches.fold(Histogram::sketch(), |all, sketch| merged(all, &sketch));
        assert_eq!((all.schema, all.count), (SKETCH_SCHEMA, 20_000.0));
        values.sort_by(f64::total_cmp);
        for q in [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999] {
            let exact = values[(q * 20_000.0) as usize - 1];
            let error = (all.quantile(q) / exact - 1.0).abs();
            assert!(error <= 0.01, "shape {shape}, quantile {q}: {error}");
            let share = all.fraction(f64::NEG_INFINITY, exact);
            assert!((share - q).abs() < 0.01, "shape {shape}, share of {exact}: {share}");
        }
    }
}

#[test]
fn too_many_buckets_lower_the_schema() {
    let mut histogram = Histogram::sketch();
    for exponent in -150..150 {
        (0..20).for_each(|step| {
            let value = (f64::from(exponent) + f64::from(step) / 20.0).exp2();
            histogram.observe(value, 1.0);
        });
    }
    assert_eq!(histogram.schema, 3);
    assert_eq!((histogram.count, buckets_sum(&histogram)), (6000.0, 6000.0));
    assert!(histogram.positive.len() <= BUCKETS_MAX);
}

#[test]
fn bounds_are_those_of_prometheus() {
    let check = |schema, index, expected| assert_eq!(upper_bound(schema, index), expected);
    check(0, 0, 1.0);
    check(0, 10, 1024.0);
    check(0, 1024, f64::MAX);
    check(0, 1025, f64::INFINITY);
    check(0, -1074, 5e-324);
    check(-4, 1, 65536.0);
    check(-4, 64, f64::MAX);
    check(1, 1, std::f64::consts::SQRT_2);
    check(8, 256 * 1024, f64::MAX);
    check(8, i32::MAX, f64::INFINITY);
    check(8, i32::MIN, 0.0);
    assert_eq!(bucket_index(0, f64::INFINITY), 1025);
}

#[test]
fn faults_are_named() {
    let good = || {
        let mut histogram = Histogram::sketch();
        histogram.observe(2.0, 3.0);
        histogram
    };
    let check = |change: fn(&mut Histogram), schema, expected: &str| {
        let mut histogram = good();
        change(&mut histogram);
        assert_eq!(histogram.checked(schema).unwrap_err().to_string(), expected);
    };
    assert_eq!(good().checked(7), Ok(good()));
    check(|h| h.count = 4.0, 7, "the count is 4, but the buckets contain 3");
    check(|h| h.zero_count = -1.0, 7, "a count is -1; counts must be numbers of at least 0");
    check(|h| h.count = f64::NAN, 7, "a count is NaN; counts must be numbers of at least 0");
    check(|_| (), 53, "schema 53 does not exist; use -4 to 8, or -53 for custom bounds");
    check(|_| (), -53, "a bucket is beyond the custom bounds");
    check(
        |h| h.custom_bounds = [1.0].into(),
        7,
        "custom bounds exclude a zero bucket, negative buckets and schemas other than -53",
    );
    assert_eq!(good().checked(9).unwrap().schema, 8);
    let span = |offset, length| Span { offset, length };
    let spans = |spans: &[Span]| Bucket::from_spans(spans.iter().copied(), &[1.0]).unwrap_err();
    assert_eq!(spans(&[span(0, 2)]), HistogramFault::SpanLengths);
    assert_eq!(spans(&[span(0, 0), span(-1, 1)]), HistogramFault::Spans);
    assert_eq!(spans(&[span(i32::MAX, 0), span(9, 1)]), HistogramFault::Spans);
}

#[test]
fn buckets_beyond_all_numbers_are_refused() {
    let checked = |schema, indexes: &[i32]| {
        let bucket = |index: &i32| Bucket { index: *index, count: 1.0 };
        let positive = indexes.iter().map(bucket).collect();
        Histogram { positive, ..Histogram::empty(0) }.checked_parts(schema)
    };
    let neighbours: Vec<i32> = (0..3000).collect();
    let spread: Vec<i32> = (1..3000).map(|step| step * 700_000).collect();
    assert_eq!(checked(-4, &neighbours), Err(HistogramFault::BeyondNumbers(66)));
    assert_eq!(checked(-4, &spread), Err(HistogramFault::BeyondNumbers(700_000)));
    assert_eq!(checked(8, &[262_146]), Err(HistogramFault::BeyondNumbers(262_146)));
    // Infinity, and numbers that are too small for a bound of their own.
    assert_eq!(checked(-4, &[65]).unwrap().positive.len(), 1);
    assert_eq!(checked(8, &[262_145]).unwrap().positive.len(), 1);
    assert_eq!(checked(0, &[i32::MIN]).unwrap().zero_count, 1.0);
    assert_eq!(checked(8, &neighbours).unwrap().schema, 7);
}
