//! Commands that are committed together, and the replies to each of them.
//!
//! Must never know: the journal, the linger time.

use tokio::sync::oneshot;

use super::{Command, Reply, SingleCommand, WriteFault};
use crate::model::{AcceptedBatch, BatchVerdict, DefinitionVerdict, GroupVerdict, SeriesInfo};

/// The size of batches at which a group is closed, so that a commit stays short.
const GROUP_BYTES: usize = 4 << 20;

/// Commands that share one commit.
#[derive(Default)]
pub(super) struct CommandGroup {
    pub(super) definitions: Vec<SeriesInfo>,
    define_replies: Vec<(usize, Reply<Vec<DefinitionVerdict>>)>,
    pub(super) batches: Vec<AcceptedBatch>,
    append_replies: Vec<(usize, Reply<Vec<BatchVerdict>>)>,
    pub(super) weight: usize,
    pub(super) samples: usize,
    pub(super) commands: usize,
    /// A command that is executed after the other commands are committed; it ends the group.
    pub(super) single: Option<SingleCommand>,
    pub(super) stop: Option<oneshot::Sender<()>>,
}

impl CommandGroup {
    pub(super) fn add(&mut self, command: Command) {
        self.commands += 1;
        match command {
            Command::Define { definitions, reply } => {
                self.define_replies.push((definitions.len(), reply));
                self.definitions.extend(definitions);
            }
            Command::Append { batches, reply } => {
                self.weight += batches.iter().map(AcceptedBatch::weight).sum::<usize>();
                self.samples += batches.iter().map(|batch| batch.values.len()).sum::<usize>();
                self.append_replies.push((batches.len(), reply));
                self.batches.extend(batches);
            }
            Command::SingleCommand(single) => self.single = Some(single),
            Command::Stop { reply } => self.stop = Some(reply),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.weight < GROUP_BYTES && self.single.is_none() && self.stop.is_none()
    }

    pub(super) fn has_writes(&self) -> bool {
        !(self.definitions.is_empty() && self.batches.is_empty())
    }

    /// Refuses the batches of each command that does not fit.
    pub(super) fn refuse_unless(
        &mut self,
        mut has_room: impl FnMut(&[AcceptedBatch]) -> bool,
        fault: &WriteFault,
    ) {
        let mut batches = std::mem::take(&mut self.batches).into_iter();
        for (count, reply) in std::mem::take(&mut self.append_replies) {
            let command_batches: Vec<_> = batches.by_ref().take(count).collect();
            if has_room(&command_batches) {
                self.batches.extend(command_batches);
                self.append_replies.push((count, reply));
            } else {
                deliver(reply, Err(fault.clone()));
            }
        }
    }

    /// Refuses all commands but a stop.
    pub(super) fn refuse(&mut self, fault: &WriteFault) {
        let (definitions, single) = (std::mem::take(&mut self.definitions), self.single.take());
        drop(definitions);
        for (_, reply) in std::mem::take(&mut self.define_replies) {
            deliver(reply, Err(fault.clone()));
        }
        self.refuse_unless(|_| false, fault);
        match single {
            None => {}
            Some(SingleCommand::Change { reply, .. }) => deliver(reply, Err(fault.clone())),
            Some(SingleCommand::ChangeKinds { reply, .. }) => deliver(reply, Err(fault.clone())),
            Some(SingleCommand::Erase { reply, .. }) => deliver(reply, Err(fault.clone())),
            Some(SingleCommand::Replace { reply, .. }) => deliver(reply, Err(fault.clone())),
            Some(
                SingleCommand::ForgetSenders { reply, .. }
                | SingleCommand::ForgetSeries { reply, .. },
            ) => {
                deliver(reply, Err(fault.clone()));
            }
        }
    }

    pub(super) fn answer(self, result: Result<GroupVerdict, WriteFault>) {
        match result {
            Ok(verdict) => {
                distribute(self.define_replies, verdict.definitions);
                distribute(self.append_replies, verdict.batches);
            }
            Err(fault) => {
                for (_, reply) in self.define_replies {
                    deliver(reply, Err(fault.clone()));
                }
                for (_, reply) in self.append_replies {
                    deliver(reply, Err(fault.clone()));
                }
            }
        }
    }
}

fn distribute<T>(replies: Vec<(usize, Reply<Vec<T>>)>, verdicts: Vec<T>) {
    let mut verdicts = verdicts.into_iter();
    for (count, reply) in replies {
        deliver(reply, Ok(verdicts.by_ref().take(count).collect()));
    }
}

pub(super) fn deliver<T>(reply: Reply<T>, result: Result<T, WriteFault>) {
    // A client that disconnected is ignored; its batch is numbered and will be sent again.
    drop(reply.send(result));
}
