//! The targets of all objects, within the limits of their number and of their labels.
//!
//! Must never know: objects.

use granary_agent_kit::relabel::Labels;

use crate::discovery::{Found, TARGETS_MAX};

/// The maximum size of all labels of the targets; each target repeats those of its objects.
const LABEL_BYTES_MAX: usize = 64 << 20;

/// Targets, and the size of their labels.
#[derive(Debug, Default)]
pub(super) struct Targets {
    pub(super) found: Found,
    bytes: usize,
}

impl Targets {
    /// Returns true when an object with this number of targets may be expanded. Otherwise, its
    /// targets count as dropped.
    pub(super) fn has_room_for(&mut self, count: usize) -> bool {
        let has_room = count <= TARGETS_MAX && self.found.targets.len() < TARGETS_MAX;
        if !has_room {
            self.found.dropped = self.found.dropped.saturating_add(count as u64);
        }
        has_room
    }

    /// Adds a target, or counts it when there are too many, or their labels are too large.
    pub(super) fn add(&mut self, labels: Labels) {
        let bytes: usize = labels.iter().map(|(name, value)| name.len() + value.len()).sum();
        if self.bytes + bytes > LABEL_BYTES_MAX {
            self.found.dropped = self.found.dropped.saturating_add(1);
            return;
        }
        self.bytes += bytes;
        self.found.add(|| labels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_beyond_a_limit_are_counted() {
        let mut targets = Targets::default();
        assert!(targets.has_room_for(TARGETS_MAX));
        assert!(!targets.has_room_for(TARGETS_MAX + 1));
        assert_eq!(targets.found.dropped, TARGETS_MAX as u64 + 1);
        let large: Labels = [("a", "x".repeat(LABEL_BYTES_MAX / 2))].into_iter().collect();
        (0..3).for_each(|_| targets.add(large.clone()));
        targets.add([("a", "small".to_owned())].into_iter().collect());
        assert_eq!(targets.found.targets.len(), 2);
        assert_eq!(targets.found.dropped, TARGETS_MAX as u64 + 3);
    }
}
