//! The watcher: reports roles that end unexpectedly, so that no half-alive daemon keeps running.
//!
//! Every role holds a lifeline. When a role ends without releasing its lifeline, by a panic or a
//! bug, the watcher reports the death, and the daemon shuts down with a non-zero exit code.

use tokio::sync::mpsc;

/// The capacity of the queue of deaths; one death is enough to stop the daemon.
const DEATHS_MAX: usize = 16;

/// A role that ended unexpectedly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    /// The name of the role.
    pub role: &'static str,
}

/// A guard that a role holds for as long as it lives.
#[derive(Debug)]
pub struct Lifeline {
    role: &'static str,
    deaths: mpsc::Sender<Death>,
    is_released: bool,
}

/// A factory of lifelines. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Lifelines(mpsc::Sender<Death>);

impl Lifelines {
    /// Returns a lifeline for a role.
    pub fn for_role(&self, role: &'static str) -> Lifeline {
        Lifeline { role, deaths: self.0.clone(), is_released: false }
    }
}

impl Lifeline {
    /// Marks the end of the role as requested.
    pub fn release(&mut self) {
        self.is_released = true;
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        if !self.is_released && self.deaths.try_send(Death { role: self.role }).is_err() {
            tracing::debug!(role = self.role, "the watcher has ended");
        }
    }
}

/// The receiver of deaths.
#[derive(Debug)]
pub struct Watcher(mpsc::Receiver<Death>);

impl Watcher {
    /// Waits for a role to die.
    pub async fn death(&mut self) -> Death {
        self.0.recv().await.unwrap_or(Death { role: "watcher" })
    }
}

/// Returns a factory of lifelines, and the watcher of their roles.
pub fn lifelines() -> (Lifelines, Watcher) {
    let (deaths, receiver) = mpsc::channel(DEATHS_MAX);
    (Lifelines(deaths), Watcher(receiver))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_reported_and_a_release_is_not() {
        let (factory, mut watcher) = lifelines();
        let mut released_line = factory.for_role("released");
        released_line.release();
        drop(released_line);
        assert!(watcher.0.try_recv().is_err());
        let line = factory.for_role("writer");
        let ended = std::thread::spawn(move || {
            let _line = line;
            panic!("a bug in a role");
        });
        assert!(ended.join().is_err());
        assert_eq!(watcher.0.try_recv(), Ok(Death { role: "writer" }));
    }
}
