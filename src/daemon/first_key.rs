//! The first credentials of a daemon with access control: a key for an administrator and a link
//! with a one-time code, in files of the data directory, so that whoever may read the directory can
//! make the other keys and users.
//!
//! Must never know: how a key or a code is checked.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::Context;

use crate::{
    access::{KeyProject, NewCode, NewKey, Purpose, Scope, Scopes},
    kept::{KnownCodes, KnownKeys, KnownPeople},
    model::{ProjectName, UnixMillis},
};

/// The file of the key, in the data directory.
const FILE: &str = "first-key";
/// The file of the link, in the data directory.
const LINK_FILE: &str = "first-admin";
/// The time for which the key and the link are valid.
const VALID_MS: i64 = 86_400_000;
const SCOPES: Scopes = Scopes::of(&[Scope::Admin, Scope::Operate]);

/// Removes the key and the link of an earlier start, and provides new ones if no other key and no
/// user can make keys. When the keys cannot be read, nothing happens, because damage must not give
/// rights. `url` is the address of the page.
pub(super) fn provide(
    (keys, codes, people): (&KnownKeys, &KnownCodes, &KnownPeople),
    data_dir: &Path,
    url: &str,
    now: UnixMillis,
) -> anyhow::Result<()> {
    if keys.unread().is_some() {
        tracing::error!("the keys cannot be read, so requests are refused with 503; see /readyz");
        return Ok(());
    }
    let (path, link_path) = (data_dir.join(FILE), data_dir.join(LINK_FILE));
    for (id, key) in keys.current().list() {
        if key.record.name == FILE {
            keys.revoke(&id, None, now).context("revoke the first key")?;
        }
    }
    codes.revoke_all(Purpose::FirstAdmin).context("revoke the link of the first administrator")?;
    remove(&path)?;
    remove(&link_path)?;
    if keys.current().has_key_with(SCOPES, now) || people.has_administrator() {
        return Ok(());
    }
    let made = keys.create(new_key(now), None, now).context("create the first key")?;
    write(&path, made.token())?;
    let made =
        codes.create(new_code(), "", now).context("create the first administrator's code")?;
    write(&link_path, &format!("{url}/login#code={}", made.text()))?;
    tracing::warn!(
        key = %path.display(),
        link = %link_path.display(),
        "no key may make other keys: the files contain a key and a link for the first \
         administrator, which are valid for a day; open the link, or make a key with `granary key \
         add --key-file FILE`"
    );
    Ok(())
}

fn new_key(now: UnixMillis) -> NewKey {
    NewKey {
        name: FILE.to_owned(),
        scopes: SCOPES,
        project: Some(KeyProject::All),
        senders: None,
        expires: Some(now.0 + VALID_MS),
    }
}

fn new_code() -> NewCode {
    NewCode {
        purpose: Purpose::FirstAdmin,
        scopes: SCOPES,
        project: ProjectName::default(),
        senders: None,
        valid_ms: VALID_MS,
        key_life_ms: None,
    }
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(cause).with_context(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Writes a line to a new file that only its owner may read.
fn write(path: &Path, line: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let written = options.open(path).and_then(|mut file| {
        writeln!(file, "{line}")?;
        file.sync_all()
    });
    written.with_context(|| format!("write {}", path.display()))
}
