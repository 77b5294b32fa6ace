//! The detection of containers and services, by the names that Docker, Podman, containerd, CRI-O,
//! LXC and systemd give to control groups.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The maximum depth of the searched groups; Kubernetes nests containers five levels deep.
const DEPTH_MAX: usize = 8;
/// The maximum number of scanned folders.
const FOLDERS_MAX: usize = 10_000;
/// The maximum number of groups.
pub(super) const GROUPS_MAX: usize = 1_000;
/// The number of digits of an identifier, as in `docker ps`.
pub(super) const ID_DIGITS: usize = 12;

/// The type of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GroupKind {
    Container(String),
    Unit(String),
}

/// A detected group.
#[derive(Debug)]
pub(super) struct Cgroup {
    pub(super) folder: PathBuf,
    pub(super) kind: GroupKind,
}

/// Finds the groups of version 2, even when version 1 is mounted too.
pub(super) fn find_groups(root: &Path) -> Vec<Cgroup> {
    let unified_root = root.join("unified");
    let root = if unified_root.join("cgroup.controllers").exists() {
        unified_root
    } else {
        root.to_owned()
    };
    let mut groups = Vec::new();
    if !root.join("cgroup.controllers").exists() {
        return groups;
    }
    let mut scanned = 0;
    let mut folders = vec![root];
    for _ in 0..DEPTH_MAX {
        let mut next_level = Vec::new();
        for folder in folders {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                scanned += 1;
                if scanned > FOLDERS_MAX || groups.len() >= GROUPS_MAX {
                    return groups;
                }
                if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    scanned -= 1;
                    continue;
                }
                let name = entry.file_name().to_string_lossy().into_owned();
                match group_kind(&name) {
                    Some(kind) => groups.push(Cgroup { folder: entry.path(), kind }),
                    // Groups of logged-in users are skipped.
                    None if name == "user.slice" => {}
                    None => next_level.push(entry.path()),
                }
            }
        }
        folders = next_level;
    }
    groups
}

/// Returns the type of a group by its name.
fn group_kind(name: &str) -> Option<GroupKind> {
    let scope = name.strip_suffix(".scope").unwrap_or(name);
    if let Some(rest) = scope.strip_prefix("lxc.payload.") {
        return Some(GroupKind::Container(rest.to_owned()));
    }
    let of_machine = name.strip_suffix(".scope").and_then(|rest| rest.strip_prefix("machine-"));
    if let Some(rest) = of_machine {
        return Some(GroupKind::Container(rest.replace("\\x2d", "-")));
    }
    let id = scope.rsplit('-').next().unwrap_or(scope);
    let is_container_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_container_id && !scope.contains("conmon") {
        return id.get(..ID_DIGITS).map(|id| GroupKind::Container(id.to_owned()));
    }
    name.strip_suffix(".service").map(|rest| GroupKind::Unit(rest.replace("\\x2d", "-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_container_runtime_is_recognized_by_its_group_names() {
        let id = "0123456789abcdef".repeat(4);
        let container = |name: &str| Some(GroupKind::Container(name.to_owned()));
        for (name, expected) in [
            (format!("docker-{id}.scope"), container("0123456789ab")),
            (format!("libpod-{id}.scope"), container("0123456789ab")),
            (format!("libpod-conmon-{id}.scope"), None),
            (format!("cri-containerd-{id}.scope"), container("0123456789ab")),
            (format!("crio-{id}.scope"), container("0123456789ab")),
            (id.clone(), container("0123456789ab")),
            ("lxc.payload.web".to_owned(), container("web")),
            ("machine-db\\x2d1.scope".to_owned(), container("db-1")),
            ("ssh.service".to_owned(), Some(GroupKind::Unit("ssh".to_owned()))),
            ("system.slice".to_owned(), None),
            ("init.scope".to_owned(), None),
            ("kubepods-burstable.slice".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(group_kind(&name), expected, "{name}");
        }
    }

    #[test]
    fn nested_containers_are_found_but_not_the_groups_inside_them() {
        let root = tempfile::tempdir().unwrap();
        let id = "a".repeat(64);
        for folder in [
            format!("kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope/inner.service"),
            "system.slice/ssh.service".to_owned(),
            "user.slice/user-1000.slice/app.service".to_owned(),
        ] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        assert_eq!(find_groups(root.path()).len(), 0, "version 2 is not mounted");
        fs::write(root.path().join("cgroup.controllers"), "").unwrap();
        let mut found: Vec<String> =
            find_groups(root.path()).into_iter().map(|group| format!("{:?}", group.kind)).collect();
        found.sort();
        assert_eq!(found, ["Container(\"aaaaaaaaaaaa\")", "Unit(\"ssh\")"]);
    }
}
