//! `granary user`: makes, lists, changes and removes the users of a running daemon.
//!
//! Passwords come from standard input or from a prompt, never from arguments, which other users of
//! the machine can read.

use std::{
    io::{self, BufRead, IsTerminal},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use console::Term;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    flags::ClientArgs,
    http::{Daemon, read},
    screen,
    table::table,
};
use crate::{
    access::{ALL_PROJECTS, DEFAULT_PROJECT, Role, Roles, check_user_name},
    model::{UnixMillis, with_noun},
};

/// Make, list, change and remove the users of a running daemon
#[derive(Debug, Args)]
#[command(after_help = "\
Roles: viewer (query), editor (also change dashboards, annotations and silences), admin (also delete data,
manage keys and users). With --project '*', a role is for all projects; its admin also operates the daemon.
The command asks for the password, or reads it from standard input.

Examples:
  granary user add ann --role editor
  granary user add root --role admin --project '*' < password.txt
  granary user role ann viewer
  granary user passwd ann
  granary user logout ann
  granary user disable ann
  granary user remove ann")]
pub(super) struct UserArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    command: UserCommand,
}

#[derive(Debug, Subcommand)]
enum UserCommand {
    /// Make a user
    Add {
        /// Name of the user
        name: String,
        /// Role: viewer, editor, admin
        #[arg(long, value_parser = role)]
        role: Role,
        /// Project of the role; * for all projects and the daemon itself
        #[arg(long, default_value = DEFAULT_PROJECT)]
        project: String,
    },
    /// List users
    List,
    /// Set another password of a user, and end the user's sessions
    Passwd {
        /// Name of the user
        name: String,
    },
    /// Change the role of a user in one project, and end the user's sessions
    Role {
        /// Name of the user
        name: String,
        /// Role: viewer, editor, admin, or none
        role: String,
        /// Project of the role; * for all projects and the daemon itself
        #[arg(long, default_value = DEFAULT_PROJECT)]
        project: String,
    },
    /// Refuse logins of a user, and end the user's sessions
    Disable {
        /// Name of the user
        name: String,
    },
    /// Allow logins of a disabled user
    Enable {
        /// Name of the user
        name: String,
    },
    /// Remove the second factor of a user who lost it
    ResetTotp {
        /// Name of the user
        name: String,
    },
    /// End all sessions of a user
    Logout {
        /// Name of the user
        name: String,
    },
    /// Remove users, and end their sessions
    Remove {
        /// Names of the users
        #[arg(required = true)]
        names: Vec<String>,
    },
}

/// The listed fields of a user.
#[derive(Debug, Deserialize)]
struct ListedUser {
    name: String,
    roles: serde_json::Map<String, Value>,
    totp: bool,
    disabled: bool,
    last_login: Option<i64>,
    sessions: usize,
    created_by: String,
}

#[derive(Debug, Deserialize)]
struct Listed {
    access: bool,
    users: Vec<ListedUser>,
}

pub(super) fn user(args: &UserArgs) -> anyhow::Result<ExitCode> {
    let client = &args.client;
    let change = |name: &str, body: &Value, done: &str| {
        let answer = client.daemon.post_path_json(&path_of(name)?, body)?;
        client.print(&answer, || Ok(format!("{done} {name}")))
    };
    match &args.command {
        UserCommand::Add { name, role, project } => {
            check_user_name(name).map_err(anyhow::Error::msg)?;
            let body = json!({
                "name": name, "password": new_password(name)?, "roles": Roles::one(project, *role),
            });
            let answer = client.daemon.post_path_json("api/v1/access/users", &body)?;
            client.print(&answer, || Ok(format!("made the user {name}")))
        }
        UserCommand::List => {
            let answer = client.daemon.get("access/users", &[])?;
            client.print(&answer, || Ok(render(&read(&answer)?)))
        }
        UserCommand::Passwd { name } => {
            let body = json!({ "password": new_password(name)? });
            change(name, &body, "set the password of")
        }
        UserCommand::Role { name, role, project } => {
            let roles = with_role(&client.daemon, name, role, project)?;
            change(name, &json!({ "roles": roles }), "changed the roles of")
        }
        UserCommand::Disable { name } => change(name, &json!({ "disabled": true }), "disabled"),
        UserCommand::Enable { name } => change(name, &json!({ "disabled": false }), "enabled"),
        UserCommand::ResetTotp { name } => {
            change(name, &json!({ "totp": false }), "removed the second factor of")
        }
        UserCommand::Logout { name } => {
            change(name, &json!({ "logout": true }), "ended the sessions of")
        }
        UserCommand::Remove { names } => {
            for name in names {
                client.daemon.delete_path(&path_of(name)?)?;
            }
            screen::print(&format!("removed {}", with_noun(names.len(), "user")))
        }
    }
}

fn role(text: &str) -> Result<Role, String> {
    let names = Role::ALL.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ");
    text.parse().map_err(|_| format!("{text:?} is not a role; use {names}"))
}

/// Returns the path of a user. A valid name needs no escapes.
fn path_of(name: &str) -> anyhow::Result<String> {
    check_user_name(name).map_err(anyhow::Error::msg)?;
    Ok(format!("api/v1/access/users/{name}"))
}

/// Returns all roles of a user, with another one in a project.
fn with_role(
    daemon: &Daemon,
    name: &str,
    text: &str,
    project: &str,
) -> anyhow::Result<serde_json::Map<String, Value>> {
    let listed: Listed = read(&daemon.get("access/users", &[])?)?;
    let found = listed.users.into_iter().find(|user| user.name == name);
    let user =
        found.with_context(|| format!("there is no user {name:?}; see granary user list"))?;
    let mut roles = user.roles;
    if text == "none" {
        roles.remove(project);
    } else {
        let role = role(text).map_err(|cause| anyhow::anyhow!("{cause}, or none"))?;
        roles.insert(project.to_owned(), json!(role));
    }
    Ok(roles)
}

/// Returns a password: from a prompt that does not show it, or without a terminal from the first
/// line of standard input.
fn new_password(name: &str) -> anyhow::Result<String> {
    let password = if io::stdin().is_terminal() {
        let term = Term::stderr();
        let ask = |prompt: &str| -> anyhow::Result<String> {
            term.write_str(prompt)?;
            Ok(term.read_secure_line()?)
        };
        let password = ask(&format!("password of {name}: "))?;
        if ask("the same again: ")? != password {
            bail!("the two passwords differ; nothing was changed");
        }
        password
    } else {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).context("read the password")?;
        line.trim_end_matches(['\r', '\n']).to_owned()
    };
    if password.is_empty() {
        bail!("there is no password: enter one, or send it to standard input");
    }
    Ok(password)
}

fn render(listed: &Listed) -> String {
    let total = with_noun(listed.users.len(), "user");
    let state =
        if listed.access { "" } else { "; security.access is off, so no request needs a login" };
    let totals = format!("{total}{state}");
    if listed.users.is_empty() {
        return totals;
    }
    let names = ["name", "roles", "second factor", "sessions", "last login", "by"];
    let mut table = table(names.map(str::to_owned));
    for user in &listed.users {
        let role = |(project, role): (&String, &Value)| {
            let role = role.as_str().unwrap_or_default();
            let scope = if project == ALL_PROJECTS { "all projects" } else { project };
            format!("{role} of {}", screen::text(scope))
        };
        let roles: Vec<_> = user.roles.iter().map(role).collect();
        let sessions = user.sessions.to_string();
        table.add_row([
            screen::text(&user.name),
            roles.join(", "),
            if user.totp { "yes" } else { "no" }.to_owned(),
            if user.disabled { "disabled".to_owned() } else { sessions },
            user.last_login.map_or(String::new(), |at| UnixMillis(at).to_string()),
            screen::text(&user.created_by),
        ]);
    }
    format!("{table}\n{totals}")
}
