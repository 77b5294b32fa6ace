//! Discovery by the API of Kubernetes: each resource is listed once and then watched, in a thread
//! of its own. A maintained library exists (kube), but it needs an asynchronous runtime and
//! the types of the whole API, many times the size of the scraper.
//!
//! Must never know: how targets are used.

mod endpoints;
mod labels;
mod objects;
mod roles;
mod targets;
mod watch;

use std::{
    collections::BTreeMap,
    env, fs,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use granary_agent_kit::Stopwatch;

use self::{objects::Object, targets::Targets, watch::Watch};
use super::Found;
use crate::{
    config::{Job, KubernetesDiscovery, Role, Span},
    fetch::Client,
    memory::Memory,
};

/// The interval at which changes become targets.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// The time that the first refresh waits for the lists.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(4);
/// The maximum time of a request for a page of a list.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The stack size of a watch; TLS needs most of it.
const STACK_BYTES: usize = 512 << 10;
/// The files of a pod's service account.
const ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The discovery of one entry of `kubernetes_sd_configs`.
#[derive(Debug)]
pub(crate) struct Kubernetes {
    role: Role,
    shared: Arc<Shared>,
    /// The watches to start, or the reason why there are none.
    unstarted: Result<Vec<Watch>, String>,
    /// The number of changes that are in the targets.
    applied_changes: Option<u64>,
}

/// The state that an entry shares with its watches.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// The condition for the first refresh, and for watches that wait before they try again.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    objects: Objects,
    has_ended: bool,
    changes: u64,
    /// The number of watches whose first list has not arrived.
    unlisted: usize,
    faults: BTreeMap<String, String>,
}

/// All objects, by role and namespace of their watch.
#[derive(Debug, Default)]
struct Objects(BTreeMap<(Role, String), BTreeMap<(String, String), Object>>);

impl Objects {
    fn all(&self, role: Role) -> impl Iterator<Item = &Object> {
        let parts = self.0.iter().filter(move |((of, _), _)| *of == role);
        parts.flat_map(|(_, objects)| objects.values())
    }

    fn find(&self, role: Role, namespace: &str, name: &str) -> Option<&Object> {
        let key = (namespace.to_owned(), name.to_owned());
        let mut parts = self.0.iter().filter(|((of, _), _)| *of == role);
        parts.find_map(|(_, objects)| objects.get(&key))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, up to `timeout`.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, timeout: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Kubernetes {
    /// Creates the discovery, whose objects are charged to `memory`.
    pub(crate) fn new(settings: &KubernetesDiscovery, memory: &Arc<Memory>) -> Self {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        Self::with_cluster(settings, memory, variable, Path::new(ACCOUNT_FOLDER))
    }

    fn with_cluster(
        settings: &KubernetesDiscovery,
        memory: &Arc<Memory>,
        variable: impl Fn(&str) -> Option<String>,
        account: &Path,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let unstarted = watches(settings, memory, variable, account);
        shared.state().unlisted = unstarted.as_ref().map_or(0, Vec::len);
        Self { role: settings.role, shared, unstarted, applied_changes: None }
    }

    pub(crate) fn interval() -> Duration {
        REFRESH_INTERVAL
    }

    /// Returns the targets, or `None` when no object has changed. The first call starts the
    /// watches, and waits for their lists. After an error, the caller keeps the previous targets.
    pub(crate) fn refresh(&mut self) -> Result<Option<Found>, String> {
        for watch in self.unstarted.as_mut().map_err(|fault| fault.clone())?.drain(..) {
            let shared = Arc::clone(&self.shared);
            let builder = thread::Builder::new().name("kubernetes".to_owned());
            let started = builder.stack_size(STACK_BYTES).spawn(move || watch.run(&shared));
            started.map_err(|cause| format!("cannot start a thread: {cause}"))?;
        }
        let mut state = self.shared.state();
        let clock = Stopwatch::start();
        while self.applied_changes.is_none() && state.unlisted > 0 && state.faults.is_empty() {
            let time_left = clock.left_of(FIRST_LIST_TIMEOUT);
            if time_left.is_zero() {
                break;
            }
            state = self.shared.wait(state, time_left);
        }
        let fault = state.faults.iter().next().map(|(object, cause)| format!("{object}: {cause}"));
        if state.unlisted > 0 {
            let waiting = || "the lists of the Kubernetes API have not arrived".to_owned();
            return Err(fault.unwrap_or_else(waiting));
        }
        if self.applied_changes == Some(state.changes) {
            return fault.map_or(Ok(None), Err);
        }
        self.applied_changes = Some(state.changes);
        let mut targets = Targets::default();
        roles::add_targets(self.role, &state.objects, &mut targets);
        Ok(Some(targets.found))
    }
}

impl Drop for Kubernetes {
    /// Ends the watches: one that waits for the API ends with its next event or its timeout.
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.has_ended = true;
        // A watch that still waits would keep them.
        state.objects = Objects::default();
        drop(state);
        self.shared.changed.notify_all();
    }
}

/// Returns the watches of an entry.
fn watches(
    settings: &KubernetesDiscovery,
    memory: &Arc<Memory>,
    variable: impl Fn(&str) -> Option<String>,
    account: &Path,
) -> Result<Vec<Watch>, String> {
    let mut job = Job {
        basic_auth: settings.basic_auth.clone(),
        authorization: settings.authorization.clone(),
        tls_config: settings.tls_config.clone(),
        follow_redirects: settings.follow_redirects,
        proxy_url: settings.proxy_url.clone(),
        scrape_timeout: Some(Span(REQUEST_TIMEOUT)),
        ..Job::default()
    };
    let mut server = settings.api_server.trim_end_matches('/').to_owned();
    if server.is_empty() {
        let (host, port) = variable("KUBERNETES_SERVICE_HOST")
            .zip(variable("KUBERNETES_SERVICE_PORT"))
            .ok_or("kubernetes_sd_configs: outside of a cluster, set api_server")?;
        server = format!("https://{}", labels::join(&host, port.parse().unwrap_or(443)));
        let credentials_file = Some(account.join("token"));
        job.authorization =
            Some(crate::config::Authorization { credentials_file, ..Default::default() });
        job.tls_config.ca_file.get_or_insert(account.join("ca.crt"));
    }
    let mut namespaces = settings.namespaces.names.clone();
    if settings.namespaces.own_namespace {
        let file = account.join("namespace");
        let text = fs::read_to_string(&file)
            .map_err(|cause| format!("own_namespace: {}: {cause}", file.display()))?;
        namespaces.push(text.trim().to_owned());
    }
    namespaces.sort();
    namespaces.dedup();
    if namespaces.is_empty() {
        namespaces.push(String::new());
    }
    let client = Arc::new(Client::new(&job)?);
    let job = Arc::new(job);
    let mut all = Vec::new();
    for role in settings.role.resources(settings.attach_metadata.node) {
        let selector = settings.selectors.iter().find(|selector| selector.role == role);
        let everywhere = [String::new()];
        let parts = if role == Role::Node { &everywhere[..] } else { &namespaces };
        for namespace in parts {
            let access = (Arc::clone(&client), Arc::clone(&job));
            all.push(Watch::new(&server, role, namespace.clone(), selector, access, memory));
        }
    }
    Ok(all)
}

/// Parses bytes as an event of a watch, for fuzz tests.
pub(crate) fn fuzz(bytes: &[u8]) {
    for role in [Role::Endpoints, Role::EndpointSlice, Role::Ingress, Role::Node, Role::Pod] {
        if let Ok(object) = serde_json::from_slice::<Object>(bytes) {
            let part = BTreeMap::from([(object.key(), object)]);
            let objects = Objects(BTreeMap::from([((role, String::new()), part)]));
            roles::add_targets(role, &objects, &mut Targets::default());
        }
    }
    drop(serde_json::from_slice::<objects::Event>(bytes));
}

#[cfg(test)]
mod tests;
