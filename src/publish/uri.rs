//! The address of a MongoDB deployment, whose password no message shows.
//!
//! Must never know: when a connection is opened.

use std::{fmt, time::Duration};

use mongodb::options::{ClientOptions, ConnectionString};

/// The scheme of addresses that name their hosts.
const SCHEME: &str = "mongodb://";

/// The time limit for finding a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A checked connection string. Its `Debug` form has only the hosts.
#[derive(Clone, PartialEq, Eq)]
pub struct MongoUri(String);

impl MongoUri {
    /// Checks a connection string.
    ///
    /// # Errors
    /// The connection string is invalid; the message has no password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let uri = Self(text.to_owned());
        let hosts = uri.hosts();
        if text.starts_with("mongodb+srv:") {
            return Err(format!(
                "{hosts}: mongodb+srv is not supported; name the hosts, as in mongodb://a,b,c"
            ));
        }
        if !text.starts_with(SCHEME) {
            return Err("use an address such as \"mongodb://db1:27017,db2:27017\"".to_owned());
        }
        match ConnectionString::parse(text) {
            Ok(_) => Ok(uri),
            // The driver's error quotes the connection string.
            Err(_) if text.contains('@') => Err(format!(
                "{hosts}: the address is invalid; in names and passwords, %-encode @ : / and %"
            )),
            // Without `@`, the part before a port may be a name and a password.
            Err(_) => {
                Err("the address is invalid; write it as \"mongodb://name:password@db1:27017\", \
                           and %-encode @ : / and % only in the name and the password"
                    .to_owned())
            }
        }
    }

    /// Returns the hosts, for messages.
    pub fn hosts(&self) -> &str {
        let rest = self.0.split_once("://").map_or(&*self.0, |(_, rest)| rest);
        let end = rest.rfind('@').map_or(0, |at| at + 1);
        let hosts = rest.get(end..).unwrap_or_default();
        hosts.split(['/', '?']).next().unwrap_or_default()
    }

    /// Returns the database that the address names, as written.
    pub fn database(&self) -> Option<&str> {
        let address = self.0.strip_prefix(SCHEME)?.split('?').next()?;
        let hosts = address.rsplit_once('@').map_or(address, |(_, hosts)| hosts);
        hosts.split_once('/').map(|(_, name)| name).filter(|name| !name.is_empty())
    }

    /// Returns the driver's options of a client.
    ///
    /// # Errors
    /// The certificates or options cannot be used; the message has no password.
    pub async fn client_options(&self) -> Result<ClientOptions, String> {
        // The driver's error quotes the connection string.
        let options = ClientOptions::parse(&self.0).await;
        let mut options = options.map_err(|_| self.invalid_text())?;
        options.app_name.get_or_insert_with(|| "granary".to_owned());
        options.server_selection_timeout.get_or_insert(CONNECT_TIMEOUT);
        options.connect_timeout.get_or_insert(CONNECT_TIMEOUT);
        Ok(options)
    }

    /// Returns the message for a driver that refuses the options.
    pub fn invalid_text(&self) -> String {
        format!("{}: the address or its options are invalid", self.hosts())
    }
}

impl fmt::Debug for MongoUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hosts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_address_is_refused_without_its_password() {
        for (text, part) in [
            ("mongodb://ann:s3:cret@db1:port/", "%-encode"),
            ("mongodb+srv://ann:s3cret@db1/", "name the hosts"),
            ("mongodb://ann:s3cret%40db1", "@db1:27017"),
            ("mongodb://db1:port", "@db1:27017"),
            ("http://ann:s3cret@db1", "mongodb://db1:27017"),
            ("", "mongodb://db1:27017"),
        ] {
            let message = MongoUri::parse(text).unwrap_err();
            assert!(message.contains(part) && !message.contains("cret"), "{text}: {message}");
        }
        let uri = MongoUri::parse("mongodb://ann:s3c%40ret@db1:1,db2/x?replicaSet=rs0").unwrap();
        assert_eq!(format!("{uri:?}"), "db1:1,db2");
    }
}
