//! The task that inserts the records of all replicas of a node: those that come while a command is
//! in flight share the next one.

use std::sync::Arc;

use tokio::{
    runtime::Handle,
    sync::mpsc::{Receiver, Sender, channel, error::TrySendError},
};

use crate::replication::{
    entry::SHARDS_MAX,
    gather::{INSERT_ENTRIES_MAX, divide, gather},
    medium::{Answer, Command, Fault, Medium},
};

/// The function that passes on an outcome.
type Reply = Box<dyn FnOnce(Result<Answer, Fault>) + Send>;

/// The queue of the task.
#[derive(Clone, Debug)]
pub struct Writer(Sender<Insert>);

struct Insert {
    command: Command,
    reply: Reply,
}

impl Writer {
    /// Starts the task.
    pub fn start(runtime: &Handle, medium: Arc<dyn Medium>) -> Self {
        // Each shard has one insert in flight.
        let (sender, receiver) = channel(usize::from(SHARDS_MAX));
        runtime.spawn(run(receiver, medium));
        Self(sender)
    }

    /// Queues an insert. A full queue counts as an unknown outcome: the replica tries again.
    pub(super) fn insert(&self, command: Command, reply: Reply) {
        match self.0.try_send(Insert { command, reply }) {
            Ok(()) => {}
            Err(TrySendError::Full(insert) | TrySendError::Closed(insert)) => {
                (insert.reply)(Err(Fault("too many inserts wait".to_owned())));
            }
        }
    }
}

async fn run(mut queue: Receiver<Insert>, medium: Arc<dyn Medium>) {
    let mut inserts = Vec::new();
    while queue.recv_many(&mut inserts, INSERT_ENTRIES_MAX).await > 0 {
        let commands = inserts.drain(..).map(|insert| (insert.reply, insert.command)).collect();
        for gathered in gather(commands) {
            let outcome = medium.execute(gathered.command).await;
            for (reply, outcome) in divide(gathered.senders, &outcome) {
                reply(outcome);
            }
        }
    }
}
