//! The requests that signals send to an agent.
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
pub(crate) enum SignalRequest {
    /// Stop, by SIGTERM or SIGINT.
    Stop,
    /// Reload the settings, by SIGHUP.
    PlanAgain,
}

/// Returns a channel that receives a request for each signal. When the channel is full, a signal is
/// dropped, because requests are already waiting.
pub(crate) fn signal_requests() -> io::Result<Receiver<SignalRequest>> {
    let (sender, receiver) = sync_channel(8);
    let all = [SIGTERM, SIGINT, SIGHUP];
    let mut signals = Signals::new(all)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let request =
                if signal == SIGHUP { SignalRequest::PlanAgain } else { SignalRequest::Stop };
            info!(signal, ?request, "received a signal");
            if let Err(TrySendError::Disconnected(_)) = sender.try_send(request) {
                return;
            }
        }
    })?;
    Ok(receiver)
}
