//! Concurrency: a role's work is held at one of its writes while senders send, queries run, series
//! change, or the process is killed.

use std::thread;

use crate::{history::History, upkeep::Upkeep};

/// Releases the held thread when the concurrent work is done or has failed.
struct Opener<'a>(&'a crate::faulty::FaultyMedium);

impl Drop for Opener<'_> {
    fn drop(&mut self) {
        self.0.open_gate();
    }
}

impl History {
    pub(crate) fn meanwhile(&mut self) {
        let work = match self.rng.u8(0..8) {
            7 if self.accept_erasure() => {
                self.tally.note("erasures held");
                Upkeep::Erase
            }
            0 => self.shells(),
            1 => Upkeep::Drop,
            2 => Upkeep::Seal,
            _ => Upkeep::Checkpoint,
        };
        if self.open.is_none() {
            return;
        }
        let most = [4, 20, 80][self.rng.usize(0..3)];
        self.medium.close_gate(self.rng.u64(0..most));
        let (store, now, medium) = (self.store(), self.now(), self.medium.clone());
        let outcome = thread::scope(|scope| {
            let opener = Opener(&medium);
            let role = scope.spawn(|| {
                let _opener = Opener(&medium);
                work.run(&store, now)
            });
            if medium.wait_at_gate() {
                self.tally.note("meanwhile: held");
                self.trace(|| format!("while {work:?} is held:"));
                self.do_meanwhile();
            }
            drop(opener);
            role.join().unwrap()
        });
        drop(store);
        match self.open {
            Some(_) => self.finished(&work, outcome),
            // The process was killed during its work.
            None => self.restart(),
        }
    }

    fn do_meanwhile(&mut self) {
        for _ in 0..self.rng.u32(1..4) {
            match self.rng.u8(0..10) {
                0..3 => {
                    self.tally.note("meanwhile: sends");
                    self.send_new();
                }
                3..5 => self.resend(),
                5 => self.change_series(),
                6 => self.drop_expired(),
                7 => {
                    self.tally.note("meanwhile: kills");
                    self.medium.kill();
                    self.open = None;
                    return;
                }
                _ => {
                    self.tally.note("meanwhile: checks");
                    self.compare_part();
                }
            }
        }
    }
}
