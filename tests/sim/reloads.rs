//! Reloads: settings of the store change while it is open.

use crate::history::History;

impl History {
    /// Changes retentions and sizes, as a reload does.
    pub(crate) fn reload(&mut self) {
        // The levels of rules get the retentions of granularities only at the next start.
        if self.rules.is_some() {
            return;
        }
        let (store, now) = (self.store(), self.now());
        let new_retentions = self.levels.with_other_retentions(&mut self.rng);
        store.set_cache_bytes_max([0, 1 << 16, 1 << 24][self.rng.usize(0..3)]);
        self.set_random_sizes(&store);
        let outcome = store.change_retentions(&new_retentions, now);
        // After a failure, some of the retentions are in use.
        self.levels.current = store.granularities().clone().with_own_retentions();
        self.trace(|| format!("reload: {outcome:?}, {:?}", self.levels.current));
        match outcome {
            Ok(changed) => {
                assert_eq!(self.levels.current, new_retentions);
                self.tally.note("reloads");
                self.tally.count("retentions changed", changed as u64);
            }
            Err(cause) => self.expect_fault(&cause, "failed reloads"),
        }
        // Data past the new retentions may be deleted.
        self.now();
    }
}
