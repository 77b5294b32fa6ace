//! A limit on concurrent scripts: the others wait for a turn. After the end no script runs.

use std::{
    io::{self, PipeReader, PipeWriter, pipe},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use granary_agent_kit::Stopwatch;

/// The free turns.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    given_back: Condvar,
    /// A pipe whose other end is closed when running scripts have to end.
    end: PipeReader,
}

#[derive(Debug)]
struct State {
    given: usize,
    most: usize,
    /// `None` after the end.
    open: Option<PipeWriter>,
}

/// A turn, which is returned when it is dropped.
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

    /// Waits for a turn. Returns `None` after the end. Every turn is returned, because programs
    /// have a time limit.
    pub(crate) fn take(&self) -> Option<Turn<'_>> {
        let is_full = |state: &mut State| state.given >= state.most && state.open.is_some();
        let waited = self.given_back.wait_while(self.state(), is_full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.open.as_ref()?;
        state.given += 1;
        Some(Turn(self))
    }

    /// Ends all running scripts and waits for them. Returns false when they take too long.
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
    /// A pipe that becomes readable at the end.
    pub(crate) fn end(&self) -> &PipeReader {
        &self.0.end
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().given -= 1;
        // Threads that wait for the end are woken.
        self.0.given_back.notify_all();
    }
}
