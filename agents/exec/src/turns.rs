//! So many run at once; the others wait for their turn.

use std::sync::{Condvar, Mutex, PoisonError};

/// Turns that are free.
#[derive(Debug)]
pub(crate) struct Turns {
    free: Mutex<usize>,
    given_back: Condvar,
}

/// A turn, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a Turns);

impl Turns {
    pub(crate) fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), given_back: Condvar::new() }
    }

    /// Waits for a turn. Whoever has one gives it back: each program has a time.
    pub(crate) fn take(&self) -> Turn<'_> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.given_back.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.given_back.notify_one();
    }
}
