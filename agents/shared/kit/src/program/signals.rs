//! What signals ask an agent for.
//!
//! Must never know: what it does then.

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

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGHUP.
    PlanAgain,
}

/// A channel that gets a word at each signal; full means that as much was asked for already.
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
