//! The states of neighbouring series as bytes; FORMAT.md describes them.
//!
//! What a state has in common with the one before it takes a bit: series of one host are sampled at
//! the same times, and their counters began with it. Must never know where rows are kept.

use super::old_state_row;
use crate::{
    model::{
        Kind, SeriesState, UnixMillis,
        counter::{Kept, READINGS_MAX, Remembered},
    },
    store::varint::{put_varint, take_varint, unzigzag, zigzag},
};

/// The first byte of a row, which no older row has.
const ROW: u8 = 0x07;

/// The bits of a state's first byte that are its kind.
const KIND: u8 = 0x03;
/// The sender said that the series has ended.
const ENDED: u8 = 0x04;
/// The latest sample is of the time of that of the state before.
const SAME_LATEST: u8 = 0x08;
/// A counter with readings.
const READINGS: u8 = 0x10;
/// They are of the times of the readings before in the row.
const SAME_TIMES: u8 = 0x20;
/// Their ages are what those before let expect.
const SAME_AGES: u8 = 0x40;
/// Nothing yet.
const UNKNOWN: u8 = 0x80;

/// What decimal numbers become whole ones by.
const SCALES: [f64; 4] = [1.0, 100.0, 1000.0, 1e6];
/// The scale of numbers that are stored as doubles.
const NO_SCALE: u8 = SCALES.len() as u8;
/// Up to it, every whole number is a double.
const WHOLE_MAX: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// When readings were taken, and what else readings of the same times have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Times {
    at: [i64; READINGS_MAX],
    count: u8,
    base: u8,
    after_forgotten: u8,
    step_ms: u32,
}

/// What is known of the states before.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    latest: i64,
    times: Times,
    /// Age of the first reading.
    age: i64,
}

/// The bytes of a row.
pub(super) fn encode(states: &[SeriesState]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + states.len() * 24);
    out.push(ROW);
    let mut before = Before::default();
    for state in states {
        encode_state(state, &mut before, &mut out);
    }
    out
}

/// Puts the states of a row back, the first ones of some; `None` when it is damaged, or when there
/// are more of them.
pub(super) fn decode(bytes: &[u8], states: &mut [SeriesState]) -> Option<()> {
    let Some(mut rest) = bytes.strip_prefix(&[ROW]) else {
        return old_state_row::decode(bytes, states);
    };
    let mut before = Before::default();
    for state in states {
        if rest.is_empty() {
            break;
        }
        *state = decode_state(&mut rest, &mut before)?;
    }
    rest.is_empty().then_some(())
}

fn encode_state(state: &SeriesState, before: &mut Before, out: &mut Vec<u8>) {
    let start = out.len();
    let (latest, ended_at) = (state.last_at.0, state.ended_at());
    let mut flags = state.kind.code();
    out.push(0);
    if latest == before.latest {
        flags |= SAME_LATEST;
    } else {
        put_difference(latest, before.latest, out);
        before.latest = latest;
    }
    if let Some(ended_at) = ended_at {
        flags |= ENDED;
        put_difference(ended_at.0, latest, out);
    }
    if let Some(counter) = state.counter() {
        flags |= READINGS | encode_readings(counter, before, out);
    }
    out[start] = flags;
}

/// Appends the readings; returns what they have in common with those before.
fn encode_readings(counter: &Remembered, before: &mut Before, out: &mut Vec<u8>) -> u8 {
    let mut flags = 0;
    let mut times = Times { base: counter.base(), step_ms: counter.step_ms(), ..Times::default() };
    let (mut values, mut ages) = ([0.0; READINGS_MAX], [0; READINGS_MAX]);
    for (place, Kept { reading, after_forgotten }) in counter.in_order().enumerate() {
        (times.at[place], values[place], ages[place]) = (reading.at, reading.value, reading.age);
        times.after_forgotten |= u8::from(after_forgotten) << place;
        times.count += 1;
    }
    let count = usize::from(times.count);
    let (values, ages) = (&values[..count], &ages[..count]);
    let mut expected = expected_age(before.age, times.at[0], before.times.at[0]);
    if times == before.times {
        flags |= SAME_TIMES;
    } else {
        times.encode(before.latest, out);
    }
    let mut off = [0; READINGS_MAX];
    for (place, age) in ages.iter().enumerate() {
        off[place] = age.wrapping_sub(expected);
        let next = times.at.get(place + 1).copied().unwrap_or_default();
        expected = expected_age(*age, next, times.at[place]);
    }
    if off == [0; READINGS_MAX] {
        flags |= SAME_AGES;
    } else {
        off[..count].iter().for_each(|off| put_varint(zigzag(*off), out));
    }
    encode_values(values, out);
    (before.times, before.age) = (times, ages.first().copied().unwrap_or_default());
    flags
}

fn decode_state(bytes: &mut &[u8], before: &mut Before) -> Option<SeriesState> {
    let (flags, rest) = bytes.split_first()?;
    *bytes = rest;
    let has = |flag: u8| flags & flag != 0;
    if has(UNKNOWN) {
        return None;
    }
    let kind = Kind::from_code(flags & KIND)?;
    if !has(SAME_LATEST) {
        before.latest = take_difference(before.latest, bytes)?;
    }
    let latest = before.latest;
    let ended_at = if has(ENDED) { Some(take_difference(latest, bytes)?) } else { None };
    let counter = match (has(READINGS), kind) {
        (false, _) => None,
        (true, Kind::Counter) => Some(decode_readings(*flags, before, bytes)?),
        (true, Kind::Gauge | Kind::Delta) => return None,
    };
    Some(SeriesState::restore(kind, UnixMillis(latest), ended_at.map(UnixMillis), counter))
}

fn decode_readings(flags: u8, before: &mut Before, bytes: &mut &[u8]) -> Option<Remembered> {
    let before_at = before.times.at[0];
    if flags & SAME_TIMES == 0 {
        before.times = Times::decode(before.latest, bytes)?;
    }
    let times = &before.times;
    let count = usize::from(times.count);
    let mut readings = [Kept::default(); READINGS_MAX];
    let mut expected = expected_age(before.age, times.at[0], before_at);
    for (place, kept) in readings[..count].iter_mut().enumerate() {
        kept.reading.at = times.at[place];
        kept.after_forgotten = times.after_forgotten >> place & 1 == 1;
        let off = if flags & SAME_AGES == 0 { unzigzag(take_varint(bytes)?) } else { 0 };
        kept.reading.age = expected.wrapping_add(off);
        let next = times.at.get(place + 1).copied().unwrap_or_default();
        expected = expected_age(kept.reading.age, next, times.at[place]);
    }
    let readings = &mut readings[..count];
    decode_values(readings, bytes)?;
    before.age = readings.first()?.reading.age;
    Remembered::restore(readings, times.step_ms, times.base)
}

/// The age of a reading of a counter that began when one of this age and time had: not known, and
/// too long ago to be told, stay so.
fn expected_age(age: i64, at: i64, before: i64) -> i64 {
    if age == 0 || age == i64::MAX { age } else { age.wrapping_add(at.wrapping_sub(before)) }
}

impl Times {
    fn encode(&self, latest: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.count, self.base, self.after_forgotten]);
        put_varint(u64::from(self.step_ms), out);
        put_numbers(latest, &self.at[..usize::from(self.count)], out);
    }

    fn decode(latest: i64, bytes: &mut &[u8]) -> Option<Self> {
        let ([count, base, after_forgotten], rest) = bytes.split_first_chunk::<3>()?;
        *bytes = rest;
        let step_ms = u32::try_from(take_varint(bytes)?).ok()?;
        let mut at = [0; READINGS_MAX];
        take_numbers(latest, at.get_mut(..usize::from(*count))?, bytes)?;
        Some(Self { at, count: *count, base: *base, after_forgotten: *after_forgotten, step_ms })
    }
}

/// Appends values as whole numbers, if a scale makes them so without a loss, else as doubles, each
/// by the bits in which it differs from the one before.
fn encode_values(values: &[f64], out: &mut Vec<u8>) {
    let mut scaled = SCALES.iter().map(|scale| whole_numbers(values, *scale)).zip(0..);
    if let Some((numbers, scale)) = scaled.find_map(|(numbers, scale)| Some((numbers?, scale))) {
        out.push(scale);
        put_numbers(0, &numbers[..values.len()], out);
        return;
    }
    out.push(NO_SCALE);
    let mut before = 0;
    for bits in values.iter().map(|value| value.to_bits()) {
        put_varint(bits ^ before, out);
        before = bits;
    }
}

/// The values as whole numbers, when all come back to the bit.
fn whole_numbers(values: &[f64], scale: f64) -> Option<[i64; READINGS_MAX]> {
    let mut numbers = [0; READINGS_MAX];
    for (number, value) in numbers.iter_mut().zip(values) {
        let scaled = (value * scale).round();
        *number = scaled as i64;
        let back = *number as f64 / scale;
        if scaled.abs() > WHOLE_MAX || back.to_bits() != value.to_bits() {
            return None;
        }
    }
    Some(numbers)
}

fn decode_values(readings: &mut [Kept], bytes: &mut &[u8]) -> Option<()> {
    let (scale, rest) = bytes.split_first()?;
    *bytes = rest;
    if *scale == NO_SCALE {
        let mut bits = 0;
        for kept in readings {
            bits ^= take_varint(bytes)?;
            kept.reading.value = f64::from_bits(bits);
        }
        return Some(());
    }
    let scale = SCALES.get(usize::from(*scale))?;
    let mut numbers = [0; READINGS_MAX];
    take_numbers(0, numbers.get_mut(..readings.len())?, bytes)?;
    for (kept, number) in readings.iter_mut().zip(numbers) {
        kept.reading.value = number as f64 / scale;
    }
    Some(())
}

/// Appends numbers, each by how much its difference to the one before is another than the
/// difference before; the first by its difference to `from`.
fn put_numbers(from: i64, numbers: &[i64], out: &mut Vec<u8>) {
    let (mut before, mut step) = (from, 0_i64);
    for (place, number) in numbers.iter().enumerate() {
        let next = number.wrapping_sub(before);
        put_varint(zigzag(next.wrapping_sub(step)), out);
        // The first one's says nothing of the others.
        step = if place == 0 { 0 } else { next };
        before = *number;
    }
}

/// Takes as many numbers as there is room for.
fn take_numbers(from: i64, numbers: &mut [i64], bytes: &mut &[u8]) -> Option<()> {
    let (mut before, mut step) = (from, 0_i64);
    for (place, number) in numbers.iter_mut().enumerate() {
        let next = unzigzag(take_varint(bytes)?).wrapping_add(step);
        *number = before.wrapping_add(next);
        step = if place == 0 { 0 } else { next };
        before = *number;
    }
    Some(())
}

fn put_difference(number: i64, from: i64, out: &mut Vec<u8>) {
    put_varint(zigzag(number.wrapping_sub(from)), out);
}

fn take_difference(from: i64, bytes: &mut &[u8]) -> Option<i64> {
    Some(from.wrapping_add(unzigzag(take_varint(bytes)?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a series is, and the values that it has beside its readings' numbers.
    #[derive(Debug, Clone, Copy)]
    struct Sort {
        kind: Kind,
        scale: f64,
        start: i64,
        /// How much later than others it is sampled.
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
            let observe = |state: &mut SeriesState, own: &Sort, (at, value): (i64, u32)| {
                let at = at + own.apart_ms;
                let observed =
                    state.observe(UnixMillis(at), f64::from(value) * own.scale, own.start, UnixMillis(0));
                // By their bits, as one that is not a number is not itself.
                format!("{observed:?}")
            };
            let (first, then) = readings.split_at(cut.min(readings.len()));
            let mut states = fresh(sorts.iter().map(|own| own.kind));
            for (state, own) in states.iter_mut().zip(&sorts) {
                for reading in first {
                    observe(state, own, *reading);
                }
                if let Some(ended) = own.ended {
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
            for ((one, other), own) in states.iter_mut().zip(&mut read).zip(&sorts) {
                for reading in then {
                    prop_assert_eq!(observe(one, own, *reading), observe(other, own, *reading));
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
}
