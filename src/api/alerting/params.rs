//! The parameters of Alertmanager's lists, and its filters of labels.
//!
//! Must never know: what is listed.

use crate::alerts::LabelMatcher;
use actix_web::web::Query;

/// Filters of one request, at most.
const FILTERS_MAX: usize = 64;
/// What a list is asked for.
#[derive(Debug)]
pub(super) struct Params {
    pub(super) filters: Vec<LabelMatcher>,
    pub(super) active: bool,
    pub(super) silenced: bool,
    pub(super) inhibited: bool,
    /// Of whose name, as of a label.
    pub(super) receiver: Option<LabelMatcher>,
}

impl Params {
    /// Reads a query string.
    pub(super) fn read(query: &str) -> Result<Self, String> {
        let pairs = Query::<Vec<(String, String)>>::from_query(query);
        let pairs = pairs.map_err(|cause| cause.to_string())?.into_inner();
        let (active, silenced, inhibited) = (true, true, true);
        let mut own = Self { filters: Vec::new(), active, silenced, inhibited, receiver: None };
        for (name, value) in pairs {
            let word = || match &*value {
                "true" => Ok(true),
                "false" => Ok(false),
                other => Err(format!("{name}={other:?}: write true or false")),
            };
            match &*name {
                "filter" => own.filters.extend(LabelMatcher::parse_all(&value)?),
                "active" => own.active = word()?,
                "silenced" => own.silenced = word()?,
                "inhibited" => own.inhibited = word()?,
                // All that is shown has been looked at.
                "unprocessed" => drop(word()?),
                "receiver" => own.receiver = Some(LabelMatcher::new(&name, &value, true, true)?),
                _ => {}
            }
            if own.filters.len() > FILTERS_MAX {
                return Err(format!("filter: more than {FILTERS_MAX} matchers"));
            }
        }
        Ok(own)
    }

    /// Whether what has these labels is asked for. As in Alertmanager a filter for an empty value asks
    /// for what has no such label, one for another value for what has one.
    pub(super) fn asks_for<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.filters.iter().all(|own| match (label(own.name()), own.value().is_empty()) {
            (found, true) => found.is_none() == own.is_equal(),
            (found, false) => own.accepts(found.unwrap_or_default()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_alertmanagers() {
        let check = |filter: &str, expected: bool| {
            let params = Params::read(&format!("filter={filter}")).unwrap();
            let label = |name: &str| [("a", "b"), ("e", "")].into_iter().find(|own| own.0 == name);
            assert_eq!(params.asks_for(|name| Some(label(name)?.1)), expected, "{filter}");
        };
        check("a%3Db", true);
        check("a%3D%22b%22", true);
        check("a%3D~%22x.*%22", false);
        check("x!%3Dy", true);
        check("x%3D%22%22", true);
        check("x!%3D%22%22", false);
        check("e%3D%22%22", false);
        check("e!%3D%22%22", true);
        for query in ["filter=a", "active=1", "receiver=("] {
            Params::read(query).unwrap_err();
        }
    }
}
