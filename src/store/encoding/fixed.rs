//! Values of a fixed number of bytes.
//!
//! Must never know: the values.

/// Takes the first bytes; `None` when there are fewer.
#[inline]
pub(crate) fn take_bytes<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}
