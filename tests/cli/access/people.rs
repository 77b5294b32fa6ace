//! Users of the real daemon: login, profile, roles and the commands.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    process::{Output, Stdio},
    time::Duration,
};

use granary::{clock::Stopwatch, model::UnixMillis};
use serde_json::{Value, json};

use super::Guarded;
use crate::daemon::{client, granary};

pub(super) const PASSWORD: &str = "correct horse battery";

/// The cookie of a login, and the text that requests for changes must repeat.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) cookie: String,
    pub(super) csrf: String,
}

/// The answer to a login or to a change that begins another session.
pub(super) struct Entered {
    pub(super) status: u16,
    pub(super) body: Value,
    pub(super) set_cookie: Option<String>,
}

impl Entered {
    pub(super) fn session(&self) -> Session {
        assert!([200, 201].contains(&self.status), "{}", self.body);
        let cookie = self.set_cookie.as_ref().unwrap().split(';').next().unwrap().to_owned();
        Session { cookie, csrf: self.body["csrf"].as_str().unwrap().to_owned() }
    }
}

impl Guarded {
    /// Makes a user through the API.
    pub(super) fn user(&self, name: &str, roles: &Value) {
        let body = json!({ "name": name, "password": PASSWORD, "roles": roles }).to_string();
        let (status, made) = self.send("POST", "/api/v1/access/users", &self.admin, &body);
        assert_eq!(status, 201, "{made}");
    }

    /// Posts a body, perhaps with a session.
    pub(super) fn enter(&self, path: &str, session: Option<&Session>, body: &Value) -> Entered {
        let request = client().post(format!("{}/api/v1/access/{path}", self.daemon.url));
        let request = request.header("Content-Type", "application/json");
        let request = match session {
            None => request,
            Some(Session { cookie, csrf }) => {
                request.header("Cookie", cookie).header("X-Granary-CSRF", csrf)
            }
        };
        let mut response = request.send(body.to_string()).unwrap();
        let set_cookie = response.headers().get("set-cookie");
        let set_cookie = set_cookie.map(|value| value.to_str().unwrap().to_owned());
        let text = response.body_mut().read_to_string().unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Entered { status: response.status().as_u16(), body, set_cookie }
    }

    pub(super) fn log_in(&self, user: &str) -> Session {
        self.enter("login", None, &json!({ "user": user, "password": PASSWORD })).session()
    }

    /// Sends a request with a session; returns status and body.
    pub(super) fn with_session(
        &self,
        session: &Session,
        method: &str,
        path: &str,
        body: &str,
    ) -> (u16, Value) {
        let headers = [("Cookie", &*session.cookie), ("X-Granary-CSRF", &*session.csrf)];
        self.send_with(method, path, &headers, body)
    }

    /// Runs `granary` with the administrator's key and a text on standard input.
    fn run_with_input(&self, words: &[&str], input: &str) -> Output {
        let mut child = granary()
            .args(words)
            .env("GRANARY_URL", &self.daemon.url)
            .env("GRANARY_KEY", &self.admin)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }
}

#[test]
fn a_login_gives_a_cookie_with_which_the_page_reads_and_changes() {
    let mut guarded = Guarded::start();
    guarded.user("ann", &json!({ "default": "editor" }));
    let entered = guarded.enter("login", None, &json!({ "user": "Ann", "password": PASSWORD }));
    let set_cookie = entered.set_cookie.clone().unwrap();
    assert!(set_cookie.starts_with("granary="), "{set_cookie}");
    assert!(
        set_cookie.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax"),
        "{set_cookie}"
    );
    let me = &entered.body;
    assert_eq!((&me["kind"], &me["name"]), (&json!("user"), &json!("ann")));
    assert_eq!(
        (&me["roles"], &me["scopes"]),
        (&json!({ "default": "editor" }), &json!(["objects"]))
    );
    let session = entered.session();
    let get = |guarded: &Guarded, path: &str| guarded.with_session(&session, "GET", path, "");
    assert_eq!(get(&guarded, "/api/v1/access/me"), (200, me.clone()));
    assert_eq!(get(&guarded, "/api/v1/series").0, 200);
    assert_eq!(get(&guarded, "/api/v1/access/users").0, 403);
    let annotation = json!({ "text": "deploy" }).to_string();
    let (status, made) = guarded.with_session(&session, "POST", "/api/v1/annotations", &annotation);
    assert!([200, 201].contains(&status), "{made}");
    let (_, me) = guarded.send("GET", "/api/v1/access/me", &guarded.admin, "");
    assert_eq!((&me["kind"], &me["name"]), (&json!("key"), &json!("first-key")));
    // Sessions survive a restart.
    guarded.daemon.stop();
    guarded.daemon.restart();
    assert_eq!(get(&guarded, "/api/v1/access/me").0, 200);
    let left = guarded.enter("logout", Some(&session), &json!({}));
    assert_eq!((left.status, left.set_cookie.unwrap().contains("Max-Age=0")), (204, true));
    let (status, answer) = get(&guarded, "/api/v1/access/me");
    assert_eq!((status, &answer["error"]), (401, &json!("no_session")));
    let (status, answer) = guarded.send_with("GET", "/api/v1/access/me", &[], "");
    assert_eq!((status, &answer["error"]), (401, &json!("no_key")));
}

#[test]
fn a_user_changes_the_password_and_sets_up_a_second_factor() {
    let guarded = Guarded::start();
    guarded.user("ann", &json!({ "default": "viewer" }));
    let (mut session, other) = (guarded.log_in("ann"), guarded.log_in("ann"));
    let change = |session: &Session, old: &str, new: &str| {
        let body = json!({ "password": old, "new_password": new });
        guarded.enter("password", Some(session), &body)
    };
    assert_eq!(change(&session, "wrong horse battery", "another battery staple").status, 403);
    assert_eq!(change(&session, PASSWORD, "short").status, 400);
    let changed = change(&session, PASSWORD, "another battery staple");
    let renewed = changed.session();
    assert_ne!(renewed.cookie, session.cookie);
    for ended in [&session, &other] {
        assert_eq!(guarded.with_session(ended, "GET", "/api/v1/access/me", "").0, 401);
    }
    session = renewed;
    let password = json!({ "password": "another battery staple" });
    let begun = guarded.enter("totp", Some(&session), &password);
    assert_eq!(begun.status, 200, "{}", begun.body);
    let secret = begun.body["secret"].as_str().unwrap();
    assert!(begun.body["uri"].as_str().unwrap().contains(secret));
    let code = |seconds: i64| code_of(secret, seconds);
    let confirm = |session: &Session, code: &str| {
        guarded.enter("totp/confirm", Some(session), &json!({ "code": code }))
    };
    assert_eq!(confirm(&session, "12345").status, 403);
    // The code of the previous step, so that the present one can log in. It is refused when a step
    // begins before the request arrives.
    let mut confirmed = (0..2).map(|_| confirm(&session, &code(-30)));
    let confirmed = confirmed.find(|answer| answer.status == 200).unwrap();
    assert_eq!(confirmed.body["totp"], json!(true));
    session = confirmed.session();
    let login = |code: Option<&str>| {
        let mut body = json!({ "user": "ann", "password": "another battery staple" });
        if let Some(code) = code {
            body["code"] = json!(code);
        }
        let entered = guarded.enter("login", None, &body);
        (entered.status, entered.body["error"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(login(None), (401, "code_required".to_owned()));
    let present = code(0);
    assert_eq!(login(Some(&present)), (200, String::new()));
    assert_eq!(login(Some(&present)), (401, "wrong_login".to_owned()), "used twice");
    let removed = guarded.enter("totp/remove", Some(&session), &password);
    assert_eq!(removed.body["totp"], json!(false), "{}", removed.body);
    assert_eq!(login(None).0, 200);
    let log = guarded.daemon.log();
    assert!(!log.contains(secret) && !log.contains("battery"), "{log}");
}

/// Returns the code of a secret in base32, computed by an independent implementation.
pub(super) fn code_of(secret: &str, seconds: i64) -> String {
    let program = "import base64, hmac, struct, sys, time\n\
        step = int(time.time() + int(sys.argv[2])) // 30\n\
        digest = hmac.new(base64.b32decode(sys.argv[1]), struct.pack('>Q', step), 'sha1').digest()\n\
        start = digest[-1] & 15\n\
        number = struct.unpack('>I', digest[start:start + 4])[0] & 0x7fffffff\n\
        print(f'{number % 10**6:06}')";
    let mut command = std::process::Command::new("python3");
    let output = command.args(["-c", program, secret, &seconds.to_string()]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn commands_make_list_change_and_remove_users() {
    let guarded = Guarded::start();
    let run = |words: &[&str], input: &str| {
        let words = [&["user"], words].concat();
        let output = guarded.run_with_input(&words, input);
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let password = format!("{PASSWORD}\n");
    let (is_made, text) = run(&["add", "ann", "--role", "editor"], &password);
    assert!(is_made && text == "made the user ann\n", "{text}");
    let (is_made, text) = run(&["add", "root", "--role", "admin", "--project", "*"], &password);
    assert!(is_made, "{text}");
    for (words, input, part) in [
        (&["add", "ann", "--role", "viewer"][..], &*password, "a user \"ann\" exists"),
        (&["add", "bob", "--role", "viewer"], "short\n", "use 12 characters"),
        (&["add", "bob", "--role", "viewer"], "", "there is no password"),
        (&["add", "Bob", "--role", "viewer"], &password, "a-z, 0-9"),
        (&["add", "bob", "--role", "owner"], &password, "is not a role"),
        (&["passwd", "nobody"], &password, "there is no user \"nobody\""),
        (&["role", "ann", "owner"], "", "is not a role; use viewer, editor, admin, or none"),
    ] {
        let (is_done, text) = run(words, input);
        assert!(!is_done && text.contains(part) && !text.contains("battery"), "{words:?}: {text}");
    }
    let session = guarded.log_in("ann");
    let (_, text) = run(&["list"], "");
    let row = text.lines().find(|line| line.contains("ann")).unwrap();
    assert!(row.contains("editor of default") && row.contains("first-key"), "{text}");
    assert!(text.contains("admin of all projects") && text.ends_with("2 users\n"), "{text}");
    assert!(run(&["role", "ann", "viewer"], "").0);
    let me = || guarded.with_session(&session, "GET", "/api/v1/access/me", "").0;
    assert_eq!(me(), 401, "the session ended");
    assert!(run(&["passwd", "ann"], "another battery staple").0);
    let login = |password: &str| {
        let body = json!({ "user": "ann", "password": password });
        guarded.enter("login", None, &body).status
    };
    assert_eq!((login(PASSWORD), login("another battery staple")), (401, 200));
    assert!(run(&["disable", "ann"], "").0);
    assert_eq!(login("another battery staple"), 401);
    assert!(run(&["enable", "ann"], "").0);
    assert_eq!(login("another battery staple"), 200);
    assert_eq!(run(&["remove", "ann", "root"], ""), (true, "removed 2 users\n".to_owned()));
    assert_eq!(login("another battery staple"), 401);
}

#[test]
fn a_disabled_user_loses_tails_and_requests_at_once() {
    let guarded = Guarded::start();
    guarded.user("ann", &json!({ "*": "admin" }));
    let session = guarded.log_in("ann");
    let sample = json!({ "samples": [{ "metric": "load", "value": 1 }] }).to_string();
    assert_eq!(guarded.with_session(&session, "POST", "/api/v1/ingest", &sample).0, 200);
    let response = client()
        .get(format!("{}/api/v1/tail?metric=load", guarded.daemon.url))
        .header("Cookie", &session.cookie)
        .call()
        .unwrap();
    assert_eq!(response.status(), 200);
    let mut lines = BufReader::new(response.into_body().into_reader()).lines();
    assert!(lines.next().unwrap().is_ok());
    let watch = Stopwatch::start();
    let body = json!({ "disabled": true }).to_string();
    let path = "/api/v1/access/users/ann";
    assert_eq!(guarded.send("POST", path, &guarded.admin, &body).0, 200);
    assert_eq!(guarded.with_session(&session, "GET", "/api/v1/series", "").0, 401);
    while lines.next().is_some_and(|line| line.is_ok()) {}
    // The tail checks its session once a second; the change also takes time.
    assert!(watch.elapsed() < Duration::from_secs(4), "{:?}", watch.elapsed());
}

#[test]
fn the_link_of_a_new_directory_makes_one_administrator_once() {
    let mut guarded = Guarded::start();
    let path = guarded.daemon.data("first-admin");
    let link = std::fs::read_to_string(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (page, code) = link.trim().split_once("/login#code=").unwrap();
    assert!(page.starts_with("http://") && code.starts_with("grc_"), "{page}");
    assert!(!guarded.daemon.log().contains(code));
    let accept = |guarded: &Guarded, code: &str, user: &str, password: &str| {
        let body = json!({ "code": code, "user": user, "password": password });
        guarded.enter("accept", None, &body)
    };
    guarded.user("ann", &json!({ "default": "viewer" }));
    let cut = code.split_at(code.len() - 1).0;
    for (code, user, password, status) in [
        (cut, "root", PASSWORD, 401),
        (&*guarded.admin, "root", PASSWORD, 401),
        (code, "root", "short", 400),
        (code, "R o", PASSWORD, 400),
        // A request with an existing name does not use up the code.
        (code, "ann", PASSWORD, 400),
    ] {
        let refused = accept(&guarded, code, user, password);
        assert_eq!(refused.status, status, "{user}: {}", refused.body);
    }
    let entered = accept(&guarded, code, "Root", PASSWORD);
    assert_eq!((entered.status, &entered.body["roles"]), (201, &json!({ "*": "admin" })));
    let session = entered.session();
    assert_eq!(guarded.with_session(&session, "GET", "/api/v1/status", "").0, 200);
    let again = accept(&guarded, code, "eve", PASSWORD);
    assert_eq!((again.status, &again.body["error"]), (401, &json!("wrong_code")));
    guarded.daemon.stop();
    guarded.daemon.restart();
    assert!(!path.exists() && !guarded.daemon.data("first-key").exists());
    assert_eq!(guarded.with_session(&session, "GET", "/api/v1/access/me", "").0, 200);
}

#[test]
fn the_first_key_ends_when_a_user_administers_all_projects() {
    let mut guarded = Guarded::start();
    let first = guarded.admin.clone();
    guarded.user("root", &json!({ "*": "admin" }));
    guarded.daemon.stop();
    guarded.daemon.restart();
    assert_eq!(guarded.send("GET", "/api/v1/access/me", &first, "").0, 401);
    assert!(!guarded.daemon.data("first-key").exists());
    let session = guarded.log_in("root");
    let body = json!({ "name": "next", "scopes": ["admin", "operate"] }).to_string();
    let (status, made) = guarded.with_session(&session, "POST", "/api/v1/access/keys", &body);
    assert_eq!((status, &made["key"]["created_by"]), (201, &json!("root")), "{made}");
    guarded.user_limits(&session);
}

impl Guarded {
    /// Checks that the administrator of one project can make neither keys nor users with more
    /// rights.
    fn user_limits(&self, root: &Session) {
        let send = |session: &Session, path: &str, body: &Value| {
            let path = format!("/api/v1/access/{path}");
            self.with_session(session, "POST", &path, &body.to_string()).0
        };
        let new = |name: &str, roles: Value| json!({ "name": name, "password": PASSWORD, "roles": roles });
        assert_eq!(send(root, "users", &new("ann", json!({ "default": "admin" }))), 201);
        let ann = self.log_in("ann");
        assert_eq!(send(&ann, "users", &new("eve", json!({ "default": "viewer" }))), 201);
        assert_eq!(send(&ann, "users", &new("max", json!({ "*": "viewer" }))), 403);
        assert_eq!(send(&ann, "users/root", &json!({ "disabled": true })), 403);
        assert_eq!(send(&ann, "users/eve", &json!({ "roles": { "*": "admin" } })), 403);
        assert_eq!(send(&ann, "keys", &json!({ "name": "a", "scopes": ["operate"] })), 403);
        assert_eq!(send(&ann, "keys", &json!({ "name": "a", "scopes": ["read"] })), 201);
        let now = UnixMillis(jiff::Timestamp::now().as_millisecond());
        let (_, listed) = self.with_session(&ann, "GET", "/api/v1/access/users", "");
        let names: Vec<_> =
            listed["users"].as_array().unwrap().iter().map(|user| user["name"].clone()).collect();
        assert_eq!(names, [json!("ann"), json!("eve")]);
        let login = listed["users"][0]["last_login"].as_i64().unwrap();
        assert!((0..60_000).contains(&(now.0 - login)), "{listed}");
    }
}
