//! The requests that signals make of an agent.
//!
//! Must never know: how the agent responds.

use std::{
    io,
    sync::mpsc::{Receiver, TrySendError, sync_channel},
    thread,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};
use tracing::info;

/// The request of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// Stop, by SIGTERM or SIGINT.
    Stop,
    /// Read the settings again, by SIGHUP.
    PlanAgain,
}

/// Returns a channel that receives a word for each signal. When it is full, the same request is
/// already waiting.
pub(crate) fn words() -> io::Result<Receiver<Word>> {
    let (words, heard) = sync_channel(8);
    let all = [SIGTERM, SIGINT, SIGHUP];
    let mut signals = Signals::new(all)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let word = if signal == SIGHUP { Word::PlanAgain } else { Word::Stop };
            info!(signal, ?word, "heard a signal");
            if let Err(TrySendError::Disconnected(_)) = words.try_send(word) {
                return;
            }
        }
    })?;
    Ok(heard)
}
