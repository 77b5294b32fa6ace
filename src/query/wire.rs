//! Numbers and texts in the answers of shards.
//!
//! Must never know: what an answer contains.

/// Writes a number of elements.
pub(crate) fn put_count(count: usize, out: &mut Vec<u8>) {
    out.extend((count as u32).to_le_bytes());
}

/// Writes a text after its length.
pub(crate) fn put_text(text: &str, out: &mut Vec<u8>) {
    put_count(text.len(), out);
    out.extend(text.as_bytes());
}

/// Writes the bits of a floating-point number.
pub(crate) fn put_value(value: f64, out: &mut Vec<u8>) {
    out.extend(value.to_bits().to_le_bytes());
}

/// The byte before an element of a list without a count.
const ELEMENT: u8 = 1;
/// The byte after the last element.
const END: u8 = 0;

/// Writes the mark of an element of a list without a count.
pub(crate) fn put_element(out: &mut Vec<u8>) {
    out.push(ELEMENT);
}

/// Writes the mark after the last element, at the end of an answer: without it, the answer was cut.
pub(crate) fn put_end(out: &mut Vec<u8>) {
    out.push(END);
}

/// Returns true when an element follows, and false at the end of an answer.
pub(crate) fn has_element(bytes: &mut &[u8]) -> Option<bool> {
    match take(bytes)? {
        [ELEMENT] => Some(true),
        [END] if bytes.is_empty() => Some(false),
        [_] => None,
    }
}

/// Reads bytes; all readers return `None` when the bytes end before.
pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

/// Reads a number of bytes.
pub(crate) fn take_slice<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (first, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(first)
}

/// Reads a number.
pub(crate) fn number(bytes: &mut &[u8]) -> Option<i64> {
    take(bytes).map(i64::from_le_bytes)
}

/// Reads a floating-point number.
pub(crate) fn value(bytes: &mut &[u8]) -> Option<f64> {
    take(bytes).map(|bits| f64::from_bits(u64::from_le_bytes(bits)))
}

/// Reads a number of elements.
pub(crate) fn count(bytes: &mut &[u8]) -> Option<usize> {
    take(bytes).map(|count| u32::from_le_bytes(count) as usize)
}

/// Reads a text.
pub(crate) fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let length = count(bytes)?;
    std::str::from_utf8(take_slice(bytes, length)?).ok()
}
