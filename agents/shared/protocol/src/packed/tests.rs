//! Round trips of packed batches, and damaged bodies.

use proptest::prelude::*;

use super::*;
use crate::STALE_MARKER;

fn batch(seq: u64, values: &[f64]) -> Batch {
    let refs: Vec<u32> = (0..).take(values.len()).collect();
    let (agent, epoch) = ("web1".to_owned(), 1_700_000_000_000);
    let times = vec![epoch + 10_000 * seq as i64];
    Batch { agent, epoch, seq, refs, times, values: values.to_vec(), ..Batch::default() }
}

/// Asserts that all bits are equal.
fn assert_equal_bits(left: &[Batch], right: &[Batch]) {
    let bits = |batches: &[Batch]| -> Vec<Vec<u64>> {
        let values = |batch: &Batch| batch.values.iter().map(|value| value.to_bits()).collect();
        batches.iter().map(values).collect()
    };
    let without_values = |batches: &[Batch]| -> Vec<Batch> {
        batches.iter().map(|batch| Batch { values: vec![], ..batch.clone() }).collect()
    };
    assert_eq!(bits(left), bits(right));
    assert_eq!(without_values(left), without_values(right));
}

#[test]
fn every_value_is_decoded_without_loss() {
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        41811.98,
        0.1 + 0.2,
        1e-9,
        1e-10,
        1e300,
        5e-324,
        f64::MAX,
        f64::NAN,
        STALE_MARKER,
        f64::INFINITY,
        f64::NEG_INFINITY,
        9_007_199_254_740_991.0,
        9_007_199_254_740_992.0,
        1_234_567.123_456_789,
    ];
    let mut reversed = values;
    reversed.reverse();
    let batches = [batch(1, &values), batch(2, &values), batch(3, &reversed)];
    assert_equal_bits(&unpack(&pack(&batches)).unwrap(), &batches);
}

#[test]
fn a_value_with_a_small_step_takes_three_bytes() {
    let first: Vec<f64> = (0..100).map(|index| f64::from(index * 1_000_003) + 0.25).collect();
    let next: Vec<f64> = first.iter().map(|value| value + 0.5).collect();
    let first_bytes = pack(&[batch(1, &first)]).len();
    // One byte each for the ref, the form and the step.
    let step = pack(&[batch(1, &first), batch(2, &next)]).len() - first_bytes;
    assert!((300..320).contains(&step), "{step}");
}

#[test]
fn faults_contain_their_position() {
    let body = pack(&[batch(1, &[1.0, f64::NAN])]);
    for length in 0..body.len() {
        let fault = unpack(&body[..length]).unwrap_err();
        assert!(fault.location.starts_with("packed body at byte "), "{fault}");
    }
    let check = |body: &[u8], expected: &str| {
        let fault = unpack(body).unwrap_err().to_string();
        assert!(fault.contains(expected), "{expected:?} is not in: {fault}");
    };
    check(&[&body[..], &[0]].concat(), "more bytes");
    check(b"\x05\0\0\0\0", "no packed batches");
    check(b"GP\x04\x01", "version 4 is not known");
    check(b"GP\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "64 bits");
    check(b"GP\x02\x81\x08", "at most 1024");
    check(b"GP\x02\x01\x10\x00\x00\x00", "a sender's name");
    check(b"GP\x02\x01\x00\x01a\x00\x00\x7f", "127 items, but 0 bytes are left");
}

fn any_batch() -> impl Strategy<Value = Batch> {
    let value = prop_oneof![
        any::<f64>(),
        (-1_000_000_i64..1_000_000, 0..5).prop_map(|(n, e)| n as f64 / 10_f64.powi(e)),
        Just(STALE_MARKER),
    ];
    let definition = (any::<u32>(), ".{0,5}", prop::collection::vec((".{0,3}", ".{0,3}"), 0..3));
    let kind = prop::sample::select(Kind::ALL.to_vec());
    let definition = (definition, kind);
    let define = |((reference, metric, tags), kind)| SeriesDefinition {
        reference,
        metric,
        tags,
        kind,
        unit: "s".to_owned(),
    };
    let samples = prop::collection::vec((0_u32..9, value, any::<i64>(), any::<i64>()), 0..20);
    let columns = (samples, 0_usize..3, any::<bool>(), prop::collection::vec(any::<u8>(), 0..9));
    let series = prop::collection::vec(definition.prop_map(define), 0..3);
    (("[ab]", any::<i64>(), any::<u64>(), any::<i64>()), series, columns).prop_map(
        |((agent, epoch, seq, sent), series, (samples, start_count, has_each_time, histograms))| {
            let refs = samples.iter().map(|sample| sample.0).collect();
            let values = samples.iter().map(|sample| sample.1).collect();
            let times: Vec<i64> = samples.iter().map(|sample| sample.2).collect();
            let times = if has_each_time || times.is_empty() { times } else { vec![times[0]] };
            let all: Vec<i64> = samples.iter().map(|sample| sample.3).collect();
            let starts = all.into_iter().take([0, 1, 100][start_count]).collect();
            Batch { agent, epoch, seq, sent, series, refs, times, values, starts, histograms }
        },
    )
}

proptest! {
    #[test]
    fn any_batches_round_trip(batches in prop::collection::vec(any_batch(), 0..6)) {
        assert_equal_bits(&unpack(&pack(&batches)).unwrap(), &batches);
    }

    #[test]
    fn any_bytes_are_decoded_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        drop(unpack(&bytes));
        drop(unpack(&[b"GP\x02", &bytes[..]].concat()));
        drop(unpack(&[b"GP\x03", &bytes[..]].concat()));
    }
}
