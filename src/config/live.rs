//! The settings in use, and the values that follow from them. Each value is computed in one place,
//! at the start and after each change.
//!
//! Must never know: the roles.

use std::{fmt, ops::Deref};

use super::Settings;
use crate::kept::LiveValue;

/// A function that applies settings.
type Apply = Box<dyn Fn(&Settings)>;

/// The settings in use.
pub struct LiveSettings {
    settings: Settings,
    followers: Vec<Apply>,
}

impl LiveSettings {
    /// Creates the settings of a start.
    pub fn new(settings: Settings) -> Self {
        Self { settings, followers: Vec::new() }
    }

    /// Returns a value that follows from the settings, also after changes.
    pub fn derive<T: 'static>(&mut self, of: impl Fn(&Settings) -> T + 'static) -> LiveValue<T> {
        let value = LiveValue::new(of(&self.settings));
        let follower = value.clone();
        self.followers.push(Box::new(move |settings| follower.set(of(settings))));
        value
    }

    /// Applies the settings after each change.
    pub fn after_changes(&mut self, apply: impl Fn(&Settings) + 'static) {
        self.followers.push(Box::new(apply));
    }

    /// Applies the settings now and after each change.
    pub fn follow(&mut self, apply: impl Fn(&Settings) + 'static) {
        apply(&self.settings);
        self.after_changes(apply);
    }

    /// Replaces the settings.
    pub fn replace(&mut self, settings: Settings) {
        self.settings = settings;
        self.followers.iter().for_each(|apply| apply(&self.settings));
    }
}

impl Deref for LiveSettings {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl fmt::Debug for LiveSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveSettings").field(&self.settings).finish()
    }
}
