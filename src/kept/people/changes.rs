//! Changes of users: by administrators, and by the users themselves.

use std::{collections::BTreeMap, io};

use super::{KnownPeople, NewSession, PeopleFault, UserAnswer};
use crate::{
    access::{
        ALL_PROJECTS, Caller, Password, Role, Roles, SecondFactor, User, UserCaller, UserRecord,
        check_user_name,
    },
    kept::ObjectFault,
    model::UnixMillis,
};

/// A user to be created.
#[derive(Debug)]
#[expect(missing_docs, reason = "UserRecord describes the fields")]
pub struct NewUser {
    pub name: String,
    pub roles: Roles,
    pub password: Option<Password>,
}

/// A change of a user by an administrator; `None` leaves a property unchanged.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "UserRecord describes the fields")]
pub struct UserChange {
    pub roles: Option<Roles>,
    pub password: Option<Password>,
    pub disabled: Option<bool>,
    /// True removes the second factor.
    pub without_totp: bool,
}

/// A change of a user by the user.
#[derive(Debug)]
pub enum OwnChange<'a> {
    /// Another password.
    Password(Password),
    /// The first code of a new second factor.
    ConfirmTotp(&'a str),
    /// The removal of the second factor.
    RemoveTotp,
}

impl KnownPeople {
    /// Creates a user, durably. Without access control, there is no caller.
    ///
    /// # Errors
    /// The user is invalid or exists, may do more than the caller, or the store cannot be written.
    pub fn create(
        &self,
        new: NewUser,
        caller: Option<&Caller>,
        now: UnixMillis,
    ) -> Result<UserAnswer, PeopleFault> {
        let NewUser { name, roles, password } = new;
        check_user_name(&name).and_then(|()| roles.check()).map_err(ObjectFault::Invalid)?;
        may_manage(&roles, caller)?;
        let _change_lock = self.0.change_lock.lock();
        if self.0.users.get().contains_key(&name) {
            return Err(PeopleFault::Exists(name));
        }
        let record = UserRecord {
            roles,
            password,
            provider: None,
            totp: None,
            disabled: false,
            created: now.0,
            created_by: caller.map(Caller::name).unwrap_or_default().to_owned(),
            generation: random_generation()?,
            last_login: None,
        };
        let user = self.put(User { name, record }, now)?;
        Ok(self.answer(&user, now))
    }

    /// Creates an administrator of all projects and begins a session, durably.
    ///
    /// # Errors
    /// The user exists, or the store cannot be written.
    pub fn create_administrator(
        &self,
        name: &str,
        password: &str,
        now: UnixMillis,
    ) -> Result<NewSession, PeopleFault> {
        let (roles, password) = (Roles::one(ALL_PROJECTS, Role::Admin), Password::new(password)?);
        self.create(NewUser { name: name.to_owned(), roles, password: Some(password) }, None, now)?;
        let _change_lock = self.0.change_lock.lock();
        self.begin_session(self.user(name)?, now)
    }

    /// Changes a user, durably, and ends all sessions of the user.
    ///
    /// # Errors
    /// There is no such user, the user has or gets rights that the caller lacks, or the store
    /// cannot be written.
    pub fn change(
        &self,
        name: &str,
        change: UserChange,
        caller: Option<&Caller>,
        now: UnixMillis,
    ) -> Result<UserAnswer, PeopleFault> {
        let _change_lock = self.0.change_lock.lock();
        let user = self.user(name)?;
        may_manage(&user.record.roles, caller)?;
        let UserChange { roles, password, disabled, without_totp } = change;
        if user.record.provider.is_some() && (roles.is_some() || password.is_some()) {
            let message = "the user logs in at the provider, whose groups give the roles: change \
                           the groups there, or security.oidc.roles in the settings";
            return Err(ObjectFault::Invalid(message.to_owned()).into());
        }
        let mut record = user.record.clone();
        if let Some(roles) = roles {
            roles.check().map_err(ObjectFault::Invalid)?;
            may_manage(&roles, caller)?;
            record.roles = roles;
        }
        record.password = password.or(record.password);
        record.disabled = disabled.unwrap_or(record.disabled);
        record.totp = record.totp.filter(|_| !without_totp);
        record.generation = random_generation()?;
        let user = self.put(User { name: user.name.clone(), record }, now)?;
        Ok(self.answer(&user, now))
    }

    /// Removes a user, durably, with all sessions of the user.
    ///
    /// # Errors
    /// There is no such user, the user has rights that the caller lacks, or the store cannot be
    /// written.
    pub fn remove(&self, name: &str, caller: Option<&Caller>) -> Result<(), PeopleFault> {
        let _change_lock = self.0.change_lock.lock();
        let user = self.user(name)?;
        may_manage(&user.record.roles, caller)?;
        self.0.user_records.remove(name)??;
        let mut users = BTreeMap::clone(&self.0.users.get());
        users.remove(name);
        self.0.users.set(users);
        Ok(())
    }

    /// Creates a second factor for a caller, durably; it is not required until a code confirms it.
    ///
    /// # Errors
    /// The session has ended, a second factor is on, or the store cannot be written.
    pub fn begin_totp(
        &self,
        caller: &UserCaller,
        now: UnixMillis,
    ) -> Result<SecondFactor, PeopleFault> {
        let _change_lock = self.0.change_lock.lock();
        let user = self.valid_user(caller, now).ok_or(PeopleFault::NoSession)?;
        if user.record.requires_code() {
            let message = "a second factor is on: remove it before you set up another one";
            return Err(PeopleFault::SecondFactor(message));
        }
        let factor = SecondFactor::random()?;
        let record = UserRecord { totp: Some(factor.clone()), ..user.record.clone() };
        self.put(User { name: user.name.clone(), record }, now)?;
        Ok(factor)
    }

    /// Changes the caller's own user, durably; ends all sessions of the user and begins another.
    ///
    /// # Errors
    /// The session has ended, the code is wrong, or the store cannot be written.
    pub fn change_own(
        &self,
        caller: &UserCaller,
        change: OwnChange<'_>,
        now: UnixMillis,
    ) -> Result<NewSession, PeopleFault> {
        let _change_lock = self.0.change_lock.lock();
        let user = self.valid_user(caller, now).ok_or(PeopleFault::NoSession)?;
        let mut record = user.record.clone();
        match change {
            OwnChange::Password(password) => record.password = Some(password),
            OwnChange::RemoveTotp => record.totp = None,
            OwnChange::ConfirmTotp(code) => {
                let is_on = record.requires_code();
                let factor = record.totp.as_mut().filter(|_| !is_on);
                let factor = factor.ok_or(PeopleFault::SecondFactor(
                    "no second factor is being set up: request its secret first",
                ))?;
                if !factor.accept(code, now) {
                    return Err(PeopleFault::WrongCode);
                }
            }
        }
        record.generation = random_generation()?;
        let user = self.put(User { name: user.name.clone(), record }, now)?;
        self.begin_session(user, now)
    }
}

/// Refuses a user with rights that the caller lacks; without access control, there is no caller.
fn may_manage(roles: &Roles, caller: Option<&Caller>) -> Result<(), PeopleFault> {
    caller.map_or(Ok(()), |caller| caller.may_manage(roles)).map_err(PeopleFault::Forbidden)
}

pub(super) fn random_generation() -> io::Result<u64> {
    getrandom::u64().map_err(io::Error::other)
}
