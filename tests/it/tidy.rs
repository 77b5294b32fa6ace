//! The house rules that the compiler does not know.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Longest file, in lines.
const LINES_MAX: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
    out.sort();
    out
}

fn all_sources() -> Vec<PathBuf> {
    let root = root();
    let folders = ["src", "agents", "tests", "benches"];
    let files: Vec<_> = folders.iter().flat_map(|folder| rust_files(&root.join(folder))).collect();
    assert!(files.len() > 40, "found only {} files", files.len());
    files
}

#[test]
fn every_file_begins_with_what_it_is_for_and_is_short() {
    for path in all_sources() {
        let text = fs::read_to_string(&path).unwrap();
        let shown = path.display();
        assert!(text.starts_with("//!"), "{shown}: begin with a //! that says what it is for");
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{shown}: {lines} lines; look for the seam");
    }
}

#[test]
fn arrows_between_the_folders_point_one_way() {
    let forbidden: [(&str, &[&str]); 9] = [
        ("model", &["policy", "store", "actors", "ingest", "query", "api", "config", "telemetry"]),
        ("policy", &["store", "actors", "ingest", "query", "api", "config", "telemetry"]),
        ("store", &["policy", "actors", "ingest", "query", "api", "config", "telemetry"]),
        ("ingest", &["actors", "query", "api", "config", "telemetry"]),
        ("import", &["actors", "query", "api", "config", "telemetry", "daemon", "cli"]),
        ("query", &["actors", "ingest", "api", "config", "telemetry"]),
        ("actors", &["api", "query", "config", "daemon", "cli"]),
        ("telemetry", &["actors", "api", "query", "ingest", "daemon", "cli"]),
        ("api", &["config", "daemon", "cli", "policy"]),
    ];
    for (folder, others) in forbidden {
        for path in rust_files(&root().join("src").join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            for other in others {
                let names = [format!("crate::{other}"), format!("    {other}::")];
                for name in names {
                    assert!(!code.contains(&name), "{}: must not know {other}", path.display());
                }
            }
        }
    }
}

#[test]
fn libraries_stay_in_their_folders() {
    let homes: [(&str, &[&str]); 4] = [
        ("redb", &["store"]),
        ("actix::", &["actors", "api", "daemon"]),
        ("actix_web", &["api", "daemon"]),
        ("clap::", &["cli"]),
    ];
    for (library, homes) in homes {
        for path in rust_files(&root().join("src")) {
            let inside = path.strip_prefix(root().join("src")).unwrap();
            let home = inside.components().next().unwrap().as_os_str().to_string_lossy();
            let text = fs::read_to_string(&path).unwrap();
            let uses =
                text.lines().any(|line| line.trim_start().starts_with(&format!("use {library}")));
            assert!(!uses || homes.contains(&&*home), "{} uses {library}", path.display());
        }
    }
}

#[test]
fn every_crate_inherits_the_lints() {
    let mut manifests = vec![root().join("Cargo.toml")];
    for entry in fs::read_dir(root().join("agents")).unwrap() {
        manifests.push(entry.unwrap().path().join("Cargo.toml"));
    }
    for path in manifests {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{}", path.display());
    }
}

#[test]
fn the_readme_documents_every_metric() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for (name, _) in granary::telemetry::METRIC_NAMES {
        assert!(readme.contains(name), "README.md does not explain {name}");
    }
}

#[test]
fn the_architecture_fits_one_reader() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert!(text.lines().count() <= 250, "ARCHITECTURE.md is longer than 250 lines");
}
