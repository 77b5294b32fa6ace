//! The conformance suite on a real server, and a server that is away.

use bson::doc;
use granary_publish::MongoUri;
use granary_replication::{
    Answer, Command, Fault, Medium, NodeName,
    conformance::{Bed, check},
    medium::MongoMedium,
};
use mongodb::Client;
use tokio::runtime::Runtime;

use crate::{ports::free_port, server::Server};

struct OnServer {
    runtime: Runtime,
    client: Client,
    medium: MongoMedium,
}

impl OnServer {
    fn open(uri: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let checked = MongoUri::parse(uri).unwrap();
        let medium = runtime.block_on(MongoMedium::open(&checked, "conformance")).unwrap();
        let client = runtime.block_on(Client::with_uri_str(uri)).unwrap();
        Self { runtime, client, medium }
    }
}

impl Bed for OnServer {
    fn run(&mut self, command: Command) -> Result<Answer, Fault> {
        self.runtime.block_on(self.medium.execute(command))
    }

    fn lose_next_confirmation(&mut self) {
        let command = doc! {
            "configureFailPoint": "failCommand",
            "mode": { "times": 1 },
            "data": {
                "failCommands": ["insert"],
                "writeConcernError": { "code": 64, "errmsg": "waiting for replication timed out" },
            },
        };
        let database = self.client.database("admin");
        self.runtime.block_on(async { database.run_command(command).await }).unwrap();
    }
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn the_log_on_a_server_conforms() {
    let server = Server::start();
    assert_eq!(check(&mut OnServer::open(&server.uri())), Ok(()));
}

#[test]
fn a_server_that_is_away_is_named_without_its_password() {
    let address = format!("127.0.0.1:{}", free_port());
    let uri = format!("mongodb://ann:s3cret@{address}/?serverSelectionTimeoutMS=300");
    let mut bed = OnServer::open(&uri);
    let node = NodeName::parse("a").unwrap();
    let beat = Command::BeatNode { node, run: 1, address: String::new(), rules: String::new() };
    let Fault(text) = bed.run(beat).unwrap_err();
    assert!(text.starts_with("MongoDB: ") && text.contains("refused"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}
