//! Coverage of ranges, compared with a model that checks single times.

use proptest::prelude::*;

use super::*;
use crate::test_times::{HOUR, WITHIN as NOW};

fn whole(set: &GranularitySet, now: UnixMillis) -> Coverage<'_> {
    Coverage::new(set, vec![Gaps::NONE; set.count()], now)
}

/// Returns the intervals as names and hours before `NOW`.
fn shown(coverage: &Coverage<'_>, level: usize, since: i64) -> Vec<(String, f64, f64)> {
    let range = NOW.minus(since * HOUR)..NOW;
    let ago = |at: UnixMillis| (NOW.0 - at.0) as f64 / HOUR as f64;
    let named_hours = |interval: &Interval| {
        let name = coverage.granularities()[interval.granularity].name.clone();
        (name, ago(interval.range.start).round(), ago(interval.range.end).round())
    };
    coverage.intervals(GranularityIndex(level), range).iter().map(named_hours).collect()
}

fn named(name: &str, from: i64, to: i64) -> (String, f64, f64) {
    (name.to_owned(), from as f64, to as f64)
}

#[test]
fn a_longer_retention_continues_with_the_next_coarser_level() {
    let set = GranularitySet::default();
    let mut gaps = vec![Gaps::NONE; 4];
    gaps[0].complete_since = NOW.minus(6 * HOUR - 1);
    let coverage = Coverage::new(&set, gaps, NOW);
    assert_eq!(shown(&coverage, 0, 40), [named("5m", 40, 6), named("1m", 6, 0)]);
    let range = NOW.minus(40 * HOUR)..NOW;
    let notes = coverage.notes(
        GranularityIndex(0),
        &coverage.intervals(GranularityIndex(0), range.clone()),
        &range,
    );
    assert_eq!(
        notes,
        ["1m does not have all samples before 2026-11-21T06:35:00Z: 5m is shown there"]
    );
    assert!(
        !coverage.makes_whole(GranularityIndex(0), &range)
            && coverage.makes_whole(GranularityIndex(1), &range)
    );
    assert_eq!(coverage.finest_whole(&range), Some(GranularityIndex(1)));
}

#[test]
fn a_granularity_that_no_longer_accepts_samples_answers_for_earlier_times() {
    let all = GranularitySet::default();
    let kept = [0, 2, 3].map(|index: usize| all.as_slice()[index].clone());
    let set = GranularitySet::new(kept.to_vec()).unwrap();
    let stopped = NOW.minus(4 * HOUR);
    let gaps = Gaps { complete_until: stopped, ..Gaps::NONE };
    let within = |now: UnixMillis, hours: i64| {
        let range = now.minus(hours * HOUR)..now;
        let retired = &all.as_slice()[1];
        (
            whole(&set, now).with_retired(GranularityIndex(3), retired, gaps.clone(), &range, now),
            range,
        )
    };
    let (coverage, range) = within(NOW, 100);
    assert_eq!(coverage.granularities(), &all);
    let found = shown(&coverage, 1, 100);
    assert_eq!(found, [named("5m", 100, 4), named("1m", 4, 0)]);
    let intervals = coverage.intervals(GranularityIndex(1), range.clone());
    assert_eq!(intervals.iter().map(|interval| interval.stored.0).collect::<Vec<_>>(), [3, 0]);
    let note = format!(
        "5m has accepted no samples since {stopped}: later samples are missing from its part"
    );
    assert_eq!(coverage.notes(GranularityIndex(1), &intervals, &range), [note]);
    // The retired granularity continues where the finer one is no longer kept.
    assert_eq!(shown(&coverage, 0, 100), [named("5m", 100, 49), named("1m", 49, 0)]);
    // Where the finer granularity no longer keeps the samples after the stop, the next coarser one
    // answers.
    let later = NOW.plus(100 * HOUR);
    let (coverage, range) = within(later, 200);
    let names: Vec<_> = coverage
        .intervals(GranularityIndex(1), range.clone())
        .into_iter()
        .map(|interval| interval.stored.0)
        .collect();
    assert_eq!(names, [3, 1, 0]);
    let why = coverage.why_not(GranularityIndex(1), &(NOW..NOW.plus(HOUR)));
    assert_eq!(why, format!("5m has accepted no samples since {stopped}"));
    // A retired granularity without samples in the range is not mentioned.
    assert_eq!(within(NOW, 3).0.granularities(), &set);
    assert_eq!(within(NOW.plus(15 * 24 * HOUR), 400).0.granularities(), &set);
}

#[test]
fn an_added_granularity_is_computed_from_finer_ones_where_they_exist() {
    let set = GranularitySet::default();
    let mut gaps = vec![Gaps::NONE; 4];
    gaps[2].complete_since = NOW.minus(HOUR);
    let coverage = Coverage::new(&set, gaps, NOW);
    let found = shown(&coverage, 2, 500);
    assert_eq!(found, [named("1d", 500, 349), named("5m", 349, 1), named("1h", 1, 0)]);
    let range = NOW.minus(300 * HOUR)..NOW;
    assert!(coverage.makes_whole(GranularityIndex(2), &range));
    let intervals = coverage.intervals(GranularityIndex(2), range.clone());
    assert_eq!(coverage.notes(GranularityIndex(2), &intervals, &range), Vec::<String>::new());
}

#[test]
fn the_coarsest_granularity_shows_incomplete_samples_with_a_note() {
    let set = GranularitySet::default();
    let mut gaps = vec![Gaps::NONE; 4];
    gaps[3].complete_since = NOW.minus(HOUR);
    let coverage = Coverage::new(&set, gaps, NOW);
    let range = NOW.minus(2400 * HOUR)..NOW;
    let intervals = coverage.intervals(GranularityIndex(3), range.clone());
    let kept: Vec<_> = intervals.iter().map(|interval| interval.granularity.0).collect();
    assert_eq!(kept, [3, 2]);
    let notes = coverage.notes(GranularityIndex(3), &intervals, &range);
    assert_eq!(
        notes,
        ["1d does not have all samples before 2026-09-14T00:00:00Z: samples may be missing there"]
    );
}

#[test]
fn a_hole_is_filled_from_the_coarser_level() {
    let set = GranularitySet::default();
    let mut gaps = vec![Gaps::NONE; 4];
    gaps[0].holes.push(NOW.minus(30 * HOUR)..NOW.minus(24 * HOUR));
    let coverage = Coverage::new(&set, gaps, NOW);
    assert_eq!(
        shown(&coverage, 0, 40),
        [named("1m", 40, 30), named("5m", 30, 24), named("1m", 24, 0)]
    );
    let range = NOW.minus(40 * HOUR)..NOW;
    let notes = coverage.notes(
        GranularityIndex(0),
        &coverage.intervals(GranularityIndex(0), range.clone()),
        &range,
    );
    assert!(notes[0].starts_with("documents of 1m are damaged or missing from 2026-11-20T"));
}

/// Regression: damaged or lost partitions of all granularities left a gap in the chart without a
/// note.
#[test]
fn a_hole_of_all_granularities_is_noted_wherever_it_lies() {
    let set = GranularitySet::default();
    let range = NOW.minus(40 * HOUR)..NOW;
    let check = |from: i64, until: i64| {
        let hole = NOW.minus(from * HOUR)..NOW.minus(until * HOUR);
        let gaps = Gaps { holes: vec![hole.clone()], ..Gaps::NONE };
        let coverage = Coverage::new(&set, vec![gaps; 4], NOW);
        let intervals = coverage.intervals(GranularityIndex(0), range.clone());
        let notes = coverage.notes(GranularityIndex(0), &intervals, &range);
        let from = floor(hole.start, 60_000).max(range.start);
        let until = ceil(hole.end, 60_000).min(range.end);
        let why = format!("documents of 1m are damaged or missing from {from} to {until}");
        assert_eq!(notes, [format!("{why}: nothing is shown there")]);
    };
    check(30, 24);
    check(44, 38);
    check(3, 0);
}

/// Regression: the note claimed that the coarsest granularity was shown in the hole, although it
/// had the same hole.
#[test]
fn a_coarser_granularity_with_the_same_hole_is_no_answer() {
    let all = GranularitySet::default();
    let set = GranularitySet::new(all.as_slice()[..2].to_vec()).unwrap();
    let range = NOW.minus(40 * HOUR)..NOW;
    let hole = floor(NOW.minus(30 * HOUR), HOUR)..floor(NOW.minus(24 * HOUR), HOUR);
    let gaps = Gaps { holes: vec![hole.clone()], ..Gaps::NONE };
    let coverage = Coverage::new(&set, vec![gaps; 2], NOW);
    let intervals = coverage.intervals(GranularityIndex(0), range.clone());
    let why = |name| {
        format!("documents of {name} are damaged or missing from {} to {}", hole.start, hole.end)
    };
    assert_eq!(
        coverage.notes(GranularityIndex(0), &intervals, &range),
        [
            format!("{}: 5m is shown there", why("1m")),
            format!("{}: samples may be missing there", why("5m")),
        ]
    );
}

/// Generates the gaps of a granularity: optionally a time since which it is complete, and a hole.
fn gaps() -> impl Strategy<Value = Gaps> {
    let days = |most: i64| 0..most * 24 * 60;
    let hole = (days(70), 0..3000_i64).prop_map(|(at, length)| {
        let start = NOW.minus(at * 60_000);
        start..start.plus(length * 60_000)
    });
    let since = prop::option::of(days(70));
    (since, prop::collection::vec(hole, 0..2)).prop_map(|(since, holes)| Gaps {
        complete_since: since.map_or(Gaps::NONE.complete_since, |at| NOW.minus(at * 60_000 + 7)),
        holes,
        ..Gaps::NONE
    })
}

proptest! {
    #[test]
    fn segments_join_without_gap_or_overlap(
        now in 1_700_000_000_000..1_900_000_000_000_i64,
        back in 0..170_000_000_000_i64,
        span in 1..170_000_000_000_i64,
        level in 0..4_usize,
    ) {
        let set = GranularitySet::default();
        let now = UnixMillis(now);
        let range = now.minus(back + span)..now.minus(back);
        let coverage = whole(&set, now);
        let cut = coverage.intervals(GranularityIndex(level), range.clone());
        for pair in cut.windows(2) {
            prop_assert_eq!(pair[0].range.end, pair[1].range.start);
            prop_assert!(pair[0].granularity > pair[1].granularity);
            // The border is a border of slots of the coarser granularity.
            let coarser = &set[pair[0].granularity];
            prop_assert_eq!(coarser.slot_start(pair[0].range.end), pair[0].range.end);
        }
        for interval in &cut {
            prop_assert!(set[interval.granularity].keeps(interval.range.start, now));
            prop_assert!(interval.granularity.0 >= level);
        }
        if let Some(last) = cut.last() {
            prop_assert_eq!(last.range.end, range.end);
        }
        let fine = coverage.with_fine_end(cut.clone());
        let first = |intervals: &[Interval]| intervals.first().map(|interval| interval.range.start);
        let last = |intervals: &[Interval]| intervals.last().map(|interval| interval.range.end);
        prop_assert_eq!((first(&fine), last(&fine)), (first(&cut), last(&cut)));
        for pair in fine.windows(2) {
            prop_assert_eq!(pair[0].range.end, pair[1].range.start);
            prop_assert!(pair[0].granularity > pair[1].granularity);
            let coarser = &set[pair[0].granularity];
            prop_assert_eq!(coarser.slot_start(pair[0].range.end), pair[0].range.end);
            prop_assert!(set[pair[1].granularity].keeps(pair[1].range.start, now));
        }
        if let Some(last) = fine.last().filter(|last| last.granularity > GranularityIndex::FINEST) {
            let finer = &set[last.granularity.finer().unwrap()];
            let border = set[last.granularity].slot_start(last.range.end);
            prop_assert!(!finer.keeps(border.max(last.range.start), now));
        }
    }

    #[test]
    fn every_time_is_answered_once_by_a_granularity_that_has_it(
        all_gaps in prop::collection::vec(gaps(), 4),
        from in 0..80 * 24 * 60_i64,
        length in 1..40 * 24 * 60_i64,
        level in 0..4_usize,
        probe in 0.0..1.0_f64,
    ) {
        let set = GranularitySet::default();
        let coverage = Coverage::new(&set, all_gaps.clone(), NOW);
        let start = NOW.minus(from * 60_000);
        let range = start..start.plus(length * 60_000);
        let cut = coverage.intervals(GranularityIndex(level), range.clone());
        for pair in cut.windows(2) {
            prop_assert!(pair[0].range.end <= pair[1].range.start);
            // No slot is cut, so no sample is counted twice.
            let wider = &set[pair[0].granularity.max(pair[1].granularity)];
            if pair[0].range.end == pair[1].range.start {
                prop_assert_eq!(wider.slot_start(pair[0].range.end), pair[0].range.end);
            }
        }
        let holds = |index: usize, at: UnixMillis| {
            let (granularity, gaps) = (&set.as_slice()[index], &all_gaps[index]);
            let slot = granularity.slot_start(at);
            let end = slot.plus(granularity.width_ms);
            granularity.keeps(slot, NOW)
                && slot >= gaps.complete_since
                && gaps.holes.iter().all(|hole| end <= hole.start || hole.end <= slot)
        };
        let at = range.start.plus((probe * (length * 60_000 - 1) as f64) as i64);
        let answers: Vec<_> = cut.iter().filter(|interval| interval.range.contains(&at)).collect();
        prop_assert!(answers.len() <= 1);
        let any_holds = (0..4).any(|level| holds(level, at));
        match answers.first() {
            Some(interval) => {
                let is_coarsest = interval.granularity.0 == 3;
                let is_answer = holds(interval.granularity.0, at) || (!any_holds && is_coarsest);
                prop_assert!(is_answer, "{interval:?}");
                // A level is skipped only next to samples that a coarser slot shows.
                prop_assert!(!holds(level, at) || interval.granularity.0 >= level, "{interval:?}");
            }
            None => prop_assert!(!any_holds),
        }
    }
}
