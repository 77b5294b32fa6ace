//! The end of a store: its files are closed when the last handle is dropped.
//!
//! Must never know: who holds a handle, and why the store is closed.

use std::{convert::Infallible, time::Duration};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::Store;

/// A guard that is dropped after the files of a store.
#[derive(Debug)]
pub(crate) struct OpenStore {
    _held: Sender<Infallible>,
    dropped: Receiver<Infallible>,
}

impl Default for OpenStore {
    fn default() -> Self {
        let (held, dropped) = bounded(0);
        Self { _held: held, dropped }
    }
}

/// A handle that waits until a store is closed; it does not keep the store open.
#[derive(Debug)]
pub struct ClosedStore(Receiver<Infallible>);

impl ClosedStore {
    /// Waits until all handles of the store are dropped and its files are closed; returns false
    /// when this takes longer than `limit`.
    pub fn wait(&self, limit: Duration) -> bool {
        matches!(self.0.recv_timeout(limit), Err(RecvTimeoutError::Disconnected))
    }
}

impl Store {
    /// Returns a handle that waits until the store is closed.
    pub fn closed(&self) -> ClosedStore {
        ClosedStore(self.inner.open.dropped.clone())
    }
}
