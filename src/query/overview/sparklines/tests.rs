//! Tests of sparklines over time.

use std::time::Duration;

use super::*;
use crate::{
    model::{AcceptedBatch, Kind, SeriesId, SeriesInfo},
    query::{OtherShards, QueryResources, ReserveBytes, SPARKLINES, Scheduler, ShardsOfProject},
    setup::{self, HOUR, MINUTE, NOW},
    store::Appender,
};

/// The time of the first sample.
const FIRST: i64 = NOW.0 - NOW.0 % HOUR;

fn host_series(host: &str) -> Vec<SeriesInfo> {
    let host_metric = |metric: &str, tags: &[(&str, &str)], kind| {
        let tags: Vec<_> = tags.iter().copied().chain([("host", host)]).collect();
        setup::series(metric, &tags, kind)
    };
    vec![
        host_metric("system_cpu_user", &[], Kind::Counter),
        host_metric("system_cpu_idle", &[], Kind::Counter),
        host_metric("system_memory_used", &[], Kind::Gauge),
        host_metric("system_memory_total", &[], Kind::Gauge),
        host_metric("disk_partition_space_percent_used", &[("mount", "/")], Kind::Gauge),
        host_metric("disk_partition_space_percent_used", &[("mount", "/var")], Kind::Gauge),
        host_metric("system_network_bytes_in", &[("interface", "eth0")], Kind::Counter),
        host_metric("system_network_bytes_out", &[("interface", "eth0")], Kind::Counter),
        host_metric("another", &[], Kind::Gauge),
    ]
}

/// Appends one minute of readings: cores 25 % busy, memory half used, `/var` fuller from minute 30
/// on, 100 bytes per second received and 20 sent.
fn send_minute(appender: &mut Appender, series: &[SeriesId], minute: i64) {
    let at = FIRST + minute * MINUTE;
    let seconds = minute as f64 * 60.0;
    let var = if minute < 30 { 10.0 } else { 90.0 };
    let values =
        [seconds, seconds * 3.0, 50.0, 100.0, 40.0, var, seconds * 100.0, seconds * 20.0, 7.0];
    let times = vec![at; values.len()];
    let (series, values) = (series.to_vec(), values.to_vec());
    let batch = AcceptedBatch { series, times, values, ..AcceptedBatch::default() };
    setup::send(appender, batch, UnixMillis(at));
}

fn answer(lines: &Sparklines, store: &Store, minute: i64) -> SparklinesAnswer {
    let now = UnixMillis(FIRST + minute * MINUTE + 1);
    let answer = lines.answer(store, &Budget::UNLIMITED, now).unwrap();
    (*answer.0).clone()
}

#[test]
fn updated_lines_equal_lines_that_are_read_from_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), UnixMillis(FIRST));
    let lines = Sparklines::default();
    assert!(answer(&lines, &store, 0).hosts.is_empty());
    let web = setup::define(&mut appender, &host_series("web"), UnixMillis(FIRST));
    let mut late_host = None;
    for now in 0..100 {
        if !(40..43).contains(&now) {
            send_minute(&mut appender, &web, now);
        }
        if now == 50 {
            late_host = Some(setup::define(&mut appender, &host_series("late"), UnixMillis(FIRST)));
        }
        if let Some(late_host) = &late_host {
            send_minute(&mut appender, late_host, now);
        }
        if now == 70 {
            store.checkpoint(UnixMillis(FIRST + now * MINUTE)).unwrap();
        }
        if now % 3 == 0 {
            let updated = answer(&lines, &store, now);
            assert_eq!(updated, answer(&Sparklines::default(), &store, now), "minute {now}");
        }
    }
}

#[test]
fn lines_show_the_numbers_of_the_readings() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), UnixMillis(FIRST));
    let web = setup::define(&mut appender, &host_series("web"), UnixMillis(FIRST));
    for now in (0..40).chain(43..60) {
        send_minute(&mut appender, &web, now);
    }
    let answer = answer(&Sparklines::default(), &store, 60);
    assert_eq!((answer.start, answer.step_ms, answer.points), (FIRST, MINUTE, 60));
    let web = &answer.hosts["web"];
    let cpu = web.cpu.as_ref().unwrap();
    // The first reading has no predecessor; a quarter of 61 is step 15. Counters continue in a gap.
    assert_eq!(cpu.line, format!(".{}", "F".repeat(59)));
    assert_eq!((cpu.last, cpu.max), (Some(25.0), 100.0));
    let memory = web.memory.as_ref().unwrap();
    assert_eq!((memory.last, memory.line.starts_with("VV")), (Some(50.0), true));
    assert_eq!(memory.line.chars().skip(40).take(4).collect::<String>(), "...V");
    let disk = web.disk.as_ref().unwrap();
    assert_eq!(
        (disk.last, disk.line.chars().nth(29), disk.line.chars().nth(30)),
        (Some(90.0), Some('O'), Some('t'))
    );
    let network = web.network.as_ref().unwrap();
    assert_eq!(network.last, Some(120.0));
    // The increase over the gap counts in each of its slots.
    assert_eq!((network.max, network.line.chars().nth(41)), (120.0, Some('z')));
    let filesystem = web.filesystem.as_ref().unwrap();
    assert_eq!((&*filesystem.mount, filesystem.used_percent), ("/var", 90.0));
}

#[test]
fn a_prepared_answer_equals_an_unprepared_answer_and_includes_new_samples() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), UnixMillis(FIRST));
    let web = setup::define(&mut appender, &host_series("web"), UnixMillis(FIRST));
    let lines = Sparklines::default();
    for now in 0..70 {
        let at = UnixMillis(FIRST + now * MINUTE);
        lines.prepare(&store, &Budget::UNLIMITED, at).unwrap();
        send_minute(&mut appender, &web, now);
    }
    assert_eq!(answer(&lines, &store, 70), answer(&Sparklines::default(), &store, 70));
}

#[test]
fn lines_include_earlier_samples_of_new_series() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), UnixMillis(FIRST));
    let lines = Sparklines::default();
    let now = UnixMillis(FIRST + 60 * MINUTE);
    lines.prepare(&store, &Budget::UNLIMITED, now).unwrap();
    let web = setup::define(&mut appender, &host_series("web"), UnixMillis(FIRST));
    (0..60).for_each(|at| send_minute(&mut appender, &web, at));
    let found = lines.answer(&store, &Budget::UNLIMITED, now.plus(1)).unwrap();
    let memory = found.0.hosts["web"].memory.clone().unwrap();
    assert!(!memory.line.contains('.'), "{}", memory.line);
}

#[test]
fn an_answer_is_shared_for_ten_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), UnixMillis(FIRST));
    let web = setup::define(&mut appender, &host_series("web"), UnixMillis(FIRST));
    let lines = Sparklines::default();
    let now = UnixMillis(FIRST + 10 * MINUTE);
    assert!(lines.latest(now).is_none());
    lines.answer(&store, &Budget::UNLIMITED, now).unwrap();
    (0..9).for_each(|at| send_minute(&mut appender, &web, at));
    assert!(lines.latest(now.plus(9_999)).unwrap().0.hosts.is_empty());
    assert!(lines.latest(now.plus(10_000)).is_none());
    assert!(lines.latest(now.minus(1)).is_none(), "the clock was set back");
    let second_answer = lines.answer(&store, &Budget::UNLIMITED, now.plus(10_000)).unwrap();
    assert!(second_answer.0.hosts.contains_key("web"));
}

/// The stores of other shards.
#[derive(Debug)]
struct Others(Vec<(Store, SparklineSums)>);

impl OtherShards for Others {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn ask(
        &self,
        _: &str,
        (kind, question): (&str, &[u8]),
        _: Duration,
        reserve: &ReserveBytes<'_>,
    ) -> Result<Vec<Vec<u8>>, QueryError> {
        assert_eq!(kind, SPARKLINES);
        let answer = |(store, sums): &(Store, SparklineSums)| {
            let answer = sums.of_question(store, &Budget::UNLIMITED, question)?;
            assert!(reserve(answer.len()));
            Ok(answer)
        };
        self.0.iter().map(answer).collect()
    }
}

#[test]
fn lines_of_hosts_whose_series_are_in_several_shards_equal_those_of_one_store() {
    const SHARDS: usize = 3;
    let dirs: Vec<_> = (0..=SHARDS).map(|_| tempfile::tempdir().unwrap()).collect();
    let mut opened: Vec<_> =
        dirs.iter().map(|dir| setup::open(dir.path(), UnixMillis(FIRST))).collect();
    let others = opened[2..].iter().map(|(store, _)| (store.clone(), SparklineSums::default()));
    let of_project = ShardsOfProject::new(Arc::new(Others(others.collect())), "default");
    let resources = QueryResources::new(Scheduler::for_this_machine(), usize::MAX);
    let resources = resources.with_others(Some(of_project));
    // The first store has all series; each of the others every third one.
    let mut series: Vec<(usize, usize, usize, SeriesId)> = Vec::new();
    let mut define = |opened: &mut [(Store, Appender)], number: usize, host: &str| {
        for (index, info) in host_series(host).into_iter().enumerate() {
            for store in [0, 1 + (index + number) % SHARDS] {
                let appender = &mut opened[store].1;
                let id = setup::define(appender, std::slice::from_ref(&info), UnixMillis(FIRST))[0];
                series.push((store, number, index, id));
            }
        }
        series.clone()
    };
    let (whole, shards) = (Sparklines::default(), Sparklines::default());
    let mut all = define(&mut opened, 0, "web");
    for now in 0..90 {
        if now == 40 {
            all = define(&mut opened, 1, "late");
        }
        for (store, number, index, id) in &all {
            let at = FIRST + now * MINUTE;
            let value = match index {
                2 => 50.0,
                3 => 100.0,
                4 => 40.0 + *number as f64,
                5 => (now % 30) as f64 * 3.0,
                _ => now as f64 * 60.0 * (index + 1) as f64,
            };
            let batch = setup::samples(*id, [(at, value)]);
            setup::send(&mut opened[*store].1, batch, UnixMillis(at));
        }
        if now % 7 == 0 {
            let budget = resources.budget(Duration::from_secs(600));
            let at = UnixMillis(FIRST + now * MINUTE + 1);
            let found = shards.answer(&opened[1].0, &budget, at).unwrap();
            assert_eq!(*found.0, answer(&whole, &opened[0].0, now), "minute {now}");
        }
    }
    let shown = answer(&whole, &opened[0].0, 91);
    assert!(shown.hosts.len() == 2 && shown.hosts["late"].cpu.is_some());
}

#[test]
fn a_damaged_question_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _appender) = setup::open(dir.path(), UnixMillis(FIRST));
    let window = |slots: u64, from: u64| {
        format!(
            r#"{{"window": {{"start": 0, "width": 60000, "slots": {slots}}}, "from": {from}, "now": 9}}"#
        )
    };
    for question in ["{}".to_owned(), window(5, 5), window(u64::MAX, 0), window(1 << 40, 0)] {
        let answer =
            SparklineSums::default().of_question(&store, &Budget::UNLIMITED, question.as_bytes());
        assert!(matches!(answer, Err(QueryError::Invalid(_))), "{question}");
    }
    let answer = SparklineSums::default()
        .of_question(&store, &Budget::UNLIMITED, window(5, 0).as_bytes())
        .unwrap();
    // Two numbers and the end mark.
    assert_eq!(answer.len(), 17);
}
