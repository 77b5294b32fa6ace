//! `granary-agent discover`: prints settings for the services that listen on this host.
//!
//! Must never know: how services are found.

use std::{
    io::{self, Write},
    net::SocketAddr,
    path::Path,
};

use anyhow::Context;
use clap::Args;
use granary_agent_services::{FoundService, Program, discover};

use crate::settings::Settings;

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct DiscoverArgs {
    /// Print the programs that serve /metrics as a file for the section "scrape" instead
    #[arg(long)]
    scrape: bool,
    /// Send a request to all listening ports, not only to those of known programs and well-known
    /// ones
    #[arg(long)]
    all: bool,
}

/// Prints settings for the services of this host. The settings file names the agent, if it exists.
pub(crate) fn run(args: &DiscoverArgs, config: &Path) -> anyhow::Result<()> {
    let agent = Settings::agent_of(config).map_err(anyhow::Error::msg)?.agent_name();
    let (found, problems) = discover(args.all);
    for problem in problems {
        tracing::warn!(%problem, "services may be missing");
    }
    let text =
        if args.scrape { scrape_file(&found, &agent) } else { settings_file(&found, &agent) };
    write!(io::stdout(), "{text}").context("write to standard output")
}

/// Returns a file for `[scrape]`. The series have the agent's name, since all hosts have the same
/// loopback addresses.
fn scrape_file(found: &[FoundService], agent: &str) -> String {
    let targets = metrics_targets(found);
    if targets.is_empty() {
        return "scrape_configs: []\n".to_owned();
    }
    format!(
        "scrape_configs:\n  - job_name: local\n    static_configs:\n      - targets: {targets:?}\n        \
         labels: {{host: {agent:?}}}\n"
    )
}

fn settings_file(found: &[FoundService], agent: &str) -> String {
    if found.is_empty() {
        return "# No known service listens on this host.\n".to_owned();
    }
    let mut text = "# Services that listen on this host.\n".to_owned();
    for service in found {
        text.push_str(&section(service));
    }
    let targets = mongodb_targets(found, agent);
    if !targets.is_empty() {
        text.push_str("\n# MongoDB: mongodb.toml contains\n");
        for line in targets.lines() {
            text.extend(["# ", line, "\n"]);
        }
        text.push_str("[mongodb]\ntargets = \"mongodb.toml\"\n");
    }
    if !metrics_targets(found).is_empty() {
        text.push_str(
            "\n# Programs that serve /metrics: granary-agent discover --scrape > scrape.yml\n\
             [scrape]\nconfig = \"scrape.yml\"\n",
        );
    }
    text
}

/// Returns the targets of all MongoDB servers. Their names contain the agent's name, and the port
/// when there are several.
fn mongodb_targets(found: &[FoundService], agent: &str) -> String {
    let needs_password = |service: &FoundService| {
        let Program::MongoDb { needs_password } = service.program else { return None };
        Some((service.address, needs_password))
    };
    let servers: Vec<_> = found.iter().filter_map(needs_password).collect();
    let target = |(address, needs_password): &(SocketAddr, bool)| {
        let user = if *needs_password { "granary:PASSWORD@" } else { "" };
        let port = address.port();
        let host = if servers.len() == 1 { agent.to_owned() } else { format!("{agent}:{port}") };
        format!("[[target]]\nuri = \"mongodb://{user}{address}\"\nhost = {host:?}\n")
    };
    servers.iter().map(target).collect()
}

/// Returns the section of a service, or a comment that names the missing part.
fn section(FoundService { address, program }: &FoundService) -> String {
    let server = |kind: &str, comment: &str, more: &str| {
        format!("\n{comment}[[{kind}]]\naddress = \"{address}\"\n{more}")
    };
    let password = |kind: &str| format!("password_file = \"/etc/granary/{kind}.password\"\n");
    let user = |kind: &str| format!("user = \"granary\"\n{}", password(kind));
    match program {
        Program::Redis { needs_password: false } => server("redis", "", ""),
        Program::Redis { needs_password: true } => server("redis", "", &password("redis")),
        Program::Postgres => {
            server("postgres", "# The user needs the role pg_monitor.\n", &user("postgres"))
        }
        Program::MySql => server("mysql", "# The user needs PROCESS.\n", &user("mysql")),
        Program::Nginx { status_path: Some(path) } => {
            format!("\n[[nginx]]\naddress = \"http://{address}{path}\"\n")
        }
        Program::Nginx { status_path: None } => format!(
            "\n# nginx at {address}: add `location = /stub_status {{ stub_status; allow 127.0.0.1; deny \
             all; }}`, then\n# [[nginx]]\n# address = \"http://{address}/stub_status\"\n"
        ),
        Program::Memcached => {
            format!("\n# memcached at {address}: run memcached_exporter, which serves /metrics.\n")
        }
        Program::RabbitMq => format!(
            "\n# RabbitMQ at {address}: rabbitmq-plugins enable rabbitmq_prometheus; then it serves \
             /metrics at port 15692.\n"
        ),
        Program::HaProxy => format!(
            "\n# HAProxy at {address}: add `http-request use-service prometheus-exporter if {{ path \
             /metrics }}` to the frontend.\n"
        ),
        // One table or file contains all servers of these kinds.
        Program::MongoDb { .. } | Program::Metrics => String::new(),
    }
}

fn metrics_targets(found: &[FoundService]) -> Vec<String> {
    let metrics = found.iter().filter(|service| service.program == Program::Metrics);
    metrics.map(|service| service.address.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(port: u16, program: Program) -> FoundService {
        FoundService { address: ([127, 0, 0, 1], port).into(), program }
    }

    fn all_programs() -> Vec<FoundService> {
        let status_path = Some("/nginx_status".to_owned());
        vec![
            found(6379, Program::Redis { needs_password: false }),
            found(6380, Program::Redis { needs_password: true }),
            found(80, Program::Nginx { status_path }),
            found(81, Program::Nginx { status_path: None }),
            found(5432, Program::Postgres),
            found(3306, Program::MySql),
            found(27017, Program::MongoDb { needs_password: false }),
            found(27018, Program::MongoDb { needs_password: true }),
            found(11211, Program::Memcached),
            found(5672, Program::RabbitMq),
            found(8404, Program::HaProxy),
            found(9100, Program::Metrics),
        ]
    }

    /// Regression: two MongoDB servers led to two tables, and those of all hosts had one name.
    #[test]
    fn the_printed_settings_are_valid_and_name_the_host() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let (text, targets) =
            (settings_file(&all_programs(), "web1"), mongodb_targets(&all_programs(), "web1"));
        let scrape = scrape_file(&all_programs(), "web1");
        assert!(scrape.ends_with("        labels: {host: \"web1\"}\n"), "{scrape}");
        write("scrape.yml", &scrape);
        write("mongodb.toml", &targets);
        write("agent.toml", &text);
        let settings = Settings::read(&folder.path().join("agent.toml")).unwrap();
        let counts: Vec<usize> = settings.services.iter().map(|(_, all)| all.len()).collect();
        assert_eq!(counts, [2, 1, 1, 1]);
        for part in
            ["memcached at 127.0.0.1:11211", "rabbitmq_prometheus", "HAProxy", "stub_status;"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(targets.lines().all(|line| text.contains(&format!("# {line}\n"))), "{text}");
        assert!(targets.contains("granary:PASSWORD@127.0.0.1:27018\"\nhost = \"web1:27018\""));
        let one =
            mongodb_targets(&[found(27017, Program::MongoDb { needs_password: false })], "web1");
        assert_eq!(one, "[[target]]\nuri = \"mongodb://127.0.0.1:27017\"\nhost = \"web1\"\n");
        assert_eq!(scrape_file(&[], "web1"), "scrape_configs: []\n");
        assert!(settings_file(&[], "web1").starts_with("# No known service"));
    }
}
