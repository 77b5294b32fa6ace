//! Logins at a provider that have begun: the cookie that binds each login to its browser, and the
//! texts that are computed from the cookie.
//!
//! The state, the nonce and the verifier are HMACs of the cookie under a secret of the process, so
//! the daemon stores nothing for a login that has begun, and nobody else can make a cookie. Must
//! never know: HTTP, the provider.

use std::{fmt, io};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::token::{self, Digest};
use crate::model::UnixMillis;

/// The time within which a login at a provider must end.
pub const PROVIDER_LOGIN_MS_MAX: i64 = 10 * 60_000;

/// The secret of a process under which logins begin and end.
#[derive(Debug)]
pub struct LoginSecret(Digest);

/// A login that has begun.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderLogin {
    /// The value of the browser's cookie.
    pub cookie: String,
    /// The text that the provider returns with its answer.
    pub state: String,
    /// The text that the provider puts into the token.
    pub nonce: String,
    /// The text that proves to the provider who began the login (PKCE, RFC 7636).
    pub verifier: String,
}

impl fmt::Debug for ProviderLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderLogin(..)")
    }
}

impl LoginSecret {
    /// Creates a secret from the system's random numbers.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> io::Result<Self> {
        Digest::random().map(Self)
    }

    /// Begins a login.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn begin(&self, now: UnixMillis) -> io::Result<ProviderLogin> {
        Ok(self.login(format!("{}.{}", token::random_secret()?, now.0)))
    }

    /// Returns the login of a browser's cookie; `None` when another browser began the login with
    /// this state, or it began too long ago.
    pub fn resume(&self, cookie: &[u8], state: &str, now: UnixMillis) -> Option<ProviderLogin> {
        let cookie = std::str::from_utf8(cookie).ok()?;
        let (secret, began) = cookie.split_once('.')?;
        let began: i64 = began.parse().ok().filter(|_| token::is_secret(secret.as_bytes()))?;
        let login = self.login(cookie.to_owned());
        let fits = bool::from(login.state.as_bytes().ct_eq(state.as_bytes()));
        let age = now.0.checked_sub(began)?;
        (fits && (0..PROVIDER_LOGIN_MS_MAX).contains(&age)).then_some(login)
    }

    fn login(&self, cookie: String) -> ProviderLogin {
        let text = |purpose: &str| self.derived(purpose, &cookie).to_string();
        let (state, nonce, verifier) = (text("state"), text("nonce"), text("verifier"));
        ProviderLogin { cookie, state, nonce, verifier }
    }

    fn derived(&self, purpose: &str, cookie: &str) -> Digest {
        // Any length of a key is valid for HMAC.
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()) else {
            return Digest::ZERO;
        };
        let mac = mac.chain_update(purpose).chain_update([0]).chain_update(cookie);
        Digest::of_bytes(mac.finalize().into_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_800_000_000_000);

    #[test]
    fn a_login_ends_in_its_browser_and_in_its_time() {
        let secret = LoginSecret::random().unwrap();
        let (login, other) = (secret.begin(NOW).unwrap(), secret.begin(NOW).unwrap());
        let resume = |cookie: &str, state: &str, now| secret.resume(cookie.as_bytes(), state, now);
        let end = NOW.plus(PROVIDER_LOGIN_MS_MAX);
        for now in [NOW, end.plus(-1)] {
            assert_eq!(resume(&login.cookie, &login.state, now), Some(login.clone()));
        }
        for now in [end, NOW.plus(-1), UnixMillis(i64::MAX), UnixMillis(i64::MIN)] {
            assert_eq!(resume(&login.cookie, &login.state, now), None, "{now:?}");
        }
        assert_eq!(resume(&other.cookie, &login.state, NOW), None);
        assert_eq!(resume(&login.cookie, &other.state, NOW), None);
        assert_eq!(resume(&login.cookie, "", NOW), None);
        // A later time in the cookie belongs to another state.
        let later = login.cookie.replace("1800000000000", "1800000000001");
        assert_eq!(resume(&later, &login.state, NOW.plus(1)), None);
        for cookie in ["", ".", "a.1", "\u{e4}.1", &login.cookie.replace('.', "")] {
            assert_eq!(resume(cookie, &login.state, NOW), None, "{cookie}");
        }
        let restarted = LoginSecret::random().unwrap();
        assert_eq!(restarted.resume(login.cookie.as_bytes(), &login.state, NOW), None);
    }

    #[test]
    fn the_texts_of_a_login_differ_and_do_not_show_the_cookie() {
        let login = LoginSecret::random().unwrap().begin(NOW).unwrap();
        let texts = [&login.state, &login.nonce, &login.verifier];
        for (at, text) in texts.iter().enumerate() {
            assert_eq!(text.len(), 64);
            assert!(!texts[..at].contains(text) && !login.cookie.contains(&***text));
        }
        assert_eq!(format!("{login:?}"), "ProviderLogin(..)");
    }
}
