//! A stream: packed whole numbers, most of which are close to each other or to zero; outliers are
//! patched.
//!
//! The first byte contains flags. Bit 0: numbers are zigzag-encoded; otherwise the smallest number
//! is subtracted. Bit 1: some numbers are patched. Bit 2: zeros are left out. Must never know: what
//! the numbers mean.

use super::{
    bits::{bits_of, pack, packed_bytes, unpack},
    buffers::Buffers,
    cursor::{Cursor, Misfit, put_varint, put_zigzag, unzigzag, zigzag},
};

const ZIGZAG: u8 = 1;
const PATCHED: u8 = 2;
const SPARSE: u8 = 4;

/// A way to pack numbers, and the resulting number of bits.
#[derive(Debug, Clone, Copy)]
struct Plan {
    bits: usize,
    width: u32,
    /// The bit length of the longest number.
    longest: u32,
    patches: usize,
}

impl Plan {
    /// Returns the cheapest plan for `count` numbers of at most `longest` bits; `counts` contains
    /// the number of values of each bit length.
    fn of(counts: &[u16; 65], count: usize, longest: u32) -> Self {
        let position_bits = position_width(count) as usize;
        let whole = Self { bits: count * longest as usize, width: longest, longest, patches: 0 };
        let (mut best, mut patches) = (whole, 0);
        for width in (0..longest).rev() {
            patches += usize::from(counts[width as usize + 1]);
            let bits = count * width as usize
                + patches * (position_bits + (longest - width) as usize)
                + 24;
            if bits < best.bits {
                best = Self { bits, width, longest, patches };
            }
        }
        best
    }
}

/// Returns the number of bits of an index into `count` numbers.
fn position_width(count: usize) -> u32 {
    bits_of(count.saturating_sub(1) as u64)
}

/// The number of values of each bit length, at most 65,535 each.
struct Lengths {
    counts: [u16; 65],
    /// The bitwise or of all numbers.
    any: u64,
}

impl Lengths {
    const NONE: Self = Self { counts: [0; 65], any: 0 };

    fn add(&mut self, number: u64) {
        self.counts[bits_of(number) as usize] += 1;
        self.any |= number;
    }

    fn plan(&self, count: usize) -> Plan {
        Plan::of(&self.counts, count, bits_of(self.any))
    }
}

/// The encoding of numbers before they are packed.
#[derive(Debug, Clone, Copy)]
enum Form {
    Signed(Plan),
    Based(i64, Plan),
}

impl Form {
    fn of(values: &[i64]) -> Self {
        let base = values.iter().copied().min().unwrap_or(0);
        // One loop counts both encodings: it is faster, because each addition depends on the
        // previous addition of the same encoding.
        let (mut signed, mut based) = (Lengths::NONE, Lengths::NONE);
        for value in values {
            signed.add(zigzag(*value));
            based.add(value.wrapping_sub(base) as u64);
        }
        let (signed, based) = (signed.plan(values.len()), based.plan(values.len()));
        let base_bits = bits_of(zigzag(base)).div_ceil(7).max(1) as usize * 8;
        if based.bits + base_bits < signed.bits {
            Self::Based(base, based)
        } else {
            Self::Signed(signed)
        }
    }

    fn bits(self) -> usize {
        16 + match self {
            Self::Signed(plan) => plan.bits,
            Self::Based(base, plan) => {
                plan.bits + bits_of(zigzag(base)).div_ceil(7).max(1) as usize * 8
            }
        }
    }
}

/// Numbers, and the cheapest way to write them.
#[derive(Debug)]
pub(super) struct Chosen<'a> {
    values: &'a [i64],
    form: Form,
    /// The numbers other than zero and their encoding, when zeros are left out.
    others: Option<(Vec<i64>, Form)>,
}

/// Chooses the cheapest way to write numbers.
pub(super) fn choose(values: &[i64]) -> Chosen<'_> {
    let form = Form::of(values);
    let zeros = values.iter().filter(|value| **value == 0).count();
    let mut others = None;
    if zeros > values.len() / 8 && zeros < values.len() && form.bits() > values.len() {
        let rest: Vec<i64> = values.iter().copied().filter(|value| *value != 0).collect();
        let rest_form = Form::of(&rest);
        if rest_form.bits() + values.len() + 8 < form.bits() {
            others = Some((rest, rest_form));
        }
    }
    Chosen { values, form, others }
}

impl Chosen<'_> {
    /// Returns whether all numbers are zero.
    pub(super) fn is_zero(&self) -> bool {
        self.values.iter().all(|value| *value == 0)
    }

    /// Returns the approximate bits of the stream.
    pub(super) fn bits(&self) -> usize {
        match &self.others {
            Some((_, rest_form)) => rest_form.bits() + self.values.len() + 8,
            None => self.form.bits(),
        }
    }

    /// Appends the stream.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match &self.others {
            Some((rest, rest_form)) => {
                out.push(SPARSE);
                pack(self.values.iter().map(|value| u64::from(*value != 0)), 1, out);
                write(rest, *rest_form, out);
            }
            None => write(self.values, self.form, out),
        }
    }
}

fn write(values: &[i64], form: Form, out: &mut Vec<u8>) {
    match form {
        Form::Signed(plan) => {
            out.push(ZIGZAG | patched(plan));
            out.push(plan.width as u8);
            write_packed(values.iter().map(|value| zigzag(*value)), values.len(), plan, out);
        }
        Form::Based(base, plan) => {
            out.push(patched(plan));
            out.push(plan.width as u8);
            put_zigzag(base, out);
            let numbers = values.iter().map(|value| value.wrapping_sub(base) as u64);
            write_packed(numbers, values.len(), plan, out);
        }
    }
}

fn patched(plan: Plan) -> u8 {
    if plan.patches > 0 { PATCHED } else { 0 }
}

fn write_packed(
    numbers: impl Iterator<Item = u64> + Clone,
    count: usize,
    plan: Plan,
    out: &mut Vec<u8>,
) {
    let Plan { width, longest, patches, .. } = plan;
    if patches > 0 {
        put_varint(patches as u64, out);
        out.push((longest - width) as u8);
    }
    pack(numbers.clone(), width, out);
    if patches > 0 {
        let far = numbers.enumerate().filter(|(_, number)| bits_of(*number) > width);
        pack(far.clone().map(|(position, _)| position as u64), position_width(count), out);
        pack(far.map(|(_, number)| number >> width), longest - width, out);
    }
}

/// The parameters of a stream without omitted zeros.
struct Shape {
    mode: u8,
    width: u32,
    base: i64,
    patches: usize,
    high: u32,
}

impl Shape {
    fn read(from: &mut Cursor<'_>, mode: u8, count: usize) -> Result<Self, Misfit> {
        let width = u32::from(from.byte()?);
        let base = if mode & ZIGZAG == 0 { from.zigzag()? } else { 0 };
        let (mut patches, mut high) = (0, 0);
        if mode & PATCHED != 0 {
            patches = usize::try_from(from.varint()?).unwrap_or(usize::MAX);
            high = u32::from(from.byte()?);
        }
        if mode > (ZIGZAG | PATCHED) || width + high > u64::BITS || patches > count {
            return Err(from.misfit());
        }
        Ok(Self { mode, width, base, patches, high })
    }
}

/// Reads a stream of `count` numbers, and replaces the content of `out` with the first `limit`
/// numbers.
pub(super) fn read(
    from: &mut Cursor<'_>,
    count: usize,
    limit: usize,
    buffers: &mut Buffers,
    out: &mut Vec<i64>,
) -> Result<(), Misfit> {
    let mode = from.byte()?;
    if mode != SPARSE {
        return read_dense(from, mode, count, limit, buffers, out);
    }
    let bytes = packed_bytes(count, 1);
    let bitmap = &from.take(bytes)?[..bytes];
    let filled = ones(bitmap, count);
    let mode = from.byte()?;
    let mut rest = buffers.whole.take();
    read_dense(from, mode, filled, filled, buffers, &mut rest)?;
    // No writer sets bits after the last number. In a damaged stream, such bits stand for zeros.
    rest.resize(count + 1, 0);
    let mut next = 0;
    out.clear();
    for byte in bitmap {
        for bit in 0..8 {
            let is_set = byte >> bit & 1;
            out.push(rest[next.min(count)] * i64::from(is_set));
            next += usize::from(is_set);
        }
    }
    out.truncate(count.min(limit));
    buffers.whole.give([rest]);
    Ok(())
}

/// Returns the number of set bits, at most `count`.
fn ones(bitmap: &[u8], count: usize) -> usize {
    let ones: u32 = bitmap.iter().map(|byte| byte.count_ones()).sum();
    count.min(ones as usize)
}

fn read_dense(
    from: &mut Cursor<'_>,
    mode: u8,
    count: usize,
    limit: usize,
    buffers: &mut Buffers,
    out: &mut Vec<i64>,
) -> Result<(), Misfit> {
    let Shape { mode, width, base, patches, high } = Shape::read(from, mode, count)?;
    let Buffers { numbers, positions, highs, .. } = buffers;
    unpack(from.take(packed_bytes(count, width))?, count.min(limit), width, numbers);
    if patches > 0 {
        let position_bits = position_width(count);
        unpack(from.take(packed_bytes(patches, position_bits))?, patches, position_bits, positions);
        unpack(from.take(packed_bytes(patches, high))?, patches, high, highs);
        for (position, high) in positions.iter().zip(&*highs) {
            match numbers.get_mut(*position as usize) {
                Some(number) => *number |= high.checked_shl(width).unwrap_or(0),
                None if (*position as usize) < count => {}
                None => return Err(from.misfit()),
            }
        }
    }
    out.clear();
    if mode & ZIGZAG == 0 {
        out.extend(numbers.iter().map(|number| base.wrapping_add(*number as i64)));
    } else {
        out.extend(numbers.iter().map(|number| unzigzag(*number)));
    }
    Ok(())
}

/// Skips a stream.
pub(super) fn skip(from: &mut Cursor<'_>, count: usize) -> Result<(), Misfit> {
    let mut mode = from.byte()?;
    let mut count = count;
    if mode == SPARSE {
        let bytes = packed_bytes(count, 1);
        let bitmap = &from.take(bytes)?[..bytes];
        count = ones(bitmap, count);
        mode = from.byte()?;
    }
    let Shape { width, patches, high, .. } = Shape::read(from, mode, count)?;
    from.take(packed_bytes(count, width))?;
    if patches > 0 {
        from.take(packed_bytes(patches, position_width(count)))?;
        from.take(packed_bytes(patches, high))?;
    }
    Ok(())
}
