//! The settings in use, as the API shows them, and requests to reload them.
//!
//! Must never know: the keys of settings, how a change is applied.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::LiveValue;

/// The number of reloads that may wait; further ones are refused.
const WAITING_MAX: usize = 8;

/// The settings in use. Clones are cheap.
#[derive(Debug, Clone)]
pub struct KnownSettings {
    shown: LiveValue<SettingsAnswer>,
    requests: mpsc::Sender<ReloadRequest>,
}

/// The settings in use, without secrets.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SettingsAnswer {
    /// The sections with their keys, as in the settings file.
    pub settings: Value,
    /// The keys that flags of the command line set, which override the file.
    pub flags: Vec<String>,
}

/// A request to read the settings again.
#[derive(Debug)]
pub struct ReloadRequest {
    /// True when the settings are only compared and checked.
    pub is_trial: bool,
    /// The channel for the answer; an error names the faults of the settings.
    pub reply: oneshot::Sender<Result<ReloadAnswer, String>>,
}

/// A setting with its value in use and its value in the file and the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    /// The key, such as `storage.checkpoint_interval`.
    pub key: String,
    /// The value in use before.
    pub from: String,
    /// The value that was read.
    pub to: String,
}

/// A setting whose change needs a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSetting {
    /// The setting; the value `from` stays in use.
    #[serde(flatten)]
    pub change: SettingChange,
    /// The reason.
    pub reason: String,
}

/// The outcome of a reload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadAnswer {
    /// The number of rules in the rule files.
    pub rules: usize,
    /// The settings that changed.
    pub changed: Vec<SettingChange>,
    /// True when the store is opened again to apply some of the changes: later requests wait until
    /// it is open.
    pub reopens: bool,
    /// The settings that differ and need a restart.
    pub kept: Vec<KeptSetting>,
}

impl KnownSettings {
    /// Creates the handle, and the receiver of the requests of all its clones.
    pub fn new(shown: LiveValue<SettingsAnswer>) -> (Self, mpsc::Receiver<ReloadRequest>) {
        let (requests, receiver) = mpsc::channel(WAITING_MAX);
        (Self { shown, requests }, receiver)
    }

    /// Returns the settings in use.
    pub fn shown(&self) -> SettingsAnswer {
        SettingsAnswer::clone(&self.shown.get())
    }

    /// Reads the settings again, and applies those that may change; in a trial, nothing changes.
    ///
    /// # Errors
    /// The settings are invalid, and nothing changed; or too many reloads wait.
    pub async fn reload(&self, is_trial: bool) -> Result<ReloadAnswer, String> {
        let (reply, answer) = oneshot::channel();
        let sent = self.requests.try_send(ReloadRequest { is_trial, reply });
        sent.map_err(|_| format!("{WAITING_MAX} reloads are waiting: try again later"))?;
        answer.await.unwrap_or_else(|_| Err("the daemon is stopping".to_owned()))
    }
}
