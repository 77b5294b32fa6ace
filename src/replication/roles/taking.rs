//! The taker: it begins an epoch, and becomes the holder when its state contains all earlier ones.
//!
//! The fence is the first entry of the epoch. A holder of an earlier epoch that did not notice its
//! end inserts its next record at the first number that it does not know, where it finds the fence
//! or an entry before it. Every record that it confirmed therefore precedes the fence.

use crate::replication::{
    entry::{Body, Entry, EntryId, NodeName, ShardRow},
    medium::{Answer, Command},
    mutants::{Mutant, is_on},
    roles::{
        following::apply_in_order,
        insertion::{Insertion, Settled},
    },
    shard::{Shard, ShardFault},
};

/// A take in progress.
#[derive(Debug)]
pub(crate) struct Taker {
    shard: u16,
    /// The log of the shard.
    log: i64,
    /// The epoch that begins.
    epoch: u64,
    nonce: i64,
    /// The number of the fence, once it is confirmed.
    fence: Option<u64>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Claim(Command),
    Fence(Insertion),
    Entries {
        after: u64,
    },
    Row {
        after: u64,
        entries: Vec<Entry>,
    },
    /// The state is complete; the fence is marked, so that a replica that lacks it can notice.
    Hold {
        fence: u64,
    },
    Over,
}

/// The result of an answer.
#[derive(Debug)]
pub(crate) enum Took {
    /// The next command must be sent at once.
    Continues,
    /// Another node has the shard, or the outcome is unknown.
    Lost,
    /// The state contains all entries up to the fence.
    Holds,
    /// The replica is below the cut.
    Below(ShardRow),
    /// Entries are missing before the fence.
    Gap(String),
}

impl Taker {
    /// Begins a take of a shard whose row was just read.
    pub(crate) fn new(shard: u16, me: &NodeName, row: &ShardRow, nonce: i64) -> Self {
        let (log, holder) = (row.log, me.clone());
        let claim = Command::Take { shard, epoch: row.epoch, beat: row.beat, log, holder };
        let epoch = row.epoch + 1;
        Self { shard, log, epoch, nonce, fence: None, step: Step::Claim(claim) }
    }

    pub(crate) fn log(&self) -> i64 {
        self.log
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns true while it is unknown whether the epoch has begun.
    pub(crate) fn is_claiming(&self) -> bool {
        matches!(self.step, Step::Claim(_))
    }

    /// Returns the next command.
    pub(crate) fn command(&self) -> Command {
        match &self.step {
            Step::Claim(command) => command.clone(),
            Step::Fence(insertion) => insertion.command(),
            Step::Entries { after } => Command::Find(EntryId::new(self.shard, *after)),
            Step::Hold { fence } => {
                Command::Hold { fence: EntryId::new(self.shard, *fence), nonce: self.nonce }
            }
            Step::Row { .. } | Step::Over => Command::ReadShard(self.shard),
        }
    }

    /// Processes an answer.
    ///
    /// # Errors
    /// The state cannot apply an entry.
    pub(crate) fn accept(
        &mut self,
        answer: Answer,
        state: &mut impl Shard,
    ) -> Result<Took, ShardFault> {
        match std::mem::replace(&mut self.step, Step::Over) {
            Step::Claim(_) if answer == Answer::Matched(true) => {
                let next = state.applied() + 1;
                self.step = if is_on(Mutant::NoFence) {
                    Step::Entries { after: state.applied() }
                } else {
                    Step::Fence(self.fence_at(next))
                };
                Ok(Took::Continues)
            }
            Step::Fence(insertion) => {
                self.accept_fence(insertion, &answer, state.applied());
                Ok(Took::Continues)
            }
            Step::Entries { after } => {
                let Answer::Entries(entries) = answer else { return Ok(Took::Lost) };
                self.step = Step::Row { after, entries };
                Ok(Took::Continues)
            }
            Step::Row { after, entries } => {
                let Answer::Shard(Some(row)) = answer else { return Ok(Took::Lost) };
                self.accept_row(row, after, entries, state)
            }
            Step::Hold { .. } if answer == Answer::Matched(true) => Ok(Took::Holds),
            Step::Claim(_) | Step::Hold { .. } | Step::Over => Ok(Took::Lost),
        }
    }

    fn fence_at(&self, number: u64) -> Insertion {
        let id = EntryId::new(self.shard, number);
        Insertion::new(Entry { id, epoch: self.epoch, nonce: self.nonce, body: Body::Fence })
    }

    fn accept_fence(&mut self, mut insertion: Insertion, answer: &Answer, applied: u64) {
        let number = insertion.entry().id.number;
        self.step = match insertion.judge(answer) {
            Settled::Undecided => Step::Fence(insertion),
            Settled::Others => Step::Fence(self.fence_at(number + 1)),
            Settled::Own => {
                self.fence = Some(number);
                Step::Entries { after: applied }
            }
        };
    }

    fn accept_row(
        &mut self,
        row: ShardRow,
        after: u64,
        mut entries: Vec<Entry>,
        state: &mut impl Shard,
    ) -> Result<Took, ShardFault> {
        if row.epoch != self.epoch || row.log != self.log {
            return Ok(Took::Lost);
        }
        if row.cut > after && !is_on(Mutant::TakesBelowCut) {
            return Ok(Took::Below(row));
        }
        entries.retain(|entry| self.fence.is_none_or(|fence| entry.id.number <= fence));
        apply_in_order(&entries, state)?;
        let applied = state.applied();
        // Only a mutant has no fence.
        let is_complete = self.fence.map_or(entries.is_empty(), |fence| applied == fence);
        if is_complete {
            let Some(fence) = self.fence else { return Ok(Took::Holds) };
            self.step = Step::Hold { fence };
            return Ok(Took::Continues);
        }
        if applied == after {
            let first = entries.first().map(|entry| entry.id.number);
            return Ok(Took::Gap(format!(
                "shard {}: entry {} is missing, the next one is {first:?}; seed this replica",
                self.shard,
                after + 1
            )));
        }
        self.step = Step::Entries { after: applied };
        Ok(Took::Continues)
    }
}
