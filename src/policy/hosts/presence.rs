//! Presence: a host is up, late or down by the length of its silence.

use crate::model::HostState;

/// The silence after which a host is late: agents ping every 30 s, at least once a minute.
pub const LATE_AFTER_MS: i64 = 90_000;

/// The silence after which a host is down.
pub const DOWN_AFTER_MS: i64 = 240_000;

/// Returns the state after a silence.
pub fn state_of(silent_ms: i64) -> HostState {
    match silent_ms {
        ..LATE_AFTER_MS => HostState::Up,
        LATE_AFTER_MS..DOWN_AFTER_MS => HostState::Late,
        _ => HostState::Down,
    }
}
