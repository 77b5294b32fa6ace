//! `granary key code` and `granary key codes`: one-time codes for agents.

use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::KeyArgs;
use crate::{
    cli::{
        flags::duration,
        http::{Daemon, read},
        screen,
        table::table,
    },
    model::{ProjectName, UnixMillis, with_noun},
};

/// The path of the codes.
pub(super) const PATH: &str = "api/v1/access/codes";

#[derive(Debug, Args)]
pub(super) struct CodeArgs {
    /// Project of the agent's key [default: that of your own key, or default]
    #[arg(long, value_name = "NAME")]
    project: Option<ProjectName>,
    /// Prefix of the name of the agent that may use the code [default: any]
    #[arg(long, value_name = "PREFIX")]
    senders: Option<String>,
    /// Time for which the code is valid, such as 1h
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = duration)]
    valid: i64,
    /// Lifetime of the agent's key; the agent renews it in the last third
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = duration)]
    key_life: i64,
}

/// The listed fields of a code.
#[derive(Debug, Deserialize)]
struct ListedCode {
    id: String,
    purpose: String,
    senders: Option<String>,
    created_by: String,
    expires: i64,
}

#[derive(Debug, Deserialize)]
struct Listed {
    codes: Vec<ListedCode>,
}

/// A new code; its text is not in the answer again.
#[derive(Deserialize)]
struct Made {
    text: String,
}

/// Makes a code, and prints it.
pub(super) fn create(args: &KeyArgs, code: &CodeArgs) -> anyhow::Result<ExitCode> {
    let body = json!({
        "project": code.project, "senders": code.senders, "valid_ms": code.valid, "key_life_ms": code.key_life,
    });
    let answer = args.client.daemon.post_path_json(PATH, &body)?;
    args.client.print(&answer, || Ok(read::<Made>(&answer)?.text))
}

/// Lists the codes that nobody has used yet.
pub(super) fn list(args: &KeyArgs) -> anyhow::Result<ExitCode> {
    let answer = args.client.daemon.get("access/codes", &[])?;
    args.client.print(&answer, || Ok(render(&read(&answer)?)))
}

/// Returns the id in a text, if it is that of a code.
pub(super) fn find(daemon: &Daemon, text: &str) -> anyhow::Result<Option<String>> {
    let listed: Listed = read(&daemon.get("access/codes", &[])?)?;
    Ok(listed.codes.into_iter().map(|code| code.id).find(|id| id == text))
}

fn render(listed: &Listed) -> String {
    let total = with_noun(listed.codes.len(), "code");
    if listed.codes.is_empty() {
        return total;
    }
    let mut table = table(["id", "for", "senders", "expires", "by"].map(str::to_owned));
    for code in &listed.codes {
        let senders = code.senders.as_ref().map_or(String::new(), |prefix| format!("{prefix}..."));
        table.add_row([
            code.id.clone(),
            screen::text(&code.purpose),
            screen::text(&senders),
            UnixMillis(code.expires).to_string(),
            screen::text(&code.created_by),
        ]);
    }
    format!("{table}\n{total}")
}
