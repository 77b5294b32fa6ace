//! Tests of rows of states: they are restored to the last bit, and damaged bytes are rejected.

use proptest::prelude::*;

use super::*;
use crate::model::counter::start_without_count;

/// The properties of a series, from which the values of its readings follow.
#[derive(Debug, Clone, Copy)]
struct Profile {
    kind: Kind,
    scale: f64,
    start: i64,
    /// The delay in milliseconds after the samples of other series.
    apart_ms: i64,
    ended: Option<u16>,
}

fn profiles() -> impl Strategy<Value = Vec<Profile>> {
    let kind = prop::sample::select(Kind::OF_NUMBERS.to_vec());
    let scale = prop::sample::select(vec![1.0, -1.0, 0.01, 1e-3, 0.1, 1e12, f64::NAN]);
    let not_counted = start_without_count(8, 7);
    let start = prop::sample::select(vec![0, 7, not_counted, 60_000, i64::MIN / 2]);
    let apart_ms = prop_oneof![3 => Just(0), 1 => 0..500_i64];
    let profile = (kind, scale, start, apart_ms, any::<Option<u16>>());
    let profile = profile.prop_map(|(kind, scale, start, apart_ms, ended)| Profile {
        kind,
        scale,
        start,
        apart_ms,
        ended,
    });
    prop::collection::vec(profile, 1..9)
}

fn fresh(kinds: impl IntoIterator<Item = Kind>) -> Vec<SeriesState> {
    kinds.into_iter().map(SeriesState::new).collect()
}

proptest! {
    /// A replay must make the same decisions as the first run, so rows store everything that
    /// decisions depend on.
    #[test]
    fn restored_states_continue_like_the_original_ones(
        profiles in profiles(),
        readings in prop::collection::vec((0..90_000_i64, 0..50_u32), 0..40),
        cut in 0..40_usize,
    ) {
        let observe = |state: &mut SeriesState, profile: &Profile, (at, value): (i64, u32)| {
            let at = at + profile.apart_ms;
            let value = f64::from(value) * profile.scale;
            let observed = state.observe(UnixMillis(at), value, profile.start, UnixMillis(0));
            // Compared as text, because NaN does not equal itself.
            format!("{observed:?}")
        };
        let (first, then) = readings.split_at(cut.min(readings.len()));
        let mut states = fresh(profiles.iter().map(|profile| profile.kind));
        for (state, profile) in states.iter_mut().zip(&profiles) {
            for reading in first {
                observe(state, profile, *reading);
            }
            if let Some(ended) = profile.ended {
                state.end(UnixMillis(i64::from(ended)));
            }
        }
        let bytes = encode(&states);
        // The kinds are also stored.
        let mut read = fresh(profiles.iter().map(|_| Kind::Gauge));
        prop_assert_eq!(decode(&bytes, &mut read), Some(()));
        prop_assert_eq!(&encode(&read), &bytes);
        // A truncated row is rejected, unless a whole state is cut off.
        let cut_off = decode(&bytes[..bytes.len() - 1], &mut read.clone());
        let has_readings = states.last().is_some_and(|state| state.counter().is_some());
        prop_assert!(!has_readings || cut_off.is_none());
        prop_assert_eq!(decode(&bytes, &mut read[1..].to_vec()), None);
        for ((original, restored), profile) in states.iter_mut().zip(&mut read).zip(&profiles) {
            for reading in then {
                let expected = observe(original, profile, *reading);
                prop_assert_eq!(expected, observe(restored, profile, *reading));
            }
            prop_assert_eq!(original.last_at, restored.last_at);
            prop_assert_eq!(original.ended_at(), restored.ended_at());
        }
    }

    #[test]
    fn values_are_restored_to_the_bit(
        values in prop::collection::vec(
            prop_oneof![
                any::<f64>(),
                any::<u64>().prop_map(f64::from_bits),
                any::<i64>().prop_map(|number| number as f64),
                (any::<i32>(), 0..4_usize)
                    .prop_map(|(number, scale)| f64::from(number) / SCALES[scale]),
                prop::sample::select(vec![0.0, -0.0, WHOLE_MAX, WHOLE_MAX + 2.0, f64::INFINITY]),
            ],
            0..=READINGS_MAX,
        ),
    ) {
        let mut bytes = Vec::new();
        encode_values(&values, &mut bytes);
        let mut read = vec![RememberedReading::default(); values.len()];
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
fn properties_that_the_series_of_a_host_share_take_no_bytes() {
    let mut states = fresh([Kind::Counter; 64]);
    let (boot, now) = (1_700_000_000_000, 1_700_000_500_017);
    for minute in 0..20_i64 {
        for (series, state) in (0..).zip(&mut states) {
            let at = UnixMillis(now + minute * 60_000);
            let value = 1e9 * f64::from(series) + minute as f64 * 1e6;
            state.observe(at, value, boot, UnixMillis(now));
        }
    }
    // A counter takes its flags, the scale, and its values: the first one, the steps (wider across
    // forgotten readings), and zeros for equal steps.
    let bytes = encode(&states).len();
    assert!(bytes < 64 * 24, "{bytes}");
    let gauges = encode(&fresh([Kind::Gauge; 64])).len();
    assert!(gauges < 64 + 12, "{gauges}");
}
