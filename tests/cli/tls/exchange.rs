//! Certificates that are replaced while clients send.

use std::{
    collections::BTreeSet,
    fs,
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use serde_json::json;

use super::TlsDaemon;

impl TlsDaemon {
    /// Reloads with SIGHUP, and waits until the reload is over.
    pub(super) fn reload(&self) {
        let done = || {
            let count = |text: &str| self.daemon.log().matches(text).count();
            count("reloaded the settings") + count("the reload failed")
        };
        let before = done();
        let pid = self.daemon.pid().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
        self.wait_until("no reload", || done() > before);
    }

    /// Replaces a file as certbot does, in one step.
    fn install(&self, from: &str, to: &str) {
        let folder = self.folder();
        fs::copy(folder.join(from), folder.join("new")).unwrap();
        fs::rename(folder.join("new"), folder.join(to)).unwrap();
    }
}

#[test]
fn certificates_are_exchanged_under_load_without_a_failed_request() {
    let served = TlsDaemon::start("");
    let (stop, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    let names: Vec<_> = (0..10).map(|number| format!("c{number}")).collect();
    for name in &names {
        served.authority.sign(name);
    }
    let mut serials = BTreeSet::from([served.serial()]);
    thread::scope(|scope| {
        // New connections, one for each request.
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                super::run(&mut served.curl("/healthz"));
                sent.fetch_add(1, Ordering::Relaxed);
            }
        });
        // Kept connections of two clients.
        for client in 0..2 {
            let (served, stop, sent) = (&served, &stop, &sent);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let tags = json!({ "client": client.to_string() });
                    served.daemon.accept(&json!([{ "metric": "m", "tags": tags, "value": 1.0 }]));
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for name in &names {
            served.install(&format!("{name}.pem"), "server.pem");
            served.install(&format!("{name}.key"), "server.key");
            served.reload();
            serials.insert(served.serial());
            let before = sent.load(Ordering::Relaxed);
            served.wait_until("no requests", || sent.load(Ordering::Relaxed) > before + 10);
        }
        stop.store(true, Ordering::Relaxed);
    });
    // A failed request ends its thread with a panic, and therefore this test.
    assert!(sent.load(Ordering::Relaxed) > 100);
    assert_eq!(serials.len(), 11, "{serials:?}");
    assert_eq!(served.metric("granary_tls_reload_failures_total"), 0.0);
}

#[test]
fn a_half_replaced_pair_keeps_the_previous_certificate_until_the_key_follows() {
    let served = TlsDaemon::start("");
    served.authority.sign("next");
    let before = served.serial();
    // The daemon notices the files without a reload.
    served.install("next.pem", "server.pem");
    served.wait_until("not noticed", || served.metric("granary_tls_reload_failures_total") >= 1.0);
    assert_eq!(served.serial(), before);
    let readyz = served.readyz();
    for part in ["degraded", "the previous certificate stays", "server.key", "is not the key"] {
        assert!(readyz.contains(part), "{part} in {readyz}");
    }
    assert!(served.daemon.log().contains("cannot use the changed TLS files"));
    // A reload reports the fault and changes nothing.
    served.reload();
    assert!(served.daemon.log().contains("the reload failed"), "{}", served.daemon.log());
    assert_eq!(served.serial(), before);
    assert_eq!(served.metric("granary_tls_reload_failures_total"), 1.0);
    served.install("next.key", "server.key");
    served.wait_until("not exchanged", || served.serial() != before);
    assert!(!served.readyz().contains("certificate"), "{}", served.readyz());
}
