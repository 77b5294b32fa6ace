//! `granary-agent discover`: prints settings for the services that listen on this host.
//!
//! The agent itself uses the services that need no credentials when `[host]` contains
//! `discover = true`. Must never know: how services are found.

use std::io::{self, Write};

use anyhow::Context;
use clap::Args;
use granary_agent_services::{FoundService, Program, Service, discover};

use crate::settings::{Scrape, Settings};

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct DiscoverArgs {
    /// Print the programs that serve /metrics as a file for [scrape] instead
    #[arg(long)]
    scrape: bool,
}

/// Prints settings for the services of this host.
pub(crate) fn run(args: &DiscoverArgs) -> anyhow::Result<()> {
    let (found, problems) = discover();
    for problem in problems {
        tracing::warn!(%problem, "services may be missing");
    }
    let text = if args.scrape { scrape_file(&found) } else { settings_file(&found) };
    write!(io::stdout(), "{text}").context("write to standard output")
}

fn scrape_file(found: &[FoundService]) -> String {
    let targets = metrics_targets(found);
    if targets.is_empty() {
        return "scrape_configs: []\n".to_owned();
    }
    format!(
        "scrape_configs:\n  - job_name: local\n    static_configs:\n      - targets: {targets:?}\n"
    )
}

fn settings_file(found: &[FoundService]) -> String {
    if found.is_empty() {
        return "# No known service listens on this host.\n".to_owned();
    }
    let mut text =
        "# Services that listen on this host. Those without credentials need no section when \
                    [host] contains\n# discover = true.\n"
            .to_owned();
    for service in found {
        text.push_str(&section(service));
    }
    if !metrics_targets(found).is_empty() {
        text.push_str(
            "\n# Programs that serve /metrics: granary-agent discover --scrape > scrape.yml\n\
             [scrape]\nconfig = \"scrape.yml\"\n",
        );
    }
    text
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
        Program::MongoDb { needs_password } => {
            let user = if *needs_password { "granary:PASSWORD@" } else { "" };
            format!(
                "\n# MongoDB at {address}: mongodb.toml contains\n# [[target]]\n# uri = \
                 \"mongodb://{user}{address}\"\n[mongodb]\ntargets = \"mongodb.toml\"\n"
            )
        }
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
        Program::Metrics => String::new(),
    }
}

fn metrics_targets(found: &[FoundService]) -> Vec<String> {
    let metrics = found.iter().filter(|service| service.program == Program::Metrics);
    metrics.map(|service| service.address.to_string()).collect()
}

impl Settings {
    /// Adds the services that need no credentials and that no section names. Returns them.
    ///
    /// # Errors
    /// The job `local` of the scraped programs conflicts with the settings.
    pub(crate) fn add_found(&mut self, found: &[FoundService]) -> Result<Vec<String>, String> {
        let mut added = Vec::new();
        for service in found {
            let FoundService { address, program } = service;
            let (kind, name) = match program {
                Program::Redis { needs_password: false } => ("redis", address.to_string()),
                Program::Nginx { status_path: Some(path) } => {
                    ("nginx", format!("http://{address}{path}"))
                }
                Program::MongoDb { needs_password: false } => {
                    added.extend(self.add_mongodb(address));
                    continue;
                }
                Program::Redis { .. }
                | Program::Nginx { .. }
                | Program::MongoDb { .. }
                | Program::Postgres
                | Program::MySql
                | Program::Memcached
                | Program::RabbitMq
                | Program::HaProxy
                | Program::Metrics => continue,
            };
            let of_kind = self.services.iter_mut().find(|(known, _)| known.name() == kind);
            let Some((_, services)) = of_kind else { continue };
            // A socket in the file system may belong to the same server.
            let is_named = |service: &Service| {
                service.address.starts_with('/') || names_port(&service.address, address.port())
            };
            if !services.iter().any(is_named) {
                added.push(format!("{kind} {name}"));
                services.push(Service::at(name));
            }
        }
        let own_port = self.agent.metrics_listen.map(|address| address.port());
        let is_other = |service: &&FoundService| Some(service.address.port()) != own_port;
        let others: Vec<_> = found.iter().filter(is_other).cloned().collect();
        let targets = metrics_targets(&others);
        if !targets.is_empty() {
            let scrape = self.scrape.get_or_insert_with(Scrape::default);
            let new = scrape.config.add_local_targets(&targets)?;
            added.extend(new.iter().map(|target| format!("metrics {target}")));
        }
        Ok(added)
    }
}

/// Returns true when an address of the settings has this port. An address without a port may have
/// any.
fn names_port(address: &str, port: u16) -> bool {
    let authority = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let named = authority.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    named.is_none_or(|named| named == port)
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
            found(11211, Program::Memcached),
            found(5672, Program::RabbitMq),
            found(8404, Program::HaProxy),
            found(9100, Program::Metrics),
        ]
    }

    #[test]
    fn the_printed_settings_are_valid() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("scrape.yml", &scrape_file(&all_programs()));
        write("mongodb.toml", "[[target]]\nuri = \"mongodb://127.0.0.1:27017\"\n");
        write("agent.toml", &settings_file(&all_programs()));
        let settings = Settings::read(&folder.path().join("agent.toml")).unwrap();
        let counts: Vec<usize> = settings.services.iter().map(|(_, all)| all.len()).collect();
        assert_eq!(counts, [2, 1, 1, 1]);
        let text = settings_file(&all_programs());
        for part in
            ["memcached at 127.0.0.1:11211", "rabbitmq_prometheus", "HAProxy", "stub_status;"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(scrape_file(&[]), "scrape_configs: []\n");
        assert!(settings_file(&[]).starts_with("# No known service"));
    }

    #[test]
    fn services_without_credentials_are_added_unless_a_section_names_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent.toml");
        let added_to = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let mut settings = Settings::read(&file).unwrap();
            let added = settings.add_found(&all_programs()).unwrap();
            assert_eq!(settings.add_found(&all_programs()).unwrap(), [] as [String; 0], "twice");
            added
        };
        let all = [
            "redis 127.0.0.1:6379",
            "nginx http://127.0.0.1:80/nginx_status",
            "mongodb://127.0.0.1:27017",
            "metrics 127.0.0.1:9100",
        ];
        assert_eq!(added_to("[host]\ndiscover = true\n"), all);
        let named = "[host]\n[agent]\nmetrics_listen = \"127.0.0.1:9100\"\n[[redis]]\naddress = \
                     \"localhost\"\n[[nginx]]\naddress = \"http://localhost:80/s\"\n";
        assert_eq!(added_to(named), all[2..3]);
    }
}
