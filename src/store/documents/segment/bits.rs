//! Bit packing of whole numbers of one width: number i begins at bit i x width, lowest bit first.
//!
//! Each width has its own unpacking kernel, which unpacks eight numbers at a time, so that every
//! shift is known at compile time. Must never know: what the numbers mean.

/// The number of bytes that must follow packed numbers, because kernels read ahead.
pub(crate) const PADDING: usize = 80;
/// Number of values that a kernel unpacks at once.
const LANES: usize = 8;

/// Returns the size of packed numbers in bytes.
pub(super) fn packed_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Returns the number of bits of a value without leading zeros.
pub(super) fn bits_of(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Appends the lowest `width` bits of each number.
pub(super) fn pack(values: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let mask = u64::MAX >> (u64::BITS - width);
    let (mut word, mut filled) = (0_u64, 0_u32);
    for value in values {
        let value = value & mask;
        word |= value << filled;
        filled += width;
        if filled >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= u64::BITS;
            word = if filled == 0 { 0 } else { value >> (width - filled) };
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Replaces the content of `out` with the unpacked numbers. `bytes` must continue for [`PADDING`]
/// bytes after the packed numbers.
pub(super) fn unpack(bytes: &[u8], count: usize, width: u32, out: &mut Vec<u64>) {
    out.clear();
    out.resize(count.next_multiple_of(LANES), 0);
    if let Some(kernel) = KERNELS.get(width as usize) {
        kernel(bytes, out);
    }
    out.truncate(count);
}

fn kernel<const WIDTH: usize>(bytes: &[u8], out: &mut [u64]) {
    if WIDTH == 0 {
        return;
    }
    let mask = u64::MAX >> (64 - WIDTH);
    for (index, eight) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let Some(window) = bytes.get(index * WIDTH..index * WIDTH + WIDTH + 8) else { return };
        for (lane, value) in eight.iter_mut().enumerate() {
            let (byte, shift) = (lane * WIDTH / 8, lane * WIDTH % 8);
            let mut low = [0; 8];
            low.copy_from_slice(&window[byte..byte + 8]);
            *value = u64::from_le_bytes(low) >> shift;
            if shift + WIDTH > 64 {
                *value |= u64::from(window[byte + 8]) << (64 - shift);
            }
            *value &= mask;
        }
    }
}

type Kernel = fn(&[u8], &mut [u64]);

#[rustfmt::skip]
const KERNELS: [Kernel; 65] = [
    kernel::<0>, kernel::<1>, kernel::<2>, kernel::<3>, kernel::<4>, kernel::<5>, kernel::<6>,
    kernel::<7>, kernel::<8>, kernel::<9>, kernel::<10>, kernel::<11>, kernel::<12>, kernel::<13>,
    kernel::<14>, kernel::<15>, kernel::<16>, kernel::<17>, kernel::<18>, kernel::<19>,
    kernel::<20>, kernel::<21>, kernel::<22>, kernel::<23>, kernel::<24>, kernel::<25>,
    kernel::<26>, kernel::<27>, kernel::<28>, kernel::<29>, kernel::<30>, kernel::<31>,
    kernel::<32>, kernel::<33>, kernel::<34>, kernel::<35>, kernel::<36>, kernel::<37>,
    kernel::<38>, kernel::<39>, kernel::<40>, kernel::<41>, kernel::<42>, kernel::<43>,
    kernel::<44>, kernel::<45>, kernel::<46>, kernel::<47>, kernel::<48>, kernel::<49>,
    kernel::<50>, kernel::<51>, kernel::<52>, kernel::<53>, kernel::<54>, kernel::<55>,
    kernel::<56>, kernel::<57>, kernel::<58>, kernel::<59>, kernel::<60>, kernel::<61>,
    kernel::<62>, kernel::<63>, kernel::<64>,
];
