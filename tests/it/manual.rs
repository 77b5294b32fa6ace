//! README and manual: short pages, working links, and complete lists of the metrics, paths and
//! settings in the code.

#[path = "../support/manual.rs"]
mod pages;

use std::{collections::BTreeSet, fs};

use granary::{
    config,
    store::DocumentLayout,
    telemetry::{CLUSTER_METRICS, METRIC_NAMES},
};
use pages::{Page, pages, root};

use crate::tidy::rust_files;

/// The longest README, in lines.
const README_LINES_MAX: usize = 150;
/// The widest line, in characters; rows of tables may be wider.
const COLUMNS_MAX: usize = 100;
/// The languages of examples.
const LANGUAGES: [&str; 4] = ["sh", "toml", "yaml", "text"];

fn page(name: &str) -> Page {
    pages().into_iter().find(|page| page.name == name).unwrap()
}

/// Returns the lines of a page outside of examples.
fn prose(page: &Page) -> Vec<&str> {
    let mut is_example = false;
    let is_prose = |line: &&str| {
        let is_fence = line.starts_with("```");
        is_example ^= is_fence;
        !is_example && !is_fence
    };
    page.text.lines().filter(is_prose).collect()
}

/// Returns the anchors of a page's headings, in the form of common viewers.
fn anchors(page: &Page) -> BTreeSet<String> {
    let headings = prose(page).into_iter().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| -> String {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let anchor_chars = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        anchor_chars.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// Returns the target of each link, the text in `](...)`.
fn links(page: &Page) -> Vec<String> {
    let text = prose(page).join("\n");
    let ends = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    ends.map(|(link, _)| link.to_owned()).collect()
}

#[test]
fn the_readme_is_one_page() {
    let lines = page("README.md").text.lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines: move details to docs/");
}

#[test]
fn lines_fit_a_narrow_screen_and_examples_name_their_language() {
    for page in pages() {
        for (number, line) in page.text.lines().enumerate() {
            let location = format!("{}:{}", page.name, number + 1);
            let columns = line.chars().count();
            assert!(
                line.starts_with('|') || columns <= COLUMNS_MAX,
                "{location}: {columns} columns"
            );
        }
        let is_indented = |line: &&str| line.starts_with("    ");
        let indented = prose(&page).into_iter().find(is_indented);
        assert_eq!(indented, None, "{}: put examples between fences", page.name);
        for example in page.examples() {
            let (language, location) = (&*example.language, &example.location);
            assert!(
                LANGUAGES.contains(&language),
                "{location}: name the language, one of {LANGUAGES:?}"
            );
            assert!(!example.text.trim().is_empty(), "{location}: the example is empty");
        }
    }
}

#[test]
fn links_lead_to_existing_files_and_headings() {
    let mut texts = pages();
    for name in [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "agents/host/METRICS.md",
        "agents/mongodb/METRICS.md",
        "src/store/FORMAT.md",
    ] {
        let text = fs::read_to_string(root().join(name)).unwrap();
        texts.push(Page { name: name.to_owned(), text });
    }
    let mut checked = 0;
    for page in &texts {
        for link in links(page).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let page_path = root().join(&page.name);
            let path =
                if file.is_empty() { page_path } else { page_path.with_file_name("").join(file) };
            assert!(path.exists(), "{}: no file for {link}", page.name);
            checked += 1;
            if anchor.is_empty() {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let targets = anchors(&Page { name: link.clone(), text });
            assert!(targets.contains(anchor), "{}: {link} is not among {targets:?}", page.name);
        }
    }
    assert!(checked >= 50, "found only {checked} links");
}

#[test]
fn every_page_of_the_manual_is_in_its_index() {
    let index = links(&page("docs/README.md"));
    for page in pages() {
        let name = page.name.trim_start_matches("docs/");
        let is_mentioned = index.iter().any(|link| link == name || *link == format!("../{name}"));
        assert!(
            is_mentioned || page.name == "docs/README.md",
            "docs/README.md does not name {name}"
        );
    }
}

#[test]
fn operations_explains_every_metric_and_no_page_names_an_unknown_one() {
    let names = METRIC_NAMES.iter().chain(&CLUSTER_METRICS);
    let names: BTreeSet<_> = names.map(|(name, _)| *name).collect();
    let operations = page("docs/operations.md").text;
    for name in &names {
        let row = [format!("| `{name}`"), format!("| `{name}{{")];
        let is_mentioned = row.iter().any(|row| operations.contains(row.as_str()));
        assert!(is_mentioned, "docs/operations.md does not explain {name}");
    }
    let hosts = granary::telemetry::HOST_METRICS.map(|(name, _)| name);
    let alerts = page("docs/alerts.md").text;
    for name in hosts {
        assert!(
            alerts.contains(&format!("| `{name}` |")),
            "docs/alerts.md does not explain {name}"
        );
    }
    let role = "deploy/ansible/roles/granary_agent/meta/argument_specs.yml";
    let role = fs::read_to_string(root().join(role)).unwrap();
    for page in pages() {
        for part in page.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let is_variable = || role.contains(&format!("\n      {part}:\n"));
            let is_known = names.contains(part.trim_end_matches("_bucket"))
                || hosts.contains(&part)
                || is_variable();
            assert!(
                !part.starts_with("granary_") || is_known,
                "{}: unknown metric {part}",
                page.name
            );
        }
    }
}

#[test]
fn the_index_lists_every_path_of_the_api() {
    let (index, mut found) = (page("docs/README.md").text, 0);
    for path in rust_files(&root().join("src/api")) {
        let text = fs::read_to_string(&path).unwrap();
        // The paths of Prometheus' API have a separate page.
        if !text.contains("fn routes(")
            || path.components().any(|part| part.as_os_str() == "prometheus")
        {
            continue;
        }
        for route in text.split("\"/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(index.contains(&format!("`/{route}`")), "docs/README.md has no /{route}");
            found += 1;
        }
    }
    assert!(found > 20, "found only {found} routes");
}

#[test]
fn sending_explains_every_reason_to_refuse_a_sample() {
    let text = page("docs/sending.md").text;
    let rows = text.split("### Refused samples").nth(1).unwrap().split("\n## ").next().unwrap();
    let explained = rows.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let explained: BTreeSet<_> = explained.collect();
    let reasons = granary::policy::RefusalReason::ALL;
    assert_eq!(explained, reasons.iter().map(|reason| reason.as_str()).collect());
}

#[test]
fn every_explained_log_line_exists() {
    let mut sources = String::new();
    for path in ["src", "agents"].iter().flat_map(|folder| rust_files(&root().join(folder))) {
        // A string literal may continue on the next line.
        sources.push_str(&fs::read_to_string(path).unwrap().replace("\\\n", ""));
    }
    let mut found = 0;
    for (name, heading) in [("operations", "## The log"), ("agents", "## What the log says")] {
        let text = page(&format!("docs/{name}.md")).text;
        let part = text.split(&format!("\n{heading}\n")).nth(1).unwrap();
        let part = part.split("\n## ").next().unwrap();
        for row in part.lines().filter(|line| line.starts_with("| `")) {
            let cell = row.split(" | ").next().unwrap();
            for message in cell.split('`').skip(1).step_by(2) {
                let is_there = sources.contains(message.trim_start_matches("... "));
                assert!(is_there, "docs/{name}.md: nothing logs {message:?}");
                found += 1;
            }
        }
    }
    assert!(found > 25, "found only {found} lines");
}

#[test]
fn the_computed_disk_use_equals_that_of_the_documents() {
    let text = page("docs/storage.md").text;
    for (granularity, slots) in [("1m", 60), ("5m", 48), ("1h", 24), ("1d", 31)] {
        let bytes = DocumentLayout::new(slots, 1000).length();
        let shown = format!("{},{:03} B", bytes / 1000, bytes % 1000);
        let is_row = |line: &&str| {
            line.starts_with(&format!("| {granularity} | ")) && line.contains(" page | ")
        };
        let row = text.lines().find(is_row);
        assert!(row.unwrap().contains(&shown), "docs/storage.md, {granularity}: {shown}");
    }
    let header = DocumentLayout::new(1, 1000).length() - 52;
    assert!(text.contains(&format!("{header} bytes of header")), "{header}");
}

#[test]
fn settings_lists_every_setting_that_a_reload_does_not_apply_at_once() {
    let text = page("docs/settings.md").text;
    let listed = |header: &str| {
        let part = text.split(header).nth(1).unwrap().split("\n\n").next().unwrap();
        let cells = part.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
        let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        names.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let needed = |settings: &mut dyn Iterator<Item = &'static str>| {
        settings.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    assert_eq!(listed("| setting | reason |"), needed(&mut config::restart_settings()));
    let reopening = needed(&mut config::reopening_settings());
    assert_eq!(listed("| setting | reason to open the store again |"), reopening);
}

/// Returns the table of each section of config/default.toml: keys, defaults and comments. A page of
/// docs/ that a comment names becomes a link.
fn tables_of_settings() -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("config/default.toml")).unwrap();
    let mut tables: Vec<(String, String)> = Vec::new();
    let mut comment = Vec::new();
    for line in text.lines().take_while(|line| *line != "[[granularity]]") {
        if let Some(name) = line.strip_prefix('[') {
            let head = "| key | default | meaning |\n|---|---|---|\n".to_owned();
            tables.push((name.trim_end_matches(']').to_owned(), head));
        } else if let Some((key, value)) = line.split_once(" = ").filter(|_| !line.starts_with('#'))
        {
            let meaning = linked(&comment.join(" "));
            let row = format!("| `{key}` | `{value}` | {meaning} |\n");
            tables.last_mut().unwrap().1.push_str(&row);
        }
        match line.strip_prefix("# ") {
            Some(words) => comment.push(words),
            None => comment.clear(),
        }
    }
    tables
}

fn linked(comment: &str) -> String {
    let link = |word: &str| -> String {
        let path = word.trim_matches(['(', ')', ',', '.', ';', ':']);
        let Some((page, anchor)) =
            path.strip_prefix("docs/").and_then(|page| page.split_once(".md#"))
        else {
            return word.to_owned();
        };
        word.replace(path, &format!("[{}]({page}.md#{anchor})", anchor.replace('-', " ")))
    };
    comment.split(' ').map(link).collect::<Vec<_>>().join(" ")
}

/// The table of routes in docs/security.md is generated from `src/access/routes.rs`:
/// `GRANARY_WRITE_DOCS=1` updates it.
#[test]
fn the_table_of_routes_is_that_of_the_code() {
    let (text, table) = (page("docs/security.md").text, granary::access::table());
    let head = "\n## Routes\n\n";
    let (before, after) = text.split_once(head).unwrap();
    let intro: String =
        after.split_inclusive('\n').take_while(|line| !line.starts_with('|')).collect();
    if std::env::var_os("GRANARY_WRITE_DOCS").is_some() {
        let text = [before, head, intro.trim_end(), "\n\n", &table].concat();
        fs::write(root().join("docs/security.md"), text).unwrap();
        return;
    }
    let shown = after.strip_prefix(&*intro).unwrap();
    assert_eq!(shown, table, "docs/security.md: regenerate it with GRANARY_WRITE_DOCS=1");
}

/// docs/settings.md is generated from config/default.toml: `GRANARY_WRITE_DOCS=1` updates its
/// tables.
#[test]
fn the_tables_of_settings_equal_the_defaults_file() {
    let mut text = page("docs/settings.md").text;
    for (section, table) in tables_of_settings() {
        let head = format!("\n## {section}\n\n");
        let (before, after) =
            text.split_once(&head).unwrap_or_else(|| panic!("docs/settings.md has no {section}"));
        let rows = after.lines().take_while(|line| line.starts_with('|'));
        let shown: String = rows.flat_map(|line| [line, "\n"]).collect();
        if std::env::var_os("GRANARY_WRITE_DOCS").is_some() {
            text = [before, &head, &table, after.strip_prefix(&shown).unwrap()].concat();
            continue;
        }
        let remedy = "regenerate it with GRANARY_WRITE_DOCS=1";
        assert_eq!(shown, table, "docs/settings.md, {section}: {remedy}");
    }
    if std::env::var_os("GRANARY_WRITE_DOCS").is_some() {
        fs::write(root().join("docs/settings.md"), text).unwrap();
    }
}
