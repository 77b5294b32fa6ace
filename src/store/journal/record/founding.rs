//! The content of the first record of a shared log: the granularities and rules with which every
//! new replica begins, whatever the settings of its node.
//!
//! FORMAT.md describes the bytes. Must never know: later changes of retentions.

use super::fields::{put_bytes, take_section, take_text};
use crate::{
    model::{Granularity, GranularitySet, RetentionRule, RuleLevel, Span, UnixMillis},
    store::{
        encoding::fixed::take_bytes,
        journal::epoch_row::{Epoch, StoredRule},
    },
};

/// The levels of a new replica.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Founding {
    pub(crate) granularities: GranularitySet,
    pub(crate) rules: Vec<RetentionRule>,
}

impl Founding {
    /// Appends the content of the section.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut set = vec![self.granularities.count() as u8];
        for level in &self.granularities {
            set.extend_from_slice(&level.width_ms.to_le_bytes());
            for span in [level.document, level.partition, level.retention()] {
                put_bytes(span.to_string().as_bytes(), &mut set);
            }
        }
        out.extend_from_slice(&set);
        for rule in &self.rules {
            put_bytes(rule.name.as_bytes(), out);
            let stored = StoredRule { class: rule.name.clone(), selector: rule.selector.clone() };
            let selector = Epoch { from: UnixMillis::EARLIEST, rules: vec![stored] };
            put_bytes(&selector.to_row(), out);
            for level in &self.granularities {
                let kept = rule.levels.named(&level.name);
                let kept = kept.map_or(String::new(), |(_, level)| level.retention().to_string());
                put_bytes(kept.as_bytes(), out);
            }
        }
    }

    /// Reads the section to its end; `None` when it is damaged.
    pub(super) fn decode(rest: &mut &[u8]) -> Option<Self> {
        let [count] = take_bytes(rest)?;
        let mut levels = Vec::new();
        for _ in 0..count {
            let width_ms = i64::from_le_bytes(take_bytes(rest)?);
            let mut span = || take_text(rest)?.parse::<Span>().ok();
            let (document, partition, retention) = (span()?, span()?, span()?);
            if width_ms <= 0 {
                return None;
            }
            levels.push(Granularity::new(width_ms, document, partition, retention));
        }
        let granularities = GranularitySet::new(levels).ok()?;
        let mut rules = Vec::new();
        while !rest.is_empty() {
            let name = take_text(rest)?;
            let mut epoch = Epoch::from_row(take_section(rest)?)?;
            let selector = epoch.rules.pop()?.selector;
            let kept = |level: &Granularity| {
                let text = take_text(rest)?;
                let kept = if text.is_empty() { None } else { Some(text.parse().ok()?) };
                Some((level.name.clone(), kept))
            };
            let levels: Vec<RuleLevel> = granularities.iter().map(kept).collect::<Option<_>>()?;
            rules.push(RetentionRule::new(name, selector, &levels, &granularities).ok()?);
        }
        Some(Self { granularities, rules })
    }
}
