//! The follower: it reads entries and applies them in their order.
//!
//! The row of the shard is read after the entries: only then does the cut show whether records
//! between `applied` and the found entries were deleted. A replica below the cut applies nothing
//! and is seeded.

use crate::replication::{
    entry::{Entry, EntryId, NodeName, ShardRow},
    medium::{Answer, Command, FOUND_BYTES_MAX, FOUND_ENTRIES_MAX},
    mutants::{Mutant, is_on},
    roles::origin::{Origins, Verdict, Verifier, judge_row, note_fence},
    shard::{Shard, ShardFault},
};

/// The step of a follower.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    shard: u16,
    /// True for a member, and for a node that becomes one.
    follows: bool,
    step: Step,
    /// True once the log was found to be the one that the state follows from.
    is_verified: bool,
}

#[derive(Debug, Default)]
enum Step {
    /// The follower waits for the next pass.
    #[default]
    Begin,
    /// A mutant reads the row first.
    RowFirst,
    Entries {
        /// The number after which entries are searched.
        after: u64,
        early_row: Option<ShardRow>,
    },
    Row {
        after: u64,
        entries: Vec<Entry>,
    },
    /// The log is compared with what the replica remembers.
    Verify(Verifier),
    Create(Command),
    /// The floor of this node is raised.
    Floor(Command),
}

/// The result of an answer.
#[derive(Debug)]
pub(crate) enum Followed {
    /// The next command must be sent at once.
    Continues,
    /// The pass found no entry, and read no row.
    Nothing,
    /// The pass is over.
    Row {
        /// The row, read after the entries.
        row: ShardRow,
        /// True if the log may have more entries.
        has_more: bool,
    },
    /// The replica is below the cut.
    Below(ShardRow),
    /// The database has another log than the replica.
    Foreign(String),
}

impl Follower {
    /// Returns the next command. A node that is no member, and becomes none, reads only the row.
    pub(crate) fn command(&mut self, shard: u16, follows: bool, state: &impl Shard) -> Command {
        (self.shard, self.follows) = (shard, follows);
        match &self.step {
            Step::Begin if !follows => {
                self.step = Step::Row { after: u64::MAX, entries: Vec::new() };
                Command::ReadShard(shard)
            }
            Step::Begin if !self.is_verified && state.origin().is_some() => {
                let verifier = Verifier::new(shard, state);
                let command = verifier.command();
                self.step = Step::Verify(verifier);
                command
            }
            Step::Begin if is_on(Mutant::RowFirst) => {
                self.step = Step::RowFirst;
                Command::ReadShard(shard)
            }
            Step::Begin => {
                self.step = Step::Entries { after: state.applied(), early_row: None };
                Command::Find(EntryId::new(shard, state.applied()))
            }
            Step::Entries { after, .. } => Command::Find(EntryId::new(shard, *after)),
            Step::RowFirst | Step::Row { .. } => Command::ReadShard(shard),
            Step::Verify(verifier) => verifier.command(),
            Step::Create(command) | Step::Floor(command) => command.clone(),
        }
    }

    /// Begins a pass again after a fault.
    pub(crate) fn restart(&mut self) {
        // The database may have been replaced meanwhile.
        *self = Self::default();
    }

    /// Processes an answer. `reads_row` is false while the row need not be read without entries;
    /// `nonce` is a random number for the identity of a new log.
    ///
    /// # Errors
    /// The state cannot apply an entry.
    pub(crate) fn accept(
        &mut self,
        answer: Answer,
        (reads_row, nonce): (bool, i64),
        state: &mut impl Shard,
    ) -> Result<Followed, ShardFault> {
        if let (Step::RowFirst | Step::Row { .. }, Answer::Shard(row)) = (&self.step, &answer) {
            match judge_row(row.as_ref(), self.follows, nonce, state)? {
                Origins::Same => {}
                Origins::Create(log, cut) => return Ok(self.create(log, cut)),
                Origins::Foreign(text) => return Ok(self.refuse(text)),
            }
        }
        match (std::mem::take(&mut self.step), answer) {
            (Step::Verify(verifier), answer) => {
                match verifier.accept(answer, (self.follows, nonce), state)? {
                    Verdict::Continues(verifier) => self.step = Step::Verify(verifier),
                    Verdict::Same => self.is_verified = true,
                    Verdict::Create(log, cut) => return Ok(self.create(log, cut)),
                    Verdict::Foreign(text) => return Ok(self.refuse(text)),
                }
                Ok(Followed::Continues)
            }
            (Step::Entries { early_row: Some(row), .. }, Answer::Entries(entries)) => {
                apply_in_order(&entries, state)?;
                Ok(end_of_pass(row, &entries))
            }
            (Step::Entries { .. }, Answer::Entries(entries))
                if entries.is_empty() && !reads_row =>
            {
                Ok(Followed::Nothing)
            }
            (Step::Entries { after, .. }, Answer::Entries(entries)) => {
                self.step = Step::Row { after, entries };
                Ok(Followed::Continues)
            }
            (Step::RowFirst, Answer::Shard(Some(row))) if row.cut > state.applied() => {
                Ok(Followed::Below(row))
            }
            (Step::RowFirst, Answer::Shard(Some(row))) => {
                self.step = Step::Entries { after: state.applied(), early_row: Some(row) };
                Ok(Followed::Continues)
            }
            // A node that becomes no member leaves the founding to others.
            (Step::RowFirst | Step::Row { .. }, Answer::Shard(None)) => {
                Ok(Followed::Row { row: ShardRow::default(), has_more: false })
            }
            (Step::Row { after, .. }, Answer::Shard(Some(row))) if row.cut > after => {
                Ok(Followed::Below(row))
            }
            (Step::Row { after, entries }, Answer::Shard(Some(row))) => {
                apply_in_order(&entries, state)?;
                // A full page behind a gap is read again after a pause.
                let rest = if state.applied() > after { &entries[..] } else { &[] };
                Ok(end_of_pass(row, rest))
            }
            // The row was created, or the floor raised.
            _ => Ok(Followed::Continues),
        }
    }

    fn create(&mut self, log: i64, cut: u64) -> Followed {
        self.step = Step::Create(Command::CreateShard { shard: self.shard, log, cut });
        Followed::Continues
    }

    fn refuse(&mut self, text: String) -> Followed {
        *self = Self::default();
        Followed::Foreign(text)
    }

    /// Sends a floor before the next pass.
    pub(crate) fn send_floor(&mut self, command: Command) {
        self.step = Step::Floor(command);
    }
}

fn end_of_pass(row: ShardRow, entries: &[Entry]) -> Followed {
    let bytes = entries.iter().map(|entry| entry.body.len()).sum::<usize>();
    let is_full = entries.len() >= FOUND_ENTRIES_MAX as usize || bytes >= FOUND_BYTES_MAX / 2;
    Followed::Row { row, has_more: is_full }
}

/// Returns the command with which a member leaves a shard; `None` for no member, and while no other
/// member has what was cut.
pub(crate) fn leave_command(shard: u16, row: &ShardRow, me: &NodeName) -> Option<Command> {
    let mut heirs = row.members.keys().filter(|node| *node != me && row.has_cut(node));
    let heir = heirs.next().filter(|_| row.members.contains_key(me))?.clone();
    Some(Command::Leave { shard, node: me.clone(), heir, cut: row.cut })
}

/// Returns the command that raises the floor of a node; `None` if the row already has it. A member
/// whose disk has fewer entries than the row says has lost some: it leaves, and joins again with
/// the entries that it has.
pub(crate) fn floor_command(
    shard: u16,
    row: &ShardRow,
    me: &NodeName,
    floor: u64,
) -> Option<Command> {
    let known = row.members.get(me);
    if known.is_some_and(|known| *known > floor) {
        return leave_command(shard, row, me);
    }
    let is_old = known.is_none_or(|known| *known < floor);
    is_old.then(|| Command::RaiseFloor { shard, node: me.clone(), floor, joins: known.is_none() })
}

/// Returns the command with which a node that needs a snapshot becomes a member. Its floor is below
/// the cut, so that it does not count as a member that has what was cut, and holds the cut back.
pub(crate) fn waiting_command(shard: u16, row: &ShardRow, me: &NodeName) -> Command {
    let floor = row.cut.saturating_sub(1);
    Command::RaiseFloor { shard, node: me.clone(), floor, joins: true }
}

/// Applies the entries that continue the state, up to a gap.
///
/// # Errors
/// The state cannot apply an entry.
pub(crate) fn apply_in_order(entries: &[Entry], state: &mut impl Shard) -> Result<(), ShardFault> {
    for entry in entries {
        let number = entry.id.number;
        if number <= state.applied() {
            continue;
        }
        if number != state.applied() + 1 {
            break;
        }
        note_fence(entry, state)?;
        state.apply(number, &entry.body)?;
    }
    Ok(())
}
