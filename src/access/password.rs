//! Passwords as they are stored: argon2id with the parameters of OWASP's recommendation.

use std::{fmt, io};

use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::token::Digest;

/// The memory of a hash in KiB, as OWASP's cheat sheet on the storage of passwords recommends.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// The largest parameters that are read from a file, so that a changed file cannot use all memory.
const MEMORY_KIB_MAX: u32 = 256 * 1024;
const PASSES_MAX: u32 = 16;

/// The hash of a password, with its parameters.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Password {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: Digest,
    argon2id: Digest,
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

impl Password {
    /// Hashes a password with a random salt. The hash takes 19 MiB and tens of milliseconds.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(text: &str) -> io::Result<Self> {
        let mut password = Self::unknown()?;
        password.argon2id = password.hash(text).ok_or(io::ErrorKind::InvalidData)?;
        Ok(password)
    }

    /// Returns a hash that no known password has. The check of a password against it always fails,
    /// and takes as long as any other check.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn unknown() -> io::Result<Self> {
        Ok(Self {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
            salt: Digest::random()?,
            argon2id: Digest::random()?,
        })
    }

    /// Returns true for the text that was hashed. The check takes as long as [`Password::new`].
    pub fn is(&self, text: &str) -> bool {
        let hash = self.hash(text);
        hash.is_some_and(|hash| hash.as_bytes().ct_eq(self.argon2id.as_bytes()).into())
    }

    /// Returns the hash of a text with these parameters; `None` when they are invalid.
    fn hash(&self, text: &str) -> Option<Digest> {
        if self.memory_kib > MEMORY_KIB_MAX || self.passes > PASSES_MAX || self.lanes > PASSES_MAX {
            return None;
        }
        let mut out = [0; 32];
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(out.len())).ok()?;
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(text.as_bytes(), self.salt.as_bytes(), &mut out)
            .ok()?;
        Some(Digest::of_bytes(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hashed_text_is_the_password_and_equal_ones_have_other_hashes() {
        let password = Password::new("correct horse battery").unwrap();
        let json = serde_json::to_string(&password).unwrap();
        let read: Password = serde_json::from_str(&json).unwrap();
        assert!(read.is("correct horse battery"));
        assert!(!read.is("correct horse batterx") && !read.is(""));
        let other = Password::new("correct horse battery").unwrap();
        assert_ne!(other.argon2id, password.argon2id);
        assert!(!Password::unknown().unwrap().is("correct horse battery"));
        assert_eq!(format!("{password:?}"), "Password(..)");
        assert!(json.contains("\"memory_kib\":19456,\"passes\":2,\"lanes\":1"), "{json}");
    }

    #[test]
    fn parameters_of_a_changed_file_are_bounded() {
        let mut password = Password::unknown().unwrap();
        for (memory_kib, passes, lanes) in [(u32::MAX, 2, 1), (0, 2, 1), (19_456, 0, 1), (8, 2, 99)]
        {
            (password.memory_kib, password.passes, password.lanes) = (memory_kib, passes, lanes);
            assert!(!password.is("x"));
        }
    }
}
