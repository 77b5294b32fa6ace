//! `OpenID` Connect: a provider identifies people for the daemon (authorization code flow with
//! PKCE).
//!
//! The only user of the library openidconnect. All functions of [`Provider`] wait for the network,
//! and time is an argument. Must never know: HTTP routes, users, sessions.

mod http;
mod metadata;
mod person;
mod settings;

use std::sync::Arc;

use openidconnect::{
    AuthenticationFlow, CsrfToken, Nonce, PkceCodeChallenge, PkceCodeVerifier, Scope,
    core::CoreResponseType,
};
use parking_lot::Mutex;

use crate::{access::ProviderLogin, model::UnixMillis};
use http::HttpClient;
use metadata::Known;
pub use settings::{ClientSecret, ProviderSettings, issuer_host};

/// A provider with the settings of the daemon's client. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Provider(Arc<SharedProvider>);

#[derive(Debug)]
struct SharedProvider {
    settings: ProviderSettings,
    known: Mutex<Known>,
}

/// The reason why a provider does not identify a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderFault {
    /// The provider does not answer, or its answer is not valid.
    #[error("{0}")]
    Unavailable(String),
    /// The provider refuses the daemon's client.
    #[error("{0}")]
    Client(String),
    /// The provider refuses the code, or its token is not valid.
    #[error("{0}")]
    Refused(String),
}

impl Provider {
    /// Creates a provider. The first login fetches its metadata.
    pub fn new(settings: ProviderSettings) -> Self {
        Self(Arc::new(SharedProvider { settings, known: Mutex::default() }))
    }

    /// Returns the settings.
    pub fn settings(&self) -> &ProviderSettings {
        &self.0.settings
    }

    /// Returns the address at which a browser begins a login.
    ///
    /// # Errors
    /// The provider does not answer.
    pub fn login_address(
        &self,
        login: &ProviderLogin,
        now: UnixMillis,
    ) -> Result<String, ProviderFault> {
        let settings = self.settings();
        let metadata = self.metadata(&HttpClient::new(settings)?, now)?;
        let client = person::client(settings, &metadata, None)?;
        let (state, nonce) = (login.state.clone(), login.nonce.clone());
        let verifier = PkceCodeVerifier::new(login.verifier.clone());
        let request = client.authorize_url(
            AuthenticationFlow::<CoreResponseType>::AuthorizationCode,
            || CsrfToken::new(state),
            || Nonce::new(nonce),
        );
        let scopes = settings.scopes.iter().filter(|scope| *scope != "openid");
        let (address, _, _) = request
            .add_scopes(scopes.cloned().map(Scope::new))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .url();
        Ok(address.into())
    }
}
