//! `granary cert`: makes a CA and certificates for https, for operators without a CA.

mod files;
mod make;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use granary_https::{Certificate, presented_certificates, read_certificates, unix_seconds_text};

use self::{
    files::Pair,
    make::{Purpose, Validity, parse_name},
};
use super::screen;
use crate::clock::{Clock, SystemClock};

/// The maximum number of names in a certificate.
const NAMES_MAX: usize = 100;

/// Make a CA and certificates for https, and show certificates
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary cert ca --dir tls
  granary cert server --dir tls --host mon.example.org,localhost,192.0.2.7
  granary cert show tls/server.pem
  granary cert server --dir tls --renew")]
pub(super) struct CertArgs {
    #[command(subcommand)]
    command: CertCommand,
}

#[derive(Debug, Subcommand)]
enum CertCommand {
    /// Make a CA: ca.pem, which clients trust, and ca.key, which signs certificates
    Ca {
        #[command(flatten)]
        folder: Folder,
        /// Validity in days
        #[arg(long, default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36500))]
        days: u32,
    },
    /// Make the certificate of a daemon, server.pem and server.key, signed by the CA of the folder
    Server {
        #[command(flatten)]
        folder: Folder,
        /// Host names and addresses of the daemon, separated by commas [with --renew: unchanged]
        #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = parse_name)]
        host: Vec<String>,
        /// Validity in days
        #[arg(long, default_value_t = 397, value_parser = clap::value_parser!(u32).range(1..=36500))]
        days: u32,
    },
    /// Make the certificate of a client, NAME.pem and NAME.key, signed by the CA of the folder
    Client {
        /// Name of the client, such as web1.example.org
        #[arg(value_parser = parse_client)]
        name: String,
        #[command(flatten)]
        folder: Folder,
        /// Validity in days
        #[arg(long, default_value_t = 397, value_parser = clap::value_parser!(u32).range(1..=36500))]
        days: u32,
    },
    /// Show names, validity and pin of the certificates in a file, or of a running server
    Show {
        /// File with certificates (PEM), or the address of a server: https://HOST:PORT
        certificates: String,
    },
}

/// The folder of the files, and the permission to replace them.
#[derive(Debug, Args)]
struct Folder {
    /// Folder of the certificates and keys
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Replace the certificate; the key and its pin stay the same
    #[arg(long)]
    renew: bool,
}

fn parse_client(text: &str) -> Result<String, String> {
    let name = parse_name(text)?;
    if name.contains(['*', ':']) || ["ca", "server"].contains(&&*name) {
        return Err("use the client's host name, such as web1.example.org".to_owned());
    }
    Ok(name)
}

pub(super) fn cert(args: &CertArgs) -> anyhow::Result<ExitCode> {
    let text = match &args.command {
        CertCommand::Ca { folder, days } => make_authority(folder, *days)?,
        CertCommand::Server { folder, host, days } => make_server(folder, host, *days)?,
        CertCommand::Client { name, folder, days } => make_client(folder, name, *days)?,
        CertCommand::Show { certificates } => show(certificates)?,
    };
    screen::print(&text)
}

impl Folder {
    fn dir(&self) -> String {
        self.dir.display().to_string()
    }

    /// Makes a certificate that the CA of the folder signs, and returns its facts.
    fn make_signed(
        &self,
        pair: &Pair,
        names: &[String],
        purpose: Purpose,
        days: u32,
    ) -> anyhow::Result<Certificate> {
        let authority = Pair::new(&self.dir, "ca");
        if !authority.key.exists() {
            let (dir, shown) = (self.dir(), authority.key.display());
            bail!("{shown} does not exist; make a CA first: granary cert ca --dir {dir}");
        }
        let (authority_key, stored) = (authority.stored_key()?, authority.stored_certificate()?);
        let expected = (make::authority_name(&authority_key), make::pin_of(&authority_key));
        if (stored.subject, stored.pin) != expected {
            let (certificate, key) = (authority.certificate.display(), authority.key.display());
            bail!(
                "{certificate} is not the certificate that `granary cert ca` makes for {key}; \
                 select another folder with --dir, or sign with the tools of that CA"
            );
        }
        let validity = Validity { now: SystemClock.now(), days };
        let key = pair.key(self.renew)?;
        let signed = make::signed(&key, names, purpose, validity, authority_key)?;
        pair.write(&signed, &key, self.renew)?;
        Certificate::read(&signed).context("read the new certificate")
    }
}

fn make_authority(folder: &Folder, days: u32) -> anyhow::Result<String> {
    let pair = Pair::new(&folder.dir, "ca");
    let key = pair.key(folder.renew)?;
    let certificate = make::authority(&key, Validity { now: SystemClock.now(), days })?;
    pair.write(&certificate, &key, folder.renew)?;
    let made = Certificate::read(&certificate).context("read the new certificate")?;
    let (verb, dir) = (verb(folder), folder.dir());
    Ok(format!(
        "{verb} {}: {}, valid until {}\n\
         Its key is {}. Keep it secret: it can vouch for any host. Only `granary cert` reads it.\n\n\
         Next:\n  granary cert server --dir {dir} --host NAME,ADDRESS",
        pair.certificate.display(),
        made.subject,
        unix_seconds_text(made.not_after),
        pair.key.display(),
    ))
}

fn make_server(folder: &Folder, hosts: &[String], days: u32) -> anyhow::Result<String> {
    let pair = Pair::new(&folder.dir, "server");
    let mut names = hosts.to_vec();
    if names.is_empty() && folder.renew {
        names = pair.stored_certificate()?.names;
    }
    if names.is_empty() || names.len() > NAMES_MAX {
        bail!(
            "give the daemon's host names and addresses, 1 to {NAMES_MAX}: --host mon.example.org"
        );
    }
    let made = folder.make_signed(&pair, &names, Purpose::Server, days)?;
    let (verb, dir, pin) = (verb(folder), folder.dir(), made.pin);
    let authority = Pair::new(&folder.dir, "ca").certificate;
    let setting = |file: &Path| {
        let full = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        toml::Value::String(full.display().to_string())
    };
    Ok(format!(
        "{verb} {}: {}, valid until {}\n\
         Its key is {}, which the user of the daemon must be able to read.\n\n\
         Settings of the daemon:\n  [tls]\n  certificate_file = {}\n  key_file = {}\n\n\
         Agents and commands trust the daemon with one of these options:\n  \
         --ca-file {}\n  --pin {pin}\n\n\
         Renew the certificate before it expires; the pin stays the same:\n  \
         granary cert server --dir {dir} --renew",
        pair.certificate.display(),
        names.join(", "),
        unix_seconds_text(made.not_after),
        pair.key.display(),
        setting(&pair.certificate),
        setting(&pair.key),
        authority.display(),
    ))
}

fn make_client(folder: &Folder, name: &str, days: u32) -> anyhow::Result<String> {
    let pair = Pair::new(&folder.dir, name);
    let made = folder.make_signed(&pair, &[name.to_owned()], Purpose::Client, days)?;
    Ok(format!(
        "{} {}: {name}, valid until {}\nIts key is {}.\n\n\
         Options of agents and commands:\n  --client-cert-file {} --client-key-file {}",
        verb(folder),
        pair.certificate.display(),
        unix_seconds_text(made.not_after),
        pair.key.display(),
        pair.certificate.display(),
        pair.key.display(),
    ))
}

fn verb(folder: &Folder) -> &'static str {
    if folder.renew { "renewed" } else { "created" }
}

fn show(source: &str) -> anyhow::Result<String> {
    let certificates = if source.starts_with("https://") {
        presented_certificates(source)
    } else {
        read_certificates(Path::new(source))
    };
    let certificates = certificates.map_err(anyhow::Error::msg)?;
    let mut shown = Vec::new();
    for der in &certificates {
        let certificate = Certificate::read(der);
        let facts = certificate.with_context(|| format!("{source}: not a certificate"))?;
        shown.push(describe(&facts, SystemClock.now().0));
    }
    Ok(shown.join("\n\n"))
}

fn describe(facts: &Certificate, now_ms: i64) -> String {
    let names = if facts.names.is_empty() { "none".to_owned() } else { facts.names.join(", ") };
    let days = (facts.not_after as i64 - now_ms.div_euclid(1000)).div_euclid(86_400);
    let left = if days < 0 { "expired".to_owned() } else { format!("{days} days left") };
    format!(
        "subject  {}\nnames    {names}\nissuer   {}\nvalid    {} to {} ({left})\npin      {}",
        facts.subject,
        facts.issuer,
        unix_seconds_text(facts.not_before),
        unix_seconds_text(facts.not_after),
        facts.pin
    )
}
