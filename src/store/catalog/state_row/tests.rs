//! Rows come back to the last bit, and nothing else is taken for one.

use proptest::prelude::*;

use super::*;

/// The kind of a series, and its values beside the numbers of its readings.
#[derive(Debug, Clone, Copy)]
struct Sort {
    kind: Kind,
    scale: f64,
    start: i64,
    /// Milliseconds by which the series is sampled later than the others.
    apart_ms: i64,
    ended: Option<u16>,
}

fn sorts() -> impl Strategy<Value = Vec<Sort>> {
    let kind = prop::sample::select(Kind::ALL.to_vec());
    let scale = prop::sample::select(vec![1.0, -1.0, 0.01, 1e-3, 0.1, 1e12, f64::NAN]);
    let start = prop::sample::select(vec![0, 7, 60_000, i64::MIN / 2]);
    let apart_ms = prop_oneof![3 => Just(0), 1 => 0..500_i64];
    let sort = (kind, scale, start, apart_ms, any::<Option<u16>>());
    let sort = sort.prop_map(|(kind, scale, start, apart_ms, ended)| Sort {
        kind,
        scale,
        start,
        apart_ms,
        ended,
    });
    prop::collection::vec(sort, 1..9)
}

fn fresh(kinds: impl IntoIterator<Item = Kind>) -> Vec<SeriesState> {
    kinds.into_iter().map(SeriesState::new).collect()
}

proptest! {
    /// Replays must decide as the first time, so nothing that decides is lost on the disk.
    #[test]
    fn states_that_were_on_disk_go_on_as_they_were(
        sorts in sorts(),
        readings in prop::collection::vec((0..90_000_i64, 0..50_u32), 0..40),
        cut in 0..40_usize,
    ) {
        let observe = |state: &mut SeriesState, sort: &Sort, (at, value): (i64, u32)| {
            let at = at + sort.apart_ms;
            let observed =
                state.observe(UnixMillis(at), f64::from(value) * sort.scale, sort.start, UnixMillis(0));
            // By their bits, as one that is not a number is not itself.
            format!("{observed:?}")
        };
        let (first, then) = readings.split_at(cut.min(readings.len()));
        let mut states = fresh(sorts.iter().map(|sort| sort.kind));
        for (state, sort) in states.iter_mut().zip(&sorts) {
            for reading in first {
                observe(state, sort, *reading);
            }
            if let Some(ended) = sort.ended {
                state.end(UnixMillis(i64::from(ended)));
            }
        }
        let bytes = encode(&states);
        // The kinds are stored, too.
        let mut read = fresh(sorts.iter().map(|_| Kind::Gauge));
        prop_assert_eq!(decode(&bytes, &mut read), Some(()));
        prop_assert_eq!(&encode(&read), &bytes);
        // What is cut off is missed, unless it is a whole state.
        let cut_off = decode(&bytes[..bytes.len() - 1], &mut read.clone());
        let has_readings = states.last().is_some_and(|state| state.counter().is_some());
        prop_assert!(!has_readings || cut_off.is_none());
        prop_assert_eq!(decode(&bytes, &mut read[1..].to_vec()), None);
        for ((one, other), sort) in states.iter_mut().zip(&mut read).zip(&sorts) {
            for reading in then {
                prop_assert_eq!(observe(one, sort, *reading), observe(other, sort, *reading));
            }
            prop_assert_eq!(one.last_at, other.last_at);
            prop_assert_eq!(one.ended_at(), other.ended_at());
        }
    }

    #[test]
    fn values_come_back_to_the_bit(
        values in prop::collection::vec(
            prop_oneof![
                any::<f64>(),
                any::<u64>().prop_map(f64::from_bits),
                any::<i64>().prop_map(|number| number as f64),
                (any::<i32>(), 0..4_usize).prop_map(|(n, scale)| f64::from(n) / SCALES[scale]),
                prop::sample::select(vec![0.0, -0.0, WHOLE_MAX, WHOLE_MAX + 2.0, f64::INFINITY]),
            ],
            0..=READINGS_MAX,
        ),
    ) {
        let mut bytes = Vec::new();
        encode_values(&values, &mut bytes);
        let mut read = vec![Kept::default(); values.len()];
        let mut rest = &*bytes;
        prop_assert_eq!(decode_values(&mut read, &mut rest), Some(()));
        let read: Vec<_> = read.iter().map(|kept| kept.reading.value.to_bits()).collect();
        prop_assert_eq!(read, values.iter().map(|value| value.to_bits()).collect::<Vec<_>>());
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        code in prop_oneof![Just(ROW), any::<u8>()],
        flags in 0..0x80_u8,
        bytes in prop::collection::vec(prop_oneof![0..9_u8, any::<u8>()], 0..200),
    ) {
        let bytes = [&[code, flags][..], &bytes].concat();
        let mut states = fresh([Kind::Gauge; 4]);
        if decode(&bytes, &mut states).is_some() {
            states[0].observe(UnixMillis(5), 1.0, 0, UnixMillis(0));
            prop_assert!(decode(&encode(&states), &mut states).is_some());
        }
    }
}

#[test]
fn what_a_host_has_in_common_costs_nothing() {
    let mut states = fresh([Kind::Counter; 64]);
    let (boot, now) = (1_700_000_000_000, 1_700_000_500_017);
    for minute in 0..20_i64 {
        for (series, state) in (0..).zip(&mut states) {
            let at = UnixMillis(now + minute * 60_000);
            let value = 1e9 * f64::from(series) + minute as f64 * 1e6;
            state.observe(at, value, boot, UnixMillis(now));
        }
    }
    // Flags, scale, and the values: the first, the step, which is wider over those that were
    // forgotten, and that the others are the same.
    let bytes = encode(&states).len();
    assert!(bytes < 64 * 24, "{bytes}");
    let gauges = encode(&fresh([Kind::Gauge; 64])).len();
    assert!(gauges < 64 + 12, "{gauges}");
}
