//! The limits of logins at a provider, which may be slow or down.
//!
//! Must never know: the protocol, how a login is answered.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use actix_web::web;
use tokio::sync::Semaphore;

use crate::{
    access::LoginSecret,
    kept::LiveValue,
    oidc::{Provider, ProviderFault},
};

/// The number of logins that wait for the provider at once; further ones are refused, so that a
/// provider that does not answer blocks few threads, and logins with a password do not wait for it.
const WAITING_MAX: usize = 16;
/// The maximum number of characters of a provider's text in the log.
const CAUSE_CHARACTERS_MAX: usize = 400;

/// The logins at a provider. Clones are cheap.
#[derive(Debug, Clone)]
pub struct ProviderLogins {
    provider: LiveValue<Option<Provider>>,
    /// The secret under which logins begin and end.
    pub(in crate::api) secret: Arc<LoginSecret>,
    permits: Arc<Semaphore>,
    is_failing: Arc<AtomicBool>,
}

/// The reason why a request to the provider failed.
#[derive(Debug)]
pub(in crate::api) enum AskFault {
    /// Many logins wait for the provider.
    Busy,
    /// The daemon is stopping.
    Failed,
    /// The provider.
    Provider(ProviderFault),
}

impl ProviderLogins {
    /// Creates the limits.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(provider: LiveValue<Option<Provider>>) -> io::Result<Self> {
        Ok(Self {
            provider,
            secret: Arc::new(LoginSecret::random()?),
            permits: Arc::new(Semaphore::new(WAITING_MAX)),
            is_failing: Arc::default(),
        })
    }

    /// Returns the provider of the settings.
    pub(in crate::api) fn provider(&self) -> Option<Provider> {
        Option::clone(&self.provider.get())
    }

    /// Runs work that waits for the provider outside of the HTTP worker. Logs when requests to the
    /// provider begin to fail, and when they succeed again.
    pub(in crate::api) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ProviderFault> + Send + 'static,
    ) -> Result<T, AskFault> {
        let permit = self.permits.clone().try_acquire_owned().map_err(|_| AskFault::Busy)?;
        let done = web::block(move || {
            let result = work();
            drop(permit);
            result
        });
        let result = done.await.map_err(|_| AskFault::Failed)?;
        self.note(result.as_ref().err());
        result.map_err(AskFault::Provider)
    }

    fn note(&self, fault: Option<&ProviderFault>) {
        let failure = match fault {
            Some(ProviderFault::Unavailable(cause) | ProviderFault::Client(cause)) => Some(cause),
            Some(ProviderFault::Refused(_)) | None => None,
        };
        let was_failing = self.is_failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(cause) if !was_failing => {
                let cause: String = cause.chars().take(CAUSE_CHARACTERS_MAX).collect();
                tracing::error!(cause, "no login at the provider of security.oidc is possible");
            }
            None if was_failing => {
                tracing::info!("logins at the provider of security.oidc are possible again");
            }
            _ => {}
        }
    }
}
