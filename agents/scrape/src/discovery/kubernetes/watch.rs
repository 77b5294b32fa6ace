//! A watch of one resource: a list in pages, then its changes since then. When the API no longer
//! has these changes (410), the list is read again.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read},
    sync::Arc,
    time::Duration,
};

use granary_agent_kit::Stopwatch;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    Shared,
    objects::{Event, Object, ObjectList, Status},
};
use crate::{
    config::{Job, Role, Selector},
    fetch::{Client, FetchRequest},
};

const PAGE_OBJECTS: usize = 500;
/// The maximum number of pages of a list; the API may send fewer objects than a page can have.
const PAGES_MAX: usize = 1000;
const PAGE_BYTES_MAX: u64 = 64 << 20;
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of objects of a watch, and their maximum memory.
const OBJECTS_MAX: usize = 50_000;
const OBJECTS_BYTES_MAX: usize = 64 << 20;
const EVENT_BYTES_MAX: u64 = 4 << 20;
/// The time after which the API ends a watch; the client waits longer.
const WATCH_SECONDS: u64 = 240;
const WATCH_TIMEOUT: Duration = Duration::from_secs(WATCH_SECONDS + 30);
/// The waiting time after a fault, which doubles with each further fault.
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// A watch, with its position in the history of the API.
#[derive(Debug)]
pub(super) struct Watch {
    key: (Role, String),
    url: String,
    client: Arc<Client>,
    job: Arc<Job>,
    /// The version to continue from; `None` before a list.
    version: Option<String>,
    is_listed: bool,
    /// The memory of the objects.
    bytes: usize,
}

impl Watch {
    pub(super) fn new(
        server: &str,
        role: Role,
        namespace: String,
        selector: Option<&Selector>,
        client: Arc<Client>,
        job: Arc<Job>,
    ) -> Self {
        let (api, resource) = match role {
            Role::Endpoints => ("api/v1", "endpoints"),
            Role::EndpointSlice => ("apis/discovery.k8s.io/v1", "endpointslices"),
            Role::Ingress => ("apis/networking.k8s.io/v1", "ingresses"),
            Role::Node => ("api/v1", "nodes"),
            Role::Pod => ("api/v1", "pods"),
            Role::Service => ("api/v1", "services"),
        };
        let part =
            if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
        let mut url = format!("{server}/{api}/{part}{resource}?");
        if let Some(Selector { label, field, .. }) = selector {
            for (name, value) in [("labelSelector", label), ("fieldSelector", field)] {
                if !value.is_empty() {
                    url.extend([name, "=", &encode(value), "&"]);
                }
            }
        }
        Self { key: (role, namespace), url, client, job, version: None, is_listed: false, bytes: 0 }
    }

    /// Follows the resource until the entry ends.
    pub(super) fn run(mut self, shared: &Shared) {
        let mut retry = RETRY_MIN;
        while !shared.state().has_ended {
            let clock = Stopwatch::start();
            let was_list = self.version.is_none();
            let outcome = match self.version.clone() {
                None => self.list(shared),
                Some(version) => self.follow(&version, shared),
            };
            let has_lasted = clock.elapsed() >= RETRY_MIN;
            let mut state = shared.state();
            let is_ok = outcome.is_ok();
            if let Err(cause) = outcome {
                state.faults.insert(self.url.clone(), cause);
            } else {
                state.faults.remove(&self.url);
            }
            if !was_list && has_lasted {
                retry = RETRY_MIN;
            }
            // A list is followed at once. A watch that ends at once would make the API list all
            // objects again and again.
            let delay = if is_ok && (was_list || has_lasted) {
                Duration::ZERO
            } else {
                let next = (retry * 2).min(RETRY_MAX);
                std::mem::replace(&mut retry, next)
            };
            shared.changed.notify_all();
            let clock = Stopwatch::start();
            while !state.has_ended && !clock.left_of(delay).is_zero() {
                state = shared.wait(state, clock.left_of(delay));
            }
        }
    }

    /// Reads the list, and replaces the objects.
    fn list(&mut self, shared: &Shared) -> Result<(), String> {
        let (mut all, mut bytes, mut next_page) = (BTreeMap::new(), 0, String::new());
        let mut pages = 0..PAGES_MAX;
        let version = loop {
            if shared.state().has_ended {
                return Ok(());
            }
            pages.next().ok_or("the list has too many pages")?;
            let url = format!("{}limit={PAGE_OBJECTS}&continue={}", self.url, encode(&next_page));
            let answer = self.open(&url, LIST_TIMEOUT)?.ok_or("the list has expired")?;
            let mut text = Vec::new();
            let mut answer = answer.take(PAGE_BYTES_MAX + 1);
            answer.read_to_end(&mut text).map_err(|cause| cause.to_string())?;
            if text.len() as u64 > PAGE_BYTES_MAX {
                return Err(format!("a page of the list has more than {PAGE_BYTES_MAX} bytes"));
            }
            let page: ObjectList =
                serde_json::from_slice(&text).map_err(|cause| cause.to_string())?;
            for mut object in page.items {
                object.metadata.resource_version.clear();
                bytes += object.bytes();
                all.insert(object.key(), object);
            }
            check_limits(all.len(), bytes)?;
            next_page = page.metadata.next_page;
            if next_page.is_empty() {
                break page.metadata.resource_version;
            }
        };
        let mut state = shared.state();
        if state.has_ended {
            return Ok(());
        }
        state.objects.0.insert(self.key.clone(), all);
        state.changes += 1;
        if !std::mem::replace(&mut self.is_listed, true) {
            state.unlisted -= 1;
        }
        (self.version, self.bytes) = (Some(version), bytes);
        Ok(())
    }

    /// Applies changes until the API ends the watch.
    fn follow(&mut self, version: &str, shared: &Shared) -> Result<(), String> {
        let url = format!(
            "{}watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={}",
            self.url,
            encode(version)
        );
        let Some(answer) = self.open(&url, WATCH_TIMEOUT)? else { return Ok(()) };
        let mut answer = BufReader::new(answer);
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut event = answer.by_ref().take(EVENT_BYTES_MAX);
            let length = event.read_until(b'\n', &mut line).map_err(|cause| cause.to_string())?;
            if length == 0 {
                return Ok(());
            }
            if length as u64 == EVENT_BYTES_MAX {
                self.version = None;
                return Err(format!("an event has more than {EVENT_BYTES_MAX} bytes"));
            }
            if line.last() != Some(&b'\n') {
                // The connection broke within an event, which follows again.
                return Err("the API ended the watch within an event".to_owned());
            }
            if shared.state().has_ended {
                return Ok(());
            }
            let event: Event = serde_json::from_slice(&line).map_err(|cause| {
                self.version = None;
                cause.to_string()
            })?;
            self.apply(event, shared)?;
            if self.version.is_none() {
                return Ok(());
            }
        }
    }

    fn apply(&mut self, event: Event, shared: &Shared) -> Result<(), String> {
        let (object, is_deleted) = match event {
            Event::Added(object) | Event::Modified(object) => (object, false),
            Event::Deleted(object) => (object, true),
            Event::Bookmark(bookmark) => {
                self.version = Some(bookmark.metadata.resource_version);
                return Ok(());
            }
            Event::Error(Status { code, message }) => {
                self.version = None;
                return if code == 410 { Ok(()) } else { Err(format!("{code}: {message}")) };
            }
        };
        let version = object.metadata.resource_version.clone();
        let deleted_key = object.key();
        let mut state = shared.state();
        let objects = state.objects.0.entry(self.key.clone()).or_default();
        let mut new = (!is_deleted).then_some(*object);
        if let Some(object) = &mut new {
            // The version changes with fields that are not read, such as a node's heartbeat.
            object.metadata.resource_version.clear();
        }
        self.bytes += new.as_ref().map_or(0, Object::bytes);
        let (is_same, old) = match new {
            Some(new) => {
                let key = new.key();
                let is_same = objects.get(&key) == Some(&new);
                (is_same, objects.insert(key, new))
            }
            None => (false, objects.remove(&deleted_key)),
        };
        self.bytes = self.bytes.saturating_sub(old.as_ref().map_or(0, Object::bytes));
        let limits = check_limits(objects.len(), self.bytes);
        if !is_same {
            state.changes += 1;
        }
        self.version = limits.is_ok().then_some(version);
        limits
    }

    /// Opens a stream, or returns `None` when the API no longer has this version. The list is then
    /// read again; after other refusals, the same request is repeated later.
    fn open(&mut self, url: &str, timeout: Duration) -> Result<Option<Box<dyn Read>>, String> {
        let request = FetchRequest { url, accept: "application/json", timeout };
        let (status, answer) = self.client.open(&self.job, &request)?;
        if matches!(status, 400 | 410) {
            self.version = None;
        }
        match status {
            200 => Ok(Some(answer)),
            410 => Ok(None),
            other => Err(format!("the API answered {other}")),
        }
    }
}

fn check_limits(objects: usize, bytes: usize) -> Result<(), String> {
    if objects > OBJECTS_MAX || bytes > OBJECTS_BYTES_MAX {
        return Err(format!(
            "{objects} objects of {bytes} bytes, more than {OBJECTS_MAX} or {OBJECTS_BYTES_MAX} \
             bytes; narrow namespaces or selectors"
        ));
    }
    Ok(())
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
