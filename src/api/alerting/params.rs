//! The parameters of Alertmanager's lists, and their label filters.
//!
//! Must never know: what is listed.

use crate::alerts::LabelMatcher;
use actix_web::web::Query;

/// The maximum number of filters in a request.
const FILTERS_MAX: usize = 64;
/// The parameters of a list.
#[derive(Debug)]
pub(super) struct Params {
    pub(super) filters: Vec<LabelMatcher>,
    pub(super) active: bool,
    pub(super) silenced: bool,
    pub(super) inhibited: bool,
    /// A matcher for the receiver's name.
    pub(super) receiver: Option<LabelMatcher>,
}

impl Params {
    /// Reads a query string.
    pub(super) fn read(query: &str) -> Result<Self, String> {
        let pairs = Query::<Vec<(String, String)>>::from_query(query);
        let pairs = pairs.map_err(|cause| cause.to_string())?.into_inner();
        let (active, silenced, inhibited) = (true, true, true);
        let mut params = Self { filters: Vec::new(), active, silenced, inhibited, receiver: None };
        for (name, value) in pairs {
            let flag = || match &*value {
                "true" => Ok(true),
                "false" => Ok(false),
                other => Err(format!("{name}={other:?}: write true or false")),
            };
            match &*name {
                "filter" => params.filters.extend(LabelMatcher::parse_all(&value)?),
                "active" => params.active = flag()?,
                "silenced" => params.silenced = flag()?,
                "inhibited" => params.inhibited = flag()?,
                // Alertmanager's "unprocessed" alerts do not exist here.
                "unprocessed" => drop(flag()?),
                "receiver" => params.receiver = Some(LabelMatcher::new(&name, &value, true, true)?),
                _ => {}
            }
            if params.filters.len() > FILTERS_MAX {
                return Err(format!("filter: more than {FILTERS_MAX} matchers"));
            }
        }
        Ok(params)
    }

    /// Returns true when labels match the filters. As in Alertmanager, a filter for an empty value
    /// matches a missing label, and a filter for another value matches only an existing label.
    pub(super) fn accepts<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.filters.iter().all(|filter| match (label(filter.name()), filter.value().is_empty()) {
            (found, true) => found.is_none() == filter.is_equal(),
            (found, false) => filter.accepts(found.unwrap_or_default()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_as_in_alertmanager() {
        let check = |filter: &str, expected: bool| {
            let params = Params::read(&format!("filter={filter}")).unwrap();
            let label =
                |name: &str| [("a", "b"), ("e", "")].into_iter().find(|label| label.0 == name);
            assert_eq!(params.accepts(|name| Some(label(name)?.1)), expected, "{filter}");
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
