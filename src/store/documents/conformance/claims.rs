//! One test for each promise of the contract.
//!
//! Must never know: which implementation is tested.

use super::{
    Bench, COARSE, FINE, HOUR, MINUTE, NOON, SUBJECTS, Subject, cell, granularities, mark,
};
use crate::{
    model::{Cell, SeriesId, Span, UnixMillis},
    store::{
        documents::{CellSink, Columns, ShellsOfSpan, Stage, mark::Mark, stored::DocumentState},
        error::StoreError,
        faulty::{Call, EIO, Effect, Fault},
        file::medium::Medium,
    },
};

pub(super) const SERIES: SeriesId = SeriesId(7);

pub(super) fn each(claim: impl Fn(Bench)) {
    for (subject, seed) in SUBJECTS.into_iter().zip(1..) {
        eprintln!("{}", subject.name);
        claim(Bench::new(subject, seed));
    }
}

#[test]
fn cells_and_mark_become_durable_together() {
    each(|mut bench| {
        let grid = bench.grid(FINE, NOON);
        assert_eq!(bench.documents.mark(&grid).unwrap(), Mark::NONE);
        assert_eq!(bench.documents.last_record().unwrap(), None);
        let cells = vec![cell(7, NOON.0, 2.0), cell(7, NOON.0 + 59 * MINUTE, 3.0)];
        bench.merge(&grid, mark(5, grid.end.0), &cells).unwrap();
        // A late cell, and the first cell of another document.
        let late = vec![cell(7, NOON.0, 10.0), cell(7, NOON.0 + 30 * MINUTE, 4.0)];
        bench.merge(&grid, mark(6, NOON.0 + HOUR), &late).unwrap();
        for _ in 0..2 {
            assert_eq!(bench.documents.mark(&grid).unwrap(), mark(6, NOON.0 + HOUR));
            let expected =
                [(NOON.0, 12.0), (NOON.0 + 30 * MINUTE, 4.0), (NOON.0 + 59 * MINUTE, 3.0)];
            assert_eq!(bench.of_partition(&grid, SERIES), expected);
            let (record, name) = bench.documents.last_record().unwrap().unwrap();
            assert_eq!((record, name), (6, bench.documents.name(&grid)));
            bench.reopen();
        }
    });
}

#[test]
fn shells_are_created_once_and_change_nothing() {
    each(|mut bench| {
        let grid = bench.grid(FINE, NOON);
        bench.merge(&grid, mark(5, grid.end.0), &vec![cell(7, NOON.0, 2.0)]).unwrap();
        let series = [SeriesId(6), SERIES, SeriesId(8)];
        let at = NOON.plus(3 * MINUTE);
        assert_eq!(bench.documents.add_shells(FINE, at, &series).unwrap(), 2);
        assert_eq!(bench.documents.add_shells(FINE, at, &series).unwrap(), 0);
        bench.reopen();
        assert_eq!(bench.documents.add_shells(FINE, at, &series).unwrap(), 0);
        assert_eq!(bench.of_partition(&grid, SERIES), [(NOON.0, 2.0)]);
        assert_eq!(bench.of_partition(&grid, SeriesId(6)), []);
        assert_eq!(bench.documents.mark(&grid).unwrap(), mark(5, grid.end.0));
        // Shells do not change the mark of a new partition.
        assert_eq!(bench.documents.count_absent(FINE, grid.end, &series).unwrap(), 3);
        assert_eq!(bench.documents.add_shells(FINE, grid.end, &series).unwrap(), 3);
        assert_eq!(bench.documents.count_absent(FINE, grid.end, &series).unwrap(), 0);
        let next = bench.grid(FINE, grid.end);
        assert_eq!(bench.documents.mark(&next).unwrap().through, 0);
        let ahead = bench.documents.shells_since(FINE, grid.id.start.plus(1)).unwrap();
        let (start, end) = (grid.end, grid.end.plus(10 * MINUTE));
        assert_eq!(ahead, [ShellsOfSpan { start, end, count: 3 }]);
    });
}

#[test]
fn shells_stay_until_their_partition_is_dropped() {
    // Series of two blocks, and the last possible series.
    let series = [3, 7, 16_384 + 9, u32::MAX].map(SeriesId);
    each(|mut bench| {
        let grid = bench.grid(FINE, NOON);
        let next = NOON.plus(10 * MINUTE);
        assert_eq!(bench.documents.add_shells(FINE, next, &series).unwrap(), 4);
        let late = vec![cell(7, next.0, 2.0), cell(7, NOON.0, 1.0), cell(9, NOON.0, 1.0)];
        bench.merge(&grid, mark(5, grid.end.0), &late).unwrap();
        for stage in [Stage::Busy, Stage::Quiet, Stage::Over] {
            bench.reopen();
            assert_eq!(bench.shells(&grid, SeriesId(3)), [next]);
            assert_eq!(bench.shells(&grid, SeriesId(u32::MAX)), [next]);
            assert_eq!(bench.shells(&grid, SeriesId(9)), []);
            let view = bench.documents.view(FINE, grid.range()).unwrap();
            let state = |id| view.stored(next, SeriesId(id)).unwrap().map(|shown| shown.state);
            assert_eq!([3, 16_384 + 9].map(state), [Some(DocumentState::Shell); 2]);
            assert!(state(7).is_some_and(|state| state != DocumentState::Shell));
            assert_eq!([4, 9, 16_384].map(state), [None; 3]);
            assert_eq!(bench.documents.add_shells(FINE, next, &series).unwrap(), 0);
            bench.documents.seal(&grid, stage, &|_| true).unwrap();
        }
        let mut blocks = Vec::new();
        let mut visit = |_, last: SeriesId, fault: Option<_>| blocks.push((last.0, fault));
        bench.documents.check_shells(grid.id, &mut visit).unwrap();
        assert_eq!(blocks, [(7, None), (16_384 + 9, None), (u32::MAX, None)]);
        bench.documents.drop_partition(grid.id).unwrap();
        assert_eq!(bench.documents.count_absent(FINE, next, &series).unwrap(), 4);
    });
}

#[test]
fn a_shell_is_not_shown_for_a_document_that_may_be_lost() {
    each(|mut bench| {
        let grid = bench.grid(FINE, NOON);
        let next = NOON.plus(10 * MINUTE);
        for start in [NOON, next] {
            bench.documents.add_shells(FINE, start, &[SERIES, SeriesId(8)]).unwrap();
        }
        bench.merge(&grid, mark(5, grid.end.0), &vec![cell(7, NOON.0, 2.0)]).unwrap();
        let damage = bench.subject.damage;
        bench.change_documents(&grid, |bytes| damage(bytes, NOON, SERIES));
        bench.slots(FINE, grid.range(), SERIES).unwrap_err();
        assert_eq!(bench.shells(&grid, SERIES), [next]);
        let late = vec![cell(7, NOON.plus(MINUTE).0, 4.0)];
        bench.merge(&grid, mark(6, grid.end.0), &late).unwrap();
        for _ in 0..2 {
            // Once the hole is stored, the documents in it are not known.
            assert_eq!(bench.shells(&grid, SeriesId(8)), [next]);
            let view = bench.documents.view(FINE, grid.range()).unwrap();
            assert_eq!(view.stored(NOON, SeriesId(8)).unwrap(), None);
            bench.reopen();
        }
    });
}

#[test]
fn a_document_is_shown_as_it_is_stored() {
    each(|bench| {
        let grid = bench.grid(FINE, NOON);
        bench.merge(&grid, mark(5, grid.end.0), &vec![cell(7, NOON.0 + MINUTE, 2.5)]).unwrap();
        bench.documents.add_shells(FINE, NOON, &[SERIES, SeriesId(8)]).unwrap();
        assert_eq!(bench.documents.count(grid.id).unwrap().unwrap_or(1), 1);
        let view = bench.documents.view(FINE, grid.range()).unwrap();
        let shown = view.stored(NOON, SERIES).unwrap().unwrap();
        assert_ne!(shown.state, DocumentState::Shell);
        let starts: Vec<_> = shown.slots.iter().map(|slot| slot.start.0).collect();
        assert_eq!(starts, (0..10).map(|slot| NOON.0 + slot * MINUTE).collect::<Vec<_>>());
        let filled: Vec<_> = shown.slots.iter().filter(|slot| !slot.cell.is_empty()).collect();
        assert_eq!((filled.len(), filled[0].start.0), (1, NOON.0 + MINUTE));
        assert_eq!(filled[0].cell, cell(7, 0, 2.5).2);
        // All shown parts are within the bytes, and no two parts overlap.
        let parts = shown.slots.iter().flat_map(|slot| &slot.parts).chain(&shown.header);
        let mut bytes: Vec<_> =
            parts.flat_map(|part| part.offset..part.offset + part.length).collect();
        let count = bytes.len();
        bytes.sort_unstable();
        bytes.dedup();
        assert_eq!(bytes.len(), count);
        assert!(bytes.last().is_none_or(|last| *last < shown.bytes.len()));
        let shell = view.stored(NOON, SeriesId(8)).unwrap().unwrap();
        assert_eq!((shell.state, shell.slots.len()), (DocumentState::Shell, 10));
        assert!(shell.slots.iter().all(|slot| slot.cell.is_empty()));
        assert_eq!(view.stored(NOON, SeriesId(9)).unwrap(), None);
        assert_eq!(view.stored(NOON.plus(10 * MINUTE), SERIES).unwrap(), None);
    });
}

#[test]
fn a_view_stays_as_it_was() {
    each(|bench| {
        let grid = bench.grid(FINE, NOON);
        bench.merge(&grid, mark(5, grid.end.0), &vec![cell(7, NOON.0, 2.0)]).unwrap();
        let view = bench.documents.view(FINE, grid.range()).unwrap();
        bench.merge(&grid, mark(6, grid.end.0), &vec![cell(7, NOON.0, 3.0)]).unwrap();
        assert!(bench.documents.drop_partition(grid.id).unwrap());
        assert!(!bench.documents.drop_partition(grid.id).unwrap());
        assert_eq!(view.marks(), [(grid.range(), mark(5, grid.end.0))]);
        let mut slots = Vec::new();
        view.slots(SERIES, Columns::ALL, &mut slots).unwrap();
        assert_eq!(slots.len(), 1);
        assert_eq!(slots[0].cell.sum.to_bits(), 2.0_f64.to_bits());
        assert_eq!(bench.of_partition(&grid, SERIES), []);
        assert_eq!(bench.documents.partitions(), []);
        assert_eq!(bench.documents.holes(FINE), []);
        // A late cell creates the partition again.
        bench.merge(&grid, mark(7, grid.end.0), &vec![cell(7, NOON.0, 4.0)]).unwrap();
        assert_eq!(bench.of_partition(&grid, SERIES), [(NOON.0, 4.0)]);
    });
}

#[test]
fn a_partition_that_could_not_be_dropped_is_still_there() {
    for call in [Call::Remove, Call::Sync] {
        each(|bench| {
            let grid = bench.grid(FINE, NOON);
            for through in 1..4 {
                let cells = vec![cell(7, NOON.0 + through as i64 * MINUTE, 2.0)];
                bench.merge(&grid, mark(through, grid.end.0), &cells).unwrap();
            }
            bench.medium.arm(Fault { call, after: 0, times: 1, effect: Effect::Error(EIO) });
            bench.documents.drop_partition(grid.id).unwrap_err();
            bench.documents.seal(&grid, Stage::Over, &|_| true).unwrap();
            assert_eq!(bench.of_partition(&grid, SERIES).len(), 3);
            assert!(bench.documents.drop_partition(grid.id).unwrap());
            assert_eq!(bench.of_partition(&grid, SERIES), []);
        });
    }
}

#[test]
fn a_merge_whose_source_fails_changes_nothing() {
    each(|bench| {
        let grid = bench.grid(COARSE, NOON);
        let (_, _, merged) = cell(7, 0, 2.0);
        let failed = bench.documents.merge(&grid, mark(5, grid.end.0), &mut |sink| {
            sink.document(grid.document_start(NOON), SERIES, &[(0, merged)])?;
            let problem = "another file".to_owned();
            Err(StoreError::Corrupt { file: "head.redb".to_owned(), problem })
        });
        assert_eq!(failed.unwrap_err().file(), "head.redb");
        assert_eq!(bench.documents.mark(&grid).unwrap().through, 0);
        assert_eq!(bench.of_partition(&grid, SERIES), []);
    });
}

#[test]
fn a_partition_keeps_its_span_when_settings_change() {
    each(|mut bench| {
        let grid = bench.grid(FINE, NOON);
        bench.merge(&grid, mark(5, grid.end.0), &vec![cell(7, NOON.0, 2.0)]).unwrap();
        let mut others = granularities();
        others[0].document = Span::Fixed(15 * MINUTE);
        others[0].partition = Span::Fixed(6 * HOUR);
        bench.reopen_with(others);
        assert_eq!(bench.grid(FINE, NOON.plus(59 * MINUTE)), grid);
        assert_eq!(bench.of_partition(&grid, SERIES), [(NOON.0, 2.0)]);
        let next = bench.grid(FINE, grid.end);
        assert_eq!((next.id.start, next.end), (grid.end, NOON.plus(6 * HOUR)));
        assert_eq!(next.document, Span::Fixed(15 * MINUTE));
        bench.merge(&next, mark(6, next.end.0), &vec![cell(7, next.id.start.0, 1.0)]).unwrap();
        let grids = bench.documents.grids(FINE, NOON.0..NOON.0 + 2 * HOUR);
        assert_eq!(grids, [grid.clone(), next.clone()]);
        bench.reopen();
        assert_eq!(bench.documents.grids(FINE, NOON.0..NOON.0 + 2 * HOUR), [grid, next]);
    });
}

#[test]
fn a_damaged_partition_is_a_hole_and_is_replaced() {
    each(|mut bench| {
        let grid = bench.grid(FINE, NOON);
        bench.merge(&grid, mark(5, grid.end.0), &vec![cell(7, NOON.0, 2.0)]).unwrap();
        bench.change_file(&grid, |bytes| bytes.fill(7));
        assert_eq!(bench.documents.mark(&grid).unwrap(), Mark::NONE);
        bench.merge(&grid, mark(5, grid.end.0), &vec![cell(7, NOON.0, 2.0)]).unwrap();
        for _ in 0..2 {
            assert_eq!(bench.documents.holes(FINE), [grid.id.start..grid.end]);
            assert_eq!(bench.of_partition(&grid, SERIES), [(NOON.0, 2.0)]);
            bench.reopen();
        }
    });
}

#[test]
fn a_lost_partition_is_a_hole() {
    each(|mut bench| {
        let grid = bench.grid(FINE, NOON);
        bench.merge(&grid, mark(5, grid.end.0), &vec![cell(7, NOON.0, 2.0)]).unwrap();
        bench.medium.remove(&bench.documents.name(&grid)).unwrap();
        bench.reopen();
        assert_eq!(bench.documents.holes(FINE), [grid.id.start..grid.end]);
        assert_eq!(bench.documents.mark(&grid).unwrap(), Mark::NONE);
        assert_eq!(bench.documents.partitions(), []);
    });
}

#[test]
fn a_damaged_document_is_an_error_once_and_then_a_hole() {
    each(|mut bench| {
        let grid = bench.grid(FINE, NOON);
        let cells = vec![cell(7, NOON.0, 2.0), cell(8, NOON.0, 3.0)];
        bench.merge(&grid, mark(5, grid.end.0), &cells).unwrap();
        let damage = bench.subject.damage;
        bench.change_documents(&grid, |bytes| damage(bytes, NOON, SERIES));
        let range = grid.range();
        let fault = bench.slots(FINE, range.clone(), SERIES).unwrap_err();
        assert!(matches!(fault, StoreError::DamagedPart { .. }), "{fault}");
        assert_eq!(bench.of_partition(&grid, SERIES), []);
        assert_eq!(bench.of_partition(&grid, SeriesId(8)), [(NOON.0, 3.0)]);
        assert_eq!(bench.documents.holes(FINE), [NOON..NOON.plus(10 * MINUTE)]);
        assert_eq!(bench.documents.damaged_documents(), 1);
        // A late cell creates a new document.
        bench.merge(&grid, mark(6, grid.end.0), &vec![cell(7, NOON.0, 4.0)]).unwrap();
        assert_eq!(bench.of_partition(&grid, SERIES), [(NOON.0, 4.0)]);
        let mut faults = 0;
        bench
            .documents
            .check(grid.id, &mut |_, _, cells| faults += u8::from(cells.is_err()))
            .unwrap();
        assert_eq!(faults, 0);
        // The hole lasts as long as the partition.
        for stage in [Stage::Quiet, Stage::Over] {
            bench.reopen();
            assert_eq!(bench.documents.holes(FINE), [NOON..NOON.plus(10 * MINUTE)]);
            bench.documents.seal(&grid, stage, &|_| true).unwrap();
            assert_eq!(bench.of_partition(&grid, SERIES), [(NOON.0, 4.0)]);
        }
        bench.documents.drop_partition(grid.id).unwrap();
        bench.reopen();
        assert_eq!(bench.documents.holes(FINE), []);
    });
}

#[test]
fn a_damaged_document_stays_a_hole_wherever_the_power_is_cut_while_it_is_replaced() {
    for subject in SUBJECTS {
        let cuts = (0..10_000).take_while(|after| {
            let mut bench = Bench::new(subject, *after);
            let grid = bench.grid(FINE, NOON);
            bench.merge(&grid, mark(5, grid.end.0), &vec![cell(7, NOON.0, 2.0)]).unwrap();
            bench.change_documents(&grid, |bytes| (subject.damage)(bytes, NOON, SERIES));
            bench.medium.arm(Fault {
                call: Call::Sync,
                after: *after,
                times: 1,
                effect: Effect::PowerCut,
            });
            let late = vec![cell(7, NOON.0, 4.0)];
            let outcome = bench.merge(&grid, mark(6, grid.end.0), &late);
            let was_cut = bench.medium.is_power_cut();
            assert!(was_cut || outcome.is_ok(), "{outcome:?}");
            bench.power_up();
            let read = bench.slots(FINE, grid.range(), SERIES);
            assert_eq!(bench.documents.holes(FINE), [NOON..NOON.plus(10 * MINUTE)], "{read:?}");
            was_cut
        });
        assert!(cuts.count() > 1, "{}", subject.name);
    }
}

#[test]
fn slots_that_were_lost_before_a_merge_are_a_hole_of_the_partition() {
    each(|mut bench| {
        let grid = bench.grid(FINE, NOON);
        let lost = NOON..NOON.plus(MINUTE);
        let merge = |sink: &mut dyn CellSink| {
            sink.lost(lost.clone());
            sink.document(NOON, SERIES, &[(1, cell(7, NOON.0, 2.0).2)])
        };
        bench.documents.merge(&grid, mark(5, grid.end.0), &mut |sink| merge(sink)).unwrap();
        for _ in 0..2 {
            assert_eq!(bench.documents.holes(FINE), std::slice::from_ref(&lost));
            bench.reopen();
        }
    });
}

/// Merges the cells that the marks do not include, as a resumed checkpoint does, and seals.
fn merge_and_seal(bench: &Bench) -> Result<(), StoreError> {
    let (grid, next) = (bench.grid(FINE, NOON), bench.grid(FINE, NOON.plus(HOUR)));
    let merge = |grid, through, at: i64| {
        if bench.documents.mark(grid)?.through < through {
            let cells = vec![cell(7, at, 1.0), cell(9, at, through as f64)];
            bench.merge(grid, mark(through, grid.end.0), &cells)?;
        }
        Ok::<_, StoreError>(())
    };
    merge(&grid, 1, NOON.0)?;
    merge(&next, 2, next.id.start.0)?;
    bench.documents.add_shells(FINE, next.id.start.plus(HOUR), &[SERIES])?;
    bench.documents.seal(&next, Stage::Over, &|_| true)?;
    merge(&next, 3, next.id.start.0)?;
    bench.documents.seal(&next, Stage::Quiet, &|_| true)?;
    Ok(())
}

/// Merges late cells repeatedly, until they form many layers.
fn pile_up(bench: &Bench) -> Result<(), StoreError> {
    let grid = bench.grid(FINE, NOON);
    for through in 1..14 {
        if bench.documents.mark(&grid)?.through < through {
            let at = NOON.0 + through as i64 % 3 * MINUTE;
            let cells = vec![cell(7, at, 1.0), cell(9, NOON.0, 2.0)];
            bench.merge(&grid, mark(through, grid.end.0), &cells)?;
        }
        if through > 9 {
            bench.documents.seal(&grid, Stage::Busy, &|_| true)?;
        }
    }
    bench.documents.seal(&grid, Stage::Quiet, &|_| true)?;
    bench.documents.seal(&grid, Stage::Over, &|_| true)?;
    Ok(())
}

#[test]
fn late_cells_count_once_wherever_the_power_is_cut_while_they_are_folded() {
    for subject in SUBJECTS {
        let cuts = (0..10_000).take_while(|after| {
            let mut bench = Bench::new(subject, *after);
            let fault =
                Fault { call: Call::Sync, after: *after, times: 1, effect: Effect::PowerCut };
            bench.medium.arm(fault);
            let outcome = pile_up(&bench);
            let was_cut = bench.medium.is_power_cut();
            assert!(was_cut || outcome.is_ok(), "{outcome:?}");
            bench.power_up();
            pile_up(&bench).unwrap();
            let grid = bench.grid(FINE, NOON);
            let minute = |minute: i64, sum| (NOON.0 + minute * MINUTE, sum);
            let expected = [minute(0, 4.0), minute(1, 5.0), minute(2, 4.0)];
            assert_eq!(bench.of_partition(&grid, SERIES), expected);
            assert_eq!(bench.of_partition(&grid, SeriesId(9)), [minute(0, 26.0)]);
            was_cut
        });
        let cuts = cuts.count();
        assert!(cuts > 20, "{}: {cuts} syncs", subject.name);
    }
}

#[test]
fn corrections_apply_to_a_cell_of_an_earlier_merge() {
    each(|mut bench| {
        let grid = bench.grid(FINE, NOON);
        bench.merge(&grid, mark(1, grid.end.0), &vec![cell(7, NOON.0, 5.0)]).unwrap();
        let correction = |value| vec![(SERIES, NOON.0, Cell::correction(value, Some(0.5)))];
        for through in 2..13 {
            let cells = correction(-0.25);
            bench.merge(&grid, mark(through, grid.end.0), &cells).unwrap();
        }
        for stage in [Stage::Busy, Stage::Quiet, Stage::Over] {
            let slots = bench.slots(FINE, grid.range(), SERIES).unwrap();
            let found = slots.iter().map(|slot| (slot.cell.n, slot.cell.sum, slot.cell.min));
            assert_eq!(found.collect::<Vec<_>>(), [(1, 2.25, 0.5)]);
            bench.documents.seal(&grid, stage, &|_| true).unwrap();
            bench.reopen();
        }
        assert_eq!(bench.of_partition(&grid, SERIES), [(NOON.0, 2.25)]);
    });
}

#[test]
fn each_merge_counts_once_when_the_power_is_cut_at_any_sync() {
    for subject in SUBJECTS {
        let cuts = (0..10_000).take_while(|after| counts_once_after_a_cut(subject, *after)).count();
        assert!(cuts > 8, "{}: {cuts} syncs", subject.name);
    }
}

/// Asserts that each merge counts once after a cut; returns whether the power was cut.
fn counts_once_after_a_cut(subject: Subject, after: u64) -> bool {
    let mut bench = Bench::new(subject, after);
    bench.medium.arm(Fault { call: Call::Sync, after, times: 1, effect: Effect::PowerCut });
    let outcome = merge_and_seal(&bench);
    let was_cut = bench.medium.is_power_cut();
    assert!(was_cut || outcome.is_ok(), "{outcome:?}");
    bench.power_up();
    merge_and_seal(&bench).unwrap();
    let next = NOON.plus(HOUR);
    let found =
        |at: UnixMillis, series| bench.of_partition(&bench.grid(FINE, at), SeriesId(series));
    assert_eq!(found(NOON, 7), [(NOON.0, 1.0)]);
    assert_eq!(found(next, 7), [(next.0, 2.0)]);
    assert_eq!(found(next, 9), [(next.0, 5.0)]);
    let shells = bench.grid(FINE, next.plus(HOUR));
    assert_eq!(bench.shells(&shells, SERIES), [shells.id.start]);
    assert_eq!(bench.documents.holes(FINE), []);
    was_cut
}
