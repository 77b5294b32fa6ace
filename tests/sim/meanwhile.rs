//! Concurrency: a role's work is held at one of its writes while senders send, queries run, series
//! change, or the process is killed.

use std::thread;

use crate::{history::History, upkeep::Upkeep};

/// Opens the gate when it is dropped: after the concurrent work has finished or failed.
struct GateOpener<'a>(&'a crate::faulty::FaultyMedium);

impl Drop for GateOpener<'_> {
    fn drop(&mut self) {
        self.0.open_gate();
    }
}

impl History {
    pub(crate) fn run_while_held(&mut self) {
        let work = match self.rng.u8(0..8) {
            7 if self.accept_erasure() => {
                self.tally.note("erasures held");
                Upkeep::Erase
            }
            6 if self.accept_replacement() => Upkeep::Erase,
            0 => self.shell_work(),
            1 => Upkeep::Drop,
            2 => Upkeep::Seal,
            _ => Upkeep::Checkpoint,
        };
        if self.open.is_none() {
            return;
        }
        let writes_max = [4, 20, 80][self.rng.usize(0..3)];
        self.medium.close_gate(self.rng.u64(0..writes_max));
        let (store, now, medium) = (self.store(), self.now(), self.medium.clone());
        let outcome = thread::scope(|scope| {
            let opener = GateOpener(&medium);
            let role = scope.spawn(|| {
                let _opener = GateOpener(&medium);
                work.run(&store, now)
            });
            if medium.wait_at_gate() {
                self.tally.note("meanwhile: held");
                self.trace(|| format!("while {work:?} is held:"));
                self.run_concurrent_work();
            }
            drop(opener);
            role.join().unwrap()
        });
        drop(store);
        match self.open {
            Some(_) => self.note_outcome(&work, outcome),
            // The process was killed during the work.
            None => self.restart(),
        }
    }

    fn run_concurrent_work(&mut self) {
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
