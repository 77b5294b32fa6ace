//! `granary audit`: shows who changed what on a running daemon, and who was refused.

use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;

use super::{
    flags::{ClientArgs, present},
    http::read,
    screen,
    table::table,
};
use crate::model::{AuditKind, AuditOutcome, AuditRecord, UnixMillis, with_noun};

/// Show who changed what on a running daemon, and who was refused, newest first
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  granary audit
  granary audit --since 2026-11-26 --who root
  granary audit --lines --limit 1000")]
pub(super) struct AuditArgs {
    #[command(flatten)]
    client: ClientArgs,
    /// Earliest time: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Latest time, exclusive
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Name of the key or user
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Maximum number of records, 1 to 1000
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Only records before this number, to show older ones
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
    /// Print one JSON object per line, for log shippers
    #[arg(long, conflicts_with = "json")]
    lines: bool,
}

#[derive(Debug, Deserialize)]
struct Listed {
    records: Vec<AuditRecord>,
    before: Option<u64>,
}

pub(super) fn audit(args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let pairs = present([
        ("since", args.since.clone()),
        ("until", args.until.clone()),
        ("who", args.who.clone()),
        ("limit", Some(args.limit.to_string())),
        ("before", args.before.map(|before| before.to_string())),
        ("format", args.lines.then(|| "lines".to_owned())),
    ]);
    let answer = args.client.daemon.get("admin/audit", &pairs.collect::<Vec<_>>())?;
    if args.lines {
        return screen::print(answer.trim_end());
    }
    args.client.print(&answer, || Ok(render(&read(&answer)?)))
}

fn render(listed: &Listed) -> String {
    let total = with_noun(listed.records.len(), "record");
    if listed.records.is_empty() {
        return total;
    }
    let names = ["time", "who", "address", "action", "object", "outcome", "count"];
    let mut table = table(names.map(str::to_owned));
    for record in &listed.records {
        table.add_row([
            UnixMillis(record.at).to_string(),
            screen::text(&who(record)),
            record.address.clone(),
            screen::text(&record.action),
            screen::text(&record.object),
            outcome(record),
            record.count.to_string(),
        ]);
    }
    let older = listed.before.map(|before| format!("; --before {before} shows older ones"));
    format!("{table}\n{total}{}", older.unwrap_or_default())
}

fn who(record: &AuditRecord) -> String {
    match record.kind {
        AuditKind::Key | AuditKind::User => record.who.clone(),
        AuditKind::Client => format!("certificate {}", record.who),
        AuditKind::Code => format!("code {}", record.who).trim_end().to_owned(),
        AuditKind::Machine => format!("machine {}", record.who).trim_end().to_owned(),
        AuditKind::None => String::new(),
    }
}

fn outcome(record: &AuditRecord) -> String {
    let AuditRecord { status, reason, .. } = record;
    match record.outcome {
        AuditOutcome::Done => "done".to_owned(),
        AuditOutcome::Failed if *status == 0 => "failed".to_owned(),
        AuditOutcome::Failed => format!("failed ({status})"),
        AuditOutcome::Refused if reason.is_empty() => format!("refused ({status})"),
        AuditOutcome::Refused => format!("refused: {reason}"),
    }
}
