//! Decoding of the values of a cell. Must never know: how the writer chooses an encoding.

use super::{
    DELTA_MAX, FIRST, Known, LAST, MAX, MIN, NOT_OFF, OF_SUM, SUM, SUM_BARE, SUM_DELTA_MAX, Shape,
    length, likely_increase,
};
use crate::{
    model::Cell,
    store::{
        encoding::{
            number::{Scale, ordered, unordered},
            varint::unzigzag,
        },
        head::elapsed::Elapsed,
    },
};

/// Reads the values of a cell, whose times are known; `None` when bytes are missing.
pub(in crate::head) fn decode(
    shape: Shape,
    bytes: &[u8],
    elapsed: &[u32],
    cell: &mut Cell,
) -> Option<()> {
    let scale = shape.scale();
    let mut rest = bytes;
    let mut values = Reader { scale, shape, rest: &mut rest };
    let (first_value, first) = values.value(FIRST, 0)?;
    if cell.n == 1 && shape.is_single() {
        let value = scale.double(first);
        cell.first = first_value;
        (cell.last, cell.min, cell.max, cell.sum) = (value, value, value, value);
        return Some(());
    }
    let (last_value, last) = values.value(LAST, first)?;
    (cell.first, cell.last) = (first_value, last_value);
    let known = Known { n: cell.n, scale, first, last, first_value, last_value };
    if shape.has_rates() {
        cell.sum = values.sum(&known, |number, off| known.increase(number, off))?;
        cell.min = match shape.code(MIN) {
            0 => Elapsed::rate(cell.sum, elapsed, 0),
            code => values.rate(code, cell, &known, elapsed)?,
        };
        cell.max = match shape.code(MAX) {
            0 => cell.min,
            code => values.rate(code, cell, &known, elapsed)?,
        };
    } else {
        cell.min = values.value(MIN, first.min(last))?.0;
        cell.max = values.value(MAX, first.max(last))?.0;
        let off = |number, off| unordered(ordered(scale.double(number)).wrapping_add(off));
        cell.sum = values.sum(&known, off)?;
    }
    Some(())
}

struct Reader<'r, 'a> {
    scale: Scale,
    shape: Shape,
    rest: &'r mut &'a [u8],
}

impl Reader<'_, '_> {
    /// Removes a number of at most eight bytes from the front.
    fn take(&mut self, bytes: usize) -> Option<u64> {
        let number = match self.rest.first_chunk::<8>() {
            // Reading a constant length and masking it is faster than a copy of variable length.
            Some(eight) if bytes < 8 => u64::from_le_bytes(*eight) & ((1 << (8 * bytes)) - 1),
            _ => {
                let mut number = [0; 8];
                number.get_mut(..bytes)?.copy_from_slice(self.rest.get(..bytes)?);
                u64::from_le_bytes(number)
            }
        };
        *self.rest = self.rest.get(bytes..)?;
        Some(number)
    }

    fn bare(&mut self, bytes: usize) -> Option<f64> {
        Some(f64::from_bits(self.take(bytes)?.swap_bytes()))
    }

    fn value(&mut self, position: u32, likely: i64) -> Option<(f64, i64)> {
        let code = self.shape.code(position);
        let bytes = length(position, code);
        if code > DELTA_MAX {
            let value = self.bare(bytes)?;
            return Some((value, self.scale.number(value)));
        }
        let number = likely.wrapping_add(unzigzag(self.take(bytes)?));
        Some((self.scale.double(number), number))
    }

    fn sum(&mut self, known: &Known, apply: impl Fn(i64, i64) -> f64) -> Option<f64> {
        let code = self.shape.code(SUM);
        let likely = known.likely_sum(self.shape.has_rates());
        if let Some((_, bytes)) = SUM_BARE.iter().find(|(known, _)| *known == code) {
            return self.bare(*bytes);
        }
        let is_off = code > SUM_DELTA_MAX;
        let bytes = if is_off { code - SUM_DELTA_MAX - 1 } else { code };
        let number = likely.wrapping_add(unzigzag(self.take(bytes as usize)?));
        let off = if is_off { i64::from(self.take(1)? as u8 as i8) } else { 0 };
        Some(apply(number, off))
    }

    fn rate(&mut self, code: u32, cell: &Cell, known: &Known, elapsed: &[u32]) -> Option<f64> {
        if code > DELTA_MAX {
            return self.bare((code - 7) as usize);
        }
        let byte = self.take(1)? as u8;
        let index = usize::from(byte & 0xf);
        if byte >> 4 == OF_SUM {
            return Some(Elapsed::rate(cell.sum, elapsed, index));
        }
        let delta = unzigzag(self.take((code - 1) as usize)?);
        let number = likely_increase(cell, known).wrapping_add(delta);
        let increase = known.increase(number, i64::from(byte >> 4) - NOT_OFF);
        Some(Elapsed::rate(increase, elapsed, index))
    }
}
