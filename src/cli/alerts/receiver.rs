//! `granary alerts test-receiver`: a test alert, and the answer of each way of a receiver.

use std::process::ExitCode;

use serde::Deserialize;
use serde_json::json;

use crate::cli::{flags::AskArgs, http::read, screen, table::table};

#[derive(Debug, Deserialize)]
struct Answer {
    ways: Vec<Tested>,
}

#[derive(Debug, Deserialize)]
struct Tested {
    way: String,
    outcome: String,
    answer: String,
    seconds: f64,
}

/// Fails where one way did not take the alert.
pub(super) fn test(ask: &AskArgs, name: &str) -> anyhow::Result<ExitCode> {
    let answer = ask.daemon.post_json("receivers/test", &json!({ "receiver": name }))?;
    let Answer { ways } = read(&answer)?;
    ask.print(&answer, || Ok(shown(name, &ways)))?;
    let is_well = !ways.is_empty() && ways.iter().all(|own| own.outcome == "sent");
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn shown(name: &str, ways: &[Tested]) -> String {
    if ways.is_empty() {
        return screen::text(&format!("{name} is told in no way: give it a ..._configs"));
    }
    let mut table = table(["way", "outcome", "seconds", "answer"].map(str::to_owned));
    for own in ways {
        let seconds = format!("{:.1}", own.seconds);
        table.add_row(
            [&own.way, &own.outcome, &seconds, &own.answer].map(|cell| screen::text(cell)),
        );
    }
    table.to_string()
}
