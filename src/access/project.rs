//! The projects that a key may use.
//!
//! Must never know: the projects of the settings, HTTP.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::model::{ProjectName, ProjectNameError};

/// The text of [`KeyProject::All`].
const ALL: &str = "*";

/// The projects that a key may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum KeyProject {
    /// One project.
    One(ProjectName),
    /// All projects; each request names one of them.
    All,
}

impl KeyProject {
    /// Returns true when a caller with these projects may make a key with the others.
    pub fn includes(&self, other: &Self) -> bool {
        *self == Self::All || self == other
    }

    /// Returns true for all projects and for the project `default`, whose keys may read the state
    /// of the daemon.
    pub fn is_of_operators(&self) -> bool {
        match self {
            Self::One(project) => project.is_default(),
            Self::All => true,
        }
    }
}

impl Default for KeyProject {
    fn default() -> Self {
        Self::One(ProjectName::default())
    }
}

impl fmt::Display for KeyProject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(project) => project.fmt(f),
            Self::All => f.write_str(ALL),
        }
    }
}

impl FromStr for KeyProject {
    type Err = ProjectNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == ALL { Ok(Self::All) } else { ProjectName::new(text).map(Self::One) }
    }
}

impl TryFrom<String> for KeyProject {
    type Error = ProjectNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<KeyProject> for String {
    fn from(project: KeyProject) -> Self {
        project.to_string()
    }
}
