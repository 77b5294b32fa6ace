//! The addresses for Graphite's protocols, in one list.
//!
//! Must never know: how an address is opened.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::values::address;

/// The scheme of an address for pickle.
const PICKLE: &str = "pickle://";
/// The scheme of an address for plaintext over TLS.
const TLS: &str = "tls://";

/// The addresses of `graphite.listen`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "Listed", into = "Vec<String>")]
pub struct GraphiteListen {
    /// Plaintext over TCP and UDP.
    pub plain: Option<SocketAddr>,
    /// Pickle over TCP.
    pub pickle: Option<SocketAddr>,
    /// Plaintext over TLS.
    pub tls: Option<SocketAddr>,
}

/// A list of addresses, or a single one.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "use a list such as [\"127.0.0.1:2003\", \"pickle://127.0.0.1:2004\"]"
)]
enum Listed {
    One(String),
    All(Vec<String>),
}

impl TryFrom<Listed> for GraphiteListen {
    type Error = String;

    fn try_from(listed: Listed) -> Result<Self, String> {
        let texts = match listed {
            Listed::One(text) => vec![text],
            Listed::All(texts) => texts,
        };
        let mut listen = Self::default();
        // The environment has an empty list as an empty text.
        for text in texts.into_iter().filter(|text| !text.is_empty()) {
            let (place, rest) = if let Some(rest) = text.strip_prefix(PICKLE) {
                (&mut listen.pickle, rest)
            } else if let Some(rest) = text.strip_prefix(TLS) {
                (&mut listen.tls, rest)
            } else {
                (&mut listen.plain, &*text)
            };
            if place.replace(address::resolve(rest)?).is_some() {
                return Err(format!("{text:?} is a second address for its protocol; remove one"));
            }
        }
        Ok(listen)
    }
}

impl From<GraphiteListen> for Vec<String> {
    fn from(GraphiteListen { plain, pickle, tls }: GraphiteListen) -> Self {
        let text = |scheme: &str, address: Option<SocketAddr>| {
            address.map(|address| format!("{scheme}{address}"))
        };
        [text("", plain), text(PICKLE, pickle), text(TLS, tls)].into_iter().flatten().collect()
    }
}

impl GraphiteListen {
    /// Returns true when no address is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::read;

    #[test]
    fn each_protocol_has_at_most_one_address() {
        let listen = |text: &str| {
            read(&format!("graphite.listen = {text}")).map(|settings| {
                let listen = settings.graphite.listen;
                let all: Vec<String> = listen.into();
                (listen.is_empty(), all)
            })
        };
        let all = ["127.0.0.1:2003", "pickle://127.0.0.1:2004"];
        assert_eq!(listen(&format!("{all:?}")).unwrap(), (false, all.map(str::to_owned).to_vec()));
        assert_eq!(listen("'127.0.0.1:2003'").unwrap().1, ["127.0.0.1:2003"]);
        for off in ["[]", "''", "['']"] {
            assert_eq!(listen(off).unwrap(), (true, vec![]));
        }
        for (text, part) in [
            ("['127.0.0.1:1', '127.0.0.1:2']", "\"127.0.0.1:2\" is a second address"),
            ("['pickle://']", "is not an address"),
            ("['udp://127.0.0.1:1']", "is not an address"),
            ("7", "use a list such as"),
        ] {
            let message = listen(text).unwrap_err().to_string();
            assert!(message.contains("graphite.listen") && message.contains(part), "{message}");
        }
    }
}
