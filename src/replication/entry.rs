//! Entries of the log, their numbers, and the row of a shard.
//!
//! Must never know: how entries are stored, who appends them.

use std::{collections::BTreeMap, fmt, sync::Arc};

/// The maximum length of a record. A document of MongoDB has at most 16 MiB.
pub const RECORD_BYTES_MAX: usize = 8 << 20;
/// The maximum number of shards.
pub const SHARDS_MAX: u16 = 1 << 10;
/// The number of bits of an entry's number within its key.
const NUMBER_BITS: u32 = 48;
/// The largest number of an entry.
pub const NUMBER_MAX: u64 = (1 << NUMBER_BITS) - 1;
/// The maximum length of the name of a node.
const NAME_CHARS_MAX: usize = 64;

/// The identifier of an entry: its shard, and its number within the shard. Numbers begin with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    /// The shard.
    pub shard: u16,
    /// The number within the shard.
    pub number: u64,
}

impl EntryId {
    /// Returns the identifier of an entry.
    pub fn new(shard: u16, number: u64) -> Self {
        Self { shard, number }
    }

    /// Returns the key of the entry in the database, which orders the entries of a shard.
    ///
    /// # Panics
    /// The shard or the number is too large.
    pub fn key(self) -> i64 {
        assert!(self.shard < SHARDS_MAX && self.number <= NUMBER_MAX, "no entry: {self:?}");
        (i64::from(self.shard) << NUMBER_BITS) | self.number as i64
    }

    /// Returns the identifier with a key; `None` for a key of no entry.
    pub fn of_key(key: i64) -> Option<Self> {
        let shard = u16::try_from(key >> NUMBER_BITS).ok().filter(|shard| *shard < SHARDS_MAX)?;
        Some(Self { shard, number: key as u64 & NUMBER_MAX })
    }
}

/// The content of an entry.
#[derive(Clone, PartialEq, Eq)]
pub enum Body {
    /// A change of the shard's state.
    Record(Arc<[u8]>),
    /// The end of all earlier epochs.
    Fence,
}

impl Body {
    /// Returns the number of bytes of the content.
    pub fn len(&self) -> usize {
        match self {
            Self::Record(bytes) => bytes.len(),
            Self::Fence => 0,
        }
    }

    /// Returns true for a fence and for a record without bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Fence => f.write_str("fence"),
        }
    }
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The identifier.
    pub id: EntryId,
    /// The epoch of the holder that inserted the entry.
    pub epoch: u64,
    /// A random number, by which a holder recognizes its own entry.
    pub nonce: i64,
    /// The content.
    pub body: Body,
}

/// The name of a node: ASCII letters, digits, `-` and `_`, because it is part of field names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Arc<str>);

impl NodeName {
    /// Checks a name.
    ///
    /// # Errors
    /// The name is empty or too long, or contains other characters.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if text.is_empty() || text.len() > NAME_CHARS_MAX || !text.chars().all(is_plain) {
            return Err(format!(
                "{text:?} is no name of a node; use 1 to {NAME_CHARS_MAX} letters, digits, - and _"
            ));
        }
        Ok(Self(text.into()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The beat of a holder that stopped cleanly: the next holder need not wait.
pub const STOPPED: i64 = -1;

/// The row of a shard: its lease, its cut and its members.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShardRow {
    /// The identity of the log, a random number.
    pub log: i64,
    /// The epoch of the last holder; 0 before the first one.
    pub epoch: u64,
    /// The last holder.
    pub holder: Option<NodeName>,
    /// A number that the holder increases at each renewal, or [`STOPPED`].
    pub beat: i64,
    /// The number up to which records may be deleted. It never falls.
    pub cut: u64,
    /// The members, each with the number up to which its disk has all entries.
    pub members: BTreeMap<NodeName, u64>,
}

impl ShardRow {
    /// Returns true for a member whose disk has all entries that may be deleted.
    pub fn has_cut(&self, node: &NodeName) -> bool {
        self.members.get(node).is_some_and(|floor| *floor >= self.cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_the_entries_of_a_shard_and_name_them() {
        let ids = [(0, 1), (0, (1 << 48) - 1), (1, 0), (1, 7), (SHARDS_MAX - 1, 3)];
        let ids = ids.map(|(shard, number)| EntryId::new(shard, number));
        assert!(ids.is_sorted_by_key(|id| id.key()));
        for id in ids {
            assert_eq!(EntryId::of_key(id.key()), Some(id));
        }
        assert_eq!(EntryId::of_key(-1), None);
        assert_eq!(EntryId::of_key(i64::MAX), None);
    }

    #[test]
    fn names_that_are_no_field_names_are_refused() {
        assert!(NodeName::parse("rack-1_b").is_ok());
        for text in ["", "a.b", "$set", "a b", &"x".repeat(65)] {
            assert!(NodeName::parse(text).is_err(), "{text}");
        }
    }
}
