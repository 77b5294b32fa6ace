//! A simulated fleet with changing hosts and a daemon without threads: the store, and the roles'
//! work one after the other. A simulated clock lets months pass in minutes.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::Arc,
};

use granary::{
    actors::drop_expired,
    clock::Stopwatch,
    model::{
        AcceptedBatch, BatchNumber, Deduplication, GranularitySet, Kind, RetentionRule, SeriesId,
        SeriesInfo, UnixMillis,
    },
    policy::fleet_plan::{Fleet, Plan, PlanBounds},
    store::{Appender, Folder, Store},
};

use crate::setup::{define, series};

/// The maximum number of series removed in one run, as in the retention role.
const REMOVED_SERIES_MAX: usize = 4096;

/// The values of `benches/disk_peers.py`: three of five series are counters that grow irregularly,
/// two are gauges that vary by one decimal.
pub(crate) struct Values {
    random: fastrand::Rng,
    metrics: usize,
    current: Vec<f64>,
}

impl Values {
    /// Returns values for hosts with the same number of metrics.
    pub(crate) fn new(hosts: usize, metrics: usize, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let current = (0..hosts * metrics).map(|_| (random.f64() * 1000.0).floor()).collect();
        Self { random, metrics, current }
    }

    /// Returns the kind of a series.
    pub(crate) fn kind(index: usize) -> Kind {
        if index % 5 < 3 { Kind::Counter } else { Kind::Gauge }
    }

    /// Returns the next values of all series.
    pub(crate) fn step(&mut self) -> &[f64] {
        for (index, value) in self.current.iter_mut().enumerate() {
            // The normal distribution by Box and Muller.
            let (radius, angle) = (1.0 - self.random.f64(), self.random.f64());
            let step = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
            if Self::kind(index) == Kind::Counter {
                *value += (10_000.0 * (index % self.metrics + 1) as f64 * step.abs()).floor();
            } else {
                *value = ((*value + step).clamp(0.0, 1000.0) * 10.0).round() / 10.0;
            }
        }
        &self.current
    }
}

/// Returns the series of a host.
pub(crate) fn host_series(host: usize, metrics: usize) -> Vec<SeriesInfo> {
    let host = format!("web{host}");
    let series_of =
        |metric| series(&format!("m{metric:02}"), &[("host", &host)], Values::kind(metric));
    (0..metrics)
        .map(|metric| SeriesInfo { sender: host.as_str().into(), ..series_of(metric) })
        .collect()
}

/// The rates at which a fleet sends and changes, and the daemon's intervals.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) set: GranularitySet,
    pub(crate) rules: Vec<RetentionRule>,
    pub(crate) hosts: usize,
    pub(crate) metrics: usize,
    pub(crate) interval_ms: i64,
    /// The number of samples of a series between two checkpoints.
    pub(crate) samples_a_checkpoint: i64,
    /// The lifetime of a host, which is then replaced by another host.
    pub(crate) renewal_ms: i64,
}

impl Run {
    pub(crate) fn checkpoint_ms(&self) -> i64 {
        self.interval_ms * self.samples_a_checkpoint
    }

    /// Returns the plan of the fleet after this time; each rule has its number of metrics of each host.
    pub(crate) fn plan(&self, metrics_of_rules: &[u64], age_ms: i64) -> Plan {
        let fleet = Fleet {
            hosts: self.hosts as u64,
            metrics: self.metrics as u64,
            interval_ms: self.interval_ms,
        };
        let bounds = PlanBounds {
            checkpoint_interval_ms: self.checkpoint_ms(),
            cell_bytes_max: 32 << 20,
            cache_bytes_max: 64 << 20,
        };
        let rules = self.rules.iter().cloned().zip(metrics_of_rules);
        let rules: Vec<_> = rules.map(|(rule, metrics)| (rule, metrics * fleet.hosts)).collect();
        Plan::new(&fleet, (&self.set, &rules), &bounds, Some(age_ms))
    }

    fn open(&self, folder: &Path, now: UnixMillis) -> (Store, Appender) {
        let medium = Arc::new(Folder::new(folder).unwrap());
        let rules = Some(&*self.rules);
        let opened = Store::open_with_rules(medium, self.set.clone(), rules, now);
        let (store, appender, _) = opened.unwrap();
        (store, appender)
    }

    /// Returns the time after which retention removes as much as the fleet adds.
    pub(crate) fn steady_after_ms(&self) -> i64 {
        let retentions = self.set.iter().map(|granularity| {
            granularity.retention().longest_ms()
                + 2 * granularity.partition.longest_ms()
                + self.checkpoint_ms()
        });
        retentions.max().unwrap_or(0)
    }
}

struct Host {
    name: Arc<str>,
    ids: Vec<SeriesId>,
    values: Values,
    sent: u64,
}

/// A simulated fleet with its daemon.
pub(crate) struct Simulation {
    pub(crate) run: Run,
    pub(crate) store: Store,
    pub(crate) now: UnixMillis,
    /// The longest checkpoint in seconds since this was last reset.
    pub(crate) checkpoint_longest: f64,
    appender: Appender,
    /// The hosts that send, the oldest first.
    hosts: VecDeque<Host>,
    hosts_created: usize,
    /// The time up to which hosts were replaced.
    last_renewal: i64,
}

impl Simulation {
    pub(crate) fn new(folder: &Path, run: Run, begin: UnixMillis) -> Self {
        let (store, appender) = run.open(folder, begin);
        let (hosts, last_renewal) = (VecDeque::new(), begin.0);
        let (hosts_created, checkpoint_longest) = (0, 0.0);
        let mut simulation = Self {
            run,
            store,
            now: begin,
            checkpoint_longest,
            appender,
            hosts,
            hosts_created,
            last_renewal,
        };
        (0..simulation.run.hosts).for_each(|_| simulation.add_host());
        simulation
    }

    fn add_host(&mut self) {
        let metrics = self.run.metrics;
        let all = host_series(self.hosts_created, metrics);
        let ids = define(&mut self.appender, &all, self.now);
        let values = Values::new(1, metrics, self.hosts_created as u64);
        self.hosts.push_back(Host { name: all[0].sender.clone(), ids, values, sent: 0 });
        self.hosts_created += 1;
    }

    /// Advances by one interval: each host sends, and due work runs.
    pub(crate) fn step(&mut self) {
        self.now = self.now.plus(self.run.interval_ms);
        while self.now.0 - self.last_renewal >= self.run.renewal_ms {
            self.last_renewal += self.run.renewal_ms;
            self.hosts.pop_front();
            self.add_host();
        }
        let batches: Vec<_> = self.hosts.iter_mut().map(|host| host.batch(self.now)).collect();
        let verdicts = self.appender.commit(&[], &batches, self.now).unwrap().batches;
        assert!(verdicts.iter().all(|verdict| verdict.is_accepted()), "{verdicts:?}");
        if self.now.0 % self.run.checkpoint_ms() == 0 {
            self.run_roles();
        }
    }

    /// Runs checkpointer, sealer and retention.
    fn run_roles(&mut self) {
        let watch = Stopwatch::start();
        self.store.checkpoint(self.now).unwrap();
        self.checkpoint_longest = self.checkpoint_longest.max(watch.seconds());
        let sealed = self.store.seal(self.now, self.run.checkpoint_ms(), &|_| true).unwrap();
        assert_eq!(sealed.refused, 0);
        let dropped = drop_expired(&self.store, self.now);
        assert!(dropped.failed.is_none(), "{dropped:?}");
        let unused = self.store.series_without_samples(self.now, REMOVED_SERIES_MAX);
        if !unused.is_empty() {
            self.appender.forget_series(&unused, self.now).unwrap();
        }
    }

    /// Closes and reopens the store; returns the duration in seconds.
    pub(crate) fn restart(self, folder: &Path) -> (Store, f64) {
        let Self { run, store, now, appender, .. } = self;
        drop((store, appender));
        let watch = Stopwatch::start();
        let (store, _) = run.open(folder, now);
        (store, watch.seconds())
    }
}

impl Host {
    fn batch(&mut self, at: UnixMillis) -> AcceptedBatch {
        self.sent += 1;
        let number = BatchNumber { sender: self.name.clone(), epoch: 1, seq: self.sent };
        AcceptedBatch {
            deduplication: Deduplication::ByNumber(number),
            series: self.ids.clone(),
            times: vec![at.0],
            values: self.values.step().to_vec(),
            ..AcceptedBatch::default()
        }
    }
}

/// Returns the disk usage of a folder with its subfolders in bytes, and the number of files.
pub(crate) fn disk_usage(folder: &Path) -> (u64, usize) {
    let (mut bytes, mut files) = (0, 0);
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let (bytes_below, files_below) = if path.is_dir() {
            disk_usage(&path)
        } else {
            (fs::metadata(&path).map_or(0, |file| file.blocks() * 512), 1)
        };
        bytes += bytes_below;
        files += files_below;
    }
    (bytes, files)
}

/// Returns the sizes of a store by artefact: counts, and bytes on disk and in memory.
pub(crate) fn sizes(store: &Store, folder: &Path) -> BTreeMap<&'static str, u64> {
    let (series, ids) = {
        let dictionary = store.dictionary();
        (dictionary.len() as u64, dictionary.id_count() as u64)
    };
    let (partitions, files) = disk_usage(&folder.join("partitions"));
    let sizes = [
        ("series", series),
        ("ids", ids),
        ("senders", store.sender_count() as u64),
        ("files", files as u64),
        ("partitions", partitions),
        ("head", store.head_bytes()),
        ("journal", store.journal_bytes()),
        ("objects", store.objects_bytes()),
    ];
    let memory = store.memory().map(|(part, bytes)| (part, bytes as u64));
    sizes.into_iter().chain(memory).collect()
}
