//! A watch of one resource: a list in pages, then its changes since then. When the API no longer
//! has these changes (410), the list is read again, beside the objects that it replaces.
//!
//! Texts and objects are charged to the memory limit of the scraper.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
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
    memory::{Lease, Memory},
};

const PAGE_OBJECTS: usize = 500;
/// The maximum number of pages of a list; the API may send fewer objects than a page can have.
const PAGES_MAX: usize = 1000;
const PAGE_BYTES_MAX: usize = 64 << 20;
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of objects of a watch.
const OBJECTS_MAX: usize = 50_000;
/// The maximum length of the text of an object, and of an event.
const EVENT_BYTES_MAX: usize = 4 << 20;
/// The maximum step by which the buffer of a text grows.
const TEXT_STEP_MAX: usize = 1 << 20;
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
    memory: Arc<Memory>,
    /// The memory of the objects.
    lease: Lease,
}

impl Watch {
    pub(super) fn new(
        server: &str,
        role: Role,
        namespace: String,
        selector: Option<&Selector>,
        (client, job): (Arc<Client>, Arc<Job>),
        memory: &Arc<Memory>,
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
        let (key, lease, memory) = ((role, namespace), memory.lease(), Arc::clone(memory));
        Self { key, url, client, job, version: None, is_listed: false, memory, lease }
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
        let (mut all, mut next_page) = (BTreeMap::new(), String::new());
        let lease = self.memory.lease();
        let mut pages = 0..PAGES_MAX;
        let version = loop {
            if shared.state().has_ended {
                return Ok(());
            }
            pages.next().ok_or("the list has too many pages")?;
            let url = format!("{}limit={PAGE_OBJECTS}&continue={}", self.url, encode(&next_page));
            let answer = self.open(&url, LIST_TIMEOUT)?.ok_or("the list has expired")?;
            let text_lease = self.memory.lease();
            let text = read_text(&mut BufReader::new(answer), None, PAGE_BYTES_MAX, &text_lease)?;
            let page: ObjectList<'_> =
                serde_json::from_slice(&text).map_err(|cause| cause.to_string())?;
            check_number(all.len().saturating_add(page.items.len()))?;
            for item in page.items {
                let (key, object) = parse_object(item.get(), &lease)?;
                all.insert(key, object);
            }
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
        (self.version, self.lease) = (Some(version), lease);
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
        loop {
            let lease = self.memory.lease();
            let line = read_text(&mut answer, Some(b'\n'), EVENT_BYTES_MAX, &lease);
            if matches!(line, Err(TextFault::Limit(_))) {
                self.version = None;
            }
            let line = line?;
            if line.is_empty() {
                return Ok(());
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
        let charged = new.as_ref().map_or(Ok(()), |new| self.lease.reserve(new.bytes()));
        if let Err(cause) = charged {
            self.version = None;
            return Err(cause);
        }
        if let Some(object) = &mut new {
            // The version changes with fields that are not read, such as a node's heartbeat.
            object.metadata.resource_version.clear();
        }
        let (is_same, old) = match new {
            Some(new) => {
                let key = new.key();
                let is_same = objects.get(&key) == Some(&new);
                (is_same, objects.insert(key, new))
            }
            None => (false, objects.remove(&deleted_key)),
        };
        self.lease.release(old.as_ref().map_or(0, Object::bytes));
        let limit = check_number(objects.len());
        if !is_same {
            state.changes += 1;
        }
        self.version = limit.is_ok().then_some(version);
        limit
    }

    /// Opens a stream, or returns `None` when the API no longer has this version. The list is then
    /// read again; after other refusals, the same request is repeated later.
    fn open(
        &mut self,
        url: &str,
        timeout: Duration,
    ) -> Result<Option<Box<dyn std::io::Read>>, String> {
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

fn check_number(objects: usize) -> Result<(), String> {
    if objects > OBJECTS_MAX {
        return Err(format!(
            "{objects} objects, more than {OBJECTS_MAX}; narrow namespaces or selectors"
        ));
    }
    Ok(())
}

/// Parses an object of a list, and charges its memory.
fn parse_object(text: &str, lease: &Lease) -> Result<((String, String), Object), String> {
    if text.len() > EVENT_BYTES_MAX {
        return Err(format!("an object has more than {EVENT_BYTES_MAX} bytes"));
    }
    let mut object: Object = serde_json::from_str(text).map_err(|cause| cause.to_string())?;
    object.metadata.resource_version.clear();
    lease.reserve(object.bytes())?;
    Ok((object.key(), object))
}

/// The fault because of which a text was not read.
enum TextFault {
    /// The connection broke: the next watch continues from the last version.
    Io(String),
    /// The text exceeds a limit, and would exceed it again.
    Limit(String),
}

impl From<TextFault> for String {
    fn from(fault: TextFault) -> Self {
        match fault {
            TextFault::Io(cause) | TextFault::Limit(cause) => cause,
        }
    }
}

/// Reads up to `end`, or up to the end of the stream, and charges each part before it is stored.
fn read_text(
    answer: &mut impl BufRead,
    end: Option<u8>,
    bytes_max: usize,
    lease: &Lease,
) -> Result<Vec<u8>, TextFault> {
    let mut text = Vec::new();
    loop {
        let part = match answer.fill_buf() {
            Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => continue,
            part => part.map_err(|cause| TextFault::Io(cause.to_string()))?,
        };
        let position = end.and_then(|end| part.iter().position(|byte| *byte == end));
        let part = position.and_then(|position| part.get(..=position)).unwrap_or(part);
        if text.len() + part.len() > bytes_max {
            let cause = format!("an answer of the API has more than {bytes_max} bytes");
            return Err(TextFault::Limit(cause));
        }
        if text.capacity() - text.len() < part.len() {
            let more = part.len().max(text.len().min(TEXT_STEP_MAX));
            lease.reserve(more).map_err(TextFault::Limit)?;
            text.reserve_exact(more);
        }
        text.extend_from_slice(part);
        let length = part.len();
        answer.consume(length);
        if length == 0 || position.is_some() {
            return Ok(text);
        }
    }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
