//! Reloaded rules: groups that still exist continue, and other groups end.
//!
//! Must never know: the evaluation of a group.

use super::{
    Shared,
    group::RunningGroup,
    groups::{GroupEntry, Groups},
    recording::{Numbering, STAGES_MAX},
    stored::{StoredState, histories},
};
use crate::{
    alerts::{GroupRun, GroupState},
    kept::{GroupStatus, LoadedRules, RuleSet},
    model::{UnixMillis, own_sender},
};

/// The time for which the state of a group without a file is kept, in milliseconds.
const ORPHANS_KEPT_MS: i64 = 24 * 3_600_000;
/// The role that sends the ends of series whose rules were removed.
const ENDS_ROLE: &str = "rules";

impl Shared {
    /// Continues with the reloaded rules: groups that still exist keep their state.
    pub(super) async fn adopt(&self, groups: &mut Groups, loaded: LoadedRules) {
        let mut before = std::mem::take(&mut groups.all);
        let mut ended = GroupRun::default();
        for group in &loaded.set.groups {
            let (id, group) = (group.id(), group.clone());
            if let Some(index) = before.iter().position(|entry| entry.id == id) {
                let GroupEntry { mut running, .. } = before.swap_remove(index);
                if let Some(running) = &mut running {
                    ended.ended.extend(running.adopt(group.clone()).ended);
                }
                groups.all.push(GroupEntry { id, group, running });
                continue;
            }
            let running = RunningGroup::open(group.clone(), &self.recording.store);
            let (state, history) = (running.state.clone(), running.history.clone());
            // The API shows a group before its first evaluation.
            self.rules.note_status(&id, GroupStatus { state, history, ..GroupStatus::default() });
            groups.all.push(GroupEntry { id, group, running: Some(Box::new(running)) });
        }
        let abandoned = before.into_iter().filter_map(|entry| entry.running);
        ended.ended.extend(abandoned.flat_map(|running| running.end(&self.recording).ended));
        self.end(groups, ended).await;
        let now = self.clock.now();
        self.rules.note_unread(self.forget_orphans(&groups.all, &loaded.set, now));
        self.rules.retain(|id| groups.all.iter().any(|entry| entry.id == id));
        groups.generation = loaded.generation;
    }

    /// Ends the series that no rule produces any more.
    pub(super) async fn end(&self, groups: &mut Groups, ended: GroupRun) {
        if ended.ended.is_empty() {
            return;
        }
        // The stage distinguishes the numbers of several writes within a second.
        groups.ends = (groups.ends + 1) % STAGES_MAX as usize;
        let (at, sender, stage) = (self.clock.now(), own_sender(ENDS_ROLE), groups.ends);
        let numbering = Numbering { sender, at, stage, set_back: &mut groups.set_back };
        if let Some(lost) = self.recording.write(&ended, at, numbering).await {
            tracing::warn!(lost.cause, "cannot end series of removed rules; they go stale");
        }
    }

    /// Deletes the states of groups that have had no file for [`ORPHANS_KEPT_MS`], so that a file
    /// that is missing by mistake for a short time costs nothing. Returns the states of groups whose
    /// files could not be loaded.
    fn forget_orphans(
        &self,
        all: &[GroupEntry],
        set: &RuleSet,
        now: UnixMillis,
    ) -> Vec<GroupState> {
        let mut unread = Vec::new();
        let store = &self.recording.store;
        for id in StoredState::ids(store) {
            if all.iter().any(|entry| entry.id == id) {
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
                tracing::info!(
                    file = state.file,
                    group = state.name,
                    "removed the state of a group of rules"
                );
            }
        }
        unread
    }
}
