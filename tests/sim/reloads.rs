//! Reloads: settings of the store change while it is open.

use crate::{history::History, rules};

impl History {
    /// Changes retentions and sizes, as a reload does, or stops cleanly and opens the store again,
    /// perhaps with other rules or granularities.
    pub(crate) fn reload(&mut self) {
        if self.rng.u8(0..3) == 0 {
            self.tally.note("reloads");
            self.tally.note("reloads that open the store again");
            self.checkpoint();
            self.restart();
            return;
        }
        let (store, now) = (self.store(), self.now());
        let rules = self.rules.as_ref().map_or(&[][..], |rules| &rules.current);
        // Levels of former rules keep their retentions, which the oracle expects to be no shorter.
        let may_grow = store.classes().count() == 1 + rules.len();
        let new_retentions = self.levels.with_other_retentions(&mut self.rng, may_grow);
        let new_rules = rules::with_retentions(rules, &new_retentions);
        store.set_cache_bytes_max([0, 1 << 16, 1 << 24][self.rng.usize(0..3)]);
        self.set_random_sizes(&store);
        let outcome = store.change_retentions(&new_retentions, &new_rules, now);
        self.trace(|| format!("reload: {outcome:?}, {new_retentions:?}"));
        match outcome {
            Ok(changed) => {
                assert_eq!(*store.granularities(), new_retentions);
                self.levels.current = new_retentions;
                if let Some(rules) = &mut self.rules {
                    self.tally.count("retentions of rules changed", changed as u64);
                    rules.current = new_rules;
                }
                self.tally.note("reloads");
                self.tally.count("retentions changed", changed as u64);
            }
            Err(cause) => self.expect_fault(&cause, "failed reloads"),
        }
        // Data past the new retentions may be deleted.
        self.now();
    }
}
