//! The roles of users: what each user may do in each project.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::scopes::{Scope, Scopes};

/// The project of all data that no other project contains.
pub const DEFAULT_PROJECT: &str = "default";
/// The name that stands for every project, and for the daemon itself.
pub const ALL_PROJECTS: &str = "*";
/// The maximum number of projects in which a user has a role.
const PROJECTS_MAX: usize = 64;
/// The maximum size of a project's name in bytes.
const PROJECT_BYTES_MAX: usize = 64;

/// The rights of a user in a project. Each role includes the roles before it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    EnumString,
    IntoStaticStr,
    VariantArray,
    Serialize,
    Deserialize,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Changes dashboards, annotations, silences and acknowledgements.
    Editor,
    /// Deletes data, and manages keys and users.
    Admin,
}

impl Role {
    /// All roles.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the scope with the same rights.
    pub const fn scope(self) -> Scope {
        match self {
            Self::Viewer => Scope::Read,
            Self::Editor => Scope::Objects,
            Self::Admin => Scope::Admin,
        }
    }
}

/// The roles of a user by project.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Roles(BTreeMap<String, Role>);

impl Roles {
    /// Returns one role in one project.
    pub fn one(project: &str, role: Role) -> Self {
        Self(BTreeMap::from([(project.to_owned(), role)]))
    }

    /// Adds roles; in each project, the largest role counts.
    pub fn add(&mut self, more: &Self) {
        for (project, role) in &more.0 {
            let own = self.0.entry(project.clone()).or_insert(*role);
            *own = (*own).max(*role);
        }
    }

    /// Checks the names of the projects.
    ///
    /// # Errors
    /// A name is invalid, or there are too many; the text names the remedy.
    pub fn check(&self) -> Result<(), String> {
        if self.0.len() > PROJECTS_MAX {
            return Err(format!("roles: use at most {PROJECTS_MAX} projects, or the project *"));
        }
        let is_valid = |name: &String| {
            !name.trim().is_empty()
                && name.len() <= PROJECT_BYTES_MAX
                && !name.contains(char::is_control)
        };
        match self.0.keys().find(|name| !is_valid(name)) {
            None => Ok(()),
            Some(name) => Err(format!(
                "roles: {name:?} is not a project; use its name of at most {PROJECT_BYTES_MAX} \
                 bytes, or * for all projects"
            )),
        }
    }

    /// Returns the projects in which the user has a role.
    pub fn projects(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the largest role in any project.
    pub fn largest(&self) -> Option<Role> {
        self.0.values().copied().max()
    }

    /// Returns the scopes in a project.
    pub fn scopes_in(&self, project: &str) -> Scopes {
        let everywhere = self.0.get(ALL_PROJECTS).copied();
        match self.0.get(project).copied().max(everywhere) {
            None => Scopes::NONE,
            Some(_) if everywhere == Some(Role::Admin) => {
                Scopes::of(&[Scope::Admin, Scope::Operate])
            }
            Some(role) => Scopes::of(&[role.scope()]),
        }
    }

    /// Returns true for an administrator of a project.
    pub fn is_admin_of(&self, project: &str) -> bool {
        [project, ALL_PROJECTS].iter().any(|name| self.0.get(*name) == Some(&Role::Admin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(pairs: &[(&str, Role)]) -> Roles {
        Roles(pairs.iter().map(|(project, role)| ((*project).to_owned(), *role)).collect())
    }

    #[test]
    fn the_largest_role_counts_and_only_administrators_of_all_projects_operate() {
        let scopes = |pairs: &[(&str, Role)]| roles(pairs).scopes_in("web").to_string();
        assert_eq!(scopes(&[]), "");
        assert_eq!(scopes(&[("db", Role::Admin)]), "");
        assert_eq!(scopes(&[("web", Role::Viewer)]), "read");
        assert_eq!(scopes(&[("web", Role::Viewer), ("*", Role::Editor)]), "objects");
        assert_eq!(scopes(&[("web", Role::Editor), ("*", Role::Viewer)]), "objects");
        assert_eq!(scopes(&[("web", Role::Admin), ("*", Role::Viewer)]), "admin");
        assert_eq!(scopes(&[("web", Role::Viewer), ("*", Role::Admin)]), "admin, operate");
    }

    #[test]
    fn names_of_projects_are_bounded() {
        assert_eq!(roles(&[("default", Role::Admin), ("*", Role::Viewer)]).check(), Ok(()));
        for name in ["", " ", "a\u{1}b", &"a".repeat(65)] {
            assert!(roles(&[(name, Role::Viewer)]).check().is_err(), "{name:?}");
        }
        let many: Vec<_> = (0..65).map(|number| number.to_string()).collect();
        let many: Vec<_> = many.iter().map(|name| (name.as_str(), Role::Viewer)).collect();
        assert!(roles(&many).check().is_err());
    }
}
