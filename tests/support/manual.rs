//! The pages of documentation (README and manual), and the examples on them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A page, by its path below the repository.
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A block between two fences of a page.
pub(crate) struct Example {
    /// The fence's language: `sh`, `toml`, `text` and so on.
    pub(crate) language: String,
    pub(crate) text: String,
    /// The position of its first line, such as `docs/asking.md:33`.
    pub(crate) location: String,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Returns the pages: README.md, CONTRIBUTING.md and all of docs/.
pub(crate) fn pages() -> Vec<Page> {
    let mut names = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let entry = entry.unwrap();
        // The folder docs/pictures contains no pages.
        if entry.file_type().unwrap().is_file() {
            names.push(format!("docs/{}", entry.file_name().to_str().unwrap()));
        }
    }
    names.sort();
    assert!(names.len() >= 9, "{names:?}");
    let page = |name: String| {
        let text = fs::read_to_string(root().join(&name)).unwrap();
        Page { name, text }
    };
    names.into_iter().map(page).collect()
}

impl Page {
    pub(crate) fn examples(&self) -> Vec<Example> {
        let mut found = Vec::new();
        let mut lines = self.text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let Some(language) = line.strip_prefix("```") else { continue };
            let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            found.push(Example {
                language: language.to_owned(),
                text: inside.flat_map(|line| [line, "\n"]).collect(),
                location: format!("{}:{}", self.name, number + 1),
            });
        }
        found
    }
}
