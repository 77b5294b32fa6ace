//! Epochs of the rules: each begins at a time that is later than every sample accepted before it
//! began, and is valid for samples of its times. Therefore the class of a sample depends only on
//! its series and its time, whenever the sample arrives and however often it is replayed.
//!
//! The row of an epoch is a checked row; FORMAT.md describes the bytes. Must never know: the table
//! of the rows.

use crate::model::{KeySelector, TagComparison, TagMatcher, UnixMillis};

/// A rule of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRule {
    /// The class of the series.
    pub(crate) class: String,
    /// The series, unless an earlier rule selects them.
    pub(crate) selector: KeySelector,
}

/// An epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Epoch {
    /// The time of its first samples; `EARLIEST` for the first epoch.
    pub(crate) from: UnixMillis,
    /// The rules, the first match first.
    pub(crate) rules: Vec<StoredRule>,
}

impl Epoch {
    /// The epoch of a store that never had rules.
    pub(crate) const WITHOUT_RULES: Self = Self { from: UnixMillis::EARLIEST, rules: Vec::new() };

    /// Returns the row without its checksum.
    pub(crate) fn to_row(&self) -> Vec<u8> {
        let mut row = self.from.0.to_le_bytes().to_vec();
        row.push(self.rules.len() as u8);
        for StoredRule { class, selector } in &self.rules {
            push_text(&mut row, class);
            row.extend((selector.matchers().len() as u16).to_le_bytes());
            for TagMatcher { tag, comparison, value } in selector.matchers() {
                let position = TagComparison::ALL.iter().position(|known| known == comparison);
                row.push(position.unwrap_or_default() as u8);
                push_text(&mut row, tag);
                push_text(&mut row, value);
            }
        }
        row
    }

    /// Reads a row without its checksum; `None` when it is damaged.
    pub(crate) fn from_row(row: &[u8]) -> Option<Self> {
        let (from, rest) = row.split_first_chunk()?;
        let (count, mut rest) = rest.split_first()?;
        let mut rules = Vec::new();
        for _ in 0..*count {
            let class = take_text(&mut rest)?;
            let (matchers, after) = rest.split_first_chunk()?;
            rest = after;
            let mut read = || {
                let (position, after) = rest.split_first()?;
                rest = after;
                let comparison = *TagComparison::ALL.get(usize::from(*position))?;
                let (tag, value) = (take_text(&mut rest)?, take_text(&mut rest)?);
                Some(TagMatcher { tag, comparison, value })
            };
            let matchers = (0..u16::from_le_bytes(*matchers)).map(|_| read());
            let selector = KeySelector::new(matchers.collect::<Option<_>>()?).ok()?;
            rules.push(StoredRule { class, selector });
        }
        let from = UnixMillis(i64::from_le_bytes(*from));
        rest.is_empty().then_some(Self { from, rules })
    }
}

fn push_text(row: &mut Vec<u8>, text: &str) {
    row.extend((text.len() as u32).to_le_bytes());
    row.extend_from_slice(text.as_bytes());
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let (length, after) = rest.split_first_chunk()?;
    let (text, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    Some(std::str::from_utf8(text).ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written_and_a_malformed_one_is_refused() {
        let matcher = |comparison, value: &str| TagMatcher {
            tag: "host".to_owned(),
            comparison,
            value: value.to_owned(),
        };
        let matchers = TagComparison::ALL.map(|comparison| matcher(comparison, "a.*\n"));
        let rule = |class: &str, matchers| StoredRule {
            class: class.to_owned(),
            selector: KeySelector::new(matchers).unwrap(),
        };
        let rules = vec![rule("debug.2", matchers.to_vec()), rule("all", Vec::new())];
        let epoch = Epoch { from: UnixMillis(-7), rules };
        let row = epoch.to_row();
        assert_eq!(Epoch::from_row(&row), Some(epoch));
        for length in 0..row.len() {
            assert_eq!(Epoch::from_row(&row[..length]), None, "{length}");
        }
        assert_eq!(Epoch::from_row(&[&row[..], &[0]].concat()), None);
        let none = Epoch::WITHOUT_RULES;
        assert_eq!(Epoch::from_row(&none.to_row()), Some(none));
    }
}
