//! Discovery by JSON or YAML files, which are read again when they change. The last part of a path
//! may contain wildcards.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::Found;
use crate::config::Group;

const FILE_BYTES_MAX: u64 = 16 << 20;
/// The maximum number of files per pattern.
const FILES_MAX: usize = 1000;

/// The state of a file: path, size, modification time.
type FileState = (PathBuf, u64, Option<SystemTime>);

/// The discovery of one entry of `file_sd_configs`.
#[derive(Debug)]
pub(crate) struct Files {
    patterns: Vec<PathBuf>,
    /// The states when the files were last read.
    previous: Option<Vec<FileState>>,
}

impl Files {
    pub(crate) fn new(patterns: &[PathBuf]) -> Self {
        Self { patterns: patterns.to_vec(), previous: None }
    }

    /// Returns the targets, or `None` when no file has changed. A missing file has no targets; an
    /// invalid file is an error, and the caller keeps the previous targets.
    pub(crate) fn read_if_changed(&mut self) -> Result<Option<Found>, String> {
        let states: Vec<FileState> =
            self.patterns.iter().flat_map(|pattern| matching_files(pattern)).collect();
        if self.previous.as_ref() == Some(&states) {
            return Ok(None);
        }
        let mut found = Found::default();
        for (path, ..) in &states {
            let groups =
                read_groups(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
            found.add_groups(&groups, &[("__meta_filepath", &path.to_string_lossy())]);
        }
        self.previous = Some(states);
        Ok(Some(found))
    }
}

fn read_groups(path: &Path) -> Result<Vec<Group>, String> {
    let bytes = fs::metadata(path).map_err(|cause| cause.to_string())?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(format!("{bytes} bytes; at most {FILE_BYTES_MAX}"));
    }
    let text = fs::read_to_string(path).map_err(|cause| cause.to_string())?;
    // Every JSON text is also YAML.
    let groups: Option<Vec<Group>> =
        serde_saphyr::from_str(&text).map_err(|cause| cause.to_string())?;
    Ok(groups.unwrap_or_default())
}

fn matching_files(pattern: &Path) -> Vec<FileState> {
    let name = pattern.file_name().unwrap_or_default().to_string_lossy();
    let mut paths = Vec::new();
    if name.contains('*') {
        let folder = pattern.parent().unwrap_or(Path::new("."));
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if matches(&name, &entry.file_name().to_string_lossy()) && paths.len() < FILES_MAX {
                paths.push(entry.path());
            }
        }
        paths.sort();
    } else {
        paths.push(pattern.to_owned());
    }
    let state = |path: PathBuf| {
        let meta = fs::metadata(&path).ok()?;
        Some((path, meta.len(), meta.modified().ok()))
    };
    paths.into_iter().filter_map(state).collect()
}

/// Returns true when a name matches a pattern in which each star stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some((_, after_part)) = rest.split_once(part) else { return false };
        rest = after_part;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("*.json", "a.json", true),
            ("*.json", ".json", true),
            ("*.json", "a.jsonx", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("a", "a", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn files_are_read_again_when_they_change_and_an_invalid_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.json"), r#"[{"targets": ["h1:1", "h2:2"], "labels": {"env": "x"}}]"#)
            .unwrap();
        fs::write(path("b.yml"), "- targets:\n  - h3:3\n").unwrap();
        let mut files = Files::new(&[path("*.json"), path("b.yml"), path("none.yml")]);
        let addresses = |result: Result<Option<Found>, String>| -> Option<Vec<String>> {
            let all = result.unwrap()?.targets;
            Some(all.iter().map(|labels| labels.get("__address__").to_owned()).collect())
        };
        let first = files.read_if_changed().unwrap().unwrap().targets;
        assert_eq!(first[0].get("env"), "x");
        assert!(first[0].get("__meta_filepath").ends_with("a.json"));
        assert_eq!(first.len(), 3);
        assert_eq!(addresses(files.read_if_changed()), None);
        fs::write(path("b.yml"), "- target: h4\n").unwrap();
        let fault = files.read_if_changed().unwrap_err();
        assert!(fault.contains("b.yml") && fault.contains("target"), "{fault}");
        fs::write(path("b.yml"), "").unwrap();
        fs::write(path("c.json"), r#"[{"targets": ["h5:5"]}]"#).unwrap();
        let expected = ["h1:1", "h2:2", "h5:5"].map(str::to_owned).to_vec();
        assert_eq!(addresses(files.read_if_changed()), Some(expected));
    }
}
