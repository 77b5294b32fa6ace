//! The machine of a server, and the paths of its data: with them, values of the machine's disks can
//! be found.

use granary_agent_kit::Readings;
use mongodb::bson::Document;

use crate::field::{number, text};

/// The path of the data when the server was started without one.
const DEFAULT_PATH: &str = "/data/db";

/// The machine of a server.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Machine {
    pub(crate) cores: Option<f64>,
    /// The name of the machine, without a port.
    name: Option<String>,
    /// The uses of paths, with the paths.
    paths: Vec<(&'static str, String)>,
}

impl Machine {
    /// Applies the response to `hostInfo` or to `getCmdLineOpts`.
    pub(crate) fn update(&mut self, command: &str, response: &Document) {
        if command == "getCmdLineOpts" {
            self.paths = paths(response);
            return;
        }
        let system = response.get_document("system").ok();
        let name = system.and_then(|system| text(system, "hostname"));
        // The name has a port when the server runs on another one than the default port.
        self.name = name.map(|name| name.split(':').next().unwrap_or(name).to_owned());
        self.cores = number(response, "system.numCores");
    }

    /// Returns the name of the machine.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Adds a value for each path.
    pub(crate) fn push_values(&self, readings: &mut Readings) {
        let Some(machine) = self.name() else { return };
        for (used_for, path) in &self.paths {
            let tags = [("machine", machine), ("path", path.as_str()), ("use", *used_for)];
            readings.gauge("mongodb_storage_path", "", &tags, 1.0);
        }
    }
}

/// Returns the paths of data and journal. An engine other than `wiredTiger` has no journal there.
fn paths(options: &Document) -> Vec<(&'static str, String)> {
    let parsed = options.get_document("parsed").ok();
    let storage = parsed.and_then(|parsed| parsed.get_document("storage").ok());
    let option = |name| storage.and_then(|storage| text(storage, name));
    let data = option("dbPath").unwrap_or(DEFAULT_PATH);
    let mut all = vec![("data", data.to_owned())];
    if option("engine").is_none_or(|engine| engine == "wiredTiger") {
        let separator = if data.contains('\\') { '\\' } else { '/' };
        let folder = data.trim_end_matches(separator);
        all.push(("journal", format!("{folder}{separator}journal")));
    }
    all
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    fn machine(responses: &[(&str, Document)]) -> Machine {
        let mut machine = Machine::default();
        for (command, response) in responses {
            machine.update(command, response);
        }
        machine
    }

    fn paths_with(storage: Document) -> Vec<String> {
        let options = doc! { "argv": ["mongod"], "parsed": { "storage": storage }, "ok": 1.0 };
        paths(&options).into_iter().map(|(used_for, path)| format!("{used_for} {path}")).collect()
    }

    #[test]
    fn paths_follow_from_the_options_of_the_server() {
        let default = ["data /data/db", "journal /data/db/journal"];
        assert_eq!(paths_with(doc! {}), default);
        assert_eq!(
            paths_with(doc! { "dbPath": "/srv/m/" }),
            ["data /srv/m/", "journal /srv/m/journal"]
        );
        let windows = ["data C:\\data", "journal C:\\data\\journal"];
        assert_eq!(paths_with(doc! { "dbPath": "C:\\data" }), windows);
        let in_memory = doc! { "dbPath": "/m", "engine": "inMemory" };
        assert_eq!(paths_with(in_memory), ["data /m"]);
        assert_eq!(machine(&[("getCmdLineOpts", doc! {})]).paths.len(), 2);
    }

    #[test]
    fn a_machine_without_its_port_has_the_paths_of_its_server() {
        let info = doc! { "system": { "hostname": "db4:27018", "numCores": 8 } };
        let options = doc! { "parsed": {} };
        let machine = machine(&[("hostInfo", info), ("getCmdLineOpts", options)]);
        assert_eq!((machine.name(), machine.cores), (Some("db4"), Some(8.0)));
        let mut readings = Readings::default();
        machine.push_values(&mut readings);
        assert_eq!(readings.len(), 2);
        let unknown = Machine { name: None, ..machine };
        unknown.push_values(&mut readings);
        assert_eq!(readings.len(), 2, "nothing can be joined without the name");
    }
}
