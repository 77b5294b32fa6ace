//! Rounds with profiles of several databases.

use super::*;

/// Regression: a database that the user may not read ended the queries for all profiles.
#[test]
fn a_profile_that_cannot_be_read_does_not_hide_the_profiles_of_other_databases() {
    let server = Responder::start(|database, command| {
        let is_profile = command.get_str("find").is_ok_and(|name| name == "system.profile");
        Some(match command.keys().next().map_or("", String::as_str) {
            "listDatabases" => {
                let name = |name: &str| Bson::Document(doc! { "name": name });
                doc! { "databases": [name("private"), name("shop")], "ok": 1.0 }
            }
            _ if is_profile && database == "private" => error_document(13, "Unauthorized"),
            _ => response("primary", "7.0.5", command),
        })
    });
    let mut agent = agent_for(&[&server.address], LONG_TIMEOUT);
    sample_round(&mut agent, NOW_MS);
    let readings = sample_round(&mut agent, NOW_MS + 10_000);
    let count = value(&readings, &server.address, "mongodb_slow_operation_time_count");
    assert_eq!(count, Some(1.0));
    let object = format!("mongodb {} system.profile", server.address);
    let problem = readings.problems().get(&object).expect("the refusal is reported");
    assert!(problem.contains("private"), "{problem}");
}
