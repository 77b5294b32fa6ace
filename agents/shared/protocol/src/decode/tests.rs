//! Round trips, damaged bytes, and the locations of faults.

use proptest::prelude::*;

use super::*;
use crate::{Batch, SeriesDefinition, encode_batch};

fn any_batch() -> impl Strategy<Value = Batch> {
    let samples = prop::collection::vec((any::<u32>(), any::<i64>(), -1e9..1e9_f64), 0..9);
    let tags = prop::collection::btree_map("[a-z]{1,4}", ".{0,5}", 0..4);
    let series = prop::collection::vec((any::<u32>(), ".{0,6}", tags, 0..3_u8, ".{0,3}"), 0..4);
    (samples, series, any::<bool>(), 0..3_usize).prop_map(
        |(samples, series, share_time, start_count)| {
            let times: Vec<_> = samples.iter().map(|(_, time, _)| *time).collect();
            let definition = |(reference, metric, tags, kind, unit): (u32, _, _, u8, _)| {
                let tags: std::collections::BTreeMap<String, String> = tags;
                let tags = tags.into_iter().collect();
                let kind = Kind::from_code(kind).unwrap();
                SeriesDefinition { reference, metric, tags, kind, unit }
            };
            Batch {
                agent: "web1".into(),
                epoch: -5,
                seq: 9,
                sent: 77,
                series: series.into_iter().map(definition).collect(),
                refs: samples.iter().map(|(reference, ..)| *reference).collect(),
                values: samples.iter().map(|(.., value)| *value).collect(),
                starts: times.iter().copied().take([0, 1, 9][start_count]).collect(),
                times: if share_time { vec![3] } else { times },
                histograms: Vec::new(),
            }
        },
    )
}

proptest! {
    #[test]
    fn encoding_and_decoding_round_trip(batch in any_batch()) {
        let mut bytes = Vec::new();
        encode_batch(&batch, &mut bytes);
        encode_batch(&batch, &mut bytes);
        let parts = split_batches(&bytes).unwrap();
        prop_assert_eq!(parts.len(), 2);
        let view = decode_batch(parts[1]).unwrap();
        prop_assert_eq!((view.agent, view.epoch, view.seq, view.sent), ("web1", -5, 9, 77));
        prop_assert_eq!(view.refs().collect::<Vec<_>>(), batch.refs);
        prop_assert_eq!(view.times().collect::<Vec<_>>(), batch.times);
        prop_assert_eq!(view.values().collect::<Vec<_>>(), batch.values);
        prop_assert_eq!(view.starts().collect::<Vec<_>>(), batch.starts);
        for (decoded, sent) in view.series.iter().zip(&batch.series) {
            prop_assert_eq!(decoded.metric, &sent.metric);
            prop_assert_eq!((decoded.reference, decoded.kind), (sent.reference, sent.kind));
            prop_assert_eq!(decoded.unit, &sent.unit);
            let tags = decoded.tags.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            prop_assert_eq!(tags.collect::<Vec<_>>(), sent.tags.clone());
        }
        prop_assert_eq!(view.series.len(), batch.series.len());
    }

    #[test]
    fn damaged_bytes_are_an_error_or_a_batch_and_never_a_panic(
        batch in any_batch(), index: usize, flipped_bits: u8, cut_length: usize
    ) {
        let mut bytes = Vec::new();
        encode_batch(&batch, &mut bytes);
        let index = index % bytes.len();
        bytes[index] ^= flipped_bits;
        bytes.truncate(cut_length % (bytes.len() + 1));
        for part in split_batches(&bytes).into_iter().flatten() {
            if let Ok(view) = decode_batch(part) {
                prop_assert_eq!(view.refs().len(), view.len());
            }
        }
    }
}

#[test]
fn a_fault_names_its_location() {
    let doc = bson::rawdoc! {
        "agent": "a",
        "series": [{ "ref": 1, "tags": { "host": 7 } }],
        "samples": {},
    };
    let fault = decode_batch(doc.as_bytes()).unwrap_err();
    assert_eq!(fault.location, "series.0.tags.host");
    let doc = bson::rawdoc! { "agent": "a", "series": [{ "metric": "m" }] };
    assert_eq!(decode_batch(doc.as_bytes()).unwrap_err().location, "series.0.ref");
}
