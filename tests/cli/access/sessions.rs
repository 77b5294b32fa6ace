//! Attacks on logins and sessions of the real daemon.

use std::{process::Command, time::Duration};

use granary::clock::Stopwatch;
use serde_json::{Value, json};

use super::{
    Guarded,
    people::{PASSWORD, Session, code_of},
};

#[test]
fn a_cookie_from_before_the_login_is_never_a_session() {
    let guarded = Guarded::start();
    guarded.user("ann", &json!({ "default": "viewer" }));
    let chosen = Session { cookie: format!("granary={}", "0".repeat(52)), csrf: String::new() };
    let body = json!({ "user": "ann", "password": PASSWORD });
    let entered = guarded.enter("login", Some(&chosen), &body).session();
    assert_ne!(entered.cookie, chosen.cookie);
    let me = |session: &Session| guarded.with_session(session, "GET", "/api/v1/access/me", "").0;
    assert_eq!((me(&chosen), me(&entered)), (401, 200));
    // The next login in the same browser ends the previous session.
    let again = guarded.enter("login", Some(&entered), &body).session();
    assert_eq!((me(&entered), me(&again)), (401, 200));
    // Two cookies with this name count as no cookie, and a cookie is not accepted as a key.
    let both = format!("{}; {}", again.cookie, entered.cookie);
    assert_eq!(me(&Session { cookie: both, csrf: again.csrf.clone() }), 401);
    let text = again.cookie.split('=').nth(1).unwrap();
    assert_eq!(guarded.send("GET", "/api/v1/access/me", text, "").0, 401);
    // If the request has a key, only the key counts, even when the cookie is valid.
    let headers = [("Cookie", &*again.cookie), ("Authorization", "Bearer gry_wrong")];
    assert_eq!(guarded.send_with("GET", "/api/v1/access/me", &headers, "").0, 401);
}

#[test]
fn changes_need_the_text_of_the_own_session_and_the_own_origin() {
    let guarded = Guarded::start();
    guarded.user("ann", &json!({ "default": "editor" }));
    guarded.user("eve", &json!({ "default": "editor" }));
    let (ann, eve) = (guarded.log_in("ann"), guarded.log_in("eve"));
    let path = "/api/v1/annotations";
    let body = json!({ "text": "deploy" }).to_string();
    let send = |headers: &[(&str, &str)]| {
        let headers = [&[("Cookie", &*ann.cookie)], headers].concat();
        let (status, answer) = guarded.send_with("POST", path, &headers, &body);
        (status, answer["error"].as_str().unwrap_or_default().to_owned())
    };
    let csrf = (403, "csrf".to_owned());
    assert_eq!(send(&[]), csrf);
    assert_eq!(send(&[("X-Granary-CSRF", "")]), csrf);
    assert_eq!(send(&[("X-Granary-CSRF", &eve.csrf)]), csrf);
    let cut = ann.csrf.split_at(63).0;
    assert_eq!(send(&[("X-Granary-CSRF", cut)]), csrf);
    let own = ("X-Granary-CSRF", &*ann.csrf);
    let foreign = (403, "foreign_origin".to_owned());
    for header in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Referer", "https://evil.example/"),
    ] {
        assert_eq!(send(&[own, header]), foreign, "{header:?}");
    }
    assert!([200, 201].contains(&send(&[own, ("Origin", &guarded.daemon.url)]).0));
    // All methods other than GET and HEAD, also for queries, and other spellings of a method.
    for (method, path) in [
        ("DELETE", "/api/v1/annotations/x"),
        ("PUT", "/api/v1/dashboards/x"),
        ("POST", "/api/v1/query?query=1"),
        ("POST", "/api/v1/access/logout"),
        ("PATCH", "/ping"),
    ] {
        let headers = [("Cookie", &*ann.cookie)];
        let (status, answer) = guarded.send_with(method, path, &headers, "");
        let is_open = path == "/ping";
        assert_eq!(answer["error"] == "csrf", !is_open, "{method} {path}: {status} {answer}");
    }
    let metrics = guarded.send("GET", "/metrics", &guarded.admin, "").1;
    let line = "granary_requests_refused_total{reason=\"csrf\"} 8";
    assert!(metrics.as_str().unwrap().contains(line), "{metrics}");
}

/// Logs in from an address of this machine, and returns the status.
fn log_in_from(guarded: &Guarded, address: &str, user: &str, password: &str) -> u16 {
    let body = json!({ "user": user, "password": password }).to_string();
    let url = format!("{}/api/v1/access/login", guarded.daemon.url);
    let words = ["-s", "-o", "/dev/null", "-w", "%{http_code}", "--interface", address];
    let words = [&words[..], &["-H", "Content-Type: application/json", "-d", &body, &url]].concat();
    let output = Command::new("curl").args(words).output().unwrap();
    String::from_utf8(output.stdout).unwrap().parse().unwrap()
}

#[test]
fn ten_thousand_wrong_logins_harm_nobody_else() {
    let guarded = Guarded::start();
    guarded.user("ann", &json!({ "default": "viewer" }));
    let session = guarded.log_in("ann");
    let memory = memory_kib(guarded.daemon.pid());
    let (mut checked, mut delayed, mut slowest) = (0, 0, Duration::ZERO);
    for number in 0..10_000 {
        // A third of the names is the user's, the others belong to nobody.
        let user = if number % 3 == 0 { "ann".to_owned() } else { format!("user{number}") };
        let body = json!({ "user": user, "password": format!("wrong guess {number}") });
        let entered = guarded.enter("login", None, &body);
        match entered.status {
            401 => checked += 1,
            429 => delayed += 1,
            status => panic!("{status}: {}", entered.body),
        }
        if number % 500 == 0 {
            let watch = Stopwatch::start();
            assert_eq!(guarded.with_session(&session, "GET", "/api/v1/series", "").0, 200);
            slowest = slowest.max(watch.elapsed());
        }
    }
    assert!((20..200).contains(&checked), "{checked} passwords were checked");
    assert_eq!(checked + delayed, 10_000);
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let grown = memory_kib(guarded.daemon.pid()).saturating_sub(memory);
    assert!(grown < 100 * 1024, "{grown} KiB");
    // The same address waits, and another one does not.
    assert_eq!(log_in_from(&guarded, "127.0.0.1", "ann", PASSWORD), 429);
    assert_eq!(log_in_from(&guarded, "127.0.0.2", "ann", PASSWORD), 200);
    assert_eq!(guarded.with_session(&session, "GET", "/api/v1/access/me", "").0, 200);
    let metrics = guarded.send("GET", "/metrics", &guarded.admin, "").1;
    let metrics = metrics.as_str().unwrap();
    let line = format!("granary_logins_total{{outcome=\"wrong\"}} {checked}");
    assert!(metrics.contains(&line), "{metrics}");
    let texts = format!("{metrics}{}", guarded.daemon.log());
    assert!(!texts.contains("wrong guess") && !texts.contains("battery"));
}

#[test]
fn many_logins_at_once_hash_two_passwords_and_refuse_the_others() {
    let guarded = Guarded::start();
    guarded.user("ann", &json!({ "default": "viewer" }));
    let memory = memory_kib(guarded.daemon.pid());
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let guarded = &guarded;
        let log_in = |number: usize| {
            // The logins come from many addresses, so that no delay refuses them first.
            let address = format!("127.0.{}.{}", 1 + number / 200, 1 + number % 200);
            move || log_in_from(guarded, &address, "ann", "wrong horse battery")
        };
        let threads: Vec<_> = (0..150).map(|number| scope.spawn(log_in(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let count = |status| statuses.iter().filter(|found| **found == status).count();
    assert_eq!(count(401) + count(429), 150, "{statuses:?}");
    assert!(count(401) >= 66, "{statuses:?}");
    let peak = peak_kib(guarded.daemon.pid()).saturating_sub(memory);
    assert!(peak < 200 * 1024, "{peak} KiB");
    assert_eq!(log_in_from(&guarded, "127.0.9.9", "ann", PASSWORD), 200);
}

#[test]
fn unknown_users_take_as_long_as_wrong_passwords() {
    let guarded = Guarded::start();
    guarded.user("ann", &json!({ "default": "viewer" }));
    // The test compares CPU times of the daemon, because other programs affect the time of an
    // answer.
    let ticks_of = |user: &str, network: u8| {
        let before = cpu_ticks(guarded.daemon.pid());
        for number in 1..=20 {
            let address = format!("127.1.{network}.{number}");
            assert_eq!(log_in_from(&guarded, &address, user, "wrong horse battery"), 401);
        }
        cpu_ticks(guarded.daemon.pid()) - before
    };
    let (known, unknown) = (ticks_of("ann", 0), ticks_of("nobody", 1));
    assert!(known < 2 * unknown && unknown < 2 * known, "{known} and {unknown} ticks");
}

/// Returns the CPU time of a process in ticks of the kernel, which are 10 ms.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    [11, 12].iter().map(|at| fields[*at].parse::<u64>().unwrap()).sum()
}

#[test]
fn no_answer_repeats_a_secret() {
    let guarded = Guarded::start();
    guarded.user("ann", &json!({ "default": "viewer" }));
    let session = guarded.log_in("ann");
    let secret = "hidden horse battery";
    for (path, body) in [
        ("login", json!({ "user": "ann", "password": secret })),
        ("login", json!({ "user": "ann", "password": [secret] })),
        ("login", json!({ "user": "ann", "password": secret, secret: 1 })),
        ("password", json!({ "password": secret, "new_password": secret })),
        ("totp", json!({ "password": secret, "code": secret })),
        ("users", json!({ "name": secret, "password": secret, "roles": secret })),
    ] {
        let entered = guarded.enter(path, Some(&session), &body);
        assert!(entered.status >= 400, "{path}");
        assert!(!entered.body.to_string().contains("hidden"), "{path}: {}", entered.body);
    }
    let texts: Vec<Value> = ["/metrics", "/api/v1/admin/log", "/api/v1/status", "/readyz"]
        .iter()
        .map(|path| guarded.send("GET", path, &guarded.admin, "").1)
        .chain([guarded.send("GET", "/api/v1/access/users", &guarded.admin, "").1])
        .collect();
    let texts = format!("{texts:?}{}", guarded.daemon.log());
    let cookie = session.cookie.split('=').nth(1).unwrap();
    for text in [secret, PASSWORD, cookie, &session.csrf, "argon2id"] {
        assert!(!texts.contains(text), "{text}");
    }
    // The stored objects contain neither the password nor the cookie.
    let objects = std::fs::read(guarded.daemon.data("objects.redb")).unwrap();
    for text in [PASSWORD, cookie] {
        let text = text.as_bytes();
        assert!(!objects.windows(text.len()).any(|window| window == text));
    }
}

/// Returns a line of a process's status in KiB.
fn status_kib(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn memory_kib(pid: u32) -> u64 {
    status_kib(pid, "VmRSS:")
}

fn peak_kib(pid: u32) -> u64 {
    status_kib(pid, "VmHWM:")
}

#[test]
fn a_user_lists_and_ends_the_own_sessions() {
    let guarded = Guarded::start();
    guarded.user("ann", &json!({ "default": "viewer" }));
    guarded.user("eve", &json!({ "*": "admin" }));
    let (first, second) = (guarded.log_in("ann"), guarded.log_in("ann"));
    let eve = guarded.log_in("eve");
    let path = "/api/v1/access/sessions";
    let list = |session: &Session| {
        let (status, answer) = guarded.with_session(session, "GET", path, "");
        assert_eq!(status, 200, "{answer}");
        answer["sessions"].as_array().unwrap().clone()
    };
    let is_in = |session: &Session| list_status(&guarded, session) == 200;
    let listed = list(&second);
    assert_eq!(listed.len(), 2, "{listed:?}");
    let current: Vec<_> = listed.iter().filter(|own| own["is_current"] == true).collect();
    assert_eq!((current.len(), &current[0]["address"]), (1, &json!("127.0.0.1")));
    assert_eq!(current[0], &listed[0], "the one that was used last is the first");
    let other = listed[1]["id"].as_str().unwrap();
    let own_of_eve = list(&eve)[0]["id"].as_str().unwrap().to_owned();
    let end = |session: &Session, id: &str| {
        guarded.with_session(session, "DELETE", &format!("{path}/{id}"), "").0
    };
    // Nobody can end or list the sessions of another user with these requests, not even an
    // administrator.
    assert_eq!((end(&second, &own_of_eve), end(&eve, other)), (404, 404));
    assert_eq!((end(&second, "x"), is_in(&first)), (404, true));
    assert_eq!((end(&second, other), is_in(&first), is_in(&second)), (204, false, true));
    let third = guarded.log_in("ann");
    let left = guarded.with_session(&second, "DELETE", path, "");
    assert_eq!(left.0, 204, "{}", left.1);
    assert_eq!([&second, &third, &eve].map(is_in), [false, false, true]);
    // The key is valid, but keys have no sessions.
    assert_eq!(guarded.send("GET", path, &guarded.admin, "").0, 409);
    // An administrator ends all sessions of a user.
    let fourth = guarded.log_in("ann");
    let ended = guarded.output(&guarded.admin, &["user", "logout", "ann"]);
    assert_eq!((&*ended, is_in(&fourth)), ("ended the sessions of ann", false));
    assert!(is_in(&guarded.log_in("ann")));
}

fn list_status(guarded: &Guarded, session: &Session) -> u16 {
    guarded.with_session(session, "GET", "/api/v1/access/sessions", "").0
}

#[test]
fn a_role_that_needs_a_second_factor_reaches_only_its_enrolment() {
    let guarded = Guarded::start_with("security.access = true\nsecurity.totp_role = 'editor'");
    guarded.user("ann", &json!({ "default": "editor" }));
    guarded.user("bob", &json!({ "default": "viewer" }));
    let (ann, bob) = (guarded.log_in("ann"), guarded.log_in("bob"));
    let get = |session: &Session, path: &str| guarded.with_session(session, "GET", path, "");
    let (_, me) = get(&ann, "/api/v1/access/me");
    assert_eq!((&me["totp_required"], &me["kind"]), (&json!(true), &json!("user")));
    for path in ["/api/v1/series", "/api/v1/dashboards", "/metrics", "/api/v1/access/users"] {
        let (status, answer) = get(&ann, path);
        assert_eq!((status, &answer["error"]), (403, &json!("second_factor_required")), "{path}");
    }
    assert_eq!(get(&bob, "/api/v1/series").0, 200);
    let password = json!({ "password": PASSWORD });
    let begun = guarded.enter("totp", Some(&ann), &password);
    let secret = begun.body["secret"].as_str().unwrap();
    // An unconfirmed second factor does not count.
    assert_eq!(get(&ann, "/api/v1/series").0, 403);
    let code = code_of(secret, 0);
    let confirmed = guarded.enter("totp/confirm", Some(&ann), &json!({ "code": code }));
    assert_eq!(confirmed.body["totp_required"], json!(false));
    let ann = confirmed.session();
    assert_eq!(get(&ann, "/api/v1/series").0, 200);
    let removed = guarded.enter("totp/remove", Some(&ann), &password);
    assert_eq!(get(&removed.session(), "/api/v1/series").0, 403);
}
