//! Users, and the rules for their names and passwords.
//!
//! Must never know: how a session is checked.

use serde::{Deserialize, Serialize};

use super::{password::Password, provider::ProviderUser, roles::Roles, totp::SecondFactor};

/// The maximum size of a user's name in bytes.
pub const USER_NAME_BYTES_MAX: usize = 64;
/// The minimum number of characters of a password.
const PASSWORD_CHARACTERS_MIN: usize = 12;
/// The maximum size of a password in bytes.
const PASSWORD_BYTES_MAX: usize = 256;
/// The passwords of at least the minimum length among the 50,000 most common ones, one per line.
const COMMON_PASSWORDS: &str = include_str!("common_passwords.txt");

/// A user.
#[derive(Debug, Clone)]
pub struct User {
    /// The name.
    pub name: String,
    /// The stored part.
    pub record: UserRecord,
}

/// The stored part of a user. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRecord {
    /// The roles.
    pub roles: Roles,
    /// The password; without one, nobody can log in with this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// The identity at a provider; `None` for a user whom the daemon itself manages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderUser>,
    /// The second factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totp: Option<SecondFactor>,
    /// True when the user cannot log in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// The time of creation.
    pub created: i64,
    /// The name of the caller who created this user; empty without access control.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    /// A random number. A session is valid while it has the same number, so a new number ends all
    /// sessions of the user.
    pub generation: u64,
    /// The time of the last login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_login: Option<i64>,
}

impl UserRecord {
    /// Returns true when a login requires a code of the second factor.
    pub fn requires_code(&self) -> bool {
        self.totp.as_ref().is_some_and(SecondFactor::is_confirmed)
    }

    /// Returns the name that the provider sent; empty for the daemon's own users.
    pub fn display_name(&self) -> &str {
        self.provider.as_ref().map_or("", |provider| &provider.display_name)
    }
}

/// Returns a user's name as it is stored: without capital letters and surrounding spaces.
pub fn user_name(text: &str) -> String {
    text.trim().to_ascii_lowercase()
}

/// Checks the name of a new user.
///
/// # Errors
/// The name is invalid; the text names the remedy.
pub fn check_user_name(name: &str) -> Result<(), String> {
    let is_first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_valid = |byte: &u8| is_first(byte) || b"._@+-".contains(byte);
    let bytes = name.as_bytes();
    if bytes.first().is_some_and(is_first)
        && bytes.iter().all(is_valid)
        && bytes.len() <= USER_NAME_BYTES_MAX
    {
        return Ok(());
    }
    Err(format!(
        "name: use 1 to {USER_NAME_BYTES_MAX} characters of a-z, 0-9 and . _ @ + -, the first one \
         a letter or a digit"
    ))
}

/// Checks a new password of a user. The text of the error contains no part of the password.
///
/// # Errors
/// The password is too short or too long, or easily guessed.
pub fn check_password(name: &str, password: &str) -> Result<(), String> {
    if password.chars().count() < PASSWORD_CHARACTERS_MIN || password.len() > PASSWORD_BYTES_MAX {
        return Err(format!(
            "password: use {PASSWORD_CHARACTERS_MIN} characters to {PASSWORD_BYTES_MAX} bytes, \
             such as four random words"
        ));
    }
    let mut characters: Vec<_> = password.chars().collect();
    characters.sort_unstable();
    characters.dedup();
    let lower = password.to_lowercase();
    let contains_name = lower.contains(name) && name.len() >= 3;
    let is_common = COMMON_PASSWORDS.lines().any(|common| common == lower);
    if characters.len() < 5 || contains_name || is_common {
        return Err("password: it is a common one, contains the user's name, or has fewer than 5 \
                    different characters; use four random words"
            .to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for name in ["ann", "a", "ann.lee@example.com", "7_x-y+z", &"a".repeat(64)] {
            assert_eq!(check_user_name(name), Ok(()), "{name}");
        }
        for name in ["", "Ann", ".ann", "ann lee", "a/b", "\u{e4}", "a\n", &"a".repeat(65)] {
            assert!(check_user_name(name).is_err(), "{name}");
        }
        assert_eq!(user_name(" Ann.Lee "), "ann.lee");
    }

    #[test]
    fn passwords_are_long_and_the_error_does_not_repeat_them() {
        for password in [
            "correct horse battery",
            "\u{e4}\u{f6}\u{fc}\u{df}\u{e4}\u{f6}\u{fc}\u{df}\u{e4}\u{f6}\u{fc}x",
            &"abcde".repeat(51),
        ] {
            assert_eq!(check_password("ann", password), Ok(()), "{password}");
        }
        for password in [
            "short",
            "elevenchars",
            "aaaaaaaaaaaaaaaa",
            "my name is Ann!",
            "QwertyUiop123",
            &"abcde".repeat(52),
        ] {
            let message = check_password("ann", password).unwrap_err();
            assert!(!message.contains(password), "{message}");
        }
    }
}
