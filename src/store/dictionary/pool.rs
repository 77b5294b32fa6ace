//! A pool of values that many series share: each value is stored once, at an index.
//!
//! Must never know: what the values mean.

use std::{borrow::Borrow, collections::HashMap, hash::Hash};

use foldhash::fast::RandomState;

/// Values, each with the number of its users: the series that share it.
#[derive(Debug)]
pub(super) struct Pool<T> {
    /// The value at each index, and the number of users of the value.
    values: Vec<(T, usize)>,
    /// The index of each value. The seed is random, because senders choose the values, and could
    /// choose values whose hashes collide.
    indexes: HashMap<T, u32, RandomState>,
    /// Indexes without users.
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { values: Vec::new(), indexes: HashMap::default(), free: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Pool<T> {
    /// Adds a user of a value; returns the index of the value.
    pub(super) fn add_user(&mut self, value: T) -> u32 {
        if let Some(index) = self.indexes.get(&value) {
            return self.add_user_at(*index);
        }
        let index = self.free.pop().unwrap_or(self.values.len() as u32);
        self.indexes.insert(value.clone(), index);
        if index as usize == self.values.len() {
            self.values.push((value, 1));
        } else {
            self.values[index as usize] = (value, 1);
        }
        index
    }

    /// Adds a user of the value at an index that has users; returns the index.
    pub(super) fn add_user_at(&mut self, index: u32) -> u32 {
        self.values[index as usize].1 += 1;
        index
    }

    /// Removes a user of the value at an index.
    pub(super) fn remove_user(&mut self, index: u32) {
        let (value, count) = &mut self.values[index as usize];
        *count -= 1;
        if *count == 0 {
            self.indexes.remove(value);
            self.free.push(index);
        }
    }

    /// Returns the value at an index that has users.
    pub(super) fn get(&self, index: u32) -> &T {
        &self.values[index as usize].0
    }

    /// Returns the number of users of a value.
    pub(super) fn user_count<Q: Eq + Hash + ?Sized>(&self, value: &Q) -> usize
    where
        T: Borrow<Q>,
    {
        self.indexes.get(value).map_or(0, |index| self.values[*index as usize].1)
    }

    /// Returns the number of values that have users.
    pub(super) fn len(&self) -> usize {
        self.indexes.len()
    }

    /// Returns the values that have users, each with the number of its users.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&T, usize)> {
        self.values.iter().filter(|(_, count)| *count > 0).map(|(value, count)| (value, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_a_value_without_users_is_reused() {
        let mut pool: Pool<String> = Pool::default();
        let indexes = ["a", "b", "a"].map(|value| pool.add_user(value.to_owned()));
        assert_eq!(indexes, [0, 1, 0]);
        assert_eq!([pool.user_count("a"), pool.user_count("b"), pool.user_count("c")], [2, 1, 0]);
        pool.remove_user(0);
        assert_eq!((pool.len(), pool.get(0).as_str()), (2, "a"));
        pool.remove_user(0);
        assert_eq!(pool.iter().collect::<Vec<_>>(), [(&"b".to_owned(), 1)]);
        assert_eq!([pool.add_user("c".to_owned()), pool.add_user("a".to_owned())], [0, 2]);
        assert_eq!(pool.get(1), "b");
    }
}
