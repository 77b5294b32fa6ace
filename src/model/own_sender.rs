//! Names under which the daemon itself sends samples. Requests cannot use this name space, so that
//! no client makes the daemon's batches stale or passes the limit of senders, from which these
//! names are exempt.

use std::sync::Arc;

use super::split_stored_name;

/// The prefix of the daemon's senders.
pub const OWN_SENDER_PREFIX: &str = "granary:";

/// Returns the sender's name of a role of the daemon.
pub fn own_sender(role: &str) -> Arc<str> {
    format!("{OWN_SENDER_PREFIX}{role}").into()
}

/// Returns true for the sender's name, or its stored name, of a role of the daemon.
pub fn is_own_sender(name: &str) -> bool {
    split_stored_name(name).1.starts_with(OWN_SENDER_PREFIX)
}
