//! The logs of this crate fulfil the claims of every log: the files of the journal, and the log in
//! memory that the simulation of replicas uses.

use std::sync::Arc;

use fastrand::Rng;
use granary::store::{FileLog, Medium, RecordLog};

use crate::{
    faulty::{Call, EIO, Effect, Fault, FaultyMedium},
    log_conformance::{LogMedium, check},
    memory_log::{Fate, MemoryLog},
};

const SEEDS: u64 = 40;

/// Files on a medium whose calls fail and whose power is cut.
struct Files(FaultyMedium);

impl LogMedium for Files {
    fn open(&mut self) -> Box<dyn RecordLog> {
        let medium: Arc<dyn Medium> = Arc::new(self.0.clone());
        let mut log = FileLog::open(&medium).unwrap();
        // Each file has a few records.
        log.set_file_bytes(700);
        Box::new(log)
    }

    fn fail(&mut self, rng: &mut Rng) {
        let call = [Call::Sync, Call::Write, Call::Rename][rng.usize(0..3)];
        let effect = if rng.bool() { Effect::PowerCut } else { Effect::Error(EIO) };
        self.0.arm(Fault { call, after: rng.u64(0..4), times: 1, effect });
    }

    fn crash(&mut self, rng: &mut Rng) {
        if self.0.is_power_cut() || rng.bool() {
            self.0.power_up();
        } else {
            self.0.kill();
        }
        self.0.lift();
    }
}

/// A log in memory with lost answers.
struct Memory(MemoryLog);

impl LogMedium for Memory {
    fn open(&mut self) -> Box<dyn RecordLog> {
        Box::new(self.0.clone())
    }

    fn fail(&mut self, rng: &mut Rng) {
        self.0.set_fate([Fate::AnswerLost, Fate::RecordLost][rng.usize(0..2)]);
    }

    fn crash(&mut self, _: &mut Rng) {
        self.0.set_fate(Fate::Known);
    }
}

#[test]
fn the_files_of_the_journal_are_a_log() {
    for seed in 0..SEEDS {
        check(seed, &mut |seed| Box::new(Files(FaultyMedium::new(seed))));
    }
}

#[test]
fn the_log_in_memory_is_a_log() {
    for seed in 0..SEEDS {
        check(seed, &mut |_| Box::new(Memory(MemoryLog::default())));
    }
}
