//! The metadata and the keys of a provider, fetched when a login needs them.
//!
//! Must never know: the contents of tokens.

use std::sync::Arc;

use openidconnect::{IssuerUrl, core::CoreProviderMetadata};

use super::{Provider, ProviderFault, http::HttpClient};
use crate::model::{UnixMillis, with_causes};

/// The time after which a login fetches metadata and keys again.
const VALID_MS: i64 = 3_600_000;
/// The time for which a failed fetch also fails all other logins, so that they do not all wait for
/// a provider that is down. It begins with the fetch, and is longer than the time limit of a fetch.
const FAILURE_MS: i64 = 15_000;
/// The minimum time between two fetches because of an unknown key.
const UNKNOWN_KEY_MS: i64 = 30_000;

/// The state of a provider's metadata.
#[derive(Debug, Default)]
pub(super) struct Known {
    metadata: Option<(Arc<CoreProviderMetadata>, UnixMillis)>,
    failure: Option<(ProviderFault, UnixMillis)>,
    /// The time of the last fetch because of an unknown key.
    unknown_key: Option<UnixMillis>,
}

/// Returns true if less than `ms` milliseconds have passed since `at`. After the clock was set back
/// before `at`, the result is false.
fn is_within(at: UnixMillis, ms: i64, now: UnixMillis) -> bool {
    now.0.checked_sub(at.0).is_some_and(|age| (0..ms).contains(&age))
}

impl Provider {
    /// Returns the metadata with the keys. One login fetches them while others wait.
    pub(super) fn metadata(
        &self,
        http: &HttpClient,
        now: UnixMillis,
    ) -> Result<Arc<CoreProviderMetadata>, ProviderFault> {
        let mut known = self.0.known.lock();
        match &*known {
            Known { metadata: Some((metadata, at)), .. } if is_within(*at, VALID_MS, now) => {
                Ok(metadata.clone())
            }
            // The time of the fetch may be later than `now`, for a login that waited for the lock.
            Known { failure: Some((cause, at)), .. }
                if now.0.abs_diff(at.0) < FAILURE_MS.unsigned_abs() =>
            {
                Err(cause.clone())
            }
            _ => self.fetch(&mut known, http, now),
        }
    }

    /// Fetches metadata and keys again for a token whose key is unknown, or returns `None` when
    /// another login did so a moment ago.
    pub(super) fn metadata_again(
        &self,
        http: &HttpClient,
        now: UnixMillis,
    ) -> Option<Result<Arc<CoreProviderMetadata>, ProviderFault>> {
        let mut known = self.0.known.lock();
        if known.unknown_key.is_some_and(|at| is_within(at, UNKNOWN_KEY_MS, now)) {
            return None;
        }
        known.unknown_key = Some(now);
        tracing::info!("fetching the provider's keys again: a token has an unknown key");
        Some(self.fetch(&mut known, http, now))
    }

    fn fetch(
        &self,
        known: &mut Known,
        http: &HttpClient,
        now: UnixMillis,
    ) -> Result<Arc<CoreProviderMetadata>, ProviderFault> {
        let issuer = IssuerUrl::new(self.settings().issuer.clone());
        let fetched = issuer.map_err(|cause| with_causes(&cause)).and_then(|issuer| {
            CoreProviderMetadata::discover(&issuer, http).map_err(|cause| with_causes(&cause))
        });
        match fetched.map_err(ProviderFault::Unavailable) {
            Ok(metadata) => {
                let metadata = Arc::new(metadata);
                known.metadata = Some((metadata.clone(), now));
                known.failure = None;
                Ok(metadata)
            }
            Err(cause) => {
                known.failure = Some((cause.clone(), now));
                Err(cause)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_ends_after_its_time_and_when_the_clock_is_set_back() {
        let (at, ms) = (UnixMillis(1_000), 100);
        let within: Vec<_> =
            [1_000, 1_099].iter().map(|now| is_within(at, ms, UnixMillis(*now))).collect();
        assert_eq!(within, [true, true]);
        for now in [999, 1_100, i64::MIN, i64::MAX] {
            assert!(!is_within(at, ms, UnixMillis(now)), "{now}");
        }
    }
}
