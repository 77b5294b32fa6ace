//! An encoder of Protocol Buffers, for tests that act as a sender.

/// Appends a field of bytes, text or a message.
pub(crate) fn bytes(field: u32, value: &[u8], out: &mut Vec<u8>) {
    varint(u64::from(field << 3 | 2), out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// Appends a whole number.
pub(crate) fn int(field: u32, value: i64, out: &mut Vec<u8>) {
    varint(u64::from(field << 3), out);
    varint(value as u64, out);
}

/// Appends a double.
pub(crate) fn double(field: u32, value: f64, out: &mut Vec<u8>) {
    varint(u64::from(field << 3 | 1), out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a number without a field.
pub(crate) fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Returns the bytes of a message that a closure builds.
pub(crate) fn message(build: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    build(&mut out);
    out
}
