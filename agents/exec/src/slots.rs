//! A limit on concurrent scripts: further scripts wait for a slot. After `end_all`, no script
//! starts.

use std::{
    io::{self, PipeReader, PipeWriter, pipe},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use granary_agent_kit::Stopwatch;

/// The slots of scripts: a script runs while it holds a slot.
#[derive(Debug)]
pub(crate) struct RunSlots {
    state: Mutex<State>,
    slot_returned: Condvar,
    /// A pipe whose writing end is closed when running scripts must end.
    end: PipeReader,
}

#[derive(Debug)]
struct State {
    used: usize,
    max: usize,
    /// `None` after `end_all`.
    open: Option<PipeWriter>,
}

/// A slot, which becomes free when this value is dropped.
#[derive(Debug)]
pub(crate) struct RunSlot<'a>(&'a RunSlots);

impl RunSlots {
    pub(crate) fn new(max: usize) -> io::Result<Self> {
        let (end, open) = pipe()?;
        let state = Mutex::new(State { used: 0, max, open: Some(open) });
        Ok(Self { state, slot_returned: Condvar::new(), end })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot. Returns `None` after `end_all`. The wait is finite, because scripts have a
    /// time limit.
    pub(crate) fn acquire(&self) -> Option<RunSlot<'_>> {
        let is_full = |state: &mut State| state.used >= state.max && state.open.is_some();
        let wait_result = self.slot_returned.wait_while(self.state(), is_full);
        let mut state = wait_result.unwrap_or_else(PoisonError::into_inner);
        state.open.as_ref()?;
        state.used += 1;
        Some(RunSlot(self))
    }

    /// Ends all running scripts and waits for them. Returns false when a script is still running at
    /// the deadline.
    pub(crate) fn end_all(&self, deadline: Duration) -> bool {
        let watch = Stopwatch::start();
        let mut state = self.state();
        state.open = None;
        self.slot_returned.notify_all();
        while state.used > 0 {
            let left = watch.left_of(deadline);
            if left.is_zero() {
                return false;
            }
            let wait_result = self.slot_returned.wait_timeout(state, left);
            (state, _) = wait_result.unwrap_or_else(PoisonError::into_inner);
        }
        true
    }
}

impl RunSlot<'_> {
    /// Returns a pipe that becomes readable when running scripts must end.
    pub(crate) fn end(&self) -> &PipeReader {
        &self.0.end
    }
}

impl Drop for RunSlot<'_> {
    fn drop(&mut self) {
        self.0.state().used -= 1;
        // `acquire` and `end_all` wait for this condition.
        self.0.slot_returned.notify_all();
    }
}
