//! Rules that were read again: groups that are still there go on, others end or are forgotten.
//!
//! Must never know: how a group is evaluated.

use super::{
    Shared,
    group::Running,
    groups::{Groups, Place},
    recording::{Numbering, STAGES_MAX},
    stored::{StoredState, histories},
};
use crate::{
    alerts::{GroupRun, GroupState},
    kept::{GroupStatus, Loaded, RuleSet},
    model::{UnixMillis, own_sender},
};

/// The time for which the state of a group that is in no file is kept, in milliseconds.
const ORPHANS_KEPT_MS: i64 = 24 * 3_600_000;
/// The role that sends ends of series whose rules are gone.
const ENDS_OF: &str = "rules";

impl Shared {
    /// Goes on with the rules that were read: groups that are still there keep what is remembered.
    pub(super) async fn adopt(&self, groups: &mut Groups, loaded: Loaded) {
        let mut before = std::mem::take(&mut groups.all);
        let mut ended = GroupRun::default();
        for group in &loaded.set.groups {
            let (id, group) = (group.id(), group.clone());
            if let Some(at) = before.iter().position(|own| own.id == id) {
                let Place { mut running, .. } = before.swap_remove(at);
                if let Some(running) = &mut running {
                    ended.ended.extend(running.adopt(group.clone()).ended);
                }
                groups.all.push(Place { id, group, running });
                continue;
            }
            let running = Running::open(group.clone(), &self.recording.store);
            let (state, history) = (running.state.clone(), running.history.clone());
            // It can be asked for before it is evaluated.
            self.rules.note(&id, GroupStatus { state, history, ..GroupStatus::default() });
            groups.all.push(Place { id, group, running: Some(Box::new(running)) });
        }
        let gone = before.into_iter().filter_map(|own| own.running);
        ended.ended.extend(gone.flat_map(|own| own.end(&self.recording).ended));
        self.end(groups, ended).await;
        let now = self.clock.now();
        self.rules.note_unread(self.forget_orphans(&groups.all, &loaded.set, now));
        self.rules.retain(|id| groups.all.iter().any(|own| own.id == id));
        groups.generation = loaded.generation;
    }

    /// Marks the ends of series that no rule gives any more.
    pub(super) async fn end(&self, groups: &mut Groups, ended: GroupRun) {
        if ended.ended.is_empty() {
            return;
        }
        // There may be several within a second.
        groups.ends = (groups.ends + 1) % STAGES_MAX as usize;
        let (at, sender, stage) = (self.clock.now(), own_sender(ENDS_OF), groups.ends);
        let numbering = Numbering { sender, at, stage, set_back: &mut groups.set_back };
        if let Some(lost) = self.recording.write(&ended, at, numbering).await {
            tracing::warn!(lost.cause, "series of rules that are gone end later");
        }
    }

    /// Deletes the states of groups that are in no file for long: a file that is missing by mistake
    /// costs nothing. Returns those whose files were left out.
    fn forget_orphans(&self, all: &[Place], set: &RuleSet, now: UnixMillis) -> Vec<GroupState> {
        let mut unread = Vec::new();
        let store = &self.recording.store;
        for id in StoredState::ids(store) {
            if all.iter().any(|own| own.id == id) {
                continue;
            }
            let (stored, state) = StoredState::open(&id, store);
            let state = state.unwrap_or_default();
            if set.is_unread(&state.file) {
                unread.push(state);
                continue;
            }
            if now.since(UnixMillis(state.last)) < ORPHANS_KEPT_MS {
                continue;
            }
            let is_removed = stored.remove();
            drop(histories(store).remove(&id));
            if is_removed {
                tracing::info!(file = state.file, group = state.name, "forgot a group of rules");
            }
        }
        unread
    }
}
