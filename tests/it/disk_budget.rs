//! Days on a simulated clock with a disk budget: the store stays within the budget, reports drops a
//! day ahead, and never drops the newest partition.

use granary::{
    actors::{BudgetReport, DiskBudget, drop_expired},
    kept::LiveValue,
    model::{AcceptedBatch, Kind, Moment, SeriesId, UnixMillis},
    policy::retention::budget::DiskMax,
    store::{Appender, Store},
    telemetry::{Health, Metrics},
};

use crate::setup::{DAY, HOUR, define, granularities, open_with, send, series};

/// 2026-11-21T00:00:00Z
const START: UnixMillis = UnixMillis(1_795_219_200_000);
const HOSTS: u32 = 600;
const LEVELS: [[&str; 4]; 2] = [["10m", "6h", "6h", "5d"], ["1h", "1d", "1d", "20d"]];

struct Scene {
    store: Store,
    appender: Appender,
    budget: DiskBudget,
    random: fastrand::Rng,
    now: UnixMillis,
    _dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = open_with(dir.path(), &granularities(&LEVELS), START);
        store.set_log_file_bytes(64 << 10);
        let names: Vec<_> = (0..HOSTS).map(|host| host.to_string()).collect();
        let all: Vec<_> =
            names.iter().map(|host| series("m", &[("host", host)], Kind::Gauge)).collect();
        define(&mut appender, &all, START);
        let budget = DiskBudget {
            max: LiveValue::new(Some(DiskMax::Bytes(u64::MAX))),
            data_dir: dir.path().to_owned(),
            metrics: Metrics::new().unwrap(),
            health: Health::default(),
            report: BudgetReport::default(),
        };
        let random = fastrand::Rng::with_seed(7);
        Self { store, appender, budget, random, now: START, _dir: dir }
    }

    /// Sends a sample of each series every 10 minutes, with a checkpoint and a run of retention
    /// every hour; returns the number of partitions that the budget dropped.
    fn run(&mut self, hours: i64) -> u64 {
        let mut dropped = 0;
        for _ in 0..hours {
            for _ in 0..6 {
                let batch = AcceptedBatch {
                    series: (0..HOSTS).map(SeriesId).collect(),
                    times: vec![self.now.0],
                    values: (0..HOSTS).map(|_| self.random.f64()).collect(),
                    ..AcceptedBatch::default()
                };
                send(&mut self.appender, batch, self.now);
                self.now = self.now.plus(HOUR / 6);
            }
            self.store.checkpoint(self.now).unwrap();
            assert!(drop_expired(&self.store, self.now).failed.is_none());
            let enforced = self.budget.enforce(&self.store, Moment::from(self.now));
            assert!(enforced.failed.is_none());
            dropped += enforced.partitions;
        }
        dropped
    }

    /// Returns the hours of samples that each granularity has.
    fn kept_hours(&self) -> [i64; 2] {
        [0, 1].map(|level| {
            let all = self.store.partitions();
            let of_level = all.iter().filter(|partition| partition.id.granularity.0 == level);
            (self.now.0 - of_level.map(|partition| partition.id.start.0).min().unwrap()) / HOUR
        })
    }
}

#[test]
fn the_store_stays_within_its_budget_and_reports_drops_a_day_ahead() {
    let mut scene = Scene::new();
    assert_eq!(scene.run(24 * 24), 0);
    let full = scene.store.file_bytes();
    assert_eq!(scene.kept_hours(), [120, 480]);
    assert_eq!(scene.budget.report.warning(), None);
    // With three quarters of the space, each granularity keeps about three quarters of its
    // retention.
    let max = full / 4 * 3;
    scene.budget.max.set(Some(DiskMax::Bytes(max)));
    assert!(scene.run(1) > 0);
    let bytes = scene.store.file_bytes();
    assert!((max * 9 / 10..=max).contains(&bytes), "{bytes} of {max}");
    let shares =
        [120, 480].into_iter().zip(scene.kept_hours()).map(|(planned, kept)| kept * 100 / planned);
    let shares: Vec<_> = shares.collect();
    assert!(shares.iter().all(|share| (60..80).contains(share)), "{shares:?}");
    let dropped = scene.budget.metrics.retention_budget_drops.get();
    let (mut is_announced, mut warnings) = (true, 0);
    for _ in 0..48 {
        let drops = scene.run(1);
        assert!(scene.store.file_bytes() <= max);
        assert!(drops == 0 || is_announced, "{:?}", scene.budget.report);
        is_announced = scene.budget.report.warning().is_some();
        warnings += u32::from(is_announced);
    }
    assert!(warnings > 36, "a drop leaves space for less than a day: {warnings}");
    assert!(scene.budget.metrics.retention_budget_drops.get() > dropped + 4);
    // With a budget that is too small, only the newest partition of each granularity remains.
    scene.budget.max.set(Some(DiskMax::Bytes(1)));
    scene.run(1);
    let all = scene.store.partitions();
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|partition| partition.id.start <= scene.now), "{all:?}");
    let reasons = scene.budget.health.shortfalls();
    assert!(reasons[0].1.contains("only the newest partition"), "{reasons:?}");
    // Without a trusted clock, nothing is dropped.
    let untrusted = Moment { clock: scene.now.plus(90 * DAY), believed: scene.now };
    assert_eq!(scene.budget.enforce(&scene.store, untrusted).partitions, 0);
}

#[test]
fn a_drop_is_reported_a_day_before() {
    let mut scene = Scene::new();
    scene.run(24 * 4);
    let bytes = scene.store.file_bytes();
    let last_report = scene.budget.report.last().unwrap();
    let bytes_per_day = last_report.bytes_ahead - last_report.bytes;
    assert!(bytes_per_day > bytes / 10, "{last_report:?}");
    // The budget is exhausted in two days.
    scene.budget.max.set(Some(DiskMax::Bytes(bytes + bytes_per_day * 2)));
    assert_eq!(scene.run(1), 0);
    assert_eq!(scene.budget.report.warning(), None, "{:?}", scene.budget.report.last());
    let mut warned_after = None;
    let mut hours = 0;
    while scene.run(1) == 0 {
        hours += 1;
        warned_after = warned_after.or(scene.budget.report.warning().map(|_| hours));
        assert!(hours < 100);
    }
    let ahead = hours - warned_after.unwrap();
    assert!((12..=36).contains(&ahead), "{ahead} hours ahead of the drop");
}
