//! Tests of the notifications that receivers get, their times, and the limits.

mod model;
mod muted;
mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::*;
use crate::alerts::routing::file::check_routing;
use world::{AlertNames, World, alert, content_of, names, routing, two_integrations};

const STEP_MS: i64 = 10_000;
const INTERVAL_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 3_600_000;

#[test]
fn a_group_is_sent_after_its_wait_after_changes_and_after_the_repeat_interval() {
    let mut world = World::new(routing("", true));
    let start = world.now;
    world.fire("a");
    let mut messages = world.run(20_000);
    world.fire("b");
    messages.extend(world.run(40_000));
    world.end("a");
    messages.extend(world.run(600_000));
    let at = |seconds: i64| start + seconds * 1000;
    assert_eq!(
        messages,
        [
            (at(30), (names("a b"), names(""))),
            (at(90), (names("b"), names("a"))),
            (at(390), (names("b"), names(""))),
        ]
    );
    world.end("b");
    let messages = world.run(300_000);
    assert_eq!(
        messages.iter().map(|message| message.1.clone()).collect::<Vec<_>>(),
        [(names(""), names("b"))]
    );
    assert!(world.groups.is_empty() && world.stored.is_empty());
}

/// Posted alerts are not stored: after a restart, receivers got messages that the alerts had ended,
/// and then that they fired.
#[test]
fn posted_alerts_are_awaited_after_a_restart_and_end_when_they_are_not_sent_again() {
    for is_sent_again in [true, false] {
        let mut world = World::new(routing("", true));
        world.fire("rule");
        world.fire("posted");
        world.alerts.get_mut("posted").unwrap().is_posted = true;
        let messages = world.run(60_000);
        assert_eq!(messages.len(), 1, "{messages:?}");
        let posted = world.alerts.remove("posted").unwrap();
        world.crash();
        let began_at = world.now;
        let mut messages = world.run(120_000);
        assert_eq!(messages, []);
        if is_sent_again {
            world.alerts.insert("posted", posted);
        }
        messages.extend(world.run(900_000));
        let ends: Vec<_> =
            messages.iter().filter(|(_, content)| content.1 == names("posted")).collect();
        if is_sent_again {
            assert!(ends.is_empty() && messages.len() > 1, "{messages:?}");
        } else {
            let timeout_ms = world.routing.resolve_timeout_ms;
            assert!(ends.len() == 1 && ends[0].0 >= began_at + timeout_ms, "{messages:?}");
        }
    }
}

#[test]
fn a_receiver_that_was_down_for_an_hour_gets_current_and_ended_alerts_once() {
    for send_resolved in [true, false] {
        let mut world = World::new(routing(", group_by: [alertname]", send_resolved));
        for minute in 0..60 {
            match minute {
                0 => world.fire("a"),
                2 => world.fire("b"),
                // The alert ends long before the receiver is up again.
                20 => world.end("a"),
                30 => world.fire("c"),
                _ => {}
            }
            for _ in 0..6 {
                world.step();
                world.now += STEP_MS;
            }
            if minute % 7 == 0 {
                world.crash();
            }
        }
        // The group with the latest change is delivered first, even if others were decided later.
        let messages: Vec<_> =
            world.deliver_all().into_iter().map(|(_, content)| content).collect();
        let expected = [(names("c"), names("")), (names(""), names("a")), (names("b"), names(""))];
        assert_eq!(messages, expected);
        // Confirmed messages are not repeated, even after a crash.
        world.crash();
        assert_eq!(world.run(200_000), []);
    }
}

#[test]
fn an_acknowledged_alert_is_not_repeated_but_a_new_alert_of_its_group_is_sent() {
    let mut world = World::new(routing("", true));
    world.fire("a");
    assert_eq!(world.run(60_000).len(), 1);
    world.alerts.get_mut("a").unwrap().acknowledged_by = Some("ann".to_owned());
    assert_eq!(world.run(1_200_000), []);
    world.fire("b");
    let messages = world.run(100_000);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0].1, (names("a b"), names("")));
    // The message is repeated for the alert that nobody has acknowledged.
    assert_eq!(world.run(420_000).len(), 1);
}

#[test]
fn an_unacknowledged_alert_is_escalated_until_it_ends() {
    let escalate = ", escalate: [{after: 10m, receiver: boss}]";
    let mut world = World::new(routing(escalate, true));
    world.fire("a");
    world.fire("b");
    world.alerts.get_mut("b").unwrap().acknowledged_by = Some("ann".to_owned());
    let mut boss = Vec::new();
    let mut run = |world: &mut World, seconds: i64| {
        for _ in 0..seconds / 10 {
            world.step();
            let messages =
                world.deliver_all().into_iter().filter(|(receiver, _)| receiver == "boss");
            boss.extend(messages.map(|(_, content)| (world.now - 1_000_000, content)));
            world.now += STEP_MS;
        }
    };
    run(&mut world, 700);
    // The acknowledgement is too late for the escalation, which continues until the end.
    world.alerts.get_mut("a").unwrap().acknowledged_by = Some("bob".to_owned());
    world.crash();
    run(&mut world, 700);
    world.end("a");
    run(&mut world, 100);
    let content = |at: i64, firing: &str, ended: &str| (at * 1000, (names(firing), names(ended)));
    // The decision that was due at 660 s is repeated right after the crash at 700 s; the next ones
    // follow each minute.
    assert_eq!(boss, [content(600, "a", ""), content(1420, "", "a")]);
}

#[test]
fn a_refused_message_waits_for_the_next_decision_and_an_end_is_repeated_for_a_day() {
    let mut world = World::new(routing("", true));
    world.fire("a");
    world.run(20_000);
    world.now += STEP_MS;
    world.step();
    let refuse = |world: &mut World| {
        let notifications = world.groups.pending_notifications(&world.routing);
        for notification in &notifications {
            world.groups.refuse(notification);
        }
        notifications.len()
    };
    assert_eq!(refuse(&mut world), 1);
    assert!(world.groups.pending_notifications(&world.routing)[0].is_refused);
    world.now += INTERVAL_MS;
    world.step();
    assert!(!world.groups.pending_notifications(&world.routing)[0].is_refused);
    world.end("a");
    let end = world.now;
    while world.now - end < DAY_MS - INTERVAL_MS {
        world.now += INTERVAL_MS;
        world.step();
        assert!(!world.groups.pending_notifications(&world.routing)[0].is_refused);
        assert_eq!(refuse(&mut world), 1);
    }
    world.now += 2 * INTERVAL_MS;
    world.step();
    assert!(world.groups.is_empty());
}

#[test]
fn an_end_is_sent_even_when_the_receiver_was_down_for_a_day_before() {
    let mut world = World::new(routing("", true));
    world.fire("a");
    assert_eq!(world.run(60_000).len(), 1);
    // Repetitions fail for more than a day.
    for _ in 0..25 * 60 {
        world.now += INTERVAL_MS;
        world.step();
    }
    world.end("a");
    world.now += INTERVAL_MS;
    world.step();
    assert_eq!(world.deliver_all(), [("one".to_owned(), (names(""), names("a")))]);
}

#[test]
fn a_new_receiver_gets_all_alerts_and_an_alert_that_changes_groups_has_not_ended() {
    let mut world = World::new(routing("", true));
    world.fire("a");
    assert_eq!(world.run(60_000).len(), 1);
    let reload = |world: &mut World, routing: Routing| {
        (world.routing, world.seen) = (routing, None);
        world.crash();
    };
    // A delivery to the former receiver does not count for the new one.
    world.end("a");
    world.fire("b");
    world.now += INTERVAL_MS;
    world.step();
    let earlier = world.groups.pending_notifications(&world.routing)[0].clone();
    let text = "route: {receiver: boss, group_wait: 30s, group_interval: 1m}\n\
                receivers:\n- name: boss\n  webhook_configs: [{url: 'http://y'}]\n";
    let other = check_routing("notifications.yml", Some(Path::new("")), text).unwrap();
    let (message, _) = world.groups.message(&world.routing, &earlier).unwrap();
    reload(&mut world, other);
    world.step();
    world.groups.confirm(&world.routing, &earlier, &message);
    world.now += INTERVAL_MS;
    world.step();
    assert_eq!(world.deliver_all(), [("boss".to_owned(), (names("b"), names("a")))]);
    // With another `group_by`, each alert is in a group of its own.
    let text = text.replace("group_wait", "group_by: [alertname], group_wait");
    reload(&mut world, check_routing("notifications.yml", Some(Path::new("")), &text).unwrap());
    let messages: Vec<_> = world.run(200_000).into_iter().map(|(_, content)| content).collect();
    assert_eq!(messages, [(names("b"), names(""))]);
}

#[test]
fn alerts_that_were_left_out_are_sent_once_there_is_room() {
    let mut world = World::new(routing("", false));
    let now = |world: &World| UnixMillis(world.now);
    let all: Vec<_> = (0..501).map(|index| alert(&format!("n{index}"), 0, None)).collect();
    let step = |world: &mut World, are_changed: bool, all: &[MessageAlert]| {
        let at = now(world);
        let mut ask = || Some(all.to_vec());
        world.groups.step(&world.routing, are_changed, &mut ask, &|_| false, at);
    };
    step(&mut world, true, &all);
    assert_eq!(world.groups.left_out(), 1);
    world.deliver_all();
    // Half of the alerts end; nothing changes afterwards.
    let ended = |alert: &MessageAlert| MessageAlert { ends_at: Some(500_000), ..alert.clone() };
    let half: Vec<_> = all[..250].iter().cloned().chain(all[250..].iter().map(ended)).collect();
    step(&mut world, true, &half);
    for _ in 0..3 {
        world.now += INTERVAL_MS;
        step(&mut world, false, &half);
        world.deliver_all();
    }
    assert_eq!(world.groups.left_out(), 0);
}

#[test]
fn groups_are_bounded_and_alerts_beyond_the_limit_are_counted() {
    let routing = routing("", true);
    let mut groups = Groups::default();
    let alerts: Vec<_> = (0..600).map(|index| alert(&format!("n{index}"), 0, None)).collect();
    let now = UnixMillis(100_000);
    groups.step(&routing, true, &mut || Some(alerts.clone()), &|_| false, now);
    assert_eq!(groups.left_out(), 100);
    let notifications = groups.pending_notifications(&routing);
    let (message, _) = groups.message(&routing, &notifications[0]).unwrap();
    assert_eq!((message.alerts.len(), message.left_out), (500, 100));
    let stored = groups.take_changes();
    assert!(stored[0].1.as_ref().unwrap().len() < 1 << 20);
    let (groups, faults) = Groups::load([("x".to_owned(), b"{".to_vec())].into_iter());
    assert!(groups.is_empty() && faults.len() == 1);
}

/// A limit never means silence: alerts that are not silenced are sent, however many silenced alerts
/// there are.
#[test]
fn silenced_alerts_take_no_room_from_other_alerts() {
    let mut world = World::new(routing("", true));
    let silenced = |at: usize| alert(&format!("a{at:04}"), 0, None);
    let audible = |at: usize| alert(&format!("b{at:04}"), 0, None);
    let all: Vec<_> = (0..1000).map(silenced).chain((0..700).map(audible)).collect();
    let is_muted = |labels: &LabelSet| labels["alertname"].starts_with('a');
    let now = UnixMillis(world.now);
    let ask = |all: &[MessageAlert]| Some(all.to_vec());
    // The silenced alerts were first.
    let step =
        |world: &mut World, alerts: &[MessageAlert], is_muted: &dyn Fn(&LabelSet) -> bool| {
            let now = UnixMillis(world.now);
            world.groups.step(&world.routing, true, &mut || ask(alerts), is_muted, now);
        };
    step(&mut world, &all[..1000], &is_muted);
    assert_eq!(
        (world.groups.left_out(), world.groups.pending_notifications(&world.routing).len()),
        (0, 0)
    );
    world.now += INTERVAL_MS;
    step(&mut world, &all, &is_muted);
    assert_eq!(world.groups.left_out(), 200);
    let notifications = world.groups.pending_notifications(&world.routing);
    let (message, _) = world.groups.message(&world.routing, &notifications[0]).unwrap();
    assert_eq!((message.alerts.len(), message.left_out), (500, 200));
    world.groups.confirm(&world.routing, &notifications[0], &message);
    // The silence ends: more alerts fire, so a notification is due although nothing else has
    // changed.
    let mut ask = || ask(&all);
    world.now += INTERVAL_MS;
    world.groups.step(&world.routing, false, &mut ask, &|_| false, UnixMillis(world.now));
    assert_eq!(world.groups.left_out(), 1200);
    let notifications = world.groups.pending_notifications(&world.routing);
    let (message, _) = world.groups.message(&world.routing, &notifications[0]).unwrap();
    assert_eq!((message.status(), message.left_out), ("firing", 1200));
    assert!(now < UnixMillis(world.now));
}

#[test]
fn alerts_beyond_the_limits_are_put_into_the_overflow_group_of_their_route() {
    let routing = routing(", group_by: [alertname]", true);
    let mut groups = Groups::default();
    let alerts: Vec<_> = (0..2600).map(|index| alert(&format!("n{index:05}"), 0, None)).collect();
    let now = UnixMillis(100_000);
    groups.step(&routing, true, &mut || Some(alerts.clone()), &|_| false, now);
    let notifications = groups.pending_notifications(&routing);
    let messages = notifications
        .iter()
        .filter_map(|notification| Some(groups.message(&routing, notification)?.0));
    let messages: Vec<_> = messages
        .map(|message| (message.alerts.len(), message.left_out, message.group_key))
        .collect();
    assert_eq!(messages.len(), 2001);
    let overflow = messages.iter().find(|(.., key)| key == "{}:{}").unwrap();
    assert_eq!((overflow.0, overflow.1), (500, 100));
    assert_eq!(messages.iter().map(|message| message.0 + message.1).sum::<usize>(), alerts.len());
    // The alerts stay in their groups and end there.
    let ended = |alert: &MessageAlert| MessageAlert { ends_at: Some(200_000), ..alert.clone() };
    let ended_alerts: Vec<_> = alerts.iter().map(ended).collect();
    for minute in 0..20 {
        let now = UnixMillis(200_000 + minute * INTERVAL_MS);
        groups.step(&routing, minute == 0, &mut || Some(ended_alerts.clone()), &|_| false, now);
        for notification in groups.pending_notifications(&routing) {
            if let Some((message, _)) = groups.message(&routing, &notification) {
                groups.confirm(&routing, &notification, &message);
            }
        }
    }
    assert!(groups.is_empty() && groups.left_out() == 0);
}

#[test]
fn an_alert_that_represents_others_counts_as_all_of_them_and_keeps_the_group_firing() {
    let routing = routing("", true);
    let mut groups = Groups::default();
    let mut alerts: Vec<_> =
        (0..700).map(|index| alert(&format!("n{index:05}"), 0, None)).collect();
    alerts.push(MessageAlert { more: 99_299, ..alert("many", 0, None) });
    let step = |groups: &mut Groups, alerts: &[MessageAlert], now: i64| {
        groups.step(&routing, true, &mut || Some(alerts.to_vec()), &|_| false, UnixMillis(now));
        let notifications = groups.pending_notifications(&routing);
        let (message, _) = groups.message(&routing, notifications.first()?)?;
        groups.confirm(&routing, &notifications[0], &message);
        Some((message.status(), message.alerts.len() + message.left_out))
    };
    assert_eq!(step(&mut groups, &alerts, 100_000), Some(("firing", 100_000)));
    assert_eq!(step(&mut groups, &alerts, 200_000), None, "the message was confirmed");
    // All listed alerts end, and the others continue to fire.
    let ended = |alert: &MessageAlert| MessageAlert { ends_at: Some(250_000), ..alert.clone() };
    let rest: Vec<_> = alerts[..500].iter().map(ended).chain(alerts[500..].to_vec()).collect();
    let (status, _) = step(&mut groups, &rest, 300_000).unwrap();
    assert_eq!(status, "firing");
}

/// The end of 100,000 alerts was sent as the end of 500.
#[test]
fn the_end_of_alerts_that_were_only_counted_is_counted_too() {
    let routing = routing("", true);
    let mut groups = Groups::default();
    let alerts: Vec<_> = (0..700).map(|index| alert(&format!("n{index:05}"), 0, None)).collect();
    let mut step = |alerts: &[MessageAlert], now: i64| {
        groups.step(&routing, true, &mut || Some(alerts.to_vec()), &|_| false, UnixMillis(now));
        let notifications = groups.pending_notifications(&routing);
        let (message, _) = groups.message(&routing, notifications.first()?)?;
        groups.confirm(&routing, &notifications[0], &message);
        let document: serde_json::Value = serde_json::from_str(&message.to_json(0)).unwrap();
        Some((message.status(), document["truncatedAlerts"].as_u64(), message.unlisted_line()))
    };
    let more = |count: u64| Some(format!("and {count} more alerts"));
    assert_eq!(step(&alerts, 100_000), Some(("firing", Some(200), more(200))));
    let ended = |alert: &MessageAlert| MessageAlert { ends_at: Some(250_000), ..alert.clone() };
    let ended_alerts: Vec<_> = alerts.iter().map(ended).collect();
    assert_eq!(step(&ended_alerts, 300_000), Some(("resolved", Some(200), more(200))));
    assert_eq!(step(&ended_alerts, 400_000), None, "the message was confirmed");
}

#[test]
fn a_failing_integration_fills_no_group_and_repeats_no_end_to_another_integration() {
    let mut world = World::new(two_integrations());
    let name = |at: i64| format!("n{at}");
    let mut counts = BTreeMap::new();
    for round in 0..560 {
        let now = world.now;
        // Each alert fires for two minutes, one after the other.
        let alerts = || {
            let ends_at =
                |at: i64| Some(1_000_000 + (at + 2) * INTERVAL_MS).filter(|end| *end <= now);
            let alert_at = |at: i64| alert(&name(at), 1_000_000 + at * INTERVAL_MS, ends_at(at));
            Some((i64::max(0, round - 10)..=round).map(alert_at).collect::<Vec<_>>())
        };
        world.groups.step(&world.routing, true, &mut { alerts }, &|_| false, UnixMillis(now));
        for (_, (firing, ended)) in world.deliver_to(|key| key == "webhook/0") {
            let fires = firing.into_iter().map(|news| (news, true));
            for news in fires.chain(ended.into_iter().map(|news| (news, false))) {
                *counts.entry(news).or_insert(0) += 1;
            }
        }
        assert_eq!(world.groups.left_out(), 0, "round {round}");
        world.now += INTERVAL_MS;
    }
    let ends: Vec<_> = counts.iter().filter(|((_, fires), _)| !fires).map(|news| *news.1).collect();
    assert!(ends.len() > 550 && ends.iter().all(|count| *count == 1), "{counts:?}");
    // The failing integration gets the remaining ends once.
    let late_messages = world.deliver_all();
    assert_eq!(late_messages.len(), 1);
    assert!((300..=500).contains(&late_messages[0].1.1.len()), "{}", late_messages[0].1.1.len());
}

#[test]
fn a_refusal_of_an_earlier_decision_drops_nothing_of_a_later_one() {
    let mut world = World::new(routing("", true));
    world.fire("a");
    assert_eq!(world.run(60_000).len(), 1);
    world.end("a");
    world.now += INTERVAL_MS;
    world.step();
    let earlier = world.groups.pending_notifications(&world.routing)[0].clone();
    // The alert fires again, and the next decision is made, during the delivery.
    world.fire("a");
    world.now += INTERVAL_MS;
    world.step();
    world.groups.refuse(&earlier);
    let notifications = world.groups.pending_notifications(&world.routing);
    assert!(!notifications[0].is_refused);
    assert_eq!(world.deliver_all()[0].1, (names("a"), names("")));
    // An end that was decided since is kept as well.
    world.now += INTERVAL_MS;
    world.end("a");
    world.step();
    let earlier = world.groups.pending_notifications(&world.routing)[0].clone();
    world.now += INTERVAL_MS;
    world.fire("b");
    world.step();
    world.end("b");
    world.now += INTERVAL_MS;
    world.step();
    world.groups.refuse(&earlier);
    assert_eq!(world.deliver_all()[0].1, (names(""), names("a b")));
}

/// People must see who was notified: deliveries survive a crash, and name what is still pending.
#[test]
fn readers_see_who_was_notified_and_which_notifications_are_pending() {
    let mut world = World::new(two_integrations());
    world.fire("a");
    for _ in 0..4 {
        world.step();
        world.now += STEP_MS;
    }
    let decided_at = world.now - STEP_MS;
    assert_eq!(world.deliver_to(|integration| integration == "webhook/0").len(), 1);
    world.crash();
    let deliveries = world.groups.deliveries(&world.routing);
    let key = alert("a", 0, None).fingerprint();
    let found: Vec<_> = deliveries[&key]
        .iter()
        .map(|found| {
            (found.receiver.as_str(), found.integration.as_str(), found.at, found.pending_since)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("one", "webhook/0", Some(decided_at), None),
            ("one", "webhook/1", None, Some(decided_at)),
        ]
    );
    world.fire("b");
    assert!(
        !world.groups.deliveries(&world.routing).contains_key(&alert("b", 0, None).fingerprint())
    );
    world.end("a");
    world.run(120_000);
    assert!(!world.groups.deliveries(&world.routing).contains_key(&key));
}
