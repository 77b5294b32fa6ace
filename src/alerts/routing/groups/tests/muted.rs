//! Tests of alerts that are silenced, inhibited or in a mute time.

use super::*;

#[test]
fn inhibition_and_mute_times_silence_a_group_and_continuing_alerts_are_sent_afterwards() {
    let more = ", routes: [{matchers: [alertname=~\".*\"], mute_time_intervals: [night]}]";
    let text = "receivers: [{name: one, webhook_configs: [{url: 'http://x'}]}]\n\
                inhibit_rules: [{source_matchers: [alertname=a], target_matchers: [alertname=b]}]\n\
                time_intervals: [{name: night, time_intervals: [{times: [{start_time: '00:00', \
                end_time: '00:30'}]}]}]\n";
    let text = format!("route: {{receiver: one, group_by: [alertname]{more}}}\n{text}");
    let mut world =
        World::new(check_routing("notifications.yml", Some(Path::new("")), &text).unwrap());
    // 1970-01-01T00:16:40Z.
    world.fire("a");
    world.fire("b");
    let messages = world.run(1_200_000);
    // Decisions are made every five minutes from 00:17:10 on.
    assert_eq!(messages, [(1_930_000, (names("a"), names("")))]);
    world.end("a");
    let messages: Vec<_> = world.run(900_000).into_iter().map(|(_, content)| content).collect();
    assert!(messages.contains(&(names("b"), names(""))), "{messages:?}");
}

/// The end of an alert that was silenced when it ended was never sent: its incident stayed open.
#[test]
fn the_end_of_a_muted_alert_is_sent_when_the_mute_ends() {
    for (is_beside_another, sends_repeats) in [(false, false), (true, false), (true, true)] {
        let mut world = World::new(routing("", true));
        world.fire("a");
        if is_beside_another {
            world.fire("b");
        }
        assert_eq!(world.run(60_000).len(), 1);
        world.muted.insert("a");
        let messages = world.run(if sends_repeats { 600_000 } else { 60_000 });
        assert!(
            messages.iter().all(|(_, content)| content == &(names("b"), names(""))),
            "{messages:?}"
        );
        assert_eq!(messages.len(), usize::from(sends_repeats) * 2);
        world.end("a");
        world.step();
        world.crash();
        // The silence lasts for longer than ends are pending, and the alert is removed while it is
        // silenced.
        for minute in 0..2 * 24 * 60 {
            world.now += INTERVAL_MS;
            world.step();
            for (_, content) in world.deliver_all() {
                assert_eq!(content, (names("b"), names("")), "minute {minute}");
            }
        }
        world.alerts.remove("a");
        world.crash();
        world.muted.clear();
        let messages: Vec<_> =
            world.run(2 * INTERVAL_MS).into_iter().map(|(_, content)| content).collect();
        let firing = if is_beside_another { "b" } else { "" };
        assert_eq!(messages, [(names(firing), names("a"))]);
        let later_messages = world.run(1_200_000);
        assert!(
            later_messages.iter().all(|(_, content)| content.1.is_empty()),
            "{later_messages:?}"
        );
        assert_eq!(world.groups.is_empty(), !is_beside_another);
    }
}

#[test]
fn the_end_of_an_alert_that_was_always_muted_is_never_sent() {
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
fn an_alert_that_ended_while_muted_is_sent_when_it_fires_again() {
    for send_resolved in [true, false] {
        let mut world = World::new(routing("", send_resolved));
        world.fire("a");
        assert_eq!(world.run(60_000).len(), 1);
        world.muted.insert("a");
        world.end("a");
        assert_eq!(world.run(120_000), []);
        world.muted.clear();
        world.fire("a");
        let messages: Vec<_> = world.run(120_000).into_iter().map(|(_, content)| content).collect();
        assert_eq!(messages, [(names("a"), names(""))]);
        world.end("a");
        let messages: Vec<_> = world.run(120_000).into_iter().map(|(_, content)| content).collect();
        assert_eq!(messages.len(), usize::from(send_resolved), "{messages:?}");
        assert!(world.groups.is_empty());
    }
}
