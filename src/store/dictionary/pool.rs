//! A pool: values that many series have in common, each kept once, by places.
//!
//! Must never know: what the values are of.

use std::{borrow::Borrow, collections::HashMap, hash::Hash};

use foldhash::fast::RandomState;

/// Values with how often each was taken.
#[derive(Debug)]
pub(super) struct Pool<T> {
    /// The value of each place, and the number of its users. Places without users are free.
    values: Vec<(T, usize)>,
    /// Seeded at random: senders choose the values.
    places: HashMap<T, u32, RandomState>,
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { values: Vec::new(), places: HashMap::default(), free: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Pool<T> {
    /// The place of a value that one more has.
    pub(super) fn take(&mut self, value: T) -> u32 {
        if let Some(place) = self.places.get(&value) {
            return self.take_again(*place);
        }
        let place = self.free.pop().unwrap_or(self.values.len() as u32);
        self.places.insert(value.clone(), place);
        if place as usize == self.values.len() {
            self.values.push((value, 1));
        } else {
            self.values[place as usize] = (value, 1);
        }
        place
    }

    /// Notes that one more has the value at a place, which somebody has.
    pub(super) fn take_again(&mut self, place: u32) -> u32 {
        self.values[place as usize].1 += 1;
        place
    }

    /// Notes that one less has the value at a place.
    pub(super) fn release(&mut self, place: u32) {
        let (value, count) = &mut self.values[place as usize];
        *count -= 1;
        if *count == 0 {
            self.places.remove(value);
            self.free.push(place);
        }
    }

    /// The value at a place that somebody has.
    pub(super) fn get(&self, place: u32) -> &T {
        &self.values[place as usize].0
    }

    /// The number of users of a value.
    pub(super) fn count<Q: Eq + Hash + ?Sized>(&self, value: &Q) -> usize
    where
        T: Borrow<Q>,
    {
        self.places.get(value).map_or(0, |place| self.values[*place as usize].1)
    }

    /// Values that somebody has.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The values that somebody has, with how many.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&T, usize)> {
        self.values.iter().filter(|(_, count)| *count > 0).map(|(value, count)| (value, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_nobody_has_gives_its_place_to_another() {
        let mut pool: Pool<String> = Pool::default();
        let places = ["a", "b", "a"].map(|value| pool.take(value.to_owned()));
        assert_eq!(places, [0, 1, 0]);
        assert_eq!([pool.count("a"), pool.count("b"), pool.count("c")], [2, 1, 0]);
        pool.release(0);
        assert_eq!((pool.len(), pool.get(0).as_str()), (2, "a"));
        pool.release(0);
        assert_eq!(pool.iter().collect::<Vec<_>>(), [(&"b".to_owned(), 1)]);
        assert_eq!([pool.take("c".to_owned()), pool.take("a".to_owned())], [0, 2]);
        assert_eq!(pool.get(1), "b");
    }
}
