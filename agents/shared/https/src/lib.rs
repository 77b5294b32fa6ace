//! HTTPS of all clients: agents, commands, imports and notifications.
//!
//! Must never know: which server is contacted, and what is sent to it.

mod certificate;
mod failure;
mod files;
mod pin;
mod pinned;
mod presented;
mod reloading;
mod settings;

pub use certificate::{Certificate, unix_seconds_text};
pub use failure::{FailureReason, RequestFailure, TrustOptions};
pub use files::{read_certificates, read_key, read_small};
pub use pin::{Pin, PinError};
pub use presented::presented_certificates;
pub use reloading::{AgentConfig, ReloadingAgent};
pub use rustls::pki_types;
pub use settings::{Https, HttpsArgs};
