//! The settings of documents in MongoDB.
//!
//! Must never know: how documents are written.

use super::{faults::Faults, sections::Publish};
use crate::{
    model::{GranularityIndex, GranularitySet, PROJECT_NAME_BYTES_MAX},
    publish::{Form, MongoUri},
};

/// The maximum length of a database's name in MongoDB.
const DATABASE_BYTES_MAX: usize = 63;

/// The database of documents when the address names none.
const DATABASE: &str = "granary";

/// The database of documents, and the documents.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "config/default.toml explains each key")]
pub struct PublishSettings {
    pub uri: MongoUri,
    pub database: String,
    /// The form of the documents of each published granularity, finest first.
    pub forms: Vec<(GranularityIndex, Form)>,
}

/// Checks the settings; `None` when no documents are written.
pub(super) fn publish(
    given: &Publish,
    granularities: &GranularitySet,
    has_projects: bool,
    faults: &mut Faults,
) -> Option<PublishSettings> {
    if given.uri.is_empty() {
        if !given.collections.is_empty() {
            faults.0.push("publish.collections needs publish.uri".to_owned());
        }
        return None;
    }
    let uri = MongoUri::parse(&given.uri);
    let uri = uri.map_err(|problem| faults.0.push(format!("publish.uri: {problem}"))).ok();
    let database = uri.as_ref().and_then(MongoUri::database).unwrap_or(DATABASE).to_owned();
    check_database("publish.uri: the database", &database, has_projects, faults);
    let forms = forms(given, granularities, faults);
    Some(PublishSettings { uri: uri?, database, forms })
}

/// Checks the name of a database, perhaps with room for the name of a project.
pub(super) fn check_database(setting: &str, name: &str, has_projects: bool, faults: &mut Faults) {
    let room = if has_projects { PROJECT_NAME_BYTES_MAX + 1 } else { 0 };
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let bytes_max = DATABASE_BYTES_MAX.saturating_sub(room).max(1);
    if name.is_empty() || !is_plain || name.len() > bytes_max {
        faults.0.push(format!(
            "{setting} = {name:?} is not valid; use 1 to {bytes_max} letters, digits, _ and -"
        ));
    }
    if ["admin", "local", "config"].contains(&name) {
        faults.0.push(format!("{setting} = {name:?} belongs to MongoDB; use another name"));
    }
}

fn forms(
    given: &Publish,
    granularities: &GranularitySet,
    faults: &mut Faults,
) -> Vec<(GranularityIndex, Form)> {
    if given.collections.is_empty() {
        return granularities.indexed().map(|(index, _)| (index, Form::default())).collect();
    }
    let mut forms = Vec::new();
    for (name, form) in &given.collections {
        let Some((index, _)) = granularities.named(name) else {
            let known: Vec<_> = granularities.iter().map(|level| level.name.as_str()).collect();
            faults.0.push(format!(
                "publish.collections: {name:?} is no granularity; use some of {}",
                known.join(", ")
            ));
            continue;
        };
        match form.parse() {
            Ok(form) => forms.push((index, form)),
            Err(problem) => faults.0.push(format!("publish.collections: {name}: {problem}")),
        }
    }
    forms.sort_by_key(|(index, _)| *index);
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::read;

    #[test]
    fn documents_of_all_granularities_are_nested_unless_the_settings_say_otherwise() {
        let forms = |text: &str| {
            let settings = read(&format!("publish.uri = 'mongodb://a:p@b'\n{text}")).unwrap();
            settings.publishing.unwrap().forms
        };
        assert_eq!(forms("").len(), 4);
        assert!(forms("").iter().all(|(_, form)| *form == Form::Nested));
        let some = forms("publish.collections = { 1d = 'levels', 1m = 'bucket' }");
        let expected = [(GranularityIndex(0), Form::Bucket), (GranularityIndex(3), Form::Levels)];
        assert_eq!(some, expected);
        assert_eq!(read("").unwrap().publishing, None);
    }

    #[test]
    fn the_address_names_the_database() {
        let database = |uri: &str| {
            let settings = read(&format!("publish.uri = '{uri}'")).unwrap();
            settings.publishing.unwrap().database
        };
        assert_eq!(database("mongodb://a:p@b,c:1/metrics?tls=true"), "metrics");
        for without in ["mongodb://b", "mongodb://b/", "mongodb://b/?tls=true"] {
            assert_eq!(database(without), "granary");
        }
    }

    #[test]
    fn faults_name_the_setting_and_the_remedy_and_no_password_is_shown() {
        for (text, part) in [
            ("publish.uri = 'mongodb://ann:s3:cret@b:port'", "publish.uri: b:port"),
            ("publish.uri = 'mongodb+srv://ann:s3cret@b'", "name the hosts"),
            ("publish.uri = 'mongodb://b/a%2eb?tls=true'", "letters, digits"),
            ("publish.uri = 'mongodb://b/admin'", "another name"),
            ("publish.uri = 'mongodb://b'\npublish.collections = {2h='nested'}", "1m, 5m, 1h, 1d"),
            ("publish.uri = 'mongodb://b'\npublish.collections = {1h='flat'}", "nested, levels"),
            ("publish.collections = {1h='nested'}", "needs publish.uri"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(part) && !message.contains("cret"), "{text}: {message}");
        }
        let settings = read("publish.uri = 'mongodb://ann:s3cret@b/?tls=true'").unwrap();
        assert!(!format!("{settings:?}").contains("s3cret"), "{settings:?}");
        assert!(settings.as_toml.iter().any(|line| line.contains("mongodb://***@b/?tls=true")));
    }
}
