//! The scopes of clients that show a certificate, by the names in it.
//!
//! Must never know: TLS, how a certificate is checked.

use std::collections::{HashMap, HashSet};

use super::scopes::{Scope, Scopes};

/// The maximum number of names.
const NAMES_MAX: usize = 1000;

/// The scopes by name. Names are compared as texts in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientScopes(HashMap<String, Scopes>);

impl ClientScopes {
    /// Parses names with their scopes, such as `web1.example.org` and `ingest,read`.
    ///
    /// # Errors
    /// The faults, each with its name.
    pub fn new<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, Vec<String>> {
        let (mut by_name, mut faults) = (HashMap::new(), Vec::new());
        for (name, scopes) in pairs {
            let scopes: Result<Vec<Scope>, _> =
                scopes.split(',').map(|scope| scope.trim().parse()).collect();
            let Ok(scopes) = scopes else {
                let names = Scope::ALL.iter().map(|scope| scope.as_str()).collect::<Vec<_>>();
                faults.push(format!("{name:?}: use scopes of {}", names.join(", ")));
                continue;
            };
            by_name.insert(name.to_lowercase(), Scopes::of(&scopes));
        }
        if by_name.len() > NAMES_MAX {
            faults.push(format!("{} names are more than {NAMES_MAX}", by_name.len()));
        }
        if faults.is_empty() { Ok(Self(by_name)) } else { Err(faults) }
    }

    /// Returns true if no name has scopes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names that have a scope, in lower case.
    pub fn with(&self, scope: Scope) -> HashSet<String> {
        let scope = Scopes::of(&[scope]);
        let has = |scopes: &Scopes| scopes.granted().contains(scope);
        let found = self.0.iter().filter(|(_, scopes)| has(scopes));
        found.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the first of a certificate's names that has scopes, and the scopes.
    pub fn find<'a>(&self, names: &'a [String]) -> Option<(&'a String, Scopes)> {
        names.iter().find_map(|name| Some((name, *self.0.get(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_with_scopes_counts_and_faults_name_the_client() {
        let pairs = [("Web1.example.org", "ingest"), ("ops", "read, operate")];
        let clients = ClientScopes::new(pairs.into_iter()).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let find = |of: &[&str]| {
            let of: Vec<String> = names(of);
            clients.find(&of).map(|(name, scopes)| (name.clone(), scopes.to_string()))
        };
        assert_eq!(find(&["x", "web1.example.org", "ops"]).unwrap().1, "ingest");
        assert_eq!(find(&["ops"]).unwrap(), ("ops".to_owned(), "read, operate".to_owned()));
        assert_eq!(find(&["*.example.org", "example.org", "1web1.example.org"]), None);
        let faults = ClientScopes::new([("a", "reed"), ("b", "")].into_iter()).unwrap_err();
        assert!(faults[0].starts_with("\"a\": use scopes of ingest") && faults.len() == 2);
    }
}
