//! The paths that ARCHITECTURE.md names exist.

use std::{collections::BTreeSet, fs, path::Path};

use super::root;

/// Folders whose files and folders the map may name.
const FOLDERS: [&str; 4] = ["src", "agents", "tests", "benches"];

/// Adds the paths of all files and folders below a folder; Rust files with and without `.rs`.
fn paths_below(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("node_modules") || path.ends_with("target") {
            continue;
        }
        let shown = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if let Some(module) = shown.strip_suffix(".rs") {
            found.insert(module.to_owned());
        }
        found.insert(shown);
        if path.is_dir() {
            paths_below(&path, found);
        }
    }
}

fn existing_paths() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in FOLDERS {
        found.insert(folder.to_owned());
        paths_below(&root().join(folder), &mut found);
    }
    found
}

/// Returns the words of a text between backticks.
fn code_words(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|word| !word.contains(char::is_whitespace))
}

/// Returns true if a word of the map is a path: it contains a slash, or is a Rust file.
fn is_path(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '-');
    let is_rust = Path::new(word).extension().is_some_and(|extension| extension == "rs");
    word.chars().all(is_plain) && (word.contains('/') || is_rust)
}

/// Returns true if a path exists; the folders above it may be left out.
fn exists(paths: &BTreeSet<String>, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let end = format!("/{path}");
    paths.iter().any(|known| known == path || known.ends_with(&end))
}

/// Returns the names in the map that do not exist, with their lines.
fn missing_names(text: &str, paths: &BTreeSet<String>) -> Vec<String> {
    let mut missing = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let row = line.strip_prefix("| `").and_then(|row| row.split_once('`'));
        let folder = row.map(|(folder, _)| folder);
        for word in code_words(line) {
            // A row of the code map names modules below its folder.
            let is_known = match folder {
                Some(folder) if !word.contains('/') && !word.contains('.') => paths
                    .iter()
                    .any(|path| path.starts_with(folder) && path.ends_with(&format!("/{word}"))),
                _ if is_path(word) => exists(paths, word),
                _ => true,
            };
            if !is_known {
                missing.push(format!("ARCHITECTURE.md:{number}: {word}"));
            }
        }
    }
    missing
}

#[test]
fn the_paths_of_the_map_exist() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let missing = missing_names(&text, &existing_paths());
    assert!(missing.is_empty(), "name what exists:\n{}", missing.join("\n"));
}

#[test]
fn a_path_that_does_not_exist_is_found() {
    let paths = existing_paths();
    for (line, expected) in [
        ("See `src/store/journal`, `writer/linger.rs` and `journal/*.log`.", 0),
        ("See `writer/lingering.rs`, `src/stores` and `merge`.", 2),
        ("| `src/store/documents` | `partition` is `rows` and `segment` | cells |", 0),
        ("| `src/store/documents` | `partitioned` is `rows` | cells |", 1),
    ] {
        assert_eq!(
            missing_names(line, &paths).len(),
            expected,
            "{line}: {:?}",
            missing_names(line, &paths)
        );
    }
}
