//! The claim of a process to beat under a node's name: two processes with the same address, or with
//! copies of the same settings, must not count as one member.
//!
//! Must never know: the medium, clocks.

use crate::replication::medium::NodeRow;

/// The number of reads, one a second, in which another process must not beat before its name can be
/// used.
const QUIET_READS: u32 = 4;

/// A claim in progress.
#[derive(Debug)]
pub struct NameClaim {
    run: i64,
    /// The last process that used the same data directory, which has ended.
    previous: Option<i64>,
    seen: Option<(i64, i64)>,
    quiet: u32,
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// The process may beat.
    Own,
    /// The next read shows more.
    Waits,
    /// The row can be claimed, if it is still the same.
    Free {
        /// The process and the beat in the row; `None` without a row.
        seen: Option<(i64, i64)>,
        /// True if another process used the name, whose lease may still be valid.
        is_others: bool,
    },
    /// Another process beats under the name, from this address.
    Taken(String),
}

impl NameClaim {
    /// Creates the claim of a process. `previous` is the last process with the same data directory.
    pub fn new(run: i64, previous: Option<i64>) -> Self {
        Self { run, previous, seen: None, quiet: 0 }
    }

    /// Processes a read of the node's row.
    pub fn note(&mut self, row: Option<&NodeRow>) -> Claimed {
        let Some(row) = row else { return Claimed::Free { seen: None, is_others: false } };
        let now = (row.run, row.beat);
        if row.run == self.run {
            return Claimed::Own;
        }
        if Some(row.run) == self.previous {
            return Claimed::Free { seen: Some(now), is_others: false };
        }
        match self.seen.replace(now) {
            Some(last) if last == now => self.quiet += 1,
            Some(_) => return Claimed::Taken(row.address.clone()),
            None => self.quiet = 0,
        }
        if self.quiet < QUIET_READS {
            return Claimed::Waits;
        }
        Claimed::Free { seen: Some(now), is_others: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::entry::NodeName;

    fn row(run: i64, beat: i64) -> NodeRow {
        let node = NodeName::parse("a").unwrap();
        NodeRow { node, address: "https://a:1".to_owned(), beat, run, rules: String::new() }
    }

    #[test]
    fn the_next_process_of_a_data_directory_uses_the_name_at_once() {
        let mut claim = NameClaim::new(2, Some(1));
        let free = Claimed::Free { seen: Some((1, 7)), is_others: false };
        assert_eq!(claim.note(Some(&row(1, 7))), free);
        assert_eq!(claim.note(Some(&row(2, 7))), Claimed::Own);
        let free = Claimed::Free { seen: None, is_others: false };
        assert_eq!(NameClaim::new(2, None).note(None), free);
    }

    #[test]
    fn another_process_keeps_its_name_while_it_beats() {
        let mut claim = NameClaim::new(2, Some(1));
        assert_eq!(claim.note(Some(&row(9, 7))), Claimed::Waits);
        assert_eq!(claim.note(Some(&row(9, 8))), Claimed::Taken("https://a:1".to_owned()));
        let mut claim = NameClaim::new(2, None);
        for _ in 0..QUIET_READS {
            assert_eq!(claim.note(Some(&row(9, 7))), Claimed::Waits);
        }
        let free = Claimed::Free { seen: Some((9, 7)), is_others: true };
        assert_eq!(claim.note(Some(&row(9, 7))), free);
    }
}
