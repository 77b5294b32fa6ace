//! The provider of `OpenID` Connect.
//!
//! Must never know: the protocol, sessions.

use super::{
    faults::Faults,
    sections::{Oidc, Sections},
};
use crate::{
    access::{ALL_PROJECTS, DEFAULT_PROJECT, GroupRules, Roles},
    oidc::{ClientSecret, ProviderSettings, issuer_host},
};

/// The claim with the groups, unless the settings name another one.
const GROUPS_CLAIM: &str = "groups";
/// The requested scopes, unless the settings name others.
const SCOPES: [&str; 2] = ["profile", "email"];
const GROUPS_MAX: usize = 1000;
const SCOPES_MAX: usize = 32;
/// The maximum size of a name, a scope or a group in bytes.
const TEXT_BYTES_MAX: usize = 256;

/// Checks the provider, and returns its settings; `None` without a provider. `page` is the address
/// of the daemon's page.
pub(super) fn provider(
    sections: &Sections,
    page: &str,
    faults: &mut Faults,
) -> Option<ProviderSettings> {
    let given = &sections.security.oidc;
    if *given == Oidc::default() {
        return None;
    }
    let mut fault = |text: String| faults.0.push(format!("security.oidc{text}"));
    if !sections.security.access {
        fault(": set security.access = true, too; otherwise nobody needs to log in".to_owned());
    }
    if page.is_empty() {
        fault(
            ": set server.external_url, the address to which the provider sends browsers back"
                .to_owned(),
        );
    }
    let host = issuer_host(&given.issuer).unwrap_or_else(|problem| {
        fault(format!(".issuer: {problem}"));
        String::new()
    });
    if given.client_id.is_empty() {
        fault(".client_id is missing; register Granary at the provider to get one".to_owned());
    }
    let has_file = !given.client_secret_file.as_os_str().is_empty();
    if has_file != given.client_secret.is_empty() {
        fault(
            ".client_secret_file is missing; name the file with the secret, or set only the \
             environment variable GRANARY__SECURITY__OIDC__CLIENT_SECRET"
                .to_owned(),
        );
    }
    check_texts(given, &mut fault);
    check_roles(sections, &mut fault);
    let or = |text: &str, default: &str| (if text.is_empty() { default } else { text }).to_owned();
    let groups_claim = or(&given.groups_claim, GROUPS_CLAIM);
    let rules =
        GroupRules::new(&given.issuer, &given.client_id, &groups_claim, given.roles.clone());
    Some(ProviderSettings {
        name: or(&given.name, &host),
        issuer: given.issuer.clone(),
        client_id: given.client_id.clone(),
        client_secret: if has_file {
            ClientSecret::File(given.client_secret_file.clone())
        } else {
            ClientSecret::Text(given.client_secret.clone())
        },
        scopes: given.scopes.clone().unwrap_or_else(|| SCOPES.map(str::to_owned).to_vec()),
        groups_claim,
        page: page.to_owned(),
        rules,
    })
}

fn check_texts(given: &Oidc, fault: &mut impl FnMut(String)) {
    let is_line = |text: &str| text.len() <= TEXT_BYTES_MAX && !text.contains(char::is_control);
    for (key, text) in [("name", &given.name), ("groups_claim", &given.groups_claim)] {
        if !is_line(text) {
            fault(format!(".{key}: use a line of at most {TEXT_BYTES_MAX} bytes"));
        }
    }
    let scopes = given.scopes.iter().flatten();
    let is_scope =
        |scope: &String| !scope.is_empty() && is_line(scope) && !scope.contains([' ', '"', '\\']);
    if scopes.clone().count() > SCOPES_MAX || !scopes.clone().all(is_scope) {
        fault(format!(".scopes: use at most {SCOPES_MAX} scopes, such as \"profile\""));
    }
}

/// Checks that some group has a role, each in a project that exists.
fn check_roles(sections: &Sections, fault: &mut impl FnMut(String)) {
    let given = &sections.security.oidc.roles;
    let has_role = |roles: &Roles| roles.projects().next().is_some();
    if given.is_empty() || !given.values().all(has_role) || given.len() > GROUPS_MAX {
        fault(format!(
            ".roles: give 1 to {GROUPS_MAX} groups roles, such as ops = {{ \"*\" = \"admin\" }}, \
             dev = {{ default = \"viewer\" }}"
        ));
    }
    let exists = |project: &str| {
        [DEFAULT_PROJECT, ALL_PROJECTS].contains(&project)
            || sections.security.projects.contains_key(project)
    };
    for (group, roles) in given {
        if let Err(problem) = roles.check() {
            fault(format!(".roles: group {group:?}: {problem}"));
        }
        for project in roles.projects().filter(|project| !exists(project)) {
            fault(format!(
                ".roles: group {group:?}: there is no project {project:?}; add it to \
                 security.projects"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::read;

    const VALID: &str = "server.external_url = 'https://granary.example.org/x/'\n\
        [security]\naccess = true\n[security.projects.web]\n[security.oidc]\n\
        issuer = 'https://id.example.org/realm'\nclient_id = 'granary'\n\
        client_secret_file = '/run/secret'\n\
        roles = { ops = { '*' = 'admin' }, dev = { default = 'viewer', web = 'editor' } }\n";

    #[test]
    fn a_provider_has_defaults_and_the_address_of_the_page() {
        let settings = read(VALID).unwrap();
        let provider = settings.provider.as_ref().unwrap();
        assert_eq!(provider.name, "id.example.org");
        assert_eq!(provider.scopes, ["profile", "email"]);
        assert_eq!(provider.groups_claim, "groups");
        assert_eq!(provider.redirect_uri(), "https://granary.example.org/x/login/oidc/callback");
        assert_eq!(read("").unwrap().provider, None);
    }

    #[test]
    fn the_secret_is_shown_nowhere() {
        let text = VALID.replace("client_secret_file = '/run/secret'", "client_secret = 'hush'");
        let settings = read(&text).unwrap();
        let shown = format!("{settings:?} {:?} {:?}", settings.as_toml, settings.shown);
        assert!(!shown.contains("hush") && shown.contains("(hidden)"), "{shown}");
    }

    #[test]
    fn each_fault_of_a_provider_names_its_key() {
        for (from, to, expected) in [
            ("access = true", "access = false", "security.access = true"),
            ("server.external_url = 'https://granary.example.org/x/'", "", "external_url"),
            ("https://id.example.org/realm", "http://id.example.org", "issuer"),
            ("https://id.example.org/realm", "id.example.org", "issuer"),
            ("client_id = 'granary'", "", "client_id"),
            ("client_secret_file = '/run/secret'", "", "client_secret_file"),
            ("client_id =", "client_secret = 'a'\nclient_id =", "client_secret_file"),
            ("client_id =", "name = \"a\\nb\"\nclient_id =", ".name"),
            ("client_id =", "scopes = ['a b']\nclient_id =", ".scopes"),
            ("client_id =", "group_claim = 'a'\nclient_id =", "group_claim"),
            ("web = 'editor'", "shop = 'editor'", "\"shop\""),
            ("web = 'editor'", "web = 'owner'", "owner"),
            ("roles = { ops", "roles = {} # { ops", ".roles"),
        ] {
            let text = VALID.replace(from, to);
            assert_ne!(text, VALID);
            let fault = read(&text).unwrap_err().to_string();
            assert!(fault.contains(expected) && fault.contains("oidc"), "{to}: {fault}");
        }
    }
}
