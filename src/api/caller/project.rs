//! The project of a request: that of its key, or the one that its header names.
//!
//! Must never know: the parts of a project, what handlers do.

use actix_web::dev::RequestHead;

use super::{
    AccessParts,
    refusal::{AccessRefusal, PROJECT_HEADER},
};
use crate::{
    access::{Caller, KeyProject, Right, UserCaller},
    model::{PROJECT_NAME_BYTES_MAX, ProjectName},
};

impl AccessParts {
    /// Returns the index of the project of a request, and notes it for a user. The state of the
    /// daemon belongs to no project, and the profile of a user to all.
    pub(super) fn choose_project(
        &self,
        right: Right,
        caller: &mut Caller,
        head: &RequestHead,
    ) -> Result<usize, AccessRefusal> {
        let mut headers = head.headers.get_all(PROJECT_HEADER);
        let (header, second) = (headers.next(), headers.next());
        if second.is_some() {
            return Err(AccessRefusal::Ambiguous);
        }
        let named = header.map(|name| String::from_utf8_lossy(name.as_bytes()));
        let found = self.projects.iter().position(|project| {
            named.as_ref().is_none_or(|named| *named == project.as_str()) && caller.may_use(project)
        });
        let is_of_daemon = matches!(right, Right::Operate | Right::Control);
        let index = match found {
            Some(index) => index,
            None if right == Right::Own => self.home_of(caller),
            None => return Err(no_project(caller, named.as_deref())),
        };
        if let Caller::User(user) = caller {
            user.project = self.projects[index].clone();
        }
        if is_of_daemon && !self.has_one_project() && !caller.sees_all_projects() {
            let (kind, name) = (caller.kind(), caller.name().to_owned());
            return Err(AccessRefusal::OneProject { own: caller.project(), kind, name });
        }
        Ok(if is_of_daemon { 0 } else { index })
    }

    /// Returns the index of a caller's project when the request names none.
    fn home_of(&self, caller: &Caller) -> usize {
        self.projects.iter().position(|project| caller.may_use(project)).unwrap_or(0)
    }

    /// Returns the caller of a new session in the project of requests that name none.
    pub(in crate::api) fn at_home(&self, mut user: UserCaller) -> (Caller, ProjectName) {
        let index = self.home_of(&Caller::User(user.clone()));
        user.project = self.projects[index].clone();
        let project = user.project.clone();
        (Caller::User(user), project)
    }

    /// Returns the projects among which a caller may choose.
    pub(in crate::api) fn projects_of(&self, caller: &Caller) -> Vec<ProjectName> {
        self.projects.iter().filter(|project| caller.may_use(project)).cloned().collect()
    }

    /// Returns true when the settings have no project but `default`.
    pub(in crate::api) fn has_one_project(&self) -> bool {
        self.projects.len() == 1
    }
}

/// Returns the refusal of a caller that may not use the named project, or may not use any project.
fn no_project(caller: &Caller, named: Option<&str>) -> AccessRefusal {
    let (kind, name, own) = (caller.kind(), caller.name().to_owned(), caller.project());
    match (&own, named) {
        (KeyProject::One(project), Some(named)) if kind != "user" && project.as_str() != named => {
            AccessRefusal::OtherProject { own, kind, name }
        }
        (_, named) => {
            let project = named.map_or_else(|| own.to_string(), str::to_owned);
            let project = project.chars().take(PROJECT_NAME_BYTES_MAX).collect();
            AccessRefusal::NoProject { project, kind, name }
        }
    }
}
