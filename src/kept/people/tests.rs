//! Tests of users and sessions in a store: logins, changes that end sessions, and restarts.

use super::*;
use crate::{
    access::{GroupRules, Person, Role, SESSION_IDLE_MS, SessionToken},
    faulty::FaultyMedium,
    model::GranularitySet,
    setup::{NOW, open_on},
};

const PASSWORD: &str = "correct horse battery";

struct Fixture {
    store: Store,
    people: KnownPeople,
}

impl Fixture {
    fn new() -> Self {
        let medium = Arc::new(FaultyMedium::new(1));
        let (store, _appender) = open_on(medium, &GranularitySet::default(), NOW);
        let people = KnownPeople::open(&store, NOW).unwrap();
        Self { store, people }
    }

    fn with(names: &[(&str, Role)]) -> Self {
        let fixture = Self::new();
        for (name, role) in names {
            fixture.create(name, *role, None).unwrap();
        }
        fixture
    }

    fn create(
        &self,
        name: &str,
        role: Role,
        caller: Option<&Caller>,
    ) -> Result<UserAnswer, PeopleFault> {
        let roles = Roles::one("default", role);
        let password = Some(Password::new(PASSWORD).unwrap());
        self.people.create(NewUser { name: name.to_owned(), roles, password }, caller, NOW)
    }

    fn log_in(&self, user: &str, code: Option<&str>) -> Result<NewSession, PeopleFault> {
        self.people.log_in(LoginRequest { user, password: PASSWORD, code }, NOW)
    }

    fn is_valid(&self, session: &NewSession) -> bool {
        let by_cookie = self.people.check(session.token.reveal().as_bytes(), NOW).is_some();
        assert_eq!(by_cookie, self.people.is_valid(&session.caller, NOW));
        by_cookie
    }
}

#[test]
fn only_the_right_password_of_a_known_user_begins_a_session() {
    let fixture = Fixture::with(&[("ann", Role::Editor)]);
    let login = |user, password| {
        let request = LoginRequest { user, password, code: None };
        fixture.people.log_in(request, NOW).map_err(|fault| fault.to_string())
    };
    let session = login(" Ann ", PASSWORD).unwrap();
    assert!(fixture.is_valid(&session));
    assert_eq!(session.caller.user.name, "ann");
    let wrong = login("ann", "correct horse batterx").unwrap_err();
    assert_eq!(login("nobody", PASSWORD).unwrap_err(), wrong, "the same for unknown users");
    let stranger = SessionToken::random().unwrap();
    assert!(fixture.people.check(stranger.reveal().as_bytes(), NOW).is_none());
    assert!(fixture.people.check(b"", NOW).is_none());
    fixture.people.log_out(&session.caller).unwrap();
    assert!(!fixture.is_valid(&session));
    let listed = fixture.people.list(None, NOW);
    assert_eq!((listed[0].last_login, listed[0].sessions), (Some(NOW.0), 0));
}

#[test]
fn each_change_of_rights_ends_all_sessions_of_the_user_and_no_others() {
    let fixture = Fixture::with(&[("ann", Role::Editor), ("bob", Role::Viewer)]);
    let others = fixture.log_in("bob", None).unwrap();
    let changes = [
        UserChange { roles: Some(Roles::one("default", Role::Admin)), ..UserChange::default() },
        UserChange { password: Some(Password::new(PASSWORD).unwrap()), ..UserChange::default() },
        UserChange { without_totp: true, ..UserChange::default() },
        UserChange { disabled: Some(true), ..UserChange::default() },
    ];
    for change in changes {
        let sessions = [(); 2].map(|()| fixture.log_in("ann", None).unwrap());
        let text = format!("{change:?}");
        fixture.people.change("ann", change, None, NOW).unwrap();
        assert_eq!(
            sessions.each_ref().map(|session| fixture.is_valid(session)),
            [false; 2],
            "{text}"
        );
    }
    assert!(matches!(fixture.log_in("ann", None), Err(PeopleFault::WrongLogin)), "disabled");
    fixture
        .people
        .change("ann", UserChange { disabled: Some(false), ..UserChange::default() }, None, NOW)
        .unwrap();
    let session = fixture.log_in("ann", None).unwrap();
    fixture.people.remove("ann", None).unwrap();
    assert!(!fixture.is_valid(&session));
    // The sessions are not valid for another user with the same name.
    fixture.create("ann", Role::Viewer, None).unwrap();
    assert!(!fixture.is_valid(&session) && fixture.is_valid(&others));
}

#[test]
fn an_own_change_ends_the_other_sessions_and_begins_another() {
    let fixture = Fixture::with(&[("ann", Role::Editor)]);
    let [mut session, other] = [(); 2].map(|()| fixture.log_in("ann", None).unwrap());
    let change = OwnChange::Password(Password::new("another battery staple").unwrap());
    let renewed = fixture.people.change_own(&session.caller, change, NOW).unwrap();
    assert!(fixture.is_valid(&renewed) && !fixture.is_valid(&session) && !fixture.is_valid(&other));
    session = renewed;
    assert!(matches!(fixture.log_in("ann", None), Err(PeopleFault::WrongLogin)));
    fixture.people.log_out(&session.caller).unwrap();
    let late = fixture.people.change_own(&session.caller, OwnChange::RemoveTotp, NOW);
    assert!(matches!(late, Err(PeopleFault::NoSession)), "{late:?}");
}

#[test]
fn a_second_factor_is_required_once_a_code_confirmed_it() {
    let fixture = Fixture::with(&[("ann", Role::Editor)]);
    let session = fixture.log_in("ann", None).unwrap();
    let early = fixture.people.change_own(&session.caller, OwnChange::ConfirmTotp("0"), NOW);
    assert!(matches!(early, Err(PeopleFault::SecondFactor(_))), "{early:?}");
    let factor = fixture.people.begin_totp(&session.caller, NOW).unwrap();
    fixture.log_in("ann", None).unwrap();
    let code = factor.code_at(NOW);
    let wrong = if code == "000000" { "000001" } else { "000000" };
    let refused = fixture.people.change_own(&session.caller, OwnChange::ConfirmTotp(wrong), NOW);
    assert!(matches!(refused, Err(PeopleFault::WrongCode)), "{refused:?}");
    let confirm = OwnChange::ConfirmTotp(&code);
    let session = fixture.people.change_own(&session.caller, confirm, NOW).unwrap();
    let again = fixture.people.begin_totp(&session.caller, NOW);
    assert!(matches!(again, Err(PeopleFault::SecondFactor(_))), "{again:?}");
    assert!(matches!(fixture.log_in("ann", None), Err(PeopleFault::CodeRequired)));
    // The code of the confirmation was used.
    assert!(matches!(fixture.log_in("ann", Some(&code)), Err(PeopleFault::WrongLogin)));
    let next = factor.code_at(NOW.plus(30_000));
    fixture.log_in("ann", Some(&next)).unwrap();
    assert!(matches!(fixture.log_in("ann", Some(&next)), Err(PeopleFault::WrongLogin)));
    // The second factor is also required after a restart.
    let reopened = KnownPeople::open(&fixture.store, NOW).unwrap();
    let request = LoginRequest { user: "ann", password: PASSWORD, code: Some(&next) };
    assert!(matches!(reopened.log_in(request, NOW), Err(PeopleFault::WrongLogin)));
    let change = UserChange { without_totp: true, ..UserChange::default() };
    fixture.people.change("ann", change, None, NOW).unwrap();
    fixture.log_in("ann", None).unwrap();
}

#[test]
fn nobody_manages_users_with_more_rights() {
    let fixture = Fixture::with(&[("ann", Role::Admin), ("eve", Role::Viewer)]);
    let everywhere = Roles::one("*", Role::Admin);
    let root = NewUser {
        name: "root".to_owned(),
        roles: everywhere.clone(),
        password: Some(Password::new(PASSWORD).unwrap()),
    };
    assert!(!fixture.people.has_administrator());
    fixture.people.create(root, None, NOW).unwrap();
    assert!(fixture.people.has_administrator());
    let ann = Caller::User(fixture.log_in("ann", None).unwrap().caller);
    let root = Caller::User(fixture.log_in("root", None).unwrap().caller);
    let set_roles = |name: &str, roles: Roles, caller: &Caller| {
        let change = UserChange { roles: Some(roles), ..UserChange::default() };
        fixture.people.change(name, change, Some(caller), NOW).map(drop)
    };
    let forbidden =
        |outcome: Result<(), PeopleFault>| matches!(outcome, Err(PeopleFault::Forbidden(_)));
    assert!(forbidden(set_roles("ann", everywhere.clone(), &ann)));
    assert!(forbidden(set_roles("root", Roles::one("default", Role::Viewer), &ann)));
    assert!(forbidden(set_roles("eve", Roles::one("other", Role::Viewer), &ann)));
    assert!(forbidden(fixture.people.remove("root", Some(&ann))));
    let change =
        UserChange { password: Some(Password::new(PASSWORD).unwrap()), ..UserChange::default() };
    assert!(forbidden(fixture.people.change("root", change, Some(&ann), NOW).map(drop)));
    let names = |caller: &Caller| {
        let listed = fixture.people.list(Some(caller), NOW);
        listed.into_iter().map(|user| user.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&ann), ["ann", "eve"]);
    assert_eq!(names(&root), ["ann", "eve", "root"]);
    set_roles("eve", Roles::one("default", Role::Editor), &ann).unwrap();
    set_roles("ann", Roles::one("other", Role::Viewer), &root).unwrap();
    assert!(matches!(
        fixture.create("ann", Role::Viewer, Some(&root)),
        Err(PeopleFault::Exists(_))
    ));
}

#[test]
fn sessions_survive_a_restart_and_their_number_is_limited() {
    let fixture = Fixture::with(&[("ann", Role::Viewer)]);
    let first = fixture.log_in("ann", None).unwrap();
    let reopened = KnownPeople::open(&fixture.store, NOW).unwrap();
    let cookie = first.token.reveal().as_bytes();
    assert!(reopened.check(cookie, NOW).is_some());
    assert!(reopened.check(cookie, NOW.plus(SESSION_IDLE_MS)).is_none());
    let user = first.caller.user.clone();
    let begin =
        |second| fixture.people.begin_session(user.clone(), NOW.plus(second * 1000)).unwrap();
    let ids: Vec<_> = (1..=25_i64).map(begin).collect();
    let valid: Vec<_> = ids.iter().map(|session| fixture.is_valid(session)).collect();
    let expected: Vec<_> = (1..=25).map(|second| second > 5).collect();
    assert_eq!((valid, fixture.people.session_count()), (expected, 20));
    // The store contains no more.
    assert_eq!(KnownPeople::open(&fixture.store, NOW).unwrap().session_count(), 20);
}

/// Returns rules in which each group has this role in the project `default`.
fn rules(issuer: &str, role: Role) -> GroupRules {
    let roles = BTreeMap::from([("dev".to_owned(), Roles::one("default", role))]);
    GroupRules::new(issuer, "granary", "groups", roles)
}

fn ann() -> Person {
    let (subject, display_name) = ("ann".to_owned(), "Ann Lee".to_owned());
    Person { subject, display_name, groups: vec!["dev".to_owned()] }
}

#[test]
fn a_session_of_a_provider_ends_with_other_roles_and_other_rules() {
    let fixture = Fixture::with(&[("ann", Role::Admin)]);
    let people = &fixture.people;
    let log_in = |rules: &GroupRules| {
        people.set_provider_rules(Some(rules));
        let roles = rules.roles_of(&ann()).unwrap();
        people.log_in_person(&ann(), roles, rules, NOW).unwrap()
    };
    let (own, viewers) = (fixture.log_in("ann", None).unwrap(), rules("https://a", Role::Viewer));
    let (first, second) = (log_in(&viewers), log_in(&viewers));
    assert_eq!(first.caller.user.name, "oidc:ann");
    assert!(fixture.is_valid(&first) && fixture.is_valid(&second));
    // After a restart, the sessions wait for the same rules.
    let reopened = KnownPeople::open(&fixture.store, NOW).unwrap();
    let cookie = second.token.reveal().as_bytes();
    assert!(reopened.check(cookie, NOW).is_none());
    reopened.set_provider_rules(Some(&viewers));
    assert_eq!(reopened.check(cookie, NOW).unwrap().user.record.display_name(), "Ann Lee");
    let editors = rules("https://a", Role::Editor);
    people.set_provider_rules(Some(&editors));
    assert!(!fixture.is_valid(&second));
    let sessions = |name: &str| {
        let users = people.list(None, NOW).into_iter();
        users.filter(|user| user.name == name).map(|user| user.sessions).collect::<Vec<_>>()
    };
    assert_eq!((sessions("oidc:ann"), sessions("ann")), (vec![0], vec![1]));
    let third = log_in(&editors);
    people.set_provider_rules(Some(&viewers));
    assert!(!fixture.is_valid(&third) && !fixture.is_valid(&second));
    people.set_provider_rules(None);
    assert!(!fixture.is_valid(&first) && fixture.is_valid(&own));
}

#[test]
fn a_person_whose_groups_give_no_role_has_no_session_left() {
    let fixture = Fixture::new();
    let people = &fixture.people;
    let (rules, others) = (rules("https://a", Role::Viewer), rules("https://b", Role::Viewer));
    people.set_provider_rules(Some(&rules));
    let roles = rules.roles_of(&ann()).unwrap();
    let session = people.log_in_person(&ann(), roles, &rules, NOW).unwrap();
    people.end_sessions_of_person(&ann(), &others, NOW).unwrap();
    assert!(fixture.is_valid(&session), "another provider's person has the same subject");
    people.end_sessions_of_person(&ann(), &rules, NOW).unwrap();
    assert!(!fixture.is_valid(&session));
}

#[test]
fn a_disabled_person_of_a_provider_stays_out_and_another_provider_has_other_people() {
    let fixture = Fixture::new();
    let (rules, people) = (rules("https://a", Role::Admin), &fixture.people);
    people.set_provider_rules(Some(&rules));
    let log_in = |rules: &GroupRules| {
        people.log_in_person(&ann(), Roles::one(ALL_PROJECTS, Role::Admin), rules, NOW)
    };
    let session = log_in(&rules).unwrap();
    assert!(!people.has_administrator(), "the provider may be down");
    let change = |change| people.change("oidc:ann", change, None, NOW).map(|user| user.sessions);
    let roles = Some(Roles::one("default", Role::Viewer));
    let refused = change(UserChange { roles, ..UserChange::default() }).unwrap_err();
    assert!(refused.to_string().contains("security.oidc.roles"), "{refused}");
    let disabled = UserChange { disabled: Some(true), ..UserChange::default() };
    assert_eq!(change(disabled).unwrap(), 0);
    assert!(!fixture.is_valid(&session));
    assert!(matches!(log_in(&rules), Err(PeopleFault::Disabled)));
    let other = self::rules("https://b", Role::Admin);
    people.set_provider_rules(Some(&other));
    assert!(fixture.is_valid(&log_in(&other).unwrap()));
}
