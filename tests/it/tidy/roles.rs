//! The table in src/actors/mod.rs lists exactly the roles of that folder.

use std::{collections::BTreeSet, fs, path::Path};

use super::{root, rust_files};

/// Returns the module of the role in a row of the table.
fn module_of(row: &str) -> Option<String> {
    let (role, _) = row.strip_prefix("//! | ")?.split_once(" | ")?;
    let name = role.to_lowercase().replace([' ', '-'], "_");
    (name != "role").then(|| name.replace("_listeners", ""))
}

/// Returns true if the code of a file, without its tests, runs an actor or starts a thread.
fn runs(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]").next().unwrap();
    code.contains("impl Actor for ") || code.contains("thread::Builder::new()")
}

#[test]
fn the_table_of_roles_lists_all_actors_and_threads() {
    let folder = root().join("src/actors");
    let table = fs::read_to_string(folder.join("mod.rs")).unwrap();
    let listed: BTreeSet<_> = table.lines().filter_map(module_of).collect();
    let module = |path: &Path| {
        let below = path.strip_prefix(&folder).unwrap().iter().next().unwrap();
        below.to_str().unwrap().trim_end_matches(".rs").to_owned()
    };
    let files = rust_files(&folder);
    let running = files.iter().filter(|path| runs(path)).map(|path| module(path));
    assert_eq!(listed, running.collect::<BTreeSet<_>>());
}
