//! The house rules that the compiler does not check.

mod ci;
mod cycles;
mod map;
mod openings;
mod roles;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The longest file, in lines.
const LINES_MAX: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // Packages installed by npm are not ours.
            if !path.ends_with("node_modules") {
                files.extend(rust_files(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn all_sources() -> Vec<PathBuf> {
    let root = root();
    let folders = ["src", "agents", "tests", "benches"];
    let mut files: Vec<_> =
        folders.iter().flat_map(|folder| rust_files(&root.join(folder))).collect();
    assert!(files.len() > 40, "found only {} files", files.len());
    files.push(root.join("build.rs"));
    files
}

#[test]
fn every_file_is_short_and_begins_with_its_purpose() {
    for path in all_sources() {
        let text = fs::read_to_string(&path).unwrap();
        let file = path.display();
        assert!(text.starts_with("//!"), "{file}: begin with a //! that says what it is for");
        let is_long = |line: &&str| {
            let line = line.trim_start();
            line.starts_with("//") && !line.starts_with("//! |") && line.chars().count() > 100
        };
        assert!(text.lines().find(is_long).is_none(), "{file}: a comment is wider than 100");
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{file}: {lines} lines; split the file");
    }
}

/// The folders that each folder or file of `src` may import from. A row may only list folders of
/// rows above it.
const MAY_USE: [(&str, &[&str]); 26] = [
    ("model", &[]),
    ("policy", &["model"]),
    ("access", &["model"]),
    ("oidc", &["model", "access"]),
    ("clock", &["model", "policy"]),
    ("tls", &["model"]),
    ("shell", &["model"]),
    ("store", &["model"]),
    ("publish", &["model"]),
    ("replication", &["clock", "publish"]),
    ("ingest", &["model", "policy", "shell", "store"]),
    ("import", &["model", "policy", "ingest"]),
    ("query", &["model", "clock", "policy", "shell", "store"]),
    ("telemetry", &["model", "clock", "policy", "store"]),
    ("alerts", &["model", "clock", "query"]),
    ("notify", &["model", "clock", "alerts"]),
    ("kept", &["model", "access", "clock", "policy", "store", "query", "telemetry", "alerts"]),
    (
        "actors",
        &[
            "model",
            "tls",
            "clock",
            "policy",
            "store",
            "publish",
            "ingest",
            "query",
            "telemetry",
            "alerts",
            "notify",
            "kept",
        ],
    ),
    (
        "cluster",
        &[
            "model",
            "access",
            "clock",
            "store",
            "publish",
            "replication",
            "telemetry",
            "kept",
            "actors",
        ],
    ),
    (
        "api",
        &[
            "model",
            "tls",
            "access",
            "oidc",
            "clock",
            "store",
            "replication",
            "ingest",
            "query",
            "telemetry",
            "alerts",
            "notify",
            "kept",
            "actors",
            "cluster",
        ],
    ),
    (
        "config",
        &[
            "model",
            "access",
            "oidc",
            "tls",
            "policy",
            "store",
            "publish",
            "replication",
            "ingest",
            "query",
            "telemetry",
            "alerts",
            "kept",
            "actors",
            "cluster",
        ],
    ),
    (
        "daemon",
        &[
            "model",
            "tls",
            "access",
            "oidc",
            "clock",
            "store",
            "ingest",
            "query",
            "telemetry",
            "alerts",
            "notify",
            "kept",
            "actors",
            "api",
            "cluster",
            "config",
        ],
    ),
    (
        "cli",
        &[
            "model",
            "access",
            "clock",
            "policy",
            "store",
            "ingest",
            "import",
            "query",
            "telemetry",
            "alerts",
            "kept",
            "actors",
            "cluster",
            "config",
            "daemon",
        ],
    ),
    ("fuzzing", &["model", "policy", "store", "ingest", "import", "query", "api", "config"]),
    ("lib", &[]),
    ("main", &["cli"]),
];

/// Returns the code of a file without its comments and its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let tests = text.match_indices("#[cfg(test)]\nmod ").find(|(at, _)| {
        // Test modules in separate files are not removed.
        text.split_at(*at).1.lines().nth(1).is_some_and(|line| line.ends_with('{'))
    });
    let (code, _) = text.split_at(tests.map_or(text.len(), |(at, _)| at));
    code.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Returns the names of modules at the crate's root that a file's code uses, in paths and in
/// groups.
fn names_of_the_root(code: &str, depth: usize) -> Vec<String> {
    let roots = ["crate::".to_owned(), "granary::".to_owned(), "super::".repeat(depth)];
    let mut names = Vec::new();
    for root in roots.iter().filter(|root| !root.is_empty()) {
        for (at, _) in code.match_indices(root) {
            let (before, found) = code.split_at(at);
            // `pub(in path)` is not an import: it names a module around the current one.
            let is_visibility = before.ends_with("pub(in ");
            let before = before.chars().next_back().unwrap_or(' ');
            if !before.is_alphanumeric() && !"_:$".contains(before) && !is_visibility {
                names.extend(first_names(found.split_at(root.len()).1));
            }
        }
    }
    names
}

/// Returns the first name of a path, or of each path of a group.
fn first_names(path: &str) -> Vec<String> {
    let leading_name = |text: &str| -> String {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![leading_name(path)] };
    let (mut depth, mut parts) = (1, vec![String::new()]);
    for c in group.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            _ if depth == 0 => break,
            ',' if depth == 1 => parts.push(String::new()),
            _ => parts.last_mut().unwrap().push(c),
        }
    }
    parts
        .iter()
        .map(|part| leading_name(part.trim_start()))
        .filter(|name| !name.is_empty())
        .collect()
}

/// Returns the folder or file of `src` that a file belongs to, and the depth of its module in the
/// crate.
fn folder_and_depth(path: &Path) -> (String, usize) {
    let inside = path.strip_prefix(root().join("src")).unwrap().with_extension("");
    let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let depth = parts.iter().filter(|part| !["mod", "lib", "main"].contains(&&***part)).count();
    (parts[0].clone(), depth)
}

#[test]
fn imports_between_folders_point_one_way() {
    for (row, (name, allowed)) in MAY_USE.iter().enumerate() {
        let below = MAY_USE[..row].iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert!(allowed.iter().all(|other| below.contains(&other)), "{name} uses what is above it");
    }
    for path in rust_files(&root().join("src")) {
        let (folder, depth) = folder_and_depth(&path);
        let file = path.display();
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == folder) else {
            panic!("{file}: say in MAY_USE what {folder} may use")
        };
        if path.ends_with("tests.rs") {
            continue;
        }
        for name in names_of_the_root(&code(&path), depth) {
            let is_allowed = name == folder || allowed.contains(&&*name);
            assert!(is_allowed, "{file}: must not know {name}");
        }
    }
}

#[test]
fn imports_are_found_however_they_are_written() {
    let check = |code: &str, depth: usize, expected: &[&str]| {
        assert_eq!(names_of_the_root(code, depth), expected, "{code}");
    };
    check("use crate::{a::{b, c}, d, e::f as g};", 1, &["a", "d", "e"]);
    check("use crate::{\n    a::b,\n    c::{\n        d,\n    },\n};", 1, &["a", "c"]);
    check("let x = crate::a::B;", 1, &["a"]);
    check("use super::super::{a, b::c}; use super::d;", 2, &["a", "b"]);
    check("use granary::a; my_crate::b; $crate::c;", 1, &["a"]);
    check("pub(in crate::a::b) struct C;", 2, &[]);
}

#[test]
fn libraries_stay_in_their_folders() {
    let folders: [(&str, &[&str]); 7] = [
        ("redb", &["store"]),
        ("actix::", &["actors", "api", "daemon"]),
        ("actix_web", &["api", "cluster", "daemon"]),
        ("clap::", &["cli"]),
        ("rustls", &["tls"]),
        ("openidconnect", &["oidc"]),
        ("mongodb", &["publish", "replication"]),
    ];
    for (library, folders) in folders {
        for path in rust_files(&root().join("src")) {
            let inside = path.strip_prefix(root().join("src")).unwrap();
            let folder = inside.components().next().unwrap().as_os_str().to_string_lossy();
            let text = fs::read_to_string(&path).unwrap();
            let uses =
                text.lines().any(|line| line.trim_start().starts_with(&format!("use {library}")));
            assert!(!uses || folders.contains(&&*folder), "{} uses {library}", path.display());
        }
    }
}

#[test]
fn every_crate_inherits_the_lints() {
    let agents = rust_files(&root().join("agents"));
    let crates = agents.iter().filter(|path| path.ends_with("src/lib.rs"));
    let mut manifests: Vec<_> =
        crates.map(|path| path.ancestors().nth(2).unwrap().join("Cargo.toml")).collect();
    let crates_in_src = fs::read_dir(root().join("src")).unwrap();
    let crates_in_src = crates_in_src.map(|entry| entry.unwrap().path().join("Cargo.toml"));
    manifests.extend(crates_in_src.filter(|path| path.exists()));
    let others = ["Cargo.toml", "agents/agent/Cargo.toml", "benches/fleet/Cargo.toml"];
    manifests.push(root().join("benches/instructions/Cargo.toml"));
    manifests.extend(others.map(|path| root().join(path)));
    assert!(manifests.len() > 17, "found only {manifests:?}");
    for path in manifests {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{}", path.display());
    }
}

#[test]
fn the_architecture_fits_one_reader() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert!(text.lines().count() <= 250, "ARCHITECTURE.md is longer than 250 lines");
}
