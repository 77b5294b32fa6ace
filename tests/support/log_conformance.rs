//! The claims that every log must fulfil, whatever its medium. A crate with a log of its own
//! includes this file and calls [`check`].

use std::ops::ControlFlow;

use fastrand::Rng;
use granary::store::{LogFault, RecordLog};

/// A medium of a log, which can fail.
pub(crate) trait LogMedium {
    /// Opens the log, after a crash, too. Faults have ended.
    fn open(&mut self) -> Box<dyn RecordLog>;

    /// Makes the outcome of one of the next appends unknown, or of no append.
    fn fail(&mut self, rng: &mut Rng);

    /// Ends the process of the writer, perhaps with a loss of power.
    fn crash(&mut self, rng: &mut Rng);
}

type Records = Vec<(u64, Vec<u8>)>;

fn read(log: &mut dyn RecordLog, after: u64) -> Result<Records, LogFault> {
    let mut records = Records::new();
    log.read_after(after, &mut |number, record| {
        records.push((number, record.unwrap().to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok(records)
}

fn record(rng: &mut Rng) -> Vec<u8> {
    let length = [1, 40, 600, 9000][rng.usize(0..4)];
    (0..rng.usize(1..=length)).map(|_| rng.u8(..)).collect()
}

/// Returns a log with five records.
fn filled(medium: &mut dyn LogMedium, rng: &mut Rng) -> (Box<dyn RecordLog>, Records) {
    let mut log = medium.open();
    let records: Records = (1..=5).map(|number| (number, record(rng))).collect();
    for (number, record) in &records {
        log.append(*number, record).unwrap();
    }
    (log, records)
}

/// Checks all claims; `new` returns an empty medium.
pub(crate) fn check(seed: u64, new: &mut dyn FnMut(u64) -> Box<dyn LogMedium>) {
    let mut rng = Rng::with_seed(seed);
    reads_what_was_appended(&mut *new(seed), &mut rng);
    refuses_other_numbers(&mut *new(seed), &mut rng);
    keeps_records_after_the_cut(&mut *new(seed), &mut rng);
    survives_faults(&mut *new(seed), &mut rng);
}

fn reads_what_was_appended(medium: &mut dyn LogMedium, rng: &mut Rng) {
    assert_eq!(read(&mut *medium.open(), 0).unwrap(), []);
    let (mut log, records) = filled(medium, rng);
    for reopened in [false, true] {
        if reopened {
            drop(log);
            log = medium.open();
        }
        assert_eq!(read(&mut *log, 0).unwrap(), records);
        assert_eq!(read(&mut *log, 3).unwrap(), records[3..]);
        assert_eq!(read(&mut *log, 5).unwrap(), []);
    }
    let mut first = 0;
    let visit = &mut |number: u64, _: Option<&[u8]>| {
        first = number;
        ControlFlow::Break(())
    };
    log.read_after(1, visit).unwrap();
    assert_eq!(first, 2, "a visitor can stop the reading");
}

fn refuses_other_numbers(medium: &mut dyn LogMedium, rng: &mut Rng) {
    let (mut log, records) = filled(medium, rng);
    let mut refused = |number: u64, bytes: &[u8]| {
        let outcome = log.append(number, bytes);
        let is_refused = matches!(outcome, Err(LogFault::OutOfOrder { next: 6, .. }));
        assert!(is_refused, "record {number}: {outcome:?}");
    };
    refused(7, b"a gap");
    refused(5, b"another record");
    refused(2, b"another record");
    log.append(5, &records[4].1).unwrap();
    assert_eq!(read(&mut *log, 0).unwrap(), records, "a repeated record is stored once");
}

fn keeps_records_after_the_cut(medium: &mut dyn LogMedium, rng: &mut Rng) {
    let (mut log, records) = filled(medium, rng);
    log.cut(3).unwrap();
    log.cut(1).unwrap();
    for reopened in [false, true] {
        if reopened {
            drop(log);
            log = medium.open();
        }
        assert_eq!(read(&mut *log, 3).unwrap(), records[3..]);
        for after in 0..3 {
            match read(&mut *log, after) {
                Err(LogFault::Cut { cut }) => assert!(cut > after && cut <= 3),
                found => assert_eq!(found.unwrap(), records[after as usize..]),
            }
        }
    }
    log.cut(100).unwrap();
    log.append(6, b"next").unwrap();
    let last = read(&mut *log, 5).unwrap();
    assert_eq!(last, [(6, b"next".to_vec())]);
}

/// Appends with faults and crashes: the log contains every acknowledged record once, and a record
/// with an unknown outcome either completely or not at all.
fn survives_faults(medium: &mut dyn LogMedium, rng: &mut Rng) {
    let (mut log, mut acknowledged) = (medium.open(), Records::new());
    for _ in 0..60 {
        if rng.u8(0..4) == 0 {
            medium.fail(rng);
        }
        let next = (acknowledged.len() as u64 + 1, record(rng));
        let mut outcome = log.append(next.0, &next.1);
        while let Err(fault) = outcome {
            assert!(matches!(fault, LogFault::Unknown { .. } | LogFault::Store(_)), "{fault:?}");
            // A record that was read is durable.
            let shown = read(&mut *log, 0).map_or(0, |shown| shown.len());
            if rng.bool() {
                drop(log);
                medium.crash(rng);
                log = medium.open();
                let mut found = read(&mut *log, 0).unwrap();
                assert!(found.len() >= shown, "a record that was read is gone");
                if found.len() > acknowledged.len() {
                    assert_eq!(found.pop().unwrap(), next);
                }
                assert_eq!(found, acknowledged);
            }
            outcome = log.append(next.0, &next.1);
        }
        acknowledged.push(next);
        if rng.u8(0..8) == 0 {
            drop(log);
            medium.crash(rng);
            log = medium.open();
        }
        assert_eq!(read(&mut *log, 0).unwrap(), acknowledged);
    }
}
