//! The wire format of Protocol Buffers (protobuf.dev, "Encoding"), parsed in place.

/// A fault in a message, with its byte position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("byte {position}: {problem}")]
pub struct WireFault {
    position: usize,
    problem: &'static str,
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2: bytes, text, a message or packed numbers.
    Bytes(&'a [u8]),
    /// Wire type 5.
    Fixed32(u32),
}

impl<'a> Value<'a> {
    /// Returns the bytes, or an empty slice for another wire type.
    pub fn bytes(self) -> &'a [u8] {
        if let Self::Bytes(bytes) = self { bytes } else { &[] }
    }

    /// Returns a double, or 0 for another wire type.
    pub fn double(self) -> f64 {
        if let Self::Fixed64(bits) = self { f64::from_bits(bits) } else { 0.0 }
    }

    /// Returns an integer, or 0 for another wire type.
    pub fn int(self) -> i64 {
        if let Self::Varint(number) = self { number as i64 } else { 0 }
    }
}

/// An iterator over the fields of a message.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    message: &'a [u8],
    position: usize,
}

impl<'a> Fields<'a> {
    /// Creates an iterator that starts at the first field.
    pub fn of(message: &'a [u8]) -> Self {
        Self { message, position: 0 }
    }

    /// Returns the position of the next field.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the number and value of the next field, or `None` at the end.
    ///
    /// # Errors
    /// The message is truncated or uses an unknown wire type.
    #[inline]
    pub fn next_field(&mut self) -> Result<Option<(u32, Value<'a>)>, WireFault> {
        if self.position >= self.message.len() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => Value::Bytes(self.bytes()?),
            5 => Value::Fixed32(u32::from_le_bytes(self.fixed()?)),
            _ => return Err(self.fault("a wire type that does not exist")),
        };
        Ok(Some(((tag >> 3) as u32, value)))
    }

    #[inline]
    fn bytes(&mut self) -> Result<&'a [u8], WireFault> {
        let length = self.varint()? as usize;
        let end = self.position.checked_add(length).filter(|end| *end <= self.message.len());
        let end = end.ok_or_else(|| self.fault("a field is longer than its message"))?;
        let bytes = &self.message[self.position..end];
        self.position = end;
        Ok(bytes)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, WireFault> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.message.get(self.position).copied();
            let byte = byte.ok_or_else(|| self.fault("the message ends within a number"))?;
            self.position += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.fault("a number of more than ten bytes"))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], WireFault> {
        let bytes = self.message[self.position..].first_chunk::<N>().copied();
        let bytes = bytes.ok_or_else(|| self.fault("the message ends within a number"))?;
        self.position += N;
        Ok(bytes)
    }

    fn fault(&self, problem: &'static str) -> WireFault {
        WireFault { position: self.position, problem }
    }
}

/// Calls `visit` with each number of a packed field of varints.
///
/// # Errors
/// The field is truncated.
pub fn packed_varints(bytes: &[u8], mut visit: impl FnMut(u64)) -> Result<(), WireFault> {
    let mut fields = Fields::of(bytes);
    while fields.position < bytes.len() {
        visit(fields.varint()?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_parsed_and_invalid_messages_are_faults() {
        // The fields are 1: varint 300, 2: "hi", 3: double 1.5, 4: fixed32 7.
        let mut message = vec![0x08, 0xac, 0x02, 0x12, 2, b'h', b'i', 0x19];
        message.extend(1.5_f64.to_le_bytes());
        message.extend([0x25, 7, 0, 0, 0]);
        let mut fields = Fields::of(&message);
        let mut next = || fields.next_field().unwrap();
        assert_eq!(next(), Some((1, Value::Varint(300))));
        assert_eq!(next(), Some((2, Value::Bytes(b"hi"))));
        assert_eq!(next().map(|(_, value)| value.double()), Some(1.5));
        assert_eq!(next(), Some((4, Value::Fixed32(7))));
        assert_eq!(next(), None);
        for end in 1..message.len() {
            let mut fields = Fields::of(&message[..end]);
            while let Ok(Some(_)) = fields.next_field() {}
        }
        assert!(Fields::of(&[0x12, 0xff, 0xff, 0xff, 0xff, 0x0f]).next_field().is_err());
        assert!(Fields::of(&[0x0b]).next_field().is_err());
        assert!(Fields::of(&[0xff; 12]).next_field().is_err());
    }
}
