//! Tests of capacity plans.

use super::*;
use crate::model::KeySelector;

const BOUNDS: PlanBounds = PlanBounds {
    checkpoint_interval_ms: 600_000,
    cell_bytes_max: 32 << 20,
    cache_bytes_max: 64 << 20,
};

fn plan(hosts: u64, interval_ms: i64, age_ms: Option<i64>) -> Plan {
    let fleet = Fleet { hosts, metrics: 100, interval_ms };
    Plan::new(&fleet, (&GranularitySet::default(), &[]), &BOUNDS, age_ms)
}

#[test]
fn the_retention_and_one_partition_are_kept() {
    let full = plan(10, 60_000, None);
    let slots: Vec<_> = full.granularities.iter().map(|granularity| granularity.slots).collect();
    assert_eq!(slots, [54 * 60, 15 * 288, 70 * 24, 6 * 366]);
    // Twice the series need twice the documents; a younger run has fewer.
    let bytes =
        |plan: &Plan| plan.granularities.iter().map(|granularity| granularity.bytes).sum::<u64>();
    let files = 9 + 15 + 10 + 6;
    let files = files * PARTITION_BYTES as u64;
    assert!((bytes(&plan(20, 60_000, None)) + files).abs_diff(2 * bytes(&full)) < 8);
    let day = plan(10, 60_000, Some(86_400_000));
    // The documents of the last hour are not written yet.
    assert_eq!(day.granularities[0].slots, 23 * 60);
    // Documents of a day are written when the day is over; until then their cells are in the
    // head.
    let hours = |count: i64| plan(10, 60_000, Some(count * 3_600_000));
    assert_eq!([3, 5].map(|count| hours(count).granularities[1].slots), [0, 48]);
    assert!(hours(5).head > hours(1).head && hours(5).head <= full.head);
    assert!(day.disk() < full.disk() && full.disk() < full.disk_at_most());
}

#[test]
fn the_series_of_a_rule_are_planned_at_its_levels() {
    let set = GranularitySet::default();
    let given = [("1m".to_owned(), None), ("5m".to_owned(), Some("2d".parse().unwrap()))];
    let selector = KeySelector::new(Vec::new()).unwrap();
    let rule = RetentionRule::new("debug", selector, &given, &set).unwrap();
    let fleet = Fleet { hosts: 10, metrics: 100, interval_ms: 60_000 };
    let plan = |series| Plan::new(&fleet, (&set, &[(rule.clone(), series)]), &BOUNDS, None);
    let (without, half, all) = (plan(0), plan(500), plan(1000));
    let names: Vec<_> = half.granularities.iter().map(|level| level.name.clone()).collect();
    assert_eq!(names, ["1m", "5m", "1h", "1d", "5m@debug", "1h@debug", "1d@debug"]);
    assert_eq!(half.granularities[4].slots, 3 * 288);
    assert!(without.granularities[4..].iter().all(|level| level.bytes == 0));
    assert_eq!(without.disk(), super::tests::plan(10, 60_000, None).disk());
    // Fewer than 512 documents stay open and reserve a page each, so the reserve is left out.
    let disk = |plan: &Plan| plan.disk() - plan.reserve;
    assert!(disk(&without) > disk(&half) && disk(&half) > disk(&all));
    assert!(without.written_per_second > all.written_per_second);
    let documents = |plan: &Plan, level: usize| plan.granularities[level].bytes;
    assert!(documents(&half, 5) < documents(&all, 5));
    assert_eq!(documents(&half, 2), documents(&half, 5));
}

#[test]
fn the_reserve_has_the_next_documents_of_each_granularity_and_a_file_of_the_log() {
    let plan = self::plan(500, 60_000, None);
    let turns: u64 = plan.granularities.iter().map(|granularity| granularity.turn_bytes).sum();
    let documents = plan.reserve - SPARE_LOG_BYTES;
    assert!(documents.abs_diff(turns + turns / 10) < 1000, "{documents} {turns}");
    assert!(plan.reserve_at_most > 2 * plan.reserve);
    assert_eq!(plan.disk(), plan.documents() + plan.rest() + plan.reserve);
    // The series of a rule need the space of its levels.
    let set = GranularitySet::default();
    let given = [("1m".to_owned(), None), ("5m".to_owned(), None)];
    let selector = KeySelector::new(Vec::new()).unwrap();
    let rule = RetentionRule::new("debug", selector, &given, &set).unwrap();
    let fleet = Fleet { hosts: 500, metrics: 100, interval_ms: 60_000 };
    let of_rule = |series| {
        let plan = Plan::new(&fleet, (&set, &[(rule.clone(), series)]), &BOUNDS, None);
        plan.reserve - SPARE_LOG_BYTES
    };
    let all = |levels: &[usize]| -> u64 {
        levels.iter().map(|level| plan.granularities[*level].turn_bytes).sum()
    };
    assert_eq!(of_rule(0), documents);
    let (half, coarse) = ((all(&[0, 1]) / 2 + all(&[2, 3])) * 11 / 10, all(&[2, 3]) * 11 / 10);
    assert!(of_rule(25_000).abs_diff(half) < 1000 && of_rule(50_000).abs_diff(coarse) < 1000);
    // Few documents stay open and take a page each.
    let of_few = self::plan(1, 60_000, None);
    assert!((1_600_000..2_000_000).contains(&(of_few.reserve - SPARE_LOG_BYTES)));
}

#[test]
fn the_resources_that_a_machine_lacks_are_listed() {
    let plan = plan(25_000, 60_000, None);
    assert_eq!(plan.series, 2_500_000);
    let machine = Machine { memory: 1 << 40, disk_free: 1 << 50, disk_max: None, cores: 64 };
    assert!(plan.lacks(&machine).is_empty());
    let small = Machine { memory: 1 << 30, disk_free: 1 << 30, disk_max: None, cores: 0 };
    assert_eq!(plan.lacks(&small).len(), 3);
    // With a budget, retention is cut instead.
    let disk_free = 2 * plan.reserve;
    let budget = Machine { disk_max: Some(1 << 29), disk_free, ..small };
    assert_eq!(plan.lacks(&budget).len(), 2);
    let rest = plan.rest();
    let half = rest + plan.documents() / 2;
    assert!((plan.share_within(half) - 0.5).abs() < 1e-6);
    assert_eq!([0, plan.disk()].map(|budget| plan.share_within(budget)), [0.0, 1.0]);
}
