//! A small server for tests that implements MongoDB's wire protocol and answers with a function.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use mongodb::bson::{Document, doc};

const OP_QUERY: i32 = 2004;
const OP_MSG: i32 = 2013;

/// A function that returns the response to a command on a database, or `None` to send none.
type ResponseScript = dyn Fn(&str, &Document) -> Option<Document> + Send + Sync;

/// The server, on its own port.
pub(crate) struct Responder {
    pub(crate) address: String,
    /// The received commands, without the commands that the driver adds.
    pub(crate) received: Arc<Mutex<Vec<String>>>,
    /// The number of opened connections.
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Responder {
    pub(crate) fn start(
        script: impl Fn(&str, &Document) -> Option<Document> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (received, connections) = (Arc::default(), Arc::new(AtomicUsize::new(0)));
        let responder = Self {
            address,
            received: Arc::clone(&received),
            connections: Arc::clone(&connections),
        };
        let script: Arc<ResponseScript> = Arc::new(script);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                connections.fetch_add(1, Ordering::SeqCst);
                let (script, received) = (Arc::clone(&script), Arc::clone(&received));
                std::thread::spawn(move || serve(stream, &*script, &received));
            }
        });
        responder
    }

    pub(crate) fn commands(&self) -> Vec<String> {
        std::mem::take(&mut self.received.lock().unwrap())
    }
}

fn read_i32(bytes: &[u8], offset: usize) -> i32 {
    i32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

/// Answers the requests of a connection until it ends.
fn serve(mut stream: TcpStream, script: &ResponseScript, received: &Mutex<Vec<String>>) {
    let mut head = [0; 16];
    while stream.read_exact(&mut head).is_ok() {
        let (length, id, code) = (read_i32(&head, 0), read_i32(&head, 4), read_i32(&head, 12));
        let mut body = vec![0; length as usize - 16];
        stream.read_exact(&mut body).unwrap();
        let command = parse_command(code, &body);
        let database = command.get_str("$db").unwrap_or("admin").to_owned();
        let name = command.keys().next().cloned().unwrap_or_default();
        // The driver's handshakes contain a client, or use the old opcode.
        let is_from_agent = code == OP_MSG && !command.contains_key("client");
        if is_from_agent && name != "endSessions" {
            received.lock().unwrap().push(name);
        }
        let Some(answer) = script(&database, &command) else {
            // The connection stays open until the client closes it.
            drop(stream.read(&mut [0]));
            return;
        };
        if stream.write_all(&encode_response(code, id, &answer)).is_err() {
            return;
        }
    }
}

fn parse_command(code: i32, body: &[u8]) -> Document {
    let start = match code {
        OP_MSG => 5,
        OP_QUERY => 4 + body[4..].iter().position(|byte| *byte == 0).unwrap() + 1 + 8,
        _ => panic!("opcode {code}"),
    };
    Document::from_reader(&body[start..]).unwrap()
}

fn encode_response(code: i32, request_id: i32, answer: &Document) -> Vec<u8> {
    let answer = answer.to_vec().unwrap();
    let (head, code) = match code {
        OP_MSG => (vec![0; 5], OP_MSG),
        _ => ([0, 0, 0, 0, 1].iter().flat_map(|n: &i32| n.to_le_bytes()).collect(), 1),
    };
    let length = (16 + head.len() + answer.len()) as i32;
    let mut response: Vec<u8> =
        [length, 1, request_id, code].iter().flat_map(|n| n.to_le_bytes()).collect();
    response.extend(head);
    response.extend(answer);
    response
}

/// Builds the error document of a refused command.
pub(crate) fn error_document(code: i32, name: &str) -> Document {
    doc! { "ok": 0.0, "errmsg": format!("refused with {name}"), "code": code, "codeName": name }
}
