//! The rules of retention of a history. Every class keeps all granularities, so the oracle predicts
//! the same cells, whichever files contain them. Restarts change the rules.

use fastrand::Rng;
use granary::model::{
    Granularity, GranularitySet, KeySelector, RetentionRule, Span, TagComparison, TagMatcher,
};

use crate::levels::Levels;

/// One of this many histories has rules.
const HISTORIES_PER_CHOSEN: u8 = 3;

/// The rules of a history.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    rng: Rng,
    pub(crate) current: Vec<RetentionRule>,
}

impl Rules {
    /// Returns rules, or `None` for most histories.
    pub(crate) fn new(seed: u64, levels: &Levels) -> Option<Self> {
        // A separate generator leaves the other random decisions of the history unchanged.
        let mut rng = Rng::with_seed(seed ^ 0x72_756c_6573);
        let is_chosen = rng.u8(0..HISTORIES_PER_CHOSEN) == 0;
        let mut rules = Self { rng, current: Vec::new() };
        rules.change_randomly(levels);
        is_chosen.then_some(rules)
    }

    /// Changes the rules at some restarts, and returns whether it did.
    pub(crate) fn change_randomly(&mut self, levels: &Levels) -> bool {
        if self.rng.u8(0..3) > 0 {
            return false;
        }
        let count = self.rng.usize(0..4);
        let mut names: Vec<_> = ["a", "b", "c", "d"].to_vec();
        self.rng.shuffle(&mut names);
        let rules: Vec<_> = names[..count].iter().map(|name| self.rule(name, levels)).collect();
        rules != std::mem::replace(&mut self.current, rules.clone())
    }

    fn rule(&mut self, name: &str, levels: &Levels) -> RetentionRule {
        let (first, last) = (self.rng.u8(0..8), self.rng.u8(0..10));
        let matcher = TagMatcher {
            tag: "name".to_owned(),
            comparison: TagComparison::Pattern,
            value: format!(".*[{first}-{}]", last.max(first)),
        };
        let selector = KeySelector::new(vec![matcher]).unwrap();
        let kept: Vec<_> = levels.current.iter().map(level_with_retention).collect();
        RetentionRule::new(name, selector, &kept, &levels.current).unwrap()
    }
}

/// Returns the rules with the retentions of granularities.
pub(crate) fn with_retentions(
    rules: &[RetentionRule],
    granularities: &GranularitySet,
) -> Vec<RetentionRule> {
    let kept: Vec<_> = granularities.iter().map(level_with_retention).collect();
    let with_retentions = |rule: &RetentionRule| {
        RetentionRule::new(&rule.name, rule.selector.clone(), &kept, granularities).unwrap()
    };
    rules.iter().map(with_retentions).collect()
}

fn level_with_retention(level: &Granularity) -> (String, Option<Span>) {
    (level.name.clone(), Some(level.retention()))
}
