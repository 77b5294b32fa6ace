//! Lengths and points in time that tests share.

use granary::model::UnixMillis;

pub(crate) const SECOND: i64 = 1000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

/// 2026-11-21T12:34:56Z
pub(crate) const NOW: UnixMillis = UnixMillis(1_795_264_496_000);
/// A time within a second, at which no slot begins: 2026-11-21T12:34:56.789Z.
pub(crate) const WITHIN: UnixMillis = UnixMillis(NOW.0 + 789);
/// The day of `NOW` at 06:00, when a partition of 1m begins.
pub(crate) const SIX: UnixMillis = UnixMillis(1_795_240_800_000);
