//! Pins: digests of public keys that a client accepts instead of a chain of certificates.
//!
//! Must never know: connections.

use std::{fmt, str::FromStr};

use base64::{Engine, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha256};

/// The notation of curl's `--pinnedpubkey`: the digest follows in base64.
const BASE64_PREFIX: &str = "sha256//";
/// The notation with hexadecimal digits, as `openssl dgst` prints them.
const HEX_PREFIX: &str = "sha256:";

/// The SHA-256 digest of a public key as certificates contain it (`SubjectPublicKeyInfo`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pin([u8; 32]);

/// A text that is not a pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinError;

impl Pin {
    /// Returns the pin of a DER-encoded public key.
    pub fn of_key(public_key: &[u8]) -> Self {
        Self(Sha256::digest(public_key).into())
    }

    /// Returns the digest.
    pub fn digest(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BASE64_PREFIX}{}", BASE64_STANDARD.encode(self.0))
    }
}

impl FromStr for Pin {
    type Err = PinError;

    fn from_str(text: &str) -> Result<Self, PinError> {
        let text = text.trim();
        let digest = match (text.strip_prefix(BASE64_PREFIX), text.strip_prefix(HEX_PREFIX)) {
            (Some(digest), _) => BASE64_STANDARD.decode(digest).ok(),
            (None, Some(digest)) => decode_hex(digest),
            (None, None) => None,
        };
        digest.and_then(|digest| digest.try_into().ok()).map(Self).ok_or(PinError)
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let nibbles: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let nibbles = nibbles.filter(|nibbles| nibbles.len().is_multiple_of(2))?;
    Some(nibbles.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not a pin; use sha256// and base64, or sha256: and 64 hexadecimal digits; \
             `granary cert show FILE` prints the pin of a certificate",
        )
    }
}

impl std::error::Error for PinError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_notations_name_the_same_key_and_other_texts_are_refused() {
        let pin = Pin::of_key(b"abc");
        assert_eq!(pin.to_string(), "sha256//ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
        let hex = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex.parse(), Ok(pin));
        assert_eq!(pin.to_string().parse(), Ok(pin));
        assert_eq!(format!(" {pin}\n").parse(), Ok(pin));
        for wrong in
            ["", "sha256:", "sha256//", "sha256:ba78", "sha256//ungW", "sha1//x", "sha256:zz"]
        {
            assert_eq!(wrong.parse::<Pin>(), Err(PinError), "{wrong}");
        }
    }
}
