//! The first key of a daemon with access control: a key for an administrator in a file of the data
//! directory, so that whoever may read the directory can make the other keys.
//!
//! Must never know: how a key is checked.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::Context;

use crate::{
    access::{NewKey, Scope, Scopes},
    kept::{KnownKeys, KnownPeople},
    model::UnixMillis,
};

/// The file of the key, in the data directory.
const FILE: &str = "first-key";
/// The time for which the key is valid.
const VALID_MS: i64 = 86_400_000;
const SCOPES: Scopes = Scopes::of(&[Scope::Admin, Scope::Operate]);

/// Writes a new key when no other key and no user could make keys, and else removes the key of an
/// earlier start. When the keys cannot be read, nothing happens: damage must not give rights.
pub(super) fn provide(
    keys: &KnownKeys,
    people: &KnownPeople,
    data_dir: &Path,
    now: UnixMillis,
) -> anyhow::Result<()> {
    if keys.unread().is_some() {
        tracing::error!("the keys cannot be read, so requests are refused with 503; see /readyz");
        return Ok(());
    }
    let path = data_dir.join(FILE);
    let remove = || match fs::remove_file(&path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(cause).with_context(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    };
    for (id, key) in keys.current().list() {
        if key.record.name == FILE {
            keys.revoke(&id, None, now).context("revoke the first key")?;
        }
    }
    remove()?;
    if keys.current().has_key_with(SCOPES, now) || people.has_administrator() {
        return Ok(());
    }
    let new = NewKey {
        name: FILE.to_owned(),
        scopes: SCOPES,
        senders: None,
        expires: Some(now.0 + VALID_MS),
    };
    let made = keys.create(new, None, now).context("create the first key")?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let written = options.open(&path).and_then(|mut file| {
        writeln!(file, "{}", made.token())?;
        file.sync_all()
    });
    written.with_context(|| format!("write {}", path.display()))?;
    tracing::warn!(
        file = %path.display(),
        "no key may make other keys: a file contains one that is valid for a day; make a key with \
         `granary key add --key-file FILE`"
    );
    Ok(())
}
