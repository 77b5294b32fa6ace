//! The signals that stop the daemon or let it read its settings again. Once [`Signals`] is created,
//! no signal is lost, not even while the store is opened again.
//!
//! Must never know: what follows from a signal.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals of the daemon.
pub(super) struct Signals {
    pub(super) stop: StopSignals,
    pub(super) reload: ReloadSignal,
}

impl Signals {
    pub(super) fn new() -> Self {
        let listen = |kind| signal(kind).ok();
        let stop = listen(SignalKind::terminate()).zip(listen(SignalKind::interrupt()));
        if stop.is_none() {
            tracing::error!("cannot listen for signals; stop the daemon with SIGKILL");
        }
        let reload = listen(SignalKind::hangup());
        if reload.is_none() {
            tracing::error!("cannot listen for SIGHUP; reload with POST /-/reload");
        }
        Self { stop: StopSignals(stop), reload: ReloadSignal(reload) }
    }
}

/// SIGTERM and SIGINT.
pub(super) struct StopSignals(Option<(Signal, Signal)>);

impl StopSignals {
    /// Waits for the next signal; forever without a listener.
    pub(super) async fn next(&mut self) {
        let Some((term, int)) = &mut self.0 else { return std::future::pending().await };
        tokio::select! {
            _ = term.recv() => tracing::info!(signal = "SIGTERM", "stopping on request"),
            _ = int.recv() => tracing::info!(signal = "SIGINT", "stopping on request"),
        }
    }
}

/// SIGHUP.
pub(super) struct ReloadSignal(Option<Signal>);

impl ReloadSignal {
    /// Waits for the next signal; forever without a listener.
    pub(super) async fn next(&mut self) {
        if let Some(signal) = &mut self.0
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
