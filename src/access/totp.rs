//! The second factor of a login: codes that an authenticator app computes from a shared secret and
//! the time (RFC 6238, with SHA-1, 30 seconds and 6 digits, which all apps support).

use std::{fmt, io};

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha1::Sha1;
use subtle::ConstantTimeEq;

use crate::model::UnixMillis;

const SECRET_BYTES: usize = 20;
const STEP_MS: i64 = 30_000;
const DIGITS: usize = 6;
/// The number of steps by which the clock of a user's device may differ.
const STEPS_APART_MAX: u64 = 1;
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The second factor of a user. Logins require it as soon as a first code confirmed it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFactor {
    secret: [u8; SECRET_BYTES],
    /// The step of the last accepted code; this code and earlier ones are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_step: Option<u64>,
}

impl fmt::Debug for SecondFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecondFactor").field("last_step", &self.last_step).finish_non_exhaustive()
    }
}

impl SecondFactor {
    /// Creates an unconfirmed factor with a random secret.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> io::Result<Self> {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        Ok(Self { secret, last_step: None })
    }

    /// Returns true after a first code was accepted.
    pub fn is_confirmed(&self) -> bool {
        self.last_step.is_some()
    }

    /// Returns the secret in base32, as people type it into an app.
    pub fn secret_text(&self) -> String {
        let bit =
            |at: usize| self.secret.get(at / 8).is_some_and(|byte| (byte >> (7 - at % 8)) & 1 == 1);
        let digit = |first: usize| {
            (first..first + 5).fold(0, |digit, at| (digit << 1) | usize::from(bit(at)))
        };
        let digits = (0..SECRET_BYTES * 8).step_by(5).map(digit);
        digits.filter_map(|digit| ALPHABET.get(digit)).map(|byte| char::from(*byte)).collect()
    }

    /// Returns the address that an app reads from a QR code.
    pub fn uri(&self, user: &str) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let quoted = |byte: u8| match byte {
            byte if plain(byte) => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        };
        let user: String = user.bytes().map(quoted).collect();
        format!("otpauth://totp/Granary:{user}?secret={}&issuer=Granary", self.secret_text())
    }

    /// Accepts a code of this time, the step before it or the step after it. Each code is accepted
    /// once, and earlier codes are refused afterwards.
    pub fn accept(&mut self, code: &str, now: UnixMillis) -> bool {
        let step = u64::try_from(now.0 / STEP_MS).unwrap_or(0);
        let steps = step.saturating_sub(STEPS_APART_MAX)..=step + STEPS_APART_MAX;
        let code: String = code.chars().filter(|c| *c != ' ').collect();
        let is_new = |step: &u64| self.last_step.is_none_or(|last| *step > last);
        // All steps are compared, so that the duration does not reveal which one matches.
        let fits = |step: &u64| bool::from(self.code(*step).as_bytes().ct_eq(code.as_bytes()));
        let found = steps.filter(fits).filter(is_new).max();
        self.last_step = found.or(self.last_step);
        found.is_some()
    }

    /// Returns the code of a time, as an app shows it.
    pub fn code_at(&self, now: UnixMillis) -> String {
        self.code(u64::try_from(now.0 / STEP_MS).unwrap_or(0))
    }

    fn code(&self, step: u64) -> String {
        let number = truncated_hmac(&self.secret, step) % 10_u32.pow(DIGITS as u32);
        format!("{number:0DIGITS$}")
    }
}

/// Returns the number that RFC 4226, section 5.3, defines; a code is its last digits.
fn truncated_hmac(secret: &[u8], counter: u64) -> u32 {
    // Any length of a key is valid for HMAC.
    let Ok(mac) = Hmac::<Sha1>::new_from_slice(secret) else { return 0 };
    let sum = mac.chain_update(counter.to_be_bytes()).finalize().into_bytes();
    let start = usize::from(sum.last().copied().unwrap_or_default() & 15);
    let word = sum.get(start..start + 4).and_then(|bytes| bytes.try_into().ok());
    u32::from_be_bytes(word.unwrap_or_default()) & 0x7fff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8; SECRET_BYTES] = b"12345678901234567890";

    fn factor() -> SecondFactor {
        SecondFactor { secret: *SECRET, last_step: None }
    }

    /// The vectors of RFC 6238, appendix B, for SHA-1.
    #[test]
    fn codes_are_those_of_the_standard() {
        for (seconds, code) in [
            (59, 94_287_082),
            (1_111_111_109, 7_081_804),
            (1_111_111_111, 14_050_471),
            (1_234_567_890, 89_005_924),
            (2_000_000_000, 69_279_037),
            (20_000_000_000, 65_353_130),
        ] {
            assert_eq!(truncated_hmac(SECRET, seconds / 30) % 100_000_000, code, "{seconds}");
        }
        assert_eq!(factor().code(59 / 30), "287082");
        assert_eq!(factor().code(1_111_111_109 / 30), "081804");
        // The base32 of the vectors' secret.
        assert_eq!(factor().secret_text(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let uri = "otpauth://totp/Granary:ann%40x.org?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\
                   &issuer=Granary";
        assert_eq!(factor().uri("ann@x.org"), uri);
    }

    #[test]
    fn a_code_is_accepted_once_and_within_a_step() {
        let now = UnixMillis(1_111_111_109_000);
        for (shift, is_accepted) in
            [(-60_000, false), (-30_000, true), (0, true), (30_000, true), (60_000, false)]
        {
            assert_eq!(factor().accept("081 804", now.plus(shift)), is_accepted, "{shift}");
        }
        let mut used = factor();
        assert!(!used.accept("", now) && !used.accept("08180", now) && !used.is_confirmed());
        assert!(used.accept("081804", now) && used.is_confirmed());
        assert!(!used.accept("081804", now) && !used.accept("081804", now.plus(30_000)));
        let code_of = |shift| factor().code_at(now.plus(shift));
        assert!(!used.accept(&code_of(-30_000), now), "an earlier step");
        assert!(used.accept(&code_of(30_000), now), "the next step");
        assert!(!format!("{used:?}").contains("49"), "{used:?}");
    }
}
