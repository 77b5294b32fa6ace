//! `granary-agent enroll`: exchanges a one-time code for a key of the daemon for this host.
//!
//! Must never know: how the key is requested and stored.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use clap::Args;
use granary_agent_kit::{EnrollBody, HttpsArgs, enroll};

use crate::settings::Settings;

/// The address and the code, and options that replace those of the settings file.
#[derive(Debug, Args)]
pub(crate) struct EnrollArgs {
    /// URL of the daemon, such as <https://granary:7117>
    #[arg(value_parser = granary_agent_kit::parse_url)]
    url: String,
    /// One-time code that `granary key code` printed
    code: String,
    /// File for the key, which must not exist [default: `token_file` of the settings file]
    #[arg(long, visible_alias = "token-file", value_name = "FILE", env = "GRANARY_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// Name of this agent [default: `agent_id` of the settings file, else the host's name]
    #[arg(long, value_name = "NAME")]
    agent_id: Option<String>,
    #[command(flatten)]
    https: HttpsArgs,
}

/// Gets a key, and writes it to the agent's file.
pub(crate) fn run(args: EnrollArgs, config: &Path) -> anyhow::Result<()> {
    let EnrollArgs { url, code, key_file, agent_id, https } = args;
    let agent = Settings::agent_of(config).map_err(anyhow::Error::msg)?;
    let set_file = agent.token_file.clone();
    let Some(file) = key_file.or_else(|| set_file.clone()) else {
        bail!("--key-file: name the file for the key, or set token_file in [agent]");
    };
    let sender = agent_id.unwrap_or_else(|| agent.agent_name());
    // Options of the command replace those of the file as a whole: a pin excludes an authority.
    let https = if https == HttpsArgs::default() { agent.https.clone() } else { https };
    let body = EnrollBody { code, sender: sender.clone() };
    enroll(&url, &body, &file, &https.settings())
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("enroll {sender:?} at {url}"))?;
    let (shown, config) = (file.display(), config.display());
    let mut lines = vec![format!("wrote the key of {sender:?} to {shown}")];
    if set_file.as_ref() != Some(&file) {
        lines.push(format!("add to [agent] of {config}: token_file = \"{shown}\""));
    }
    if !agent.url.contains(&url) {
        lines.push(format!("add to [agent] of {config}: url = {url:?}"));
    }
    let text = lines.join("\n");
    writeln!(io::stdout(), "{text}").context("write to standard output")
}
