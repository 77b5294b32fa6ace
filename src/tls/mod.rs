//! TLS of the daemon's listeners: certificate files become a configuration, and accepted
//! connections become streams, plain or encrypted.
//!
//! Must never know: HTTP, actors, settings.

mod accept;
mod client;
mod files;
mod stream;

pub use accept::{Handshakes, NotAccepted};
pub use client::ClientCertificate;
pub use files::{ServerTls, TlsFault, TlsFiles, Versions};
pub use stream::Stream;
