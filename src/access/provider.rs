//! People of a provider of `OpenID` Connect: the names of their users, and the roles that their
//! groups give them.
//!
//! Must never know: the protocol, sessions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    roles::Roles,
    token::{self, Digest},
};

/// The prefix of the names of a provider's users. Names of other users have no colon.
const PREFIX: &str = "oidc:";
/// The text after [`PREFIX`] in a name that contains the digest of a subject, not the subject
/// itself.
const DIGEST_PREFIX: &str = "sha256:";
/// The maximum size of a subject that is part of a name, in bytes.
const PLAIN_BYTES_MAX: usize = 128;
/// The maximum number of characters of a display name.
const DISPLAY_NAME_CHARACTERS_MAX: usize = 64;

/// The stored part of a provider's user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderUser {
    /// The issuer, which identifies the provider.
    pub issuer: String,
    /// The subject, which identifies the person at the provider.
    pub subject: String,
    /// The name to display; empty when the provider sent none.
    pub display_name: String,
    /// The digest of the rules that gave the roles. When the rules change, all sessions of the user
    /// end.
    pub rules: Digest,
}

/// A person whom a provider identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The subject, which identifies the person at the provider.
    pub subject: String,
    /// The name to display; empty when the provider sent none.
    pub display_name: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl Person {
    /// Returns the name of the person's user, which no other user can have.
    pub fn user_name(&self) -> String {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._@+|:=,~-".contains(&byte);
        let subject = &*self.subject;
        if !subject.is_empty()
            && subject.len() <= PLAIN_BYTES_MAX
            && subject.bytes().all(is_plain)
            && !subject.starts_with(DIGEST_PREFIX)
        {
            return format!("{PREFIX}{subject}");
        }
        format!("{PREFIX}{DIGEST_PREFIX}{}", token::digest(subject.as_bytes()))
    }
}

/// Returns a provider's text as a display name; empty when the text is too long, or
/// contains control characters.
pub fn display_name(text: &str) -> String {
    let text = text.trim();
    let is_fit =
        text.chars().count() <= DISPLAY_NAME_CHARACTERS_MAX && !text.contains(char::is_control);
    if is_fit { text.to_owned() } else { String::new() }
}

/// The rules by which the groups of a provider give roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRules {
    issuer: String,
    roles: BTreeMap<String, Roles>,
    digest: Digest,
}

impl GroupRules {
    /// Creates the rules for a client of a provider; the claim `groups_claim` contains a person's
    /// groups.
    pub fn new(
        issuer: &str,
        client_id: &str,
        groups_claim: &str,
        roles: BTreeMap<String, Roles>,
    ) -> Self {
        // Texts and maps of texts can always be serialized.
        let text = serde_json::to_vec(&(issuer, client_id, groups_claim, &roles));
        let digest = token::digest(&text.unwrap_or_default());
        Self { issuer: issuer.to_owned(), roles, digest }
    }

    /// Returns the issuer, which identifies the provider.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the digest of the rules, which differs for other rules.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the roles of a person: the largest role of all groups in each project; `None` when
    /// no group has a role.
    pub fn roles_of(&self, person: &Person) -> Option<Roles> {
        let mut roles = Roles::default();
        let found = person.groups.iter().filter_map(|group| self.roles.get(group));
        found.for_each(|more| roles.add(more));
        (roles != Roles::default()).then_some(roles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Role, Scope, Scopes, check_user_name};

    fn person(subject: &str, groups: &[&str]) -> Person {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Person { subject: subject.to_owned(), display_name: String::new(), groups }
    }

    fn rules(roles: &[(&str, Roles)]) -> GroupRules {
        let roles = roles.iter().map(|(group, roles)| ((*group).to_owned(), roles.clone()));
        GroupRules::new("https://id.example.org", "granary", "groups", roles.collect())
    }

    #[test]
    fn names_of_a_provider_differ_from_all_others() {
        let name = |subject: &str| person(subject, &[]).user_name();
        assert_eq!(name("auth0|a.b-c_d@e"), "oidc:auth0|a.b-c_d@e");
        let odd = ["", "a b", "a/b", "a%2fb", "\u{e4}", "a\nb", "sha256:x", &"a".repeat(129)];
        let names: std::collections::BTreeSet<_> = odd.iter().map(|text| name(text)).collect();
        assert_eq!(names.len(), odd.len());
        for name in names.iter().chain([&name("ann")]) {
            assert!(name.len() <= 200 && check_user_name(name).is_err(), "{name}");
        }
        // A subject with the form of a digest is not the subject with this digest.
        let digest = name("a b").strip_prefix(PREFIX).unwrap().to_owned();
        assert_ne!(name(&digest), name("a b"));
    }

    #[test]
    fn the_largest_role_of_all_groups_counts_in_each_project() {
        let rules = rules(&[
            ("dev", Roles::one("web", Role::Viewer)),
            ("ops", Roles::one("web", Role::Admin)),
            ("dba", Roles::one("db", Role::Editor)),
        ]);
        let scopes = |groups: &[&str], project: &str| {
            rules.roles_of(&person("ann", groups)).map(|roles| roles.scopes_in(project))
        };
        assert_eq!(scopes(&["dev"], "web"), Some(Scopes::of(&[Scope::Read])));
        assert_eq!(scopes(&["ops", "dev", "x"], "web"), Some(Scopes::of(&[Scope::Admin])));
        assert_eq!(scopes(&["dba", "dev"], "db"), Some(Scopes::of(&[Scope::Objects])));
        assert_eq!(scopes(&["dba"], "web"), Some(Scopes::NONE));
        assert_eq!(scopes(&["x", "DEV", ""], "web"), None);
        assert_eq!(scopes(&[], "web"), None);
    }

    #[test]
    fn other_rules_have_another_digest() {
        let one = rules(&[("dev", Roles::one("web", Role::Viewer))]);
        assert_eq!(one.digest(), rules(&[("dev", Roles::one("web", Role::Viewer))]).digest());
        assert_ne!(one.digest(), rules(&[("dev", Roles::one("web", Role::Admin))]).digest());
        let other = GroupRules::new("https://x.org", "granary", "groups", one.roles.clone());
        assert_ne!(one.digest(), other.digest());
    }

    #[test]
    fn display_names_are_short_lines() {
        assert_eq!(display_name(" Ann Lee "), "Ann Lee");
        for text in ["a\nb", "\u{1b}[31m", &"a".repeat(65)] {
            assert_eq!(display_name(text), "", "{text:?}");
        }
    }
}
