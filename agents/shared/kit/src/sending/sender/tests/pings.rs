//! Pings in addition to batches.

use super::*;

/// Regression: each stop of an agent for maintenance raised `HostDown`.
#[test]
fn a_clean_stop_is_reported_before_the_last_delivery() {
    for is_clean in [true, false] {
        let (_folder, spool) = spool(1);
        let (url, server) = serve(vec![accepted_answer(2)]);
        let (mut sender, _) = sender(&spool, &url, None);
        let watched = WatchedHosts::new(Duration::ZERO);
        if is_clean {
            watched.record_stop();
        }
        let mut pinger = Pinger::new(Ping::default(), Duration::ZERO, watched);
        pinger.ping_if_due(&client(&url, None));
        sender.flush(&pinger).unwrap();
        let requests = server.join().unwrap();
        let endings: Vec<_> = requests[0].pings.iter().map(|ping| ping.ending).collect();
        assert_eq!(endings, if is_clean { vec![false, true] } else { vec![false] });
    }
}
