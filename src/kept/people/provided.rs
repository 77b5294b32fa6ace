//! Logins of people whom a provider identified.
//!
//! Must never know: the protocol.

use super::{KnownPeople, NewSession, PeopleFault, changes::random_generation};
use crate::{
    access::{GroupRules, Person, ProviderUser, Roles, User, UserRecord},
    model::UnixMillis,
};

impl KnownPeople {
    /// Sets the rules of the provider. If they differ from the previous rules, or are missing, all
    /// sessions of its users end.
    pub fn set_provider_rules(&self, rules: Option<&GroupRules>) {
        *self.0.provider_rules.write() = rules.map(GroupRules::digest);
    }

    /// Logs a person in with the roles of the groups, durably. If the roles differ from those of
    /// the last login, all other sessions of the user end.
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
        let known = known.filter(|user| is_person(&user.record, person, rules));
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

    /// Ends all sessions of a person whose groups no longer give a role, durably.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn end_sessions_of_person(
        &self,
        person: &Person,
        rules: &GroupRules,
        now: UnixMillis,
    ) -> Result<(), PeopleFault> {
        let _change_lock = self.0.change_lock.lock();
        let known = self.0.users.get().get(&person.user_name()).cloned();
        let Some(user) = known.filter(|user| is_person(&user.record, person, rules)) else {
            return Ok(());
        };
        let record = UserRecord { generation: random_generation()?, ..user.record.clone() };
        self.put(User { name: user.name.clone(), record }, now).map(drop)
    }
}

/// Returns true when a user is the person, according to the same provider.
fn is_person(user: &UserRecord, person: &Person, rules: &GroupRules) -> bool {
    user.provider
        .as_ref()
        .is_some_and(|known| known.issuer == rules.issuer() && known.subject == person.subject)
}
