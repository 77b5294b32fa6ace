//! The functions on lines of constant numbers, with the results of Graphite.

use super::super::{
    aggregation::NULL,
    arguments::{Node, key_of, path_of},
    line::{Line, line},
};
use super::*;

#[test]
fn the_parts_of_a_name_are_those_of_the_path_in_it() {
    for (name, expected) in [
        ("a.b.c", "a.b.c"),
        ("scale(perSecond(a.b.c),5)", "a.b.c"),
        ("disk.used;host=x", "disk.used"),
        ("summarize(a.b, \"1h\", \"sum\")", "a.b"),
    ] {
        assert_eq!(path_of(name), expected, "{name}");
    }
    let named = |name: &str| Line { name: name.to_owned(), ..line("m", &[NULL]) };
    let key = |name: &str, nodes: &[Node<'_>]| key_of(&named(name), nodes);
    assert_eq!(key("a.b.c", &[Node::Part(0), Node::Part(-1)]), "a.c");
    assert_eq!(key("f(a.b.c)", &[Node::Part(1), Node::Part(7), Node::Tag("name")]), "b.m");
}

#[test]
fn the_manual_lists_every_function() {
    let manual = include_str!("../../../../docs/asking.md");
    let section = manual.split("## Graphite's API").nth(1).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.contains("| /"));
    let rows = rows.skip_while(|line| !line.starts_with("| functions")).collect::<String>();
    let mut listed: Vec<_> = rows.split('`').skip(1).step_by(2).collect();
    listed.sort_unstable();
    assert_eq!(listed, names());
}

#[test]
fn every_function_has_one_name_of_its_own() {
    let names = names();
    assert!(names.len() > 90, "{}", names.len());
    let mut once = names.clone();
    once.dedup();
    assert_eq!(names, once);
    assert!(find("sumSeries").is_some() && find("nothing").is_none());
}
