//! The gathering of inserts: all shards of a node that append at the same time share a command.
//!
//! Must never know: who sends the commands.

use crate::replication::{
    entry::Entry,
    medium::{Answer, Command, Fault},
};

/// The maximum number of entries of a command.
pub const INSERT_ENTRIES_MAX: usize = 1000;
/// The maximum number of bytes of records in a command. One record always fits.
pub const INSERT_BYTES_MAX: usize = 16 << 20;

/// A command for several senders.
#[derive(Debug)]
pub struct Gathered<S> {
    /// The senders, of an insert in the order of its entries.
    pub senders: Vec<S>,
    /// The command.
    pub command: Command,
}

/// Gathers the inserts of many senders, each with one entry, into as few commands as the limits
/// allow. Other commands stay alone.
pub fn gather<S>(commands: Vec<(S, Command)>) -> Vec<Gathered<S>> {
    let mut gathered = Vec::new();
    let (mut senders, mut entries, mut bytes) = (Vec::new(), Vec::<Entry>::new(), 0);
    for (sender, command) in commands {
        let Command::Insert(mut more) = command else {
            gathered.push(Gathered { senders: vec![sender], command });
            continue;
        };
        let more_bytes = more.iter().map(|entry| entry.body.len()).sum::<usize>();
        let is_full = entries.len() >= INSERT_ENTRIES_MAX || bytes + more_bytes > INSERT_BYTES_MAX;
        if is_full && !entries.is_empty() {
            let command = Command::Insert(std::mem::take(&mut entries));
            gathered.push(Gathered { senders: std::mem::take(&mut senders), command });
            bytes = 0;
        }
        bytes += more_bytes;
        entries.append(&mut more);
        senders.push(sender);
    }
    if !entries.is_empty() {
        gathered.push(Gathered { senders, command: Command::Insert(entries) });
    }
    gathered
}

/// Divides the outcome of a gathered command among its senders.
pub fn divide<S>(
    senders: Vec<S>,
    outcome: &Result<Answer, Fault>,
) -> Vec<(S, Result<Answer, Fault>)> {
    let outcomes = match outcome {
        Ok(Answer::Inserted(outcomes)) if outcomes.len() == senders.len() => outcomes.clone(),
        _ => return senders.into_iter().map(|sender| (sender, outcome.clone())).collect(),
    };
    let answers = outcomes.into_iter().map(|outcome| Ok(Answer::Inserted(vec![outcome])));
    senders.into_iter().zip(answers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::{
        entry::{Body, EntryId},
        medium::Inserted,
    };

    fn insert(shard: u16, bytes: usize) -> Command {
        let body = Body::Record(vec![0; bytes].into());
        Command::Insert(vec![Entry { id: EntryId::new(shard, 1), epoch: 1, nonce: 1, body }])
    }

    #[test]
    fn inserts_share_a_command_up_to_its_bytes() {
        let sizes = [8 << 20, 1, 8 << 20, 8 << 20, 5];
        let mut commands: Vec<_> =
            (0..).zip(sizes).map(|(shard, bytes)| (shard, insert(shard, bytes))).collect();
        commands.insert(2, (9, Command::ReadShard(9)));
        let gathered = gather(commands);
        let senders: Vec<_> = gathered.iter().map(|command| command.senders.clone()).collect();
        assert_eq!(senders, [vec![9], vec![0, 1], vec![2, 3], vec![4]]);
    }

    #[test]
    fn each_sender_gets_the_outcome_of_its_entry() {
        let outcomes = vec![Inserted::Done, Inserted::Duplicate];
        let divided = divide(vec!['a', 'b'], &Ok(Answer::Inserted(outcomes)));
        let answer = |outcome| Ok(Answer::Inserted(vec![outcome]));
        assert_eq!(divided, [('a', answer(Inserted::Done)), ('b', answer(Inserted::Duplicate))]);
        let fault = Err(Fault("lost".to_owned()));
        assert_eq!(divide(vec!['a', 'b'], &fault), [('a', fault.clone()), ('b', fault)]);
    }
}
