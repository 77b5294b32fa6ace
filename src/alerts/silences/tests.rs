//! Tests of silences: creation, change, end and limits.

use serde_json::json;

use super::{requested::SILENCES_MAX, *};

const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
const HOUR: i64 = 3_600_000;

fn new(id: Option<&str>, matcher: &str, from: i64, until: i64) -> NewSilence {
    NewSilence {
        id: id.map(str::to_owned),
        matchers: LabelMatcher::parse_all(matcher).unwrap(),
        starts_at: NOW.plus(from),
        ends_at: NOW.plus(until),
        created_by: "ann".to_owned(),
        comment: "disk is changed".to_owned(),
        recurring: None,
    }
}

fn labels(host: &str) -> LabelSet {
    [("alertname", "High"), ("host", host)].map(|(a, b)| (a.to_owned(), b.to_owned())).into()
}

/// Applies the changes.
fn apply(all: &Silences, changed: &[Silence]) -> Silences {
    all.0.values().chain(changed).cloned().collect()
}

#[test]
fn an_alert_is_silenced_from_the_start_until_just_before_the_end() {
    let created = Silences::default().create_or_change(
        new(None, "host=~\"web.*\"", -HOUR, HOUR),
        "a".into(),
        NOW,
    );
    let created = created.unwrap();
    // A new silence does not begin in the past.
    assert_eq!((created.len(), created[0].starts_at), (1, NOW.0));
    let all = apply(&Silences::default(), &created);
    let check = |host: &str, at: i64, expected: &[&str]| {
        assert_eq!(all.silencing(&labels(host), NOW.plus(at)), expected, "{host} {at}");
        let is_silenced = all.is_silenced(&labels(host), NOW.plus(at));
        assert_eq!(is_silenced, !expected.is_empty(), "{host} {at}");
    };
    check("web1", -1, &[]);
    check("web1", 0, &["a"]);
    check("db1", 0, &[]);
    check("web1", HOUR - 1, &["a"]);
    check("web1", HOUR, &[]);
    let state = |at: i64| all.get("a").unwrap().state(NOW.plus(at)).as_str();
    assert_eq!([state(-1), state(0), state(HOUR)], ["pending", "active", "expired"]);
}

#[test]
fn a_silence_is_changed_ended_or_replaced_as_alertmanager_does() {
    let empty = Silences::default();
    let all = apply(
        &empty,
        &empty.create_or_change(new(None, "host=a", 0, HOUR), "a".into(), NOW).unwrap(),
    );
    let later = NOW.plus(60_000);
    // A longer or shorter time changes the same silence.
    let changed =
        all.create_or_change(new(Some("a"), "host=a", 0, 2 * HOUR), "b".into(), later).unwrap();
    assert_eq!((changed.len(), &*changed[0].id, changed[0].ends_at), (1, "a", NOW.0 + 2 * HOUR));
    // Other matchers or another start create a new silence, and the old one ends.
    for other in [new(Some("a"), "host=b", 0, HOUR), new(Some("a"), "host=a", HOUR, 2 * HOUR)] {
        let changed = all.create_or_change(other, "b".into(), later).unwrap();
        let ids: Vec<_> =
            changed.iter().map(|silence| (&*silence.id, silence.ends_at > later.0)).collect();
        assert_eq!(ids, [("b", true), ("a", false)]);
        let all = apply(&all, &changed);
        assert_eq!(all.get("a").unwrap().state(later), SilenceState::Expired);
        assert_eq!(all.expire("a", later), Err(SilenceFault::Expired("a".to_owned())));
    }
    let ended = all.expire("a", later).unwrap();
    assert_eq!((ended.starts_at, ended.ends_at), (NOW.0, later.0));
    let all = apply(&all, &[ended]);
    assert_eq!(all.forgotten(later.plus(HOUR), HOUR), [""; 0]);
    assert_eq!(all.forgotten(later.plus(HOUR + 1), HOUR), ["a"]);
    // An expired silence is created again under another id.
    let changed =
        all.create_or_change(new(Some("a"), "host=a", 0, HOUR), "b".into(), later).unwrap();
    assert_eq!((changed.len(), &*changed[0].id), (1, "b"));
    assert_eq!(all.expire("c", NOW), Err(SilenceFault::NotFound("c".to_owned())));
}

#[test]
fn invalid_silences_are_refused() {
    let empty = Silences::default();
    let check = |new: NewSilence, expected: &str| {
        let message = empty.create_or_change(new, "a".into(), NOW).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    check(new(None, "host=a", 0, 0), "start time must be before end time");
    check(new(None, "host=a", -HOUR, 0), "end time can't be in the past");
    check(new(None, "", 0, HOUR), "matchers");
    check(new(None, "host!=a,job=~\".*\"", 0, HOUR), "empty string");
    check(new(Some("x"), "host=a", 0, HOUR), "silence x not found");
    check(NewSilence { comment: " ".into(), ..new(None, "host=a", 0, HOUR) }, "comment");
    let full: Silences = (0..SILENCES_MAX)
        .map(|i| {
            let id = format!("{i:05}");
            empty.create_or_change(new(None, "host=a", 0, HOUR), id, NOW).unwrap().remove(0)
        })
        .collect();
    let refused = full.create_or_change(new(None, "host=a", 0, HOUR), "a".into(), NOW).unwrap_err();
    assert!(refused.to_string().contains("2000 silences"), "{refused}");
    assert!(full.expired_to_remove(&new(None, "host=a", 0, HOUR), NOW).is_empty());
    // Expired silences make room, the earliest end first.
    let mut ended = full.clone();
    for (id, hours) in [("00003", 3), ("00001", 2), ("00002", 4)] {
        let expired = full.expire(id, NOW.plus(hours)).unwrap();
        ended.put(expired);
    }
    let later = NOW.plus(HOUR / 2);
    assert_eq!(ended.expired_to_remove(&new(None, "host=a", 0, HOUR), later), ["00001"]);
    assert!(ended.expired_to_remove(&new(Some("00001"), "host=a", 0, HOUR), later) == ["00003"]);
    // A silence can still be changed.
    let changed =
        full.create_or_change(new(Some("00007"), "host=a", 0, 2 * HOUR), "a".into(), NOW).unwrap();
    assert_eq!((changed.len(), &*changed[0].id), (1, "00007"));
}

#[test]
fn a_recurring_silence_shows_its_current_next_or_last_window() {
    // NOW is Friday, 2027-01-15, 08:00 UTC.
    let nightly = json!({ "from": "22:00", "until": "23:00", "zone": "UTC" });
    let recurring = Some(Some(serde_json::from_value(nightly).unwrap()));
    let recurring_silence = NewSilence { recurring, ..new(None, "host=a", 0, 39 * HOUR) };
    let empty = Silences::default();
    let all = apply(&empty, &empty.create_or_change(recurring_silence, "a".into(), NOW).unwrap());
    let silence = all.get("a").unwrap();
    let check = |hours: i64, state: SilenceState, start: i64, end: i64| {
        let now = NOW.plus(hours * HOUR);
        let window = silence.window(now);
        let found =
            (silence.state(now), window.start.since(NOW) / HOUR, window.end.since(NOW) / HOUR);
        assert_eq!(found, (state, start, end), "{hours}");
    };
    check(0, SilenceState::Pending, 14, 15);
    check(14, SilenceState::Active, 14, 15);
    check(15, SilenceState::Pending, 38, 39);
    check(38, SilenceState::Active, 38, 39);
    check(39, SilenceState::Expired, 39, 39);
    assert_eq!(all.silencing(&labels("a"), NOW), [""; 0]);
    assert_eq!(all.silencing(&labels("a"), NOW.plus(14 * HOUR)), ["a"]);
    let refused =
        all.create_or_change(new(Some("a"), "host=a", 0, HOUR), "b".into(), NOW).unwrap_err();
    assert!(refused.to_string().contains("recurs"), "{refused}");
    let read: Silence = serde_json::from_slice(&serde_json::to_vec(silence).unwrap()).unwrap();
    assert_eq!(&read, silence);
}
