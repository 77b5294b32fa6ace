//! Rules that keep, drop, rename and rewrite labels, with the keys and the semantics of
//! `relabel_config` in Prometheus. `relabel/tests.rs` contains the test cases of Prometheus.
//!
//! Must never know: the origin of the labels. The scrape agent applies rules to targets and
//! samples, the kit applies them to the readings of all collectors.

use md5::{Digest, Md5};
use regex::{Captures, Regex};
use serde::{Deserialize, Deserializer, de};

/// The maximum number of rules in a list.
pub const RULES_MAX: usize = 1000;
/// The maximum length of a pattern, and its maximum size when compiled.
const PATTERN_BYTES_MAX: usize = 16 << 10;
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// The maximum length of a value that a rule creates.
const VALUE_BYTES_MAX: usize = 64 << 10;

/// Labels sorted by name; no value is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Labels(Vec<(String, String)>);

impl Labels {
    /// Returns the value of a label, or an empty text.
    pub fn get(&self, name: &str) -> &str {
        self.find(name).map_or("", |index| &self.0[index].1)
    }

    /// Sets a label; an empty value removes it.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        match (self.0.binary_search_by(|(known, _)| known.as_str().cmp(name)), value.is_empty()) {
            (Ok(index), true) => drop(self.0.remove(index)),
            (Ok(index), false) => self.0[index].1 = value,
            (Err(_), true) => {}
            (Err(index), false) => self.0.insert(index, (name.to_owned(), value)),
        }
    }

    /// Keeps the labels whose names satisfy `is_kept`.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&str) -> bool) {
        self.0.retain(|(name, _)| is_kept(name));
    }

    /// Iterates over names and values, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns true when the label exists.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()
    }
}

impl<N: AsRef<str>, V: Into<String>> FromIterator<(N, V)> for Labels {
    /// Collects labels; the last of several labels with the same name wins.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(labels: I) -> Self {
        let mut all = Self::default();
        for (name, value) in labels {
            all.set(name.as_ref(), value);
        }
        all
    }
}

/// The action of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    #[default]
    Replace,
    Keep,
    Drop,
    KeepEqual,
    DropEqual,
    HashMod,
    LabelMap,
    LabelDrop,
    LabelKeep,
    Lowercase,
    Uppercase,
}

/// A rule as it appears in a settings file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawRule {
    source_labels: Vec<String>,
    separator: String,
    target_label: String,
    regex: String,
    modulus: u64,
    replacement: String,
    action: Action,
}

impl Default for RawRule {
    fn default() -> Self {
        Self {
            source_labels: Vec::new(),
            separator: ";".to_owned(),
            target_label: String::new(),
            regex: "(.*)".to_owned(),
            modulus: 0,
            replacement: "$1".to_owned(),
            action: Action::default(),
        }
    }
}

/// A checked rule.
#[derive(Debug, Clone)]
pub struct Rule {
    source_labels: Vec<String>,
    separator: String,
    target_label: String,
    pattern: Regex,
    modulus: u64,
    replacement: String,
    action: Action,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.source_labels == other.source_labels
            && self.separator == other.separator
            && self.target_label == other.target_label
            && self.pattern.as_str() == other.pattern.as_str()
            && self.modulus == other.modulus
            && self.replacement == other.replacement
            && self.action == other.action
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(RawRule::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl Rule {
    fn new(raw: RawRule) -> Result<Self, String> {
        let RawRule { source_labels, separator, target_label, regex, modulus, replacement, action } =
            raw;
        let is_targeted = matches!(
            action,
            Action::Replace
                | Action::HashMod
                | Action::Lowercase
                | Action::Uppercase
                | Action::KeepEqual
                | Action::DropEqual
        );
        if is_targeted && target_label.is_empty() {
            return Err(format!("action {} needs a target_label", action.name()));
        }
        let is_valid = if action == Action::Replace {
            is_template(&target_label)
        } else {
            target_label.is_empty() || is_name(&target_label)
        };
        if !is_valid {
            return Err(format!(
                "{target_label:?} is not a valid target_label for {}",
                action.name()
            ));
        }
        if action == Action::HashMod && modulus == 0 {
            return Err("action hashmod needs a modulus that is not 0".to_owned());
        }
        if action == Action::LabelMap && !is_template(&replacement) {
            return Err(format!("{replacement:?} is not a valid replacement for labelmap"));
        }
        if regex.len() > PATTERN_BYTES_MAX {
            return Err(format!("a regex of {} bytes; at most {PATTERN_BYTES_MAX}", regex.len()));
        }
        let pattern = regex::RegexBuilder::new(&format!("^(?s:{regex})$"))
            .size_limit(COMPILED_BYTES_MAX)
            .build()
            .map_err(|cause| format!("regex {regex:?}: {cause}"))?;
        Ok(Self { source_labels, separator, target_label, pattern, modulus, replacement, action })
    }

    /// Applies the rule. Returns false when it drops the labels.
    fn apply(&self, labels: &mut Labels) -> bool {
        let values = self.source_labels.iter().map(|name| labels.get(name));
        let source = values.collect::<Vec<_>>().join(&self.separator);
        match self.action {
            Action::Drop => return !self.pattern.is_match(&source),
            Action::Keep => return self.pattern.is_match(&source),
            Action::DropEqual => return labels.get(&self.target_label) != source,
            Action::KeepEqual => return labels.get(&self.target_label) == source,
            Action::Replace => self.replace(&source, labels),
            Action::Lowercase => labels.set(&self.target_label, source.to_lowercase()),
            Action::Uppercase => labels.set(&self.target_label, source.to_uppercase()),
            Action::HashMod => {
                let shard = md5_hash(&source) % self.modulus;
                labels.set(&self.target_label, shard.to_string());
            }
            Action::LabelMap => self.map(labels),
            Action::LabelDrop => labels.retain(|name| !self.pattern.is_match(name)),
            Action::LabelKeep => labels.retain(|name| self.pattern.is_match(name)),
        }
        true
    }

    /// If the pattern matches, sets the target label to the replacement; an invalid target name has
    /// no effect.
    fn replace(&self, source: &str, labels: &mut Labels) {
        let Some(captures) = self.pattern.captures(source) else { return };
        let target = Self::expand(&captures, &self.target_label);
        if is_name(&target) {
            let value = Self::expand(&captures, &self.replacement);
            labels.set(&target, value);
        }
    }

    fn map(&self, labels: &mut Labels) {
        let before = labels.clone();
        for (name, value) in before.iter() {
            if let Some(captures) = self.pattern.captures(name) {
                let target = Self::expand(&captures, &self.replacement);
                labels.set(&target, value);
            }
        }
    }

    /// Expands `$1` and `${1}` in a template; the regex crate uses the notation of Go.
    fn expand(captures: &Captures<'_>, template: &str) -> String {
        let mut out = String::new();
        captures.expand(template, &mut out);
        if out.len() > VALUE_BYTES_MAX {
            let end = (0..=VALUE_BYTES_MAX).rev().find(|at| out.is_char_boundary(*at));
            out.truncate(end.unwrap_or(0));
        }
        out
    }
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::Keep => "keep",
            Self::Drop => "drop",
            Self::KeepEqual => "keepequal",
            Self::DropEqual => "dropequal",
            Self::HashMod => "hashmod",
            Self::LabelMap => "labelmap",
            Self::LabelDrop => "labeldrop",
            Self::LabelKeep => "labelkeep",
            Self::Lowercase => "lowercase",
            Self::Uppercase => "uppercase",
        }
    }
}

/// Applies the rules in order. Returns false when a rule drops the labels.
pub fn apply(rules: &[Rule], labels: &mut Labels) -> bool {
    rules.iter().all(|rule| rule.apply(labels))
}

/// Returns the last eight bytes of the MD5 sum, as Prometheus does, so that all servers agree on
/// the shards.
fn md5_hash(text: &str) -> u64 {
    let sum = Md5::digest(text.as_bytes());
    sum.iter().skip(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// Returns true when the text is a valid label name.
fn is_name(text: &str) -> bool {
    is_template(text) && !text.contains('$')
}

/// Returns true when the text can expand to a label name: letters, digits, underscores, `$1` and
/// `${name}`.
fn is_template(text: &str) -> bool {
    let mut letters = text.chars().peekable();
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut is_first = true;
    while let Some(letter) = letters.next() {
        if letter == '$' {
            let is_braced = letters.next_if_eq(&'{').is_some();
            let mut length = 0;
            while letters.next_if(|letter| is_word(*letter)).is_some() {
                length += 1;
            }
            if length == 0 || is_braced && letters.next_if_eq(&'}').is_none() {
                return false;
            }
        } else if !is_word(letter) || is_first && letter.is_ascii_digit() {
            return false;
        }
        is_first = false;
    }
    !is_first
}

#[cfg(test)]
mod tests;
