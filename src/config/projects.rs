//! The projects: their names, quotas and rules.
//!
//! Must never know: keys, who belongs to a project.

use super::{
    alerting::alertmanagers,
    faults::Faults,
    sections::{Project, Security},
};
use crate::{alerts::Alertmanager, model::ProjectName, policy::retention::budget::DiskMax};

/// The maximum number of projects other than `default`: each has threads of its own.
const PROJECTS_MAX: usize = 63;

/// A project other than `default`, with its settings.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct ProjectSettings {
    pub name: ProjectName,
    pub settings: Project,
    pub alertmanagers: Vec<Alertmanager>,
}

impl Project {
    /// Returns the maximum number of bytes on disk. A percentage is refused when the settings are
    /// checked (`retention::check_projects`).
    pub fn disk_bytes_max(&self) -> Option<u64> {
        match self.disk_max? {
            DiskMax::Bytes(bytes_max) => Some(bytes_max),
            DiskMax::Percent(_) => None,
        }
    }
}

/// Checks the projects, and returns them in the order of their names.
pub(super) fn projects(security: &Security, faults: &mut Faults) -> Vec<ProjectSettings> {
    let given = &security.projects;
    if given.len() > PROJECTS_MAX {
        faults.0.push(format!("security.projects has more than {PROJECTS_MAX} entries"));
    }
    if !given.is_empty() && !security.access {
        faults.0.push(
            "security.projects need keys, which choose the project of a request: set \
             security.access = true"
                .to_owned(),
        );
    }
    let mut projects = Vec::new();
    for (name, settings) in given {
        let section = format!("security.projects.{name}");
        for (key, is_zero) in [
            ("series_max", settings.series_max == Some(0)),
            ("samples_per_second", settings.samples_per_second == Some(0)),
            ("query_points_max", settings.query_points_max == Some(0)),
            ("queries_max", settings.queries_max == Some(0)),
        ] {
            if is_zero {
                faults.0.push(format!("{section}.{key} = 0 is too small; use 1 or more"));
            }
        }
        match ProjectName::new(name) {
            Ok(name) if name.is_default() => faults.0.push(format!(
                "{section}: this project exists always, with the settings of [limits] and [alerts]"
            )),
            Ok(name) => {
                let setting = format!("{section}.alertmanagers");
                let alertmanagers = alertmanagers(&setting, &settings.alertmanagers, faults);
                // The unparsed Alertmanagers may contain secrets.
                let settings = Project { alertmanagers: Vec::new(), ..settings.clone() };
                projects.push(ProjectSettings { name, settings, alertmanagers });
            }
            Err(cause) => faults.0.push(format!("security.projects: {cause}")),
        }
    }
    projects
}
