//! So many run at once; the others wait for their turn. At the end nothing runs any more.

use std::{
    io::{self, PipeReader, PipeWriter, pipe},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use granary_agent_kit::Stopwatch;

/// Turns that are free.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    given_back: Condvar,
    /// Closed at its other end when those that run are to end.
    end: PipeReader,
}

#[derive(Debug)]
struct State {
    given: usize,
    most: usize,
    /// None when there are no more turns.
    open: Option<PipeWriter>,
}

/// A turn, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a Turns);

impl Turns {
    pub(crate) fn new(most: usize) -> io::Result<Self> {
        let (end, open) = pipe()?;
        let state = Mutex::new(State { given: 0, most, open: Some(open) });
        Ok(Self { state, given_back: Condvar::new(), end })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn; none at the end. Whoever has one gives it back: each program has a time.
    pub(crate) fn take(&self) -> Option<Turn<'_>> {
        let is_full = |state: &mut State| state.given >= state.most && state.open.is_some();
        let waited = self.given_back.wait_while(self.state(), is_full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.open.as_ref()?;
        state.given += 1;
        Some(Turn(self))
    }

    /// Tells all that run to end, and waits until they have; false when they take longer.
    pub(crate) fn end(&self, deadline: Duration) -> bool {
        let watch = Stopwatch::start();
        let mut state = self.state();
        state.open = None;
        self.given_back.notify_all();
        while state.given > 0 {
            let left = watch.left_of(deadline);
            if left.is_zero() {
                return false;
            }
            let waited = self.given_back.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        true
    }
}

impl Turn<'_> {
    /// Can be read when it is time to end.
    pub(crate) fn end(&self) -> &PipeReader {
        &self.0.end
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().given -= 1;
        // Whoever waits for the end is not passed over.
        self.0.given_back.notify_all();
    }
}
