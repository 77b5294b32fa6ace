//! Tests of keys: wrong, cut, rotated and expired ones, and the limits of their changes.

use super::*;
use crate::access::{Caller, NewKey, RENEWAL_OVERLAP_MS, Scope, Token};

const NOW: UnixMillis = UnixMillis(1_764_000_000_000);

fn new_key(name: &str, scopes: &[Scope]) -> NewKey {
    let (name, scopes) = (name.to_owned(), Scopes::of(scopes));
    NewKey { name, scopes, project: None, senders: None, expires: None }
}

/// Returns a set with one key, and the key.
fn set_with(new: NewKey) -> (KeySet, Token) {
    set_made_by("", new)
}

fn set_made_by(caller: &str, new: NewKey) -> (KeySet, Token) {
    let (mut keys, token) = (KeySet::default(), Token::random().unwrap());
    assert!(keys.put(&token.id(), new.record(token.digest(), caller, NOW)));
    (keys, token)
}

fn secret(text: &str) -> &str {
    text.rsplit('_').next().unwrap()
}

fn check(keys: &KeySet, text: &str, now: UnixMillis) -> Result<String, KeyRefusal> {
    keys.check(text.as_bytes(), now).map(|caller| caller.key.record.name.clone())
}

#[test]
fn only_the_whole_key_is_valid() {
    let (mut keys, token) = set_with(new_key("one", &[Scope::Read]));
    let text = token.reveal();
    assert_eq!(check(&keys, &text, NOW), Ok("one".to_owned()));
    assert_eq!(keys.get(&token.id()).unwrap().used(), Some(NOW.0));
    for length in 0..text.len() {
        assert_eq!(check(&keys, text.split_at(length).0, NOW), Err(KeyRefusal::Form));
    }
    let zero_or_one = |c: char| if c == '0' { '1' } else { '0' };
    for at in 17..text.len() {
        let mut other: Vec<char> = text.chars().collect();
        other[at] = zero_or_one(other[at]);
        let other: String = other.into_iter().collect();
        assert_eq!(check(&keys, &other, NOW), Err(KeyRefusal::Wrong), "{at}");
    }
    // The id of one key with the secret of another.
    let other = Token::random().unwrap();
    keys.put(&other.id(), new_key("two", &[Scope::Read]).record(other.digest(), "", NOW));
    let mixed = format!("gry_{}_{}", other.id(), secret(&text));
    assert_eq!(check(&keys, &mixed, NOW), Err(KeyRefusal::Wrong));
    assert_eq!(check(&keys, &Token::random().unwrap().reveal(), NOW), Err(KeyRefusal::Wrong));
    // No secret has the digest of the stand-in for unknown ids.
    assert!(!bool::from(keys.nobody.fits(&Digest::ZERO, NOW)));
}

#[test]
fn a_rotated_key_overlaps_with_the_previous_one_and_earlier_ones_end() {
    let (mut keys, first) = set_with(new_key("one", &[Scope::Ingest]));
    let mut record = keys.get(&first.id()).unwrap().record.clone();
    let second = Token::random_for(&first.id()).unwrap().unwrap();
    record.rotate(second.digest(), NOW, 1_000);
    keys.put(&first.id(), record.clone());
    let caller = keys.check(first.reveal().as_bytes(), NOW.plus(999)).unwrap();
    assert!(check(&keys, &second.reveal(), NOW).is_ok());
    assert!(keys.is_valid(&caller, NOW.plus(999)));
    assert_eq!(record.overlap_until(NOW), Some(NOW.0 + 1_000));
    // The end of the overlap also ends a stream that the previous key opened.
    assert_eq!(check(&keys, &first.reveal(), NOW.plus(1_000)), Err(KeyRefusal::Wrong));
    assert!(!keys.is_valid(&caller, NOW.plus(1_000)));
    assert!(check(&keys, &second.reveal(), NOW.plus(1_000)).is_ok());

    let third = Token::random_for(&first.id()).unwrap().unwrap();
    record.rotate(third.digest(), NOW, 1_000);
    keys.put(&first.id(), record.clone());
    assert_eq!(check(&keys, &first.reveal(), NOW), Err(KeyRefusal::Wrong));
    assert!(check(&keys, &second.reveal(), NOW).is_ok());
    record.rotate(Token::random().unwrap().digest(), NOW, 0);
    keys.put(&first.id(), record);
    assert_eq!(check(&keys, &third.reveal(), NOW), Err(KeyRefusal::Wrong), "no overlap");
}

#[test]
fn an_expired_or_revoked_key_is_wrong() {
    let expires = Some(NOW.0 + 5);
    let (mut keys, token) = set_with(NewKey { expires, ..new_key("one", &[Scope::Admin]) });
    let text = token.reveal();
    assert!(check(&keys, &text, NOW.plus(4)).is_ok());
    assert_eq!(check(&keys, &text, NOW.plus(5)), Err(KeyRefusal::Wrong));
    assert!(keys.has_key_with(Scopes::of(&[Scope::Read]), NOW.plus(4)));
    assert!(!keys.has_key_with(Scopes::of(&[Scope::Operate]), NOW.plus(4)));
    assert!(!keys.has_key_with(Scopes::of(&[Scope::Admin]), NOW.plus(5)));
    let caller = keys.check(text.as_bytes(), NOW).unwrap();
    keys.remove(&token.id());
    assert!(!keys.is_valid(&caller, NOW));
    assert_eq!(check(&keys, &text, NOW), Err(KeyRefusal::Wrong));
}

#[test]
fn a_caller_grants_only_what_its_key_has() {
    let limited = NewKey { senders: Some("web".into()), ..new_key("one", &[Scope::Admin]) };
    let (keys, token) = set_with(limited);
    let caller = Caller::Key(keys.check(token.reveal().as_bytes(), NOW).unwrap());
    let own = KeyProject::default();
    let may = |scopes: &[Scope], senders| {
        caller.may_grant(Scopes::of(scopes), &own, senders, None).is_ok()
    };
    assert!(may(&[Scope::Ingest, Scope::Objects], Some("web1")));
    assert!(!may(&[Scope::Ingest], None), "all senders are more than some");
    assert!(!may(&[Scope::Ingest], Some("we")));
    assert!(!may(&[Scope::Operate], Some("web")));
}

#[test]
fn a_key_grants_access_to_its_own_projects_only() {
    let project = |name: &str| Some(name.parse::<KeyProject>().unwrap());
    for (own, other, expected) in [
        ("default", "default", true),
        ("a", "a", true),
        ("*", "a", true),
        ("*", "*", true),
        ("a", "b", false),
        ("a", "default", false),
        ("default", "a", false),
        ("default", "*", false),
        ("a", "*", false),
    ] {
        let new = NewKey { project: project(own), ..new_key("one", &[Scope::Admin]) };
        let (keys, token) = set_with(new);
        let caller = Caller::Key(keys.check(token.reveal().as_bytes(), NOW).unwrap());
        let other = project(other).unwrap();
        let granted = caller.may_grant(Scopes::of(&[Scope::Read]), &other, None, None);
        assert_eq!(granted.is_ok(), expected, "{own} {other}");
    }
    let operate = |name: &str| {
        let new = new_key("one", &[Scope::Operate]);
        NewKey { project: project(name), ..new }.check(NOW).is_ok()
    };
    assert_eq!(["default", "*", "a"].map(operate), [true, true, false]);
}

#[test]
fn a_key_that_expires_grants_nothing_beyond_its_end() {
    let may = |made_by: &str, expires| {
        let new = NewKey { expires: Some(NOW.0 + 10), ..new_key("one", &[Scope::Admin]) };
        let (keys, token) = set_made_by(made_by, new);
        let caller = Caller::Key(keys.check(token.reveal().as_bytes(), NOW).unwrap());
        let own = KeyProject::default();
        caller.may_grant(Scopes::of(&[Scope::Read]), &own, None, expires).is_ok()
    };
    assert!(may("root", Some(NOW.0 + 10)));
    assert!(!may("root", Some(NOW.0 + 11)));
    assert!(!may("root", None));
    // The first key has no maker, and makes keys that never expire.
    assert!(may("", None));
}

#[test]
fn a_record_is_stored_without_the_secret_and_read_again() {
    let new =
        NewKey { senders: Some("web".into()), ..new_key("one", &[Scope::Read, Scope::Ingest]) };
    let (keys, token) = set_with(new);
    let record = &keys.get(&token.id()).unwrap().record;
    let text = serde_json::to_string(record).unwrap();
    assert!(
        text.contains(r#""scopes":["ingest","read"],"project":"default","senders":"web""#),
        "{text}"
    );
    assert!(!text.contains(secret(&token.reveal())), "{text}");
    assert_eq!(&serde_json::from_str::<KeyRecord>(&text).unwrap(), record);
    let cut = text.replacen("\"sha256\":\"", "\"sha256\":\"0", 1);
    assert!(serde_json::from_str::<KeyRecord>(&cut).is_err());
}

#[test]
fn faults_of_new_keys_name_the_property() {
    let fault = |new: NewKey| new.check(NOW).unwrap_err().split(':').next().unwrap().to_owned();
    assert_eq!(fault(new_key(" ", &[Scope::Read])), "name");
    assert_eq!(fault(new_key("a\nb", &[Scope::Read])), "name");
    assert_eq!(fault(new_key("a", &[])), "scopes");
    let senders = Some(String::new());
    assert_eq!(fault(NewKey { senders, ..new_key("a", &[Scope::Read]) }), "senders");
    let senders = Some("web".to_owned());
    assert_eq!(fault(NewKey { senders, ..new_key("a", &[Scope::Admin]) }), "senders");
    let expires = Some(NOW.0);
    assert_eq!(fault(NewKey { expires, ..new_key("a", &[Scope::Read]) }), "expires");
    assert_eq!(new_key("a", &[Scope::Read]).check(NOW), Ok(()));
}

#[test]
fn a_check_allocates_nothing_whatever_its_outcome() {
    let (keys, token) = set_with(new_key("one", &[Scope::Read]));
    let text = token.reveal();
    let cut = text.split_at(40).0;
    let wrong = Token::random_for(&token.id()).unwrap().unwrap().reveal();
    let unknown = Token::random().unwrap().reveal();
    for (text, fits) in
        [(&*text, true), (&wrong, false), (&unknown, false), (cut, false), ("", false)]
    {
        let mut outcome = None;
        let counted = allocation_counter::measure(|| {
            outcome = Some(keys.check(text.as_bytes(), NOW).is_ok());
        });
        assert_eq!((counted.count_total, outcome), (0, Some(fits)), "{text}");
    }
}

/// Returns the record of a key that its holder renews.
fn renewable(token: &Token, life_ms: i64) -> KeyRecord {
    let expires = Some(NOW.0 + life_ms);
    let new = NewKey { expires, ..new_key("web1", &[Scope::Ingest]) };
    let mut record = new.record(token.digest(), "root", NOW);
    (record.life_ms, record.one_sender) = (Some(life_ms), true);
    record
}

#[test]
fn a_renewed_key_has_no_gap_even_when_answers_are_lost() {
    let (life_ms, overlap_ms) = (90 * 86_400_000, RENEWAL_OVERLAP_MS);
    let (mut keys, first) = (KeySet::default(), Token::random().unwrap());
    keys.put(&first.id(), renewable(&first, life_ms));
    let check = |keys: &KeySet, token: &Token, now: UnixMillis| {
        keys.check(token.reveal().as_bytes(), now).map(|caller| caller.should_renew(now)).ok()
    };
    let late = NOW.plus(life_ms / 3 * 2);
    assert_eq!(check(&keys, &first, late.plus(-1)), Some(false));
    assert_eq!(check(&keys, &first, late), Some(true));
    // The answers to two renewals are lost: the first secret stays valid, and the lost secrets end.
    let mut renew = |now: UnixMillis| {
        let caller = keys.check(first.reveal().as_bytes(), now).unwrap();
        let next = Token::random_for(&first.id()).unwrap().unwrap();
        let record = caller.renewed(&caller.key.record, next.digest(), now).unwrap();
        assert_eq!(record.expires, Some(now.0 + life_ms));
        keys.put(&first.id(), record);
        (next, check(&keys, &first, now))
    };
    let (lost, first_renews) = renew(late);
    assert_eq!(first_renews, Some(true));
    let (next, _) = renew(late.plus(1000));
    assert_eq!(check(&keys, &lost, late.plus(1000)), None);
    assert_eq!(check(&keys, &next, late.plus(1000)), Some(false));
    // A later renewal does not extend the overlap.
    let end = late.plus(overlap_ms);
    assert_eq!(check(&keys, &first, end.plus(-1)), Some(true));
    assert_eq!(check(&keys, &first, end), None);
    assert_eq!(check(&keys, &next, end.plus(life_ms / 2)), Some(false));
}

#[test]
fn a_replaced_secret_is_valid_no_longer_than_before_and_other_keys_are_not_renewed() {
    let life_ms = 3 * 3_600_000;
    let (mut keys, first) = (KeySet::default(), Token::random().unwrap());
    keys.put(&first.id(), renewable(&first, life_ms));
    let now = NOW.plus(life_ms - 1);
    let caller = keys.check(first.reveal().as_bytes(), now).unwrap();
    let next = Token::random_for(&first.id()).unwrap().unwrap();
    keys.put(&first.id(), caller.renewed(&caller.key.record, next.digest(), now).unwrap());
    let is_valid = |token: &Token, now| keys.check(token.reveal().as_bytes(), now).is_ok();
    assert_eq!((is_valid(&first, now), is_valid(&first, now.plus(1))), (true, false));
    assert!(is_valid(&next, now.plus(1)));
    let (keys, token) = set_with(new_key("lasting", &[Scope::Ingest]));
    let caller = keys.check(token.reveal().as_bytes(), NOW).unwrap();
    assert!(!caller.should_renew(NOW));
    assert!(caller.renewed(&caller.key.record, next.digest(), NOW).is_err());
}
