//! Cycles of imports between files, and between the modules of a folder with all that they contain:
//! no file or module of a cycle can be read first.
//!
//! Imports between a module and its submodules do not count: a parent reexports items of its
//! children, and a child uses items of its parent.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::{code, root, rust_files};

/// The maximum number of reexports that are followed to find the module of a name.
const STEPS_MAX: usize = 16;

type ModulePath = Vec<String>;

/// The imported names of a module with their full paths.
type ImportedNames = BTreeMap<String, ModulePath>;

/// The modules that each module uses.
type Dependencies = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// The modules of a crate by their paths, without tests.
#[derive(Default)]
struct Crate {
    modules: BTreeMap<ModulePath, ImportedNames>,
    /// The paths in the code of each module.
    used_paths: BTreeMap<ModulePath, Vec<ModulePath>>,
}

impl Crate {
    fn read(src: &Path, name: &str) -> Self {
        let mut graph = Self::default();
        for path in rust_files(src) {
            let inside = path.strip_prefix(src).unwrap().with_extension("");
            let parts = inside.iter().map(|part| part.to_string_lossy().into_owned());
            let module: ModulePath =
                parts.filter(|part| !["mod", "lib"].contains(&&**part)).collect();
            if !module.iter().any(|part| part == "tests" || part == "main") {
                graph.add(module, name, &code(&path));
            }
        }
        graph
    }

    fn add(&mut self, module: ModulePath, name: &str, code: &str) {
        let (mut names, mut used_paths) = (ImportedNames::new(), Vec::new());
        for item in code.split(';') {
            for (start, is_import) in [("use ", true), ("crate::", false), ("super::", false)] {
                for (at, _) in item.match_indices(start) {
                    let (preceding, found) = item.split_at(at);
                    let preceding = preceding.chars().next_back().unwrap_or('\n');
                    if preceding.is_alphanumeric() || "_:{,".contains(preceding) {
                        continue;
                    }
                    let tree = if is_import { found.split_at(start.len()).1 } else { found };
                    for (path, alias) in imported_paths(tree) {
                        let Some(path) = path_from_root(&module, name, &path) else { continue };
                        if is_import {
                            names.insert(alias, path.clone());
                        }
                        used_paths.push(path);
                    }
                }
            }
        }
        self.modules.insert(module.clone(), names);
        self.used_paths.insert(module, used_paths);
    }

    /// Returns the modules that a path uses: the named module, and the modules from which that
    /// module reexports the name.
    fn used_modules(&self, path: &[String], steps: usize) -> Vec<ModulePath> {
        let depth = (0..=path.len()).rev().find(|end| self.modules.contains_key(&path[..*end]));
        let (module, rest) = path.split_at(depth.unwrap_or_default());
        let mut found = vec![module.to_vec()];
        let names = self.modules.get(module).zip(rest.split_first());
        let target = names.and_then(|(names, (first, rest))| Some((names.get(first)?, rest)));
        if let Some((target, rest)) = target.filter(|_| steps > 0) {
            let target: Vec<_> = target.iter().chain(rest).cloned().collect();
            found.extend(self.used_modules(&target, steps - 1));
        }
        found
    }

    fn dependencies(&self) -> BTreeMap<&ModulePath, BTreeSet<ModulePath>> {
        let targets = |(module, used_paths): (_, &Vec<ModulePath>)| {
            let found = used_paths.iter().flat_map(|path| self.used_modules(path, STEPS_MAX));
            let module: &ModulePath = module;
            let others =
                found.filter(|other| !other.starts_with(module) && !module.starts_with(other));
            (module, others.collect())
        };
        self.used_paths.iter().map(targets).collect()
    }

    /// Returns the cycles between files.
    fn cycles(&self) -> BTreeSet<BTreeSet<String>> {
        let dependencies = self.dependencies();
        cycles(&dependencies.into_iter().map(|(module, used)| (module.clone(), used)).collect())
    }

    /// Returns the cycles between the modules of one folder, each with all that it contains.
    fn folder_cycles(&self) -> BTreeSet<BTreeSet<String>> {
        let mut dependencies = Dependencies::new();
        for (module, used) in self.dependencies() {
            for other in used {
                let pairs = module.iter().zip(&other);
                let depth = pairs.take_while(|(left, right)| left == right).count();
                let [from, to] = [module, &other].map(|path| path[..=depth].to_vec());
                dependencies.entry(to.clone()).or_default();
                dependencies.entry(from).or_default().insert(to);
            }
        }
        cycles(&dependencies)
    }
}

/// Returns the cycles, each as the modules that reach each other.
fn cycles(dependencies: &Dependencies) -> BTreeSet<BTreeSet<String>> {
    let reachable: BTreeMap<_, _> = dependencies
        .keys()
        .map(|module| (module, reachable_modules(module, dependencies)))
        .collect();
    let cycle = |module: &&ModulePath| {
        let others = reachable[*module].iter().filter(|other| reachable[*other].contains(*module));
        others.map(|other| other.join("::")).collect::<BTreeSet<_>>()
    };
    reachable.keys().map(cycle).filter(|cycle| !cycle.is_empty()).collect()
}

/// Returns all modules reachable from a module.
fn reachable_modules(start: &ModulePath, dependencies: &Dependencies) -> BTreeSet<ModulePath> {
    let (mut found, mut next) = (BTreeSet::new(), vec![start.clone()]);
    while let Some(module) = next.pop() {
        for target in &dependencies[&module] {
            if found.insert(target.clone()) {
                next.push(target.clone());
            }
        }
    }
    found
}

/// Returns the paths of a tree of imports, each with its local name.
fn imported_paths(tree: &str) -> Vec<(ModulePath, String)> {
    let head: String =
        tree.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect();
    let mut path: ModulePath =
        head.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let rest = tree.split_at(head.len()).1;
    if !head.ends_with("::") && !head.is_empty() || !rest.starts_with('{') {
        let alias = rest.strip_prefix(" as ").map(|text| {
            text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
        });
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let name = alias.or_else(|| path.last().cloned()).unwrap_or_default();
        return vec![(path, name)];
    }
    let mut found_parts = Vec::new();
    for part in group_parts(rest) {
        for (inner, name) in imported_paths(part.trim()) {
            let is_self = inner == ["self"];
            let name = if is_self { path.last().cloned().unwrap_or_default() } else { name };
            let inner = inner.into_iter().filter(|_| !is_self);
            found_parts.push((path.iter().cloned().chain(inner).collect(), name));
        }
    }
    found_parts
}

/// Returns the parts of a group in braces.
fn group_parts(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found_parts) = (0, 1, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (c == ',' && depth == 1) {
            found_parts.push(group.get(start..at).unwrap());
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found_parts.retain(|part| !part.trim().is_empty());
    found_parts
}

/// Returns a path from the crate's root, or `None` for a path outside of the crate.
fn path_from_root(module: &[String], name: &str, path: &[String]) -> Option<ModulePath> {
    let (first, rest) = path.split_first()?;
    let mut base = match first.as_str() {
        "crate" => Vec::new(),
        "self" => module.to_vec(),
        "super" => module.get(..module.len().checked_sub(1)?)?.to_vec(),
        other if other == name => Vec::new(),
        // The name is a child module or another crate; paths that lead to no module of this crate
        // are ignored later.
        _ => [module, &path[..1]].concat(),
    };
    for part in rest {
        if part == "super" {
            base.pop();
        } else {
            base.push(part.clone());
        }
    }
    Some(base)
}

#[test]
fn no_files_import_each_other_in_a_cycle() {
    let mut found = Vec::new();
    let folders = |name: &str| fs::read_dir(root().join(name)).unwrap();
    let agents = folders("agents").chain(folders("agents/shared"));
    let crates = agents.map(|entry| entry.unwrap().path());
    let benches = ["benches/fleet", "benches/instructions"].map(|folder| root().join(folder));
    let crates = crates.chain(benches).chain([root()]);
    for folder in crates {
        let src = folder.join("src");
        let name = if folder == root() { "granary" } else { "" };
        let graph = Crate::read(&src, name);
        for cycle in graph.cycles().into_iter().chain(graph.folder_cycles()) {
            let cycle: Vec<_> = cycle.into_iter().collect();
            let file = src.strip_prefix(root()).unwrap().display().to_string();
            found.push(format!("{file}: {}", cycle.join(", ")));
        }
    }
    assert!(found.is_empty(), "files import each other in a cycle:\n{}", found.join("\n"));
}

#[test]
fn cycles_are_found_through_groups_reexports_and_paths_in_code() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let mut graph = Crate::default();
        for (module, code) in files {
            let module = module.split("::").filter(|part| !part.is_empty()).map(str::to_owned);
            graph.add(module.collect(), "granary", code);
        }
        let found: Vec<_> = graph
            .cycles()
            .into_iter()
            .map(|cycle| cycle.into_iter().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(found, expected, "{files:?}");
    };
    let parent = ("a", "mod b; mod c; pub use b::B; use c::C as D;");
    let b_of_c = ("a::b", "use super::{c::{self, C}};");
    check(&[parent, b_of_c, ("a::c", "use super::B;")], &["a::b a::c"]);
    check(&[parent, b_of_c, ("a::c", "fn f() { crate::a::b::g(); }")], &["a::b a::c"]);
    check(&[parent, ("a::b", "use super::D;"), ("a::c", "use crate::a::{B};")], &["a::b a::c"]);
    check(&[parent, b_of_c, ("a::c", "use super::E;")], &[]);
    check(&[parent, b_of_c, ("a::c", "use std::b::B;")], &[]);
    check(&[("a", "use crate::b::X;"), ("b", "use granary::a::{Y, Z};")], &["a b"]);
}

#[test]
fn a_cycle_of_folders_is_found_when_its_files_have_none() {
    let mut graph = Crate::default();
    for (module, code) in [("a::b", "use crate::c::d::D;"), ("c::e", "use crate::a::f::F;")] {
        graph.add(module.split("::").map(str::to_owned).collect(), "granary", code);
    }
    for module in ["", "a", "a::f", "c", "c::d"] {
        let module = module.split("::").filter(|part| !part.is_empty()).map(str::to_owned);
        graph.add(module.collect(), "granary", "");
    }
    assert_eq!(graph.cycles(), BTreeSet::new());
    assert_eq!(graph.folder_cycles(), BTreeSet::from([["a", "c"].map(str::to_owned).into()]));
}
