//! Fields of variable length in the sections of a record.
//!
//! FORMAT.md describes the bytes. Must never know: the meaning of a field.

use crate::store::encoding::fixed::take_bytes;

/// Appends bytes with their length.
pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Returns the next number.
pub(super) fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    take_bytes(rest).map(u32::from_le_bytes)
}

/// Returns the next bytes, which follow their length.
pub(super) fn take_section<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_u32(rest)? as usize;
    let (section, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(section)
}

/// Returns the next text, which follows its length.
pub(super) fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    str::from_utf8(take_section(rest)?).ok()
}
