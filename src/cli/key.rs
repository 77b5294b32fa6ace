//! `granary key`: makes, lists, rotates and revokes the keys and codes of a running daemon.

mod codes;

use std::{fs::OpenOptions, io::Write, os::unix::fs::OpenOptionsExt, path::PathBuf};
use std::{path::Path, process::ExitCode};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;

use codes::CodeArgs;

use super::{
    flags::{ClientArgs, duration},
    http::{Daemon, read},
    screen,
    table::table,
};
use crate::{
    access::{KeyProject, Scope},
    clock::{Clock, SystemClock},
    model::{UnixMillis, with_noun},
};

/// Make, list, rotate and revoke the keys of a running daemon
#[derive(Debug, Args)]
#[command(after_help = "\
Scopes: ingest (send samples), read (query), objects (read; change dashboards, annotations and silences),
admin (all of these; delete data, manage keys), operate (read metrics, status, log and settings of the daemon).

Examples:
  granary key add agents --scope ingest --out agents.key
  granary key add web1 --scope ingest --senders web1 --expires 90d
  granary key add prometheus --scope ingest,operate
  granary key list
  granary key rotate agents --overlap 7d
  granary key revoke agents
  granary key code --senders web1, and on web1: granary-agent enroll URL CODE")]
pub(super) struct KeyArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Make a key, and print it once
    Add(AddArgs),
    /// List keys without their secrets
    List,
    /// Replace the secret of a key; the previous one stays valid for a while
    Rotate {
        /// Name or id of the key
        key: String,
        /// Time for which the previous secret stays valid, such as 7d; 0s ends it at once
        #[arg(long, default_value = "1d", value_parser = overlap)]
        overlap: i64,
        /// File for the new key, which must not exist [default: print it]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Revoke keys and codes at once
    Revoke {
        /// Names or ids of the keys, ids of the codes
        #[arg(required = true)]
        keys: Vec<String>,
    },
    /// Make a one-time code for an agent, and print it once; `granary-agent enroll URL CODE`
    /// exchanges it for a key
    Code(CodeArgs),
    /// List codes that nobody has used yet
    Codes,
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Name of the key
    name: String,
    /// Scopes: ingest, read, objects, admin, operate
    #[arg(long, required = true, value_delimiter = ',', value_parser = scope)]
    scope: Vec<Scope>,
    /// Project whose data the key may use; * for all, with the project in X-Scope-OrgID
    /// [default: that of your own key, or default]
    #[arg(long, value_name = "NAME")]
    project: Option<KeyProject>,
    /// Prefix of the agents and hosts that the key may send for [default: any]
    #[arg(long, value_name = "PREFIX")]
    senders: Option<String>,
    /// Time after which the key is invalid, such as 90d [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    expires: Option<i64>,
    /// File for the key, which must not exist [default: print it]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The listed fields of a key.
#[derive(Debug, Deserialize)]
struct ListedKey {
    id: String,
    name: String,
    scopes: Vec<Scope>,
    project: String,
    senders: Option<String>,
    one_sender: bool,
    created_by: String,
    expires: Option<i64>,
    overlap_until: Option<i64>,
    used: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct Listed {
    access: bool,
    keys: Vec<ListedKey>,
}

/// A new key; its secret is not in the answer again.
#[derive(Deserialize)]
struct Made {
    token: String,
}

pub(super) fn key(args: &KeyArgs) -> anyhow::Result<ExitCode> {
    let daemon = &args.client.daemon;
    match &args.command {
        KeyCommand::Add(add) => {
            check_free(add.out.as_deref())?;
            let expires = add.expires.map(|expires| SystemClock.now().plus(expires).0);
            let body = json!({
                "name": add.name, "scopes": add.scope, "project": add.project, "senders": add.senders,
                "expires": expires,
            });
            let answer = daemon.post_path_json("api/v1/access/keys", &body)?;
            show(args, &answer, add.out.as_deref())
        }
        KeyCommand::List => {
            let answer = daemon.get("access/keys", &[])?;
            args.client.print(&answer, || Ok(render(&read(&answer)?)))
        }
        KeyCommand::Rotate { key, overlap, out } => {
            check_free(out.as_deref())?;
            let path = format!("api/v1/access/keys/{}/rotate", id_of(daemon, key)?);
            let answer = daemon.post_path_json(&path, &json!({ "overlap_ms": overlap }))?;
            show(args, &answer, out.as_deref())
        }
        KeyCommand::Revoke { keys } => {
            for key in keys {
                let path = match codes::find(daemon, key)? {
                    Some(id) => format!("{}/{id}", codes::PATH),
                    None => format!("api/v1/access/keys/{}", id_of(daemon, key)?),
                };
                daemon.delete_path(&path)?;
            }
            screen::print(&format!("revoked {}", with_noun(keys.len(), "key")))
        }
        KeyCommand::Code(code) => codes::create(args, code),
        KeyCommand::Codes => codes::list(args),
    }
}

fn scope(text: &str) -> Result<Scope, String> {
    let names = Scope::ALL.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ");
    text.trim().parse().map_err(|_| format!("{text:?} is not a scope; use {names}"))
}

fn overlap(text: &str) -> Result<i64, String> {
    if text.trim_end_matches(char::is_alphabetic) == "0" { Ok(0) } else { duration(text) }
}

/// Returns the id of the key with a name or an id.
fn id_of(daemon: &Daemon, key: &str) -> anyhow::Result<String> {
    let listed: Listed = read(&daemon.get("access/keys", &[])?)?;
    let found = listed.keys.into_iter().find(|listed| listed.name == key || listed.id == key);
    found
        .map(|key| key.id)
        .with_context(|| format!("there is no key {key:?}; see granary key list"))
}

/// Refuses a file that exists, before a key is made that could not be written.
fn check_free(out: Option<&Path>) -> anyhow::Result<()> {
    match out {
        Some(path) if path.exists() => {
            bail!("--out {}: the file exists; name another one", path.display())
        }
        _ => Ok(()),
    }
}

/// Prints a new key, or writes it to a file that only its owner may read.
fn show(args: &KeyArgs, answer: &str, out: Option<&Path>) -> anyhow::Result<ExitCode> {
    let Some(path) = out else {
        return args.client.print(answer, || Ok(read::<Made>(answer)?.token));
    };
    let made: Made = read(answer)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let written = options.open(path).and_then(|mut file| writeln!(file, "{}", made.token));
    written.with_context(|| format!("write {}; revoke the key and repeat", path.display()))?;
    screen::print(&format!("wrote the key to {}", path.display()))
}

fn render(listed: &Listed) -> String {
    let total = with_noun(listed.keys.len(), "key");
    let state =
        if listed.access { "" } else { "; security.access is off, so no request needs a key" };
    let totals = format!("{total}{state}");
    if listed.keys.is_empty() {
        return totals;
    }
    let names =
        ["name", "id", "project", "scopes", "senders", "expires", "previous until", "used", "by"];
    let mut table = table(names.map(str::to_owned));
    let time = |at: Option<i64>| at.map_or(String::new(), |at| UnixMillis(at).to_string());
    for key in &listed.keys {
        let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.as_str()).collect();
        let end = if key.one_sender { "" } else { "..." };
        let senders = key.senders.as_ref().map_or(String::new(), |name| format!("{name}{end}"));
        table.add_row([
            screen::text(&key.name),
            key.id.clone(),
            screen::text(&key.project),
            scopes.join(","),
            screen::text(&senders),
            time(key.expires),
            time(key.overlap_until),
            time(key.used),
            screen::text(&key.created_by),
        ]);
    }
    format!("{table}\n{totals}")
}
