//! `granary alerts test-receiver`: sends a test alert, and shows the response of each integration.

use std::process::ExitCode;

use serde::Deserialize;
use serde_json::json;

use crate::cli::{flags::ClientArgs, http::read, screen, table::table};

#[derive(Debug, Deserialize)]
struct Answer {
    integrations: Vec<IntegrationResult>,
}

#[derive(Debug, Deserialize)]
struct IntegrationResult {
    integration: String,
    outcome: String,
    answer: String,
    seconds: f64,
}

/// Sends the test alert. The exit code is a failure when an integration did not accept it.
pub(super) fn test(client: &ClientArgs, name: &str) -> anyhow::Result<ExitCode> {
    let answer = client.daemon.post_json("receivers/test", &json!({ "receiver": name }))?;
    let Answer { integrations } = read(&answer)?;
    client.print(&answer, || Ok(render(name, &integrations)))?;
    let all_sent = !integrations.is_empty()
        && integrations.iter().all(|integration| integration.outcome == "sent");
    Ok(if all_sent { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn render(name: &str, integrations: &[IntegrationResult]) -> String {
    if integrations.is_empty() {
        return screen::text(&format!("{name} has no integrations: add a ..._configs"));
    }
    let mut table = table(["integration", "outcome", "seconds", "answer"].map(str::to_owned));
    for integration in integrations {
        let seconds = format!("{:.1}", integration.seconds);
        table.add_row(
            [&integration.integration, &integration.outcome, &seconds, &integration.answer]
                .map(|cell| screen::text(cell)),
        );
    }
    table.to_string()
}
