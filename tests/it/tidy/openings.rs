//! The openings of doc comments: the first sentence of a comment has a noun as its subject, or is a
//! main clause.

use std::fs;

use super::{all_sources, root};

/// Words that never open a doc comment, because they stand for a noun or leave it out.
const REFUSED_OPENINGS: [&str; 23] = [
    "The same", "Those", "That", "Of", "As", "It", "Its", "They", "What", "Whether", "How",
    "Which", "Where", "Who", "Whose", "So", "Not", "Has", "Is", "Had", "And", "But", "Such",
];

/// Words that open a doc comment only in front of a main clause, which a comma separates.
const CONDITIONS: [&str; 17] = [
    "When", "If", "For", "From", "By", "In", "With", "On", "At", "To", "Without", "Until", "After",
    "Before", "While", "Since", "Also",
];

/// The verbs of main clauses after `CONDITIONS`.
const VERBS: [&str; 24] = [
    "is", "are", "was", "were", "has", "have", "had", "does", "do", "did", "can", "may", "must",
    "needs", "returns", "sets", "closes", "contains", "removes", "count", "covers", "keeps",
    "begins", "written",
];

/// Words that begin a subordinate clause, whose verb is not the verb of the sentence.
const SUBORDINATE: [&str; 6] = ["which", "that", "where", "who", "whose", "while"];

/// Returns the first sentence of each paragraph of doc comments, with its line number.
fn first_sentences(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_inside = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        match (doc, found.last_mut()) {
            (None | Some(""), _) => {}
            (Some(doc), Some((_, comment))) if is_inside => comment.push_str(doc),
            (Some(doc), _) => found.push((number, doc.trim_start().to_owned())),
        }
        is_inside = doc.is_some_and(|doc| !doc.is_empty());
    }
    for (_, comment) in &mut found {
        let end = ["; ", ". ", ": "].iter().filter_map(|mark| comment.find(mark)).min();
        comment.truncate(end.unwrap_or(comment.len()));
    }
    found
}

fn has_refused_opening(sentence: &str) -> bool {
    let opens_with = |words: &&str| {
        let rest = sentence.strip_prefix(*words);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',', '.']))
    };
    REFUSED_OPENINGS.iter().any(opens_with)
        || (CONDITIONS.iter().any(opens_with) && !has_main_clause(sentence))
}

/// Returns true if a sentence that opens with a condition also has a comma, and a verb outside of
/// subordinate clauses.
fn has_main_clause(sentence: &str) -> bool {
    let is_verb = |part: &str| {
        let words = part.split_whitespace().take_while(|word| !SUBORDINATE.contains(word));
        words.map(|word| word.trim_matches(['.', ':', ';'])).any(|word| VERBS.contains(&word))
    };
    // The clause behind one of these words has a verb, but is not the main clause.
    let has_verb = ["When ", "If ", "While "].iter().any(|word| sentence.starts_with(word));
    let mut parts = sentence.split(',').skip(usize::from(has_verb));
    sentence.contains(',') && parts.any(is_verb)
}

#[test]
fn doc_comments_open_with_a_noun_or_a_verb() {
    let mut refused = Vec::new();
    for path in all_sources() {
        let file = path.strip_prefix(root()).unwrap().display().to_string();
        for (line, sentence) in first_sentences(&fs::read_to_string(&path).unwrap()) {
            if has_refused_opening(&sentence) {
                refused.push(format!("{file}:{line}: {sentence}"));
            }
        }
    }
    assert!(refused.is_empty(), "name the thing, or what it does:\n{}", refused.join("\n"));
}

#[test]
fn refused_openings_are_found() {
    for (comment, expected) in [
        ("/// The same of two.", true),
        ("/// What it holds.", true),
        ("/// When it is full", true),
        ("/// When it is full, the\n/// oldest entry is removed.", false),
        ("/// For hosts, agents and senders.", true),
        ("/// For each host, the time at which it is down.", true),
        ("/// In a box, so that frames are small.", true),
        ("/// For each host, the time of its start is kept.", false),
        ("/// Its name.", true),
        ("/// Itself.", false),
        ("/// A list.\n///\n/// Such lists are short.", true),
        ("/// The name.", false),
        ("/// Returns the name.", false),
    ] {
        let sentences = first_sentences(comment);
        assert_eq!(
            sentences.iter().any(|(_, sentence)| has_refused_opening(sentence)),
            expected,
            "{comment}"
        );
    }
}
