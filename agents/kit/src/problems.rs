//! Logs what begins and what ceases to fail, once each.

use std::collections::BTreeMap;

use tracing::{info, warn};

/// What failed in the round before.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    open: BTreeMap<String, String>,
}

impl Problems {
    /// Takes this round's problems and logs the difference; gives (begun, ended).
    pub(crate) fn update(&mut self, now: BTreeMap<String, String>) -> (usize, usize) {
        let mut begun = 0;
        for (place, cause) in &now {
            if !self.open.contains_key(place) {
                begun += 1;
                warn!(place, cause, "cannot read; left out until it works again");
            }
        }
        let mut ended = 0;
        for place in self.open.keys() {
            if !now.contains_key(place) {
                ended += 1;
                info!(place, "can be read again");
            }
        }
        self.open = now;
        (begun, ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lasting_problem_is_logged_when_it_begins_and_when_it_ends() {
        let mut problems = Problems::default();
        let one = || BTreeMap::from([("disk".to_owned(), "gone".to_owned())]);
        assert_eq!(problems.update(one()), (1, 0));
        assert_eq!(problems.update(one()), (0, 0));
        assert_eq!(problems.update(BTreeMap::new()), (0, 1));
        assert_eq!(problems.update(one()), (1, 0));
    }
}
