//! A limit on concurrent scripts: more scripts wait for a turn. After the end, no script starts.

use std::{
    io::{self, PipeReader, PipeWriter, pipe},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use granary_agent_kit::Stopwatch;

/// The turns of scripts: a script runs while it holds a turn.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    returned: Condvar,
    /// A pipe whose other end is closed when running scripts have to end.
    end: PipeReader,
}

#[derive(Debug)]
struct State {
    taken: usize,
    max: usize,
    /// `None` after the end.
    open: Option<PipeWriter>,
}

/// A turn, which becomes free when this value is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a Turns);

impl Turns {
    pub(crate) fn new(max: usize) -> io::Result<Self> {
        let (end, open) = pipe()?;
        let state = Mutex::new(State { taken: 0, max, open: Some(open) });
        Ok(Self { state, returned: Condvar::new(), end })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn. Returns `None` after the end. The wait is finite, because scripts have a
    /// time limit.
    pub(crate) fn take(&self) -> Option<Turn<'_>> {
        let is_full = |state: &mut State| state.taken >= state.max && state.open.is_some();
        let waited = self.returned.wait_while(self.state(), is_full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.open.as_ref()?;
        state.taken += 1;
        Some(Turn(self))
    }

    /// Ends all running scripts and waits for them. Returns false when a script is still running at
    /// the deadline.
    pub(crate) fn end(&self, deadline: Duration) -> bool {
        let watch = Stopwatch::start();
        let mut state = self.state();
        state.open = None;
        self.returned.notify_all();
        while state.taken > 0 {
            let left = watch.left_of(deadline);
            if left.is_zero() {
                return false;
            }
            let waited = self.returned.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        true
    }
}

impl Turn<'_> {
    /// Returns a pipe that becomes readable when running scripts have to end.
    pub(crate) fn end(&self) -> &PipeReader {
        &self.0.end
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().taken -= 1;
        // `take` and `end` wait for this condition.
        self.0.returned.notify_all();
    }
}
