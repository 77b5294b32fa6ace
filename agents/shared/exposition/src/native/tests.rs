//! Native histograms in the form in which Prometheus' client libraries send them.

use granary_histogram::{Bucket, CUSTOM_BOUNDS, bucket_index};
use proptest::prelude::*;

use super::*;
use crate::{Format, Names, parts, read_from};

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn int(field: u64, number: u64, out: &mut Vec<u8>) {
    varint(field << 3, out);
    varint(number, out);
}

fn double(field: u64, number: f64, out: &mut Vec<u8>) {
    varint(field << 3 | 1, out);
    out.extend(number.to_le_bytes());
}

fn bytes(field: u64, part: &[u8], out: &mut Vec<u8>) {
    varint(field << 3 | 2, out);
    varint(part.len() as u64, out);
    out.extend(part);
}

fn message(build: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    build(&mut out);
    out
}

fn zigzag_of(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// Writes the buckets of a side: spans and packed counts as differences, or as floats.
fn side(first_field: u64, buckets: &[Bucket], is_float: bool, out: &mut Vec<u8>) {
    for span in Bucket::spans(buckets) {
        let span = message(|out| {
            int(1, zigzag_of(span.offset.into()), out);
            int(2, span.length.into(), out);
        });
        bytes(first_field, &span, out);
    }
    let mut last = 0;
    for Bucket { count, .. } in buckets {
        if is_float {
            double(first_field + 2, *count, out);
        } else {
            int(first_field + 1, zigzag_of(*count as i64 - last), out);
            last = *count as i64;
        }
    }
}

/// Returns `Histogram` as an exporter sends it.
fn encoded(histogram: &Histogram, is_float: bool) -> Vec<u8> {
    message(|out| {
        if is_float {
            double(4, histogram.count, out);
            double(8, histogram.zero_count, out);
        } else {
            int(1, histogram.count as u64, out);
            int(7, histogram.zero_count as u64, out);
        }
        double(2, histogram.sum, out);
        int(5, zigzag_of(histogram.schema.into()), out);
        double(6, histogram.zero_threshold, out);
        side(9, &histogram.negative, is_float, out);
        side(12, &histogram.positive, is_float, out);
    })
}

/// Returns a response with one family of one metric.
fn response(kind: u64, histogram: &[u8]) -> Vec<u8> {
    let family = message(|out| {
        bytes(1, b"wait_seconds", out);
        int(3, kind, out);
        bytes(4, &message(|out| bytes(7, histogram, out)), out);
    });
    message(|out| {
        varint(family.len() as u64, out);
        out.extend(&family);
    })
}

/// Returns the name, value and histogram of each sample.
fn samples(
    body: &[u8],
    native: NativeHistograms,
) -> Result<Vec<(String, f64, Option<Histogram>)>, String> {
    let mut samples = Vec::new();
    read_from(&mut &*body, (Format::Protobuf, native), &mut |_| Ok(()), |sample, _| {
        let parts = parts(sample.series, Names::Valid)?;
        samples.push((parts.metric.into_owned(), sample.value, sample.histogram.cloned()));
        Ok(())
    })
    .map_err(|fault| fault.to_string())?;
    Ok(samples)
}

fn two_buckets() -> Histogram {
    Histogram {
        positive: vec![Bucket { index: -3, count: 2.0 }, Bucket { index: 4, count: 5.0 }],
        count: 8.0,
        zero_count: 1.0,
        sum: 6.5,
        zero_threshold: 0.001,
        ..Histogram::empty(3)
    }
}

fn names(samples: &[(String, f64, Option<Histogram>)]) -> Vec<&str> {
    samples.iter().map(|(name, ..)| name.as_str()).collect()
}

#[test]
fn a_histogram_with_both_sorts_of_buckets_is_read_as_requested() {
    let classic = message(|out| bytes(3, &message(|out| int(1, 7, out)), out));
    let both = [encoded(&two_buckets(), false), classic.clone()].concat();
    let classic_names =
        ["wait_seconds_bucket", "wait_seconds_bucket", "wait_seconds_sum", "wait_seconds_count"];
    let found = samples(&response(4, &both), NativeHistograms::Preferred).unwrap();
    assert_eq!(found, [("wait_seconds".to_owned(), 8.0, Some(two_buckets()))]);
    let found = samples(&response(4, &both), NativeHistograms::BesideClassic).unwrap();
    assert_eq!(names(&found)[0], "wait_seconds");
    assert_eq!(names(&found)[1..], classic_names);
    let found = samples(&response(4, &both), NativeHistograms::Ignored).unwrap();
    assert_eq!(names(&found), classic_names);
    assert!(found.iter().all(|(.., histogram)| histogram.is_none()));
    // Only a span or a zero bucket makes a histogram native.
    let found = samples(&response(4, &classic), NativeHistograms::Preferred).unwrap();
    assert_eq!(names(&found), classic_names);
    let only_native = response(4, &encoded(&two_buckets(), false));
    let found = samples(&only_native, NativeHistograms::BesideClassic).unwrap();
    assert_eq!(names(&found), ["wait_seconds"]);
}

#[test]
fn an_empty_histogram_of_a_client_library_is_native() {
    // A client library marks it with a span of no buckets.
    let empty = message(|out| bytes(12, &[0x08, 0, 0x10, 0], out));
    let found = samples(&response(4, &empty), NativeHistograms::Preferred).unwrap();
    assert_eq!(found, [("wait_seconds".to_owned(), 0.0, Some(Histogram::empty(0)))]);
}

#[test]
fn the_type_of_the_family_makes_a_gauge_and_floats_are_read() {
    let mut floats = two_buckets();
    floats.scale(0.25);
    floats.negative = vec![Bucket { index: 0, count: 0.5 }];
    floats.count += 0.5;
    let found = samples(&response(5, &encoded(&floats, true)), NativeHistograms::Preferred);
    floats.hint = ResetHint::Gauge;
    assert_eq!(found.unwrap()[0].2, Some(floats));
}

#[test]
fn a_faulty_histogram_is_named() {
    let check = |change: fn(&mut Vec<u8>), expected: &str| {
        let mut histogram = encoded(&two_buckets(), false);
        change(&mut histogram);
        let fault = samples(&response(4, &histogram), NativeHistograms::Preferred).unwrap_err();
        assert_eq!(fault, format!("family 0 at byte 0: \"wait_seconds\": {expected}"));
    };
    check(|out| int(1, 9, out), "the count is 9, but the buckets contain 8");
    check(|out| int(13, 2, out), "the spans do not have one bucket per count");
    check(|out| bytes(13, &vec![0; 20_000], out), "more than 16384 buckets; use a coarser schema");
    check(
        |out| int(5, zigzag_of(CUSTOM_BOUNDS.into()), out),
        "custom bounds exclude a zero bucket, negative buckets and schemas other than -53",
    );
}

/// Returns sorted buckets with whole counts.
fn buckets(schema: i8) -> impl Strategy<Value = Vec<Bucket>> {
    let (first, last) = (bucket_index(schema, 1e-9), bucket_index(schema, 1e9));
    prop::collection::btree_map(first..last, 1_u32..1000, 0..40).prop_map(|found| {
        let bucket = |(index, count): (i32, u32)| Bucket { index, count: count.into() };
        found.into_iter().map(bucket).collect()
    })
}

fn histograms() -> impl Strategy<Value = Histogram> {
    (-4_i8..=8).prop_flat_map(|schema| {
        (buckets(schema), buckets(schema), 0_u32..9, -1e9..1e9).prop_map(
            move |(positive, negative, zeros, sum)| {
                let zero_count = f64::from(zeros);
                let all = positive.iter().chain(&negative).map(|bucket| bucket.count);
                let count = all.sum::<f64>() + zero_count;
                let zero_threshold = 1e-12;
                let empty = Histogram::empty(schema);
                Histogram { positive, negative, zero_count, count, sum, zero_threshold, ..empty }
            },
        )
    })
}

proptest! {
    #[test]
    fn any_histogram_comes_back(histogram in histograms(), is_float in any::<bool>()) {
        let body = response(4, &encoded(&histogram, is_float));
        let found = samples(&body, NativeHistograms::Preferred).unwrap();
        prop_assert_eq!(&found[0].2, &Some(histogram));
    }

    #[test]
    fn any_fields_are_a_histogram_or_a_fault(
        parts in prop::collection::vec((0_u64..17, any::<u8>(), any::<[u8; 8]>()), 0..30),
    ) {
        let histogram = message(|out| {
            for (field, form, content) in &parts {
                match form % 3 {
                    0 => int(*field, content[0].into(), out),
                    1 => bytes(*field, content, out),
                    _ => double(*field, f64::from_le_bytes(*content), out),
                }
            }
        });
        drop(native_histogram(&histogram, false));
    }
}
