//! Tests of groups against a naive model, and of invariants under any sequence of failures,
//! silences and crashes.

use proptest::prelude::*;

use super::*;

const WAIT_MS: i64 = 30_000;
const REPEAT_MS: i64 = 300_000;
const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Debug, Clone)]
enum Event {
    Fire(usize),
    End(usize),
    Mute(usize),
    /// A number of steps, and whether the receiver is reachable.
    Advance(u8, bool),
    Crash,
    /// The receiver gets the messages, and the process is killed before it stores the confirmation.
    ReceiveAndCrash,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..NAMES.len()).prop_map(Event::Fire),
        4 => (0..NAMES.len()).prop_map(Event::End),
        1 => (0..NAMES.len()).prop_map(Event::Mute),
        6 => (1_u8..20, prop::bool::weighted(0.6)).prop_map(|(steps, up)| Event::Advance(steps, up)),
        1 => Just(Event::Crash),
        1 => Just(Event::ReceiveAndCrash),
    ]
}

/// The model: one group, one integration, and a receiver that is always reachable, straight from
/// Alertmanager's documentation.
#[derive(Default)]
struct NaiveModel {
    /// The alerts; true: the alert fires.
    alerts: BTreeMap<&'static str, bool>,
    /// The alerts that were seen firing and whose end is not decided; true: the alert still fires.
    members: BTreeMap<&'static str, bool>,
    next: Option<i64>,
    firing: BTreeSet<String>,
    resolved: BTreeSet<String>,
    sent_at: Option<i64>,
    /// True when another integration of the receiver always fails, which keeps the group.
    sibling_fails: bool,
    is_kept: bool,
}

impl NaiveModel {
    fn step(&mut self, now: i64) -> Option<AlertNames> {
        for (name, fires) in &self.alerts {
            if *fires || self.members.contains_key(name) {
                self.members.insert(name, *fires);
            }
        }
        if self.members.is_empty() && !self.is_kept {
            return None;
        }
        let next = *self.next.get_or_insert(now + WAIT_MS);
        if now < next {
            return None;
        }
        self.next = Some(now + INTERVAL_MS);
        let names_of = |is_firing: bool| -> BTreeSet<String> {
            let matching = self.members.iter().filter(|(_, fires)| **fires == is_firing);
            matching.map(|(name, _)| (*name).to_owned()).collect()
        };
        let (firing, resolved) = (names_of(true), names_of(false));
        let is_news = match self.sent_at {
            None => !firing.is_empty(),
            Some(at) => {
                !firing.is_subset(&self.firing)
                    || (firing.is_empty() && !self.firing.is_empty())
                    || (!firing.is_empty()
                        && (!resolved.is_subset(&self.resolved) || now - at >= REPEAT_MS))
            }
        };
        self.members.retain(|_, fires| *fires);
        let sent = (firing.iter().cloned().collect(), resolved.iter().cloned().collect());
        if is_news {
            (self.firing, self.resolved, self.sent_at) = (firing, resolved, Some(now));
        }
        self.is_kept |= self.sibling_fails && !self.members.is_empty();
        if self.members.is_empty() && !self.is_kept {
            (self.next, self.sent_at) = (None, None);
        }
        is_news.then_some(sent)
    }
}

/// Compares the messages to the first integration with the naive model at each step, while the
/// other integration works or fails.
fn check_against_the_naive_model(
    events: Vec<Event>,
    routing: Routing,
    sibling_fails: bool,
) -> Result<(), TestCaseError> {
    let mut world = World::new(routing);
    let mut naive = NaiveModel { sibling_fails, ..NaiveModel::default() };
    for event in events {
        match event {
            Event::Fire(at) => {
                world.fire(NAMES[at]);
                naive.alerts.insert(NAMES[at], true);
            }
            Event::End(at) => {
                world.end(NAMES[at]);
                naive.alerts.insert(NAMES[at], false);
            }
            Event::Advance(steps, _) => {
                for _ in 0..steps {
                    let expected: Vec<_> = naive.step(world.now).into_iter().collect();
                    world.step();
                    let sent = world.deliver_to(|key| key == "webhook/0");
                    let sent: Vec<_> = sent.into_iter().map(|(_, content)| content).collect();
                    prop_assert_eq!(sent, expected, "at {}", world.now);
                    world.now += STEP_MS;
                }
            }
            Event::Mute(_) | Event::Crash | Event::ReceiveAndCrash => {}
        }
    }
    Ok(())
}

/// The content of all messages that a receiver got.
#[derive(Default)]
struct ReceivedContent {
    known: BTreeSet<String>,
    last: Option<(i64, AlertNames)>,
    may_repeat: bool,
    /// The time at which a mute last began or ended.
    muted_at: Option<i64>,
}

impl ReceivedContent {
    fn record(&mut self, world: &World, content: AlertNames) {
        self.known.extend(content.0.iter().cloned());
        self.known.retain(|name| !content.1.contains(name));
        if let Some((before, same)) = &self.last {
            let passed = world.now - before;
            // The repeat interval counts from decisions, which are at most an interval older.
            let is_repeat =
                *same == content && !content.0.is_empty() && passed < REPEAT_MS - INTERVAL_MS;
            // The message is new when an alert has fired again since the last message, or has fired
            // and ended.
            let is_new = |name: &String| world.alerts[name.as_str()].starts_at > *before;
            // Alerts that are muted between decision and delivery are left out, and are news when
            // the mute is over.
            let is_muting = self.muted_at.is_some_and(|at| at >= *before);
            let is_allowed =
                self.may_repeat || is_muting || content.0.iter().chain(&content.1).any(is_new);
            assert!(!is_repeat || is_allowed, "{content:?} twice within {passed}");
        }
        self.may_repeat = false;
        self.last = Some((world.now, content));
    }
}

proptest! {
    #[test]
    fn a_reachable_receiver_gets_the_messages_of_the_naive_model(
        events in prop::collection::vec(event(), 1..60)
    ) {
        check_against_the_naive_model(events, routing("", true), false)?;
    }

    #[test]
    fn a_reachable_integration_gets_the_messages_of_the_naive_model_while_another_fails(
        events in prop::collection::vec(event(), 1..60)
    ) {
        check_against_the_naive_model(events, two_integrations(), true)?;
    }

    #[test]
    fn a_receiver_learns_all_firing_alerts_and_gets_no_message_twice_in_any_sequence(
        events in prop::collection::vec(event(), 1..80), send_resolved in any::<bool>()
    ) {
        let mut world = World::new(routing("", send_resolved));
        let mut receiver = ReceivedContent::default();
        for event in events {
            match event {
                Event::Fire(at) => world.fire(NAMES[at]),
                Event::End(at) => world.end(NAMES[at]),
                Event::Mute(at) => {
                    receiver.muted_at = Some(world.now);
                    if !world.muted.remove(NAMES[at]) {
                        world.muted.insert(NAMES[at]);
                    }
                }
                Event::Advance(steps, is_up) => {
                    for _ in 0..steps {
                        world.step();
                        if is_up {
                            for (_, content) in world.deliver_all() {
                                receiver.record(&world, content);
                            }
                        }
                        world.now += STEP_MS;
                    }
                }
                Event::Crash => world.crash(),
                Event::ReceiveAndCrash => {
                    let notifications = world.groups.pending_notifications(&world.routing);
                    for notification in notifications {
                        if let Some((message, _)) = world.groups.message(&world.routing, &notification) {
                            receiver.record(&world, content_of(&message));
                            receiver.may_repeat = true;
                        }
                    }
                    world.crash();
                }
            }
        }
        // When nothing changes and nothing is muted, the receiver has got all firing alerts.
        if !std::mem::take(&mut world.muted).is_empty() {
            receiver.muted_at = Some(world.now);
        }
        for _ in 0..(INTERVAL_MS * 2 + REPEAT_MS + WAIT_MS) / STEP_MS {
            for (_, content) in world.run(STEP_MS) {
                receiver.record(&world, content);
            }
        }
        let known = receiver.known;
        let firing: BTreeSet<_> = world.alerts.iter().filter(|(_, alert)| alert.is_firing())
            .map(|(name, _)| (*name).to_owned()).collect();
        prop_assert!(firing.is_subset(&known) , "{firing:?} {known:?}");
        // The receiver has also got the ends of alerts that were muted when they ended.
        if send_resolved {
            prop_assert_eq!(known, firing);
        }
    }
}
