//! Tests of alerts that are silenced, inhibited or in a mute time.

use super::*;

#[test]
fn inhibition_and_times_keep_a_group_silent_and_what_goes_on_is_told_after() {
    let more = ", routes: [{matchers: [alertname=~\".*\"], mute_time_intervals: [night]}]";
    let text = "receivers: [{name: one, webhook_configs: [{url: 'http://x'}]}]\n\
                inhibit_rules: [{source_matchers: [alertname=a], target_matchers: [alertname=b]}]\n\
                time_intervals: [{name: night, time_intervals: [{times: [{start_time: '00:00', \
                end_time: '00:30'}]}]}]\n";
    let text = format!("route: {{receiver: one, group_by: [alertname]{more}}}\n{text}");
    let mut world = World::new(check_routing("own.yml", Path::new(""), &text).unwrap());
    // 1970-01-01T00:16:40Z.
    world.fire("a");
    world.fire("b");
    let told = world.run(1_200_000);
    // Decisions are every five minutes from 00:17:10.
    assert_eq!(told, [(1_930_000, (names("a"), names("")))]);
    world.end("a");
    let told: Vec<_> = world.run(900_000).into_iter().map(|(_, said)| said).collect();
    assert!(told.contains(&(names("b"), names(""))), "{told:?}");
}

/// The end of an alert that was silenced when it ended was never sent: its incident stayed open.
#[test]
fn the_end_of_a_muted_alert_is_told_when_the_mute_ends() {
    for (is_beside_another, sends_repeats) in [(false, false), (true, false), (true, true)] {
        let mut world = World::new(routing("", true));
        world.fire("a");
        if is_beside_another {
            world.fire("b");
        }
        assert_eq!(world.run(60_000).len(), 1);
        world.muted.insert("a");
        let told = world.run(if sends_repeats { 600_000 } else { 60_000 });
        assert!(told.iter().all(|(_, said)| said == &(names("b"), names(""))), "{told:?}");
        assert_eq!(told.len(), usize::from(sends_repeats) * 2);
        world.end("a");
        world.step();
        world.crash();
        // The silence lasts for longer than ends are owed, and the alert is removed meanwhile.
        for minute in 0..2 * 24 * 60 {
            world.now += INTERVAL_MS;
            world.step();
            for (_, said) in world.tell() {
                assert_eq!(said, (names("b"), names("")), "minute {minute}");
            }
        }
        world.alerts.remove("a");
        world.crash();
        world.muted.clear();
        let told: Vec<_> = world.run(2 * INTERVAL_MS).into_iter().map(|(_, said)| said).collect();
        let firing = if is_beside_another { "b" } else { "" };
        assert_eq!(told, [(names(firing), names("a"))]);
        let again = world.run(1_200_000);
        assert!(again.iter().all(|(_, said)| said.1.is_empty()), "{again:?}");
        assert_eq!(world.groups.is_empty(), !is_beside_another);
    }
}

#[test]
fn the_end_of_an_alert_that_was_muted_all_the_time_is_told_to_nobody() {
    for send_resolved in [true, false] {
        let mut world = World::new(routing("", send_resolved));
        world.muted.insert("a");
        world.fire("a");
        assert_eq!(world.run(600_000), []);
        world.end("a");
        assert_eq!(world.run(60_000), []);
        world.muted.clear();
        assert_eq!(world.run(600_000), []);
        assert!(world.groups.is_empty());
    }
}

#[test]
fn an_alert_that_ended_while_it_was_muted_and_fires_after_is_news() {
    for send_resolved in [true, false] {
        let mut world = World::new(routing("", send_resolved));
        world.fire("a");
        assert_eq!(world.run(60_000).len(), 1);
        world.muted.insert("a");
        world.end("a");
        assert_eq!(world.run(120_000), []);
        world.muted.clear();
        world.fire("a");
        let told: Vec<_> = world.run(120_000).into_iter().map(|(_, said)| said).collect();
        assert_eq!(told, [(names("a"), names(""))]);
        world.end("a");
        let told: Vec<_> = world.run(120_000).into_iter().map(|(_, said)| said).collect();
        assert_eq!(told.len(), usize::from(send_resolved), "{told:?}");
        assert!(world.groups.is_empty());
    }
}
