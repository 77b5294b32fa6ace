//! The names under which the daemon itself sends samples: a name space that no request can use, so
//! that nobody makes the daemon's own batches stale, or fills the place that they need.

use std::sync::Arc;

/// What the names of the daemon's own senders begin with.
pub const OWN_SENDERS: &str = "granary:";

/// The name under which a role of the daemon sends.
pub fn own_sender(role: &str) -> Arc<str> {
    format!("{OWN_SENDERS}{role}").into()
}

/// Whether a name is that of a role of the daemon.
pub fn is_own_sender(name: &str) -> bool {
    name.starts_with(OWN_SENDERS)
}

/// The name under which a role sent before there was the name space.
pub fn former_name(own: &str) -> Option<&str> {
    own.strip_prefix(OWN_SENDERS)
}
