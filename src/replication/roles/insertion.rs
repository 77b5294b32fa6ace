//! The insert of one entry at one number, until its outcome is known.
//!
//! After an unknown outcome, the same entry is sent again: another number or other bytes could
//! leave two copies. A duplicate key may be the entry itself, whose answer was lost, so a read
//! decides by the nonce.

use crate::replication::{
    entry::Entry,
    medium::{Answer, Command, Inserted},
    mutants::{Mutant, is_on},
};

/// An entry whose insert is not decided.
#[derive(Debug)]
pub(crate) struct Insertion {
    entry: Entry,
    /// True if a duplicate key was found and must be read.
    reads: bool,
}

/// The result of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The next command must be sent.
    Undecided,
    /// A majority has the entry.
    Own,
    /// Another entry has the number.
    Others,
}

impl Insertion {
    pub(crate) fn new(entry: Entry) -> Self {
        Self { entry, reads: false }
    }

    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns the next command.
    pub(crate) fn command(&self) -> Command {
        if self.reads {
            Command::ReadEntry(self.entry.id)
        } else {
            Command::Insert(vec![self.entry.clone()])
        }
    }

    /// Judges the answer to the last command. A fault changes nothing, so that the command is sent
    /// again.
    pub(crate) fn judge(&mut self, answer: &Answer) -> Settled {
        match answer {
            Answer::Inserted(outcomes) if outcomes.first() == Some(&Inserted::Done) => Settled::Own,
            Answer::Inserted(_) if is_on(Mutant::DuplicateIsOwn) => Settled::Own,
            Answer::Inserted(_) => {
                self.reads = true;
                Settled::Undecided
            }
            Answer::Entry(Some(found)) if found.nonce == self.entry.nonce => Settled::Own,
            Answer::Entry(Some(_)) => Settled::Others,
            // No majority has the entry that is there, or a rollback removed it.
            _ => {
                self.reads = false;
                Settled::Undecided
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::entry::{Body, EntryId};

    fn entry(nonce: i64) -> Entry {
        Entry { id: EntryId::new(1, 5), epoch: 2, nonce, body: Body::Record([1][..].into()) }
    }

    #[test]
    fn an_undecided_entry_keeps_its_number_bytes_and_nonce() {
        let mut insertion = Insertion::new(entry(7));
        let insert = insertion.command();
        assert_eq!(insert, Command::Insert(vec![entry(7)]));
        let duplicate = Answer::Inserted(vec![Inserted::Duplicate]);
        assert_eq!(insertion.judge(&duplicate), Settled::Undecided);
        assert_eq!(insertion.command(), Command::ReadEntry(EntryId::new(1, 5)));
        // The entry that caused the duplicate was rolled back.
        assert_eq!(insertion.judge(&Answer::Entry(None)), Settled::Undecided);
        assert_eq!(insertion.command(), insert);
        assert_eq!(insertion.judge(&duplicate), Settled::Undecided);
        assert_eq!(insertion.judge(&Answer::Entry(Some(entry(7)))), Settled::Own);
    }

    #[test]
    fn an_entry_with_another_nonce_is_another_holders() {
        let mut insertion = Insertion::new(entry(7));
        assert_eq!(
            insertion.judge(&Answer::Inserted(vec![Inserted::Duplicate])),
            Settled::Undecided
        );
        assert_eq!(insertion.judge(&Answer::Entry(Some(entry(8)))), Settled::Others);
    }
}
