//! Rows of states as versions 1 to 6 had them, which stay until their series change; FORMAT.md
//! describes them. Must never know where rows are kept.

use crate::{
    model::{
        Kind, Reading, SeriesState, UnixMillis,
        counter::{Kept, READINGS_MAX, Remembered},
    },
    store::encoding::varint::take_varint,
};

/// The sender said that the series has ended.
const ENDED: u8 = 0x80;
/// Not as format versions 1 and 2 had it.
const RECENT: u8 = 0x40;
/// Bytes of one reading of versions 1 and 2.
const OLD_READING_BYTES: usize = 24;
/// Stretches of readings that versions 1 and 2 kept.
const OLD_STRETCHES_MAX: usize = 3;

/// Puts the states of a row back, the first ones of some; `None` when it is damaged, or when there
/// are more of them.
pub(super) fn decode(mut bytes: &[u8], states: &mut [SeriesState]) -> Option<()> {
    for state in states {
        if bytes.is_empty() {
            break;
        }
        *state = decode_state(&mut bytes)?;
    }
    bytes.is_empty().then_some(())
}

/// Takes a state from the front; `None` when it is damaged.
fn decode_state(bytes: &mut &[u8]) -> Option<SeriesState> {
    let [code] = take::<1>(bytes)?;
    let kind = Kind::from_code(code & !(ENDED | RECENT))?;
    let last_at = UnixMillis(int(bytes)?);
    let ended_at = match (code & ENDED != 0, code & RECENT != 0) {
        (true, true) => Some(UnixMillis(int(bytes)?)),
        (true, false) => Some(last_at),
        (false, _) => None,
    };
    let counter = match (kind, code & RECENT != 0) {
        (Kind::Gauge | Kind::Delta, _) => None,
        (Kind::Counter, true) => counter(bytes)?,
        (Kind::Counter, false) => old_counter(bytes)?,
    };
    Some(SeriesState::restore(kind, last_at, ended_at, counter))
}

/// `Some(None)`: there is no reading yet.
#[expect(clippy::option_option, reason = "the outer one says whether the bytes are whole")]
fn counter(bytes: &mut &[u8]) -> Option<Option<Remembered>> {
    let [count] = take::<1>(bytes)?;
    if count == 0 {
        return Some(None);
    }
    let [base, after_forgotten] = take::<2>(bytes)?;
    let step_ms = u32::from_le_bytes(take(bytes)?);
    let mut readings = Vec::with_capacity(READINGS_MAX);
    let mut before = 0;
    for index in 0..usize::from(count).min(READINGS_MAX + 1) {
        let at = if index == 0 {
            int(bytes)?
        } else {
            (take_varint(bytes)? as i64).wrapping_add(before)
        };
        let value = f64::from_le_bytes(take(bytes)?);
        let reading = Reading { at, value, age: take_varint(bytes)? as i64 };
        let after_forgotten = after_forgotten.checked_shr(index as u32).unwrap_or(0) & 1 == 1;
        readings.push(Kept { reading, after_forgotten });
        before = at;
    }
    Remembered::restore(&readings, step_ms, base).map(Some)
}

/// As versions 1 and 2 had it: the first and the last reading of each stretch without a gap.
#[expect(clippy::option_option, reason = "the outer one says whether the bytes are whole")]
fn old_counter(bytes: &mut &[u8]) -> Option<Option<Remembered>> {
    let step_ms = u32::from_le_bytes(take(bytes)?);
    let [count] = take::<1>(bytes)?;
    let count = usize::from(count);
    if count == 0 {
        return Some(None);
    }
    let (stretches, rest) = bytes.split_at_checked(count * 2 * OLD_READING_BYTES)?;
    *bytes = rest;
    let mut readings: Vec<Kept> = Vec::with_capacity(READINGS_MAX);
    for (index, mut reading) in stretches.chunks_exact(OLD_READING_BYTES).enumerate() {
        let (at, value, start) = (int(&mut reading)?, take(&mut reading)?, int(&mut reading)?);
        let reading = Reading::new(at, f64::from_le_bytes(value), start);
        // A stretch of one reading has it twice.
        if index % 2 == 1 && readings.last().is_some_and(|kept| kept.reading.at == at) {
            continue;
        }
        readings.push(Kept { reading, after_forgotten: index % 2 == 1 });
    }
    let step_ms = if step_ms == 0 { u32::MAX } else { step_ms };
    let restored = Remembered::restore(&readings, step_ms, 0)?;
    (count <= OLD_STRETCHES_MAX).then_some(Some(restored))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

fn int(bytes: &mut &[u8]) -> Option<i64> {
    take(bytes).map(i64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::encoding::varint::put_varint;

    /// Appends a state as versions 3 to 6 did.
    fn encode(state: &SeriesState, out: &mut Vec<u8>) {
        let ended_at = state.ended_at();
        out.push(state.kind.code() | RECENT | if ended_at.is_some() { ENDED } else { 0 });
        out.extend_from_slice(&state.last_at.0.to_le_bytes());
        if let Some(ended_at) = ended_at {
            out.extend_from_slice(&ended_at.0.to_le_bytes());
        }
        if state.kind != Kind::Counter {
            return;
        }
        let Some(counter) = state.counter() else {
            out.push(0);
            return;
        };
        let header = out.len();
        out.extend_from_slice(&[0, counter.base(), 0]);
        out.extend_from_slice(&counter.step_ms().to_le_bytes());
        let mut before = 0;
        for (index, kept) in counter.in_order().enumerate() {
            out[header] += 1;
            out[header + 2] |= u8::from(kept.after_forgotten) << index;
            let Reading { at, value, age } = kept.reading;
            if index == 0 {
                out.extend_from_slice(&at.to_le_bytes());
            } else {
                put_varint(at.wrapping_sub(before) as u64, out);
            }
            out.extend_from_slice(&value.to_le_bytes());
            put_varint(age as u64, out);
            before = at;
        }
    }

    proptest! {
        #[test]
        fn states_of_version_6_are_read_as_they_were(
            readings in prop::collection::vec((0..90_000_i64, 0..50_u32, 0..9000_i64), 0..40),
            kind in prop::sample::select(Kind::ALL.to_vec()),
            ended: Option<u16>,
        ) {
            let mut states = [SeriesState::new(kind), SeriesState::new(Kind::Gauge)];
            for (at, value, age) in &readings {
                states[0].observe(UnixMillis(*at), f64::from(*value), at - age, UnixMillis(0));
            }
            if let Some(ended) = ended {
                states[0].end(UnixMillis(i64::from(ended)));
            }
            let mut bytes = Vec::new();
            for state in &states {
                encode(state, &mut bytes);
            }
            let mut read = [0, 1, 2].map(|_| SeriesState::new(Kind::Delta));
            prop_assert_eq!(decode(&bytes, &mut read), Some(()));
            prop_assert_eq!(read[0].ended_at(), states[0].ended_at());
            prop_assert_eq!(read[0].counter(), states[0].counter());
            prop_assert_eq!((read[0].kind, read[0].last_at), (kind, states[0].last_at));
            prop_assert_eq!((read[1].kind, read[2].kind), (Kind::Gauge, Kind::Delta));
            prop_assert_eq!(decode(&bytes[..bytes.len() - 1], &mut read), None);
            prop_assert_eq!(decode(&bytes, &mut read[..1]), None);
        }
    }

    #[test]
    fn stretches_of_version_2_are_read() {
        let mut bytes = vec![Kind::Counter.code() | ENDED];
        bytes.extend_from_slice(&90_000_i64.to_le_bytes());
        bytes.extend_from_slice(&15_000_u32.to_le_bytes());
        bytes.push(2);
        for (at, value) in [(15_000_i64, 1.0_f64), (45_000, 5.0), (90_000, 9.0), (90_000, 9.0)] {
            bytes.extend_from_slice(&at.to_le_bytes());
            bytes.extend_from_slice(&value.to_le_bytes());
            bytes.extend_from_slice(&7_i64.to_le_bytes());
        }
        let mut state = decode_state(&mut &*bytes).unwrap();
        assert_eq!(state.ended_at(), Some(UnixMillis(90_000)));
        let late = state.observe(UnixMillis(60_000), 6.0, 7, UnixMillis(0));
        assert_eq!((late.cell.sum, late.correction.map(|it| it.increase)), (1.0, Some(-1.0)));
        let hidden = state.observe(UnixMillis(30_000), 3.0, 7, UnixMillis(0));
        assert_eq!((hidden.cell.sum, hidden.correction), (0.0, None));
        assert_eq!(decode_state(&mut &bytes[..bytes.len() - 1]), None);
        // Four stretches never were.
        bytes[13] = 4;
        bytes.extend_from_slice(&[0; 4 * OLD_READING_BYTES]);
        assert_eq!(decode_state(&mut &*bytes), None);
    }
}
