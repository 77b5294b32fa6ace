//! Notifications for systemd: ready, stopping, and alive.
//!
//! Must never know: the roles.

/// Notifies systemd that the event loop runs, at half of the watchdog's interval.
pub(super) fn feed_watchdog() {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    actix::spawn(async move {
        loop {
            notify(&[sd_notify::NotifyState::Watchdog]);
            tokio::time::sleep(limit / 2).await;
        }
    });
}

/// Notifies systemd of a state, if systemd started the daemon.
pub(super) fn notify(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(states) {
        tracing::debug!(%cause, "cannot notify systemd");
    }
}

/// Notifies systemd that a reload begins; it ends with the next notification of readiness.
pub(super) fn notify_reloading() {
    let since = sd_notify::NotifyState::monotonic_usec_now();
    match since {
        Ok(since) => notify(&[sd_notify::NotifyState::Reloading, since]),
        Err(cause) => tracing::debug!(%cause, "cannot read the monotonic clock"),
    }
}
