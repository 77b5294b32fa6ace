//! Logins of people whom a provider identified.
//!
//! Must never know: the protocol.

use super::{KnownPeople, NewSession, PeopleFault, changes::random_generation};
use crate::{
    access::{GroupRules, Person, ProviderUser, Roles, User, UserRecord},
    model::UnixMillis,
};

impl KnownPeople {
    /// Sets the rules of the provider; other rules, and none, end all sessions of its users.
    pub fn set_provider_rules(&self, rules: Option<&GroupRules>) {
        *self.0.provider_rules.write() = rules.map(GroupRules::digest);
    }

    /// Logs a person in with the roles of the groups, durably. Other roles than those of the last
    /// login end all other sessions of the user.
    ///
    /// # Errors
    /// An administrator disabled the user, there are too many users, or the store cannot be
    /// written.
    pub fn log_in_person(
        &self,
        person: &Person,
        roles: Roles,
        rules: &GroupRules,
        now: UnixMillis,
    ) -> Result<NewSession, PeopleFault> {
        let name = person.user_name();
        let _change_lock = self.0.change_lock.lock();
        let known = self.0.users.get().get(&name).cloned();
        let is_same = |known: &UserRecord| {
            known.provider.as_ref().is_some_and(|known| {
                known.issuer == rules.issuer() && known.subject == person.subject
            })
        };
        let known = known.filter(|user| is_same(&user.record));
        let mut record = match &known {
            Some(user) => user.record.clone(),
            None => UserRecord {
                roles: Roles::default(),
                password: None,
                provider: None,
                totp: None,
                disabled: false,
                created: now.0,
                created_by: String::new(),
                generation: random_generation()?,
                last_login: None,
            },
        };
        if record.disabled {
            return Err(PeopleFault::Disabled);
        }
        let provider = ProviderUser {
            issuer: rules.issuer().to_owned(),
            subject: person.subject.clone(),
            display_name: person.display_name.clone(),
            rules: rules.digest(),
        };
        let has_same_rules =
            record.provider.as_ref().is_some_and(|known| known.rules == provider.rules);
        if record.roles != roles || !has_same_rules {
            record.generation = random_generation()?;
        }
        record.roles = roles;
        record.provider = Some(provider);
        record.last_login = Some(now.0);
        let user = self.put(User { name, record }, now)?;
        self.begin_session(user, now)
    }
}
