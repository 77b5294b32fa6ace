//! The steps of `.ci/run` are together the test command of the README.

use std::{fs, path::Path};

use super::root;

/// Returns the names of the integration tests of a package.
fn test_targets(package: &Path) -> Vec<String> {
    let entries = fs::read_dir(package.join("tests")).into_iter().flatten();
    let name = |path: &Path| {
        let is_target = path.extension().is_some_and(|extension| extension == "rs")
            || path.join("main.rs").exists();
        is_target.then(|| path.file_stem().unwrap().to_str().unwrap().to_owned())
    };
    entries.filter_map(|entry| name(&entry.unwrap().path())).collect()
}

#[test]
fn the_checks_run_every_target_of_the_test_command() {
    let steps = fs::read_to_string(root().join(".ci/run")).unwrap();
    let manifest: toml::Table =
        fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap();
    let patterns = members.iter().map(|member| root().join(member.as_str().unwrap()));
    let packages =
        patterns.flat_map(|pattern| match pattern.to_str().unwrap().strip_suffix("/*") {
            Some(folder) => {
                fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
            }
            None => vec![pattern],
        });
    let mut targets: Vec<_> = packages.flat_map(|package| test_targets(&package)).collect();
    targets.sort();
    targets.dedup();
    assert!(targets.len() > 4, "found only {targets:?}");
    let command = "cargo test --workspace --locked ";
    // A test that never ends is named after its time limit.
    let timed = format!("timeout 1500 {command}");
    let run: Vec<_> = steps
        .lines()
        .filter_map(|line| line.strip_prefix(command).or_else(|| line.strip_prefix(&timed)))
        .collect();
    let is_run = |option: &str| run.iter().any(|line| format!("{line} ").contains(option));
    for target in targets {
        assert!(is_run(&format!("--test {target} ")), ".ci/run: no step runs {target}");
    }
    assert!(is_run("--lib --bins ") && is_run("--doc "), ".ci/run: unit or doc tests are missing");
}
