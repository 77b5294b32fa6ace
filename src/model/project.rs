//! Projects: the tenants of a store. The project of a series, a sender, a host or an object is part
//! of its stored name; the names of the project `default` are stored without a project.
//!
//! Must never know: the members and the content of a project.

use std::{
    borrow::Borrow,
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
    sync::Arc,
};

use serde::{Deserialize, Serialize};

/// The name of the default project, which contains everything that is sent without a project.
pub const DEFAULT_PROJECT: &str = "default";
/// The maximum length of a project's name in bytes.
pub const PROJECT_NAME_BYTES_MAX: usize = 64;

/// The first character of a stored name with a project. Names of senders, hosts and objects have no
/// control characters.
const MARK: char = '\u{1}';
/// The character between a project and a name.
const END: char = '\0';

/// The name of a project: 1 to 64 of the characters a-z, 0-9, `-` and `_`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProjectName(
    /// `None` for the project `default`.
    Option<Arc<str>>,
);

static DEFAULT: ProjectName = ProjectName(None);

/// The text is not the name of a project.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a project name: use 1 to 64 of the characters a-z, 0-9, - and _")]
pub struct ProjectNameError(pub String);

impl ProjectName {
    /// Returns the name if it is valid.
    ///
    /// # Errors
    /// When the text is empty, too long, or has other characters.
    pub fn new(name: &str) -> Result<Self, ProjectNameError> {
        let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        if (1..=PROJECT_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_allowed) {
            return Ok(Self((name != DEFAULT_PROJECT).then(|| name.into())));
        }
        Err(ProjectNameError(name.chars().take(PROJECT_NAME_BYTES_MAX).collect()))
    }

    /// Returns the name of the project `default`.
    pub fn of_default() -> &'static Self {
        &DEFAULT
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or(DEFAULT_PROJECT)
    }

    /// Returns true for the project `default`.
    pub fn is_default(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the stored form of a name in this project.
    pub fn stored_name(&self, name: &str) -> Arc<str> {
        if self.is_default() {
            return name.into();
        }
        format!("{MARK}{self}{END}{name}").into()
    }

    /// Returns a name of this project without its project; `None` for a name of another project.
    pub fn own_name<'a>(&self, stored: &'a str) -> Option<&'a str> {
        let (project, name) = split_stored_name(stored);
        (project == self.as_str()).then_some(name)
    }

    /// Returns the range of the stored names of this project: a bound before the first possible
    /// name, and a bound after the last.
    pub fn stored_range(&self) -> (String, String) {
        if self.is_default() {
            // The range begins after all control characters.
            return (" ".to_owned(), "\u{10ffff}".to_owned());
        }
        (format!("{MARK}{self}{END}"), format!("{MARK}{self}{MARK}"))
    }
}

/// Returns the project and the name in a stored name.
pub fn split_stored_name(stored: &str) -> (&str, &str) {
    let marked = stored.strip_prefix(MARK).and_then(|rest| rest.split_once(END));
    marked.unwrap_or((DEFAULT_PROJECT, stored))
}

impl Borrow<str> for ProjectName {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl Hash for ProjectName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProjectName {
    type Err = ProjectNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl TryFrom<String> for ProjectName {
    type Error = ProjectNameError;

    fn try_from(name: String) -> Result<Self, ProjectNameError> {
        Self::new(&name)
    }
}

impl From<ProjectName> for String {
    fn from(project: ProjectName) -> Self {
        project.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_few_characters() {
        for name in ["a", "team-1_x", &"a".repeat(64)] {
            assert_eq!(ProjectName::new(name).unwrap().as_str(), name);
        }
        for name in ["", "A", "a b", "*", "\u{1}a", "é", &"a".repeat(65)] {
            assert!(ProjectName::new(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_stored_name_belongs_to_one_project() {
        let [default, a, ab] = ["default", "a", "ab"].map(|name| ProjectName::new(name).unwrap());
        assert_eq!(default, ProjectName::default());
        assert_eq!(&*default.stored_name("web1"), "web1");
        assert_eq!(&*a.stored_name("web1"), "\u{1}a\0web1");
        for project in [&default, &a, &ab] {
            let stored = project.stored_name("web1");
            let (from, to) = project.stored_range();
            assert!(*from <= *stored && *stored < *to);
            for other in [&default, &a, &ab] {
                let own = (other == project).then_some("web1");
                assert_eq!(other.own_name(&stored), own);
                let (from, to) = other.stored_range();
                assert_eq!(*from <= *stored && *stored < *to, own.is_some());
            }
        }
    }
}
