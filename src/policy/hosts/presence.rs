//! The limits of silence between the states of a host: up, late, down.

use crate::model::HostState;

/// A host that is silent for longer is late: agents ping every 30 s, at least once a minute.
pub const LATE_AFTER_MS: i64 = 90_000;

/// A host that is silent for longer is down.
pub const DOWN_AFTER_MS: i64 = 240_000;

/// The state of what was silent for so long.
pub fn state_of(silent_ms: i64) -> HostState {
    match silent_ms {
        ..LATE_AFTER_MS => HostState::Up,
        LATE_AFTER_MS..DOWN_AFTER_MS => HostState::Late,
        _ => HostState::Down,
    }
}
