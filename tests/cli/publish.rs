//! Publishing to a MongoDB that is not available: nothing waits for it, and no password is shown.

use serde_json::json;

use crate::daemon::{Daemon, HOURS_AND_DAYS, granularities, request};

#[test]
fn while_mongodb_is_away_samples_are_accepted_and_no_password_is_shown() {
    let settings = "[publish]\nuri = 'mongodb://ann:s3cret@127.0.0.1:1/?serverSelectionTimeoutMS=300'\n\
                    [log]\nfilter = 'trace'\n[storage]\ncheckpoint_interval = '1s'\n";
    let mut daemon = Daemon::start(&(settings.to_owned() + &granularities(&HOURS_AND_DAYS)));
    daemon.accept(&json!([{"metric": "load", "time": "2015-08-18T00:00:00Z", "value": 1}]));
    crate::peers::wait_until("a report", || {
        let (status, answer) = request(&daemon.url, "GET", "/readyz", &[], "").unwrap();
        assert_eq!(status, 200, "{answer}");
        let reason = answer["reasons"]["publish"].as_str().unwrap_or_default().to_owned();
        assert!(!reason.contains("s3cret"), "{reason}");
        answer["status"] == "degraded"
            && reason.starts_with("127.0.0.1:1: MongoDB is not available")
            && reason.contains("correct publish.uri")
    });
    let metrics = daemon.metrics();
    assert!(!metrics.contains("granary_publish_errors_total 0"), "{metrics}");
    assert_eq!(daemon.stop(), Some(0));
    let log = daemon.log();
    assert!(
        log.contains("cannot publish documents; the daemon retries") && !log.contains("s3cret")
    );
}
