//! A client whose certificates can be replaced while the program runs.
//!
//! The files are read again when they differ, and after a failure of TLS, because the system's
//! authorities may have changed too. Must never know: which server is contacted.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use tracing::{info, warn};
use ureq::{config::ConfigBuilder, typestate::AgentScope};

use crate::{Https, settings::FileState};

/// The part of the configuration that does not depend on files.
pub type AgentConfig = dyn Fn() -> ConfigBuilder<AgentScope> + Send + Sync;

/// A client that follows its files.
pub struct ReloadingAgent {
    https: Https,
    config: Box<AgentConfig>,
    state: Mutex<State>,
}

struct State {
    agent: ureq::Agent,
    files: Vec<FileState>,
    /// True when the files must be read again although they look the same.
    is_outdated: bool,
    /// The fault of the last reading, which is logged once.
    fault: Option<String>,
}

impl fmt::Debug for ReloadingAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadingAgent").field("https", &self.https).finish_non_exhaustive()
    }
}

impl ReloadingAgent {
    /// Reads the files and creates the client.
    ///
    /// # Errors
    /// A file is unreadable or has the wrong content; the error names the file.
    pub fn new(https: Https, config: Box<AgentConfig>) -> Result<Self, String> {
        let files = https.file_states();
        let agent = https.agent(config())?;
        let state = State { agent, files, is_outdated: false, fault: None };
        Ok(Self { https, config, state: Mutex::new(state) })
    }

    /// Returns the client for the next request. While the files have a fault, for example because
    /// only one of two is replaced, the earlier certificates stay in use.
    pub fn current(&self) -> ureq::Agent {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let files = self.https.file_states();
        let is_changed = files != state.files;
        if !is_changed && !state.is_outdated {
            return state.agent.clone();
        }
        state.files = files;
        match self.https.agent((self.config)()) {
            Ok(agent) => {
                if is_changed || state.fault.is_some() {
                    info!("the files of https have changed and are in use");
                }
                (state.agent, state.is_outdated, state.fault) = (agent, false, None);
            }
            Err(cause) => {
                if state.fault.as_ref() != Some(&cause) {
                    warn!(cause, "cannot use the files of https; the earlier ones stay in use");
                }
                (state.is_outdated, state.fault) = (true, Some(cause));
            }
        }
        state.agent.clone()
    }

    /// Notes a failure of TLS: the next request reads the files again.
    pub fn note_failure(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_outdated = true;
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn replaced_files_are_read_again_and_a_fault_keeps_the_earlier_ones() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/tls");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        fs::copy(data.join("authority.pem"), &path).unwrap();
        let https = Https { ca_file: Some(path.clone()), ..Https::default() };
        let agent = ReloadingAgent::new(https, Box::new(ureq::Agent::config_builder)).unwrap();
        let fault = || agent.state.lock().unwrap().fault.clone();
        let replace = |text: &[u8]| {
            let new = folder.path().join("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, &path).unwrap();
            agent.current();
        };
        replace(b"half a file");
        assert!(fault().unwrap().contains("ca.pem: no certificate found"));
        fs::remove_file(&path).unwrap();
        agent.current();
        assert!(fault().unwrap().contains("ca.pem: "));
        replace(&fs::read(data.join("server.pem")).unwrap());
        assert_eq!(fault(), None);
        agent.note_failure();
        agent.current();
        assert!(!agent.state.lock().unwrap().is_outdated);
    }
}
