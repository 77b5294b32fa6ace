//! The cutter of a holder: it deletes records that all members have durably, and removes members
//! that hold back too many.
//!
//! The cut is confirmed before anything is deleted, so that a replica below it can notice.

use std::collections::{BTreeMap, VecDeque};

use crate::replication::{
    entry::{NodeName, ShardRow},
    medium::{Answer, Command},
    mutants::{Mutant, is_on},
    roles::{following::floor_command, lease::Timing},
};

/// The maximum number of points of a [`Backlog`]; then every second one is removed.
const POINTS_MAX: usize = 256;

/// The cutter of one epoch.
#[derive(Debug)]
pub(crate) struct Cutter {
    shard: u16,
    epoch: u64,
    me: NodeName,
    /// The number up to which this cutter deleted.
    deleted: u64,
    /// A member that an operator removes.
    requested_strike: Option<NodeName>,
    /// The members that do not have what was cut, with the time at which this was first seen.
    waiting: Waiting,
    step: Step,
}

/// The members that wait for a copy of the replica, each since a time in milliseconds.
type Waiting = BTreeMap<NodeName, u64>;

#[derive(Debug, Default)]
enum Step {
    #[default]
    Read,
    /// The floor of this node is raised, or a member removed.
    Change(Command),
    Raise(u64),
    Delete(u64),
}

/// The result of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The next command must be sent at once.
    Continues,
    /// Nothing is left until the next interval.
    Rests,
    /// Another node has the shard.
    Fenced,
}

impl Cutter {
    pub(crate) fn new(shard: u16, epoch: u64, me: NodeName) -> Self {
        let (requested_strike, waiting, step) = (None, Waiting::new(), Step::Read);
        Self { shard, epoch, me, deleted: 0, requested_strike, waiting, step }
    }

    pub(crate) fn request_strike(&mut self, node: NodeName) {
        self.requested_strike = Some(node);
    }

    /// Returns the next command.
    pub(crate) fn command(&self) -> Command {
        let (shard, epoch) = (self.shard, self.epoch);
        match &self.step {
            Step::Read => Command::ReadShard(shard),
            Step::Change(command) => command.clone(),
            Step::Raise(cut) => Command::RaiseCut { shard, epoch, cut: *cut },
            Step::Delete(through) => {
                Command::Delete { shard, after: self.deleted, through: *through }
            }
        }
    }

    /// Processes an answer. `floor` is the number up to which this node's disk has all entries.
    pub(crate) fn accept(
        &mut self,
        answer: &Answer,
        floor: u64,
        backlog: &Backlog,
        now_ms: u64,
        timing: &Timing,
    ) -> Cut {
        match (std::mem::take(&mut self.step), answer) {
            (Step::Read, Answer::Shard(Some(row))) if row.epoch == self.epoch => {
                self.note_waiting(row, now_ms);
                let slow = backlog.slow_member(row, &self.me, (now_ms, timing), &self.waiting);
                self.plan(row, floor, slow)
            }
            (Step::Read, _)
            | (Step::Raise(_) | Step::Change(Command::Strike { .. }), Answer::Matched(false)) => {
                Cut::Fenced
            }
            (Step::Raise(cut), _) if !is_on(Mutant::DeletesFirst) => {
                self.step = Step::Delete(cut);
                Cut::Continues
            }
            (Step::Delete(cut), _) => {
                self.deleted = cut;
                if is_on(Mutant::DeletesFirst) {
                    self.step = Step::Raise(cut);
                    return Cut::Continues;
                }
                Cut::Rests
            }
            (Step::Change(_), _) => Cut::Continues,
            (Step::Raise(_), _) => Cut::Rests,
        }
    }

    fn note_waiting(&mut self, row: &ShardRow, now_ms: u64) {
        self.waiting.retain(|node, _| row.members.contains_key(node) && !row.has_cut(node));
        for node in row.members.keys().filter(|node| !row.has_cut(node)) {
            self.waiting.entry(node.clone()).or_insert(now_ms);
        }
    }

    fn plan(&mut self, row: &ShardRow, floor: u64, slow: Option<NodeName>) -> Cut {
        let requested = self.requested_strike.take();
        let requested = requested.filter(|node| is_removable(row, node, &self.me));
        if let Some(node) = requested.or(slow) {
            let (shard, epoch) = (self.shard, self.epoch);
            self.step = Step::Change(Command::Strike { shard, epoch, node });
            return Cut::Continues;
        }
        if let Some(command) = floor_command(self.shard, row, &self.me, floor) {
            self.step = Step::Change(command);
            return Cut::Continues;
        }
        let least = row.members.values().copied().min().unwrap_or(0);
        // A lost disk has less than the row says.
        let cut = if is_on(Mutant::OwnCut) { floor } else { least.min(floor) };
        if cut > row.cut && is_on(Mutant::DeletesFirst) {
            self.step = Step::Delete(cut);
        } else if cut > row.cut {
            self.step = Step::Raise(cut);
        } else if row.cut > self.deleted {
            // The previous holder may have stopped before it deleted.
            self.step = Step::Delete(row.cut);
        } else {
            return Cut::Rests;
        }
        Cut::Continues
    }
}

/// Returns true if a member can be removed: it is another node, so one member stays.
fn is_removable(row: &ShardRow, node: &NodeName, me: &NodeName) -> bool {
    node != me && row.members.contains_key(node) && row.members.contains_key(me)
}

/// The growth of the log, by which a holder knows how much a member holds back.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// Times, numbers and bytes up to then, in their order.
    points: VecDeque<(u64, u64, u64)>,
    bytes: u64,
}

impl Backlog {
    /// Notes an entry.
    pub(crate) fn note(&mut self, number: u64, bytes: usize, now_ms: u64) {
        self.bytes += bytes as u64;
        if self.points.len() >= POINTS_MAX {
            let mut is_kept = false;
            self.points.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
        self.points.push_back((now_ms, number, self.bytes));
    }

    /// Returns the member with the lowest floor of those behind which the entries are too old or too
    /// large. A copy takes its time, which begins when the member joins.
    fn slow_member(
        &self,
        row: &ShardRow,
        me: &NodeName,
        (now_ms, timing): (u64, &Timing),
        waiting: &Waiting,
    ) -> Option<NodeName> {
        let is_slow = |node: &NodeName, floor: u64| {
            let point = self.points.iter().find(|(_, number, _)| *number > floor);
            let Some((since_ms, _, bytes)) = point else { return false };
            let (since_ms, ms_max, bytes_max) = match waiting.get(node) {
                Some(joined_ms) => (*joined_ms, timing.copy_ms, timing.copy_bytes),
                None => (*since_ms, timing.strike_ms, timing.strike_bytes),
            };
            now_ms.saturating_sub(since_ms) > ms_max
                || self.bytes.saturating_sub(*bytes) > bytes_max
        };
        let others = row.members.iter().filter(|(node, _)| is_removable(row, node, me));
        let slow = others.filter(|(node, floor)| is_slow(node, **floor));
        slow.min_by_key(|(_, floor)| **floor).map(|(node, _)| node.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeName {
        NodeName::parse(name).unwrap()
    }

    fn row(floors: &[(&str, u64)]) -> ShardRow {
        let members = floors.iter().map(|(name, floor)| (node(name), *floor)).collect();
        ShardRow { epoch: 1, members, ..ShardRow::default() }
    }

    #[test]
    fn a_member_is_struck_after_an_hour_or_four_gibibytes_and_the_holder_never() {
        let timing = Timing::default();
        let mut backlog = Backlog::default();
        backlog.note(1, 100, 0);
        backlog.note(2, 100, 1_000_000);
        let check = |backlog: &Backlog, floors: &[(&str, u64)], now_ms: u64| {
            backlog.slow_member(&row(floors), &node("a"), (now_ms, &timing), &Waiting::new())
        };
        assert_eq!(check(&backlog, &[("a", 2), ("b", 0)], 3_600_000), None);
        assert_eq!(check(&backlog, &[("a", 2), ("b", 0)], 3_600_001), Some(node("b")));
        assert_eq!(check(&backlog, &[("a", 2), ("b", 1)], 3_600_001), None);
        assert_eq!(check(&backlog, &[("a", 0), ("b", 2)], u64::MAX), None);
        assert_eq!(check(&backlog, &[("b", 0)], u64::MAX), None, "one member stays");
        backlog.note(3, 5 << 30, 1_000_001);
        assert_eq!(check(&backlog, &[("a", 3), ("b", 0)], 1_000_002), Some(node("b")));
    }

    #[test]
    fn a_member_that_copies_the_replica_has_six_hours_from_when_it_joined() {
        let (timing, mut backlog) = (Timing::default(), Backlog::default());
        backlog.note(1, 100, 0);
        backlog.note(2, 100, 1);
        let mut cutter = Cutter::new(1, 1, node("a"));
        let mut check = |now_ms: u64| {
            // "b" is dead, and "c" waits for a copy.
            let row = ShardRow { cut: 1, ..row(&[("a", 2), ("b", 1), ("c", 0)]) };
            cutter.note_waiting(&row, now_ms);
            backlog.slow_member(&row, &node("a"), (now_ms, &timing), &cutter.waiting)
        };
        assert_eq!(check(3_000_000), None);
        assert_eq!(check(3_700_000), Some(node("b")));
        assert_eq!(check(3_000_000 + 6 * 3_600_000), Some(node("b")));
        assert_eq!(check(3_000_001 + 6 * 3_600_000), Some(node("c")));
    }

    #[test]
    fn a_backlog_is_bounded_and_keeps_its_oldest_point() {
        let mut backlog = Backlog::default();
        (1..10_000).for_each(|number| backlog.note(number, 1, number));
        assert!(backlog.points.len() <= POINTS_MAX);
        assert_eq!(backlog.points.front(), Some(&(1, 1, 1)));
    }

    #[test]
    fn a_holder_whose_disk_was_lost_cuts_what_its_disk_has() {
        let mut cutter = Cutter::new(1, 1, node("a"));
        let (backlog, timing) = (Backlog::default(), Timing::default());
        let answer = Answer::Shard(Some(row(&[("a", 7)])));
        assert_eq!(cutter.accept(&answer, 5, &backlog, 0, &timing), Cut::Continues);
        assert_eq!(cutter.command(), Command::RaiseCut { shard: 1, epoch: 1, cut: 5 });
    }

    #[test]
    fn a_cut_is_confirmed_before_records_are_deleted() {
        let mut cutter = Cutter::new(1, 1, node("a"));
        let (backlog, timing) = (Backlog::default(), Timing::default());
        let row = row(&[("a", 7), ("b", 5)]);
        let accept = |answer: &Answer, cutter: &mut Cutter| {
            (cutter.accept(answer, 7, &backlog, 0, &timing), cutter.command())
        };
        let raise = Command::RaiseCut { shard: 1, epoch: 1, cut: 5 };
        let delete = Command::Delete { shard: 1, after: 0, through: 5 };
        let answer = Answer::Shard(Some(row.clone()));
        assert_eq!(accept(&answer, &mut cutter), (Cut::Continues, raise));
        assert_eq!(accept(&Answer::Matched(true), &mut cutter), (Cut::Continues, delete));
        assert_eq!(accept(&Answer::Done, &mut cutter), (Cut::Rests, Command::ReadShard(1)));
        accept(&Answer::Shard(Some(ShardRow { cut: 5, ..row })), &mut cutter);
        let later = Answer::Shard(Some(ShardRow { epoch: 2, ..ShardRow::default() }));
        assert_eq!(accept(&later, &mut cutter).0, Cut::Fenced);
    }
}
