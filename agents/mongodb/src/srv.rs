//! URIs of the form `mongodb+srv://`: DNS records name the hosts, and options that the URI lacks.
//!
//! The records follow MongoDB's specification "Initial DNS Seedlist Discovery". Must never know:
//! the connection to a host.

use granary_dns::{Record, RecordType, Resolver};

const SCHEME: &str = "mongodb+srv://";
/// The service in the name of SRV records, unless the URI has `srvServiceName`.
const SERVICE: &str = "mongodb";
/// The maximum number of hosts in the records of a name.
const HOSTS_MAX: usize = 100;
/// The options that a TXT record may contain.
const TXT_OPTIONS: [&str; 3] = ["authsource", "replicaset", "loadbalanced"];

/// A URI whose hosts are in DNS records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SrvUri {
    user: String,
    name: String,
    service: String,
    path: String,
    options: Vec<String>,
}

impl SrvUri {
    /// Parses a URI. Returns `None` when the URI names its hosts.
    ///
    /// # Errors
    /// The URI is invalid. The message contains neither user nor password.
    pub(crate) fn parse(uri: &str) -> Result<Option<Self>, String> {
        let Some(rest) = uri.strip_prefix(SCHEME) else { return Ok(None) };
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, name) = authority.rsplit_once('@').unwrap_or(("", authority));
        if rest.contains('@') {
            return Err("the URI is invalid; in names and passwords, %-encode @ : / and %".into());
        }
        if name.is_empty() || name.contains([',', ':']) {
            return Err(
                "mongodb+srv takes one name without a port; its records name the hosts".into()
            );
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut options: Vec<String> =
            query.split('&').filter(|option| !option.is_empty()).map(str::to_owned).collect();
        if has_option(&options, "srvmaxhosts") {
            return Err("srvMaxHosts is not supported: all hosts are sampled; remove it".into());
        }
        let service = service_of(&mut options);
        let path = if path.is_empty() { "/" } else { path };
        let [user, name, path] = [user, name, path].map(str::to_owned);
        Ok(Some(Self { user, name, service, path, options }))
    }

    /// Returns the name with the records.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the URI with the hosts and options of its DNS records.
    ///
    /// # Errors
    /// The records are missing or invalid, or a query fails. The message contains neither user nor
    /// password.
    pub(crate) fn resolve(&self, resolver: &Resolver) -> Result<String, String> {
        let Self { user, name, service, path, options } = self;
        let hosts = hosts_of_service(name, service, resolver)?;
        let mut options = options.clone();
        for option in options_of_text(name, resolver)? {
            let key = key_of(&option);
            if !has_option(&options, &key) {
                options.push(option);
            }
        }
        if !has_option(&options, "tls") && !has_option(&options, "ssl") {
            options.push("tls=true".to_owned());
        }
        let user = if user.is_empty() { String::new() } else { format!("{user}@") };
        Ok(format!("mongodb://{user}{}{path}?{}", hosts.join(","), options.join("&")))
    }
}

/// Returns the name of an option, which is not case-sensitive.
fn key_of(option: &str) -> String {
    option.split_once('=').map_or(option, |(key, _)| key).to_ascii_lowercase()
}

fn has_option(options: &[String], key: &str) -> bool {
    options.iter().any(|option| key_of(option) == key)
}

/// Removes the option with the service's name, which plain URIs do not have.
fn service_of(options: &mut Vec<String>) -> String {
    let position = options.iter().position(|option| key_of(option) == "srvservicename");
    let option = position.map(|position| options.remove(position));
    let value = option.as_ref().and_then(|option| option.split_once('='));
    value.map_or(SERVICE, |(_, value)| value).to_owned()
}

/// Returns the hosts with their ports. Only hosts in the domain of the name are accepted, because
/// they receive the credentials.
fn hosts_of_service(name: &str, service: &str, resolver: &Resolver) -> Result<Vec<String>, String> {
    let full_name = format!("_{service}._tcp.{name}");
    // The dot at the end excludes search domains.
    let records = resolver.query(&format!("{full_name}."), RecordType::Srv)?;
    if records.is_empty() {
        return Err(format!("{full_name} has no SRV records; check the name in the URI"));
    }
    if records.len() > HOSTS_MAX {
        return Err(format!("{} SRV records exceed the limit of {HOSTS_MAX}", records.len()));
    }
    let mut hosts = Vec::with_capacity(records.len());
    for record in records {
        let Record::Service(host, port) = record else { continue };
        if !is_in_domain(&host, name) {
            return Err(format!(
                "the SRV record {host} is outside of the domain of {name}; check the records of \
                 {full_name}"
            ));
        }
        hosts.push(format!("{host}:{port}"));
    }
    hosts.sort_unstable();
    Ok(hosts)
}

/// Returns true when the host is in the domain of the name: the part after its first label, or
/// after none for a name of less than three labels.
fn is_in_domain(host: &str, name: &str) -> bool {
    let (host, name) = (host.to_ascii_lowercase(), name.to_ascii_lowercase());
    let name = name.trim_end_matches('.');
    let parent = match name.split_once('.') {
        Some((_, parent)) if parent.contains('.') => parent,
        _ => name,
    };
    // A record may have any bytes, and those of a URI could add hosts or options.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    host.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        && host.chars().all(is_plain)
}

/// Returns the options of the TXT record, if the name has one.
fn options_of_text(name: &str, resolver: &Resolver) -> Result<Vec<String>, String> {
    let records = resolver.query(&format!("{}.", name.trim_end_matches('.')), RecordType::Txt)?;
    let text = match &records[..] {
        [] => return Ok(Vec::new()),
        [Record::Text(text)] => text,
        _ => return Err(format!("{name} has {} TXT records; keep one", records.len())),
    };
    if text.contains(['@', '/', '?', '#']) {
        return Err(format!("the TXT record of {name} has characters of an address; remove them"));
    }
    let options: Vec<String> = text.split('&').map(str::to_owned).collect();
    match options.iter().find(|option| !TXT_OPTIONS.contains(&&*key_of(option))) {
        None => Ok(options),
        Some(other) => Err(format!(
            "the TXT record of {name} has the option {:?}; only authSource, replicaSet and \
             loadBalanced are allowed",
            key_of(other)
        )),
    }
}

#[cfg(test)]
mod tests {
    use granary_dns::{Answer, serve};

    use super::*;

    fn service(host: &str, port: u16) -> Record {
        Record::Service(host.to_owned(), port)
    }

    fn hosts() -> Answer {
        Answer::of(&[service("db2.prod.example", 27018), service("db1.prod.example", 27017)])
    }

    fn text(text: &str) -> Answer {
        Answer::of(&[Record::Text(text.to_owned())])
    }

    fn resolve(uri: &str, answers: Vec<Answer>) -> Result<String, String> {
        SrvUri::parse(uri)?.unwrap().resolve(&serve(answers).unwrap())
    }

    #[test]
    fn records_name_the_hosts_and_the_options_that_the_uri_lacks() {
        for (uri, of_text, expected) in [
            (
                "mongodb+srv://ann:p%40ss@x.prod.example",
                text("authSource=users&replicaSet=rs0"),
                "mongodb://ann:p%40ss@HOSTS/?authSource=users&replicaSet=rs0&tls=true",
            ),
            (
                "mongodb+srv://x.prod.example/admin?AuthSource=mine&tls=false",
                text("authSource=users&replicaSet=rs0"),
                "mongodb://HOSTS/admin?AuthSource=mine&tls=false&replicaSet=rs0",
            ),
            (
                "mongodb+srv://x.prod.example?srvServiceName=custom&ssl=true",
                Answer::default(),
                "mongodb://HOSTS/?ssl=true",
            ),
        ] {
            let expected =
                expected.replace("HOSTS", "db1.prod.example:27017,db2.prod.example:27018");
            assert_eq!(resolve(uri, vec![hosts(), of_text]), Ok(expected), "{uri}");
        }
        assert_eq!(SrvUri::parse("mongodb://db1,db2/?tls=true"), Ok(None));
    }

    #[test]
    fn faults_name_the_record_and_contain_no_password() {
        let foreign = Answer::of(&[service("db1.evil.test", 27017)]);
        let two = Answer::of(&[Record::Text("a".to_owned()), Record::Text("b".to_owned())]);
        let unknown = Answer { code: 3, ..Answer::default() };
        let failed = Answer { code: 2, ..Answer::default() };
        let check = |rest: &str, answers: Vec<Answer>, part: &str| {
            let uri = format!("mongodb+srv://ann:s3cret@{rest}");
            let cause = resolve(&uri, answers).unwrap_err();
            assert!(cause.contains(part), "{part:?} is not in: {cause}");
            assert!(!cause.contains("s3cret") && !cause.contains("ann"), "{cause}");
        };
        check("x.prod.example", vec![unknown], "_mongodb._tcp.x.prod.example has no SRV records");
        check("x.prod.example", vec![failed.clone(), failed], "ServerFailure");
        check("x.prod.example", vec![foreign], "outside of the domain of x.prod.example");
        check("x.prod.example", vec![hosts(), two], "2 TXT records");
        check("x.prod.example", vec![hosts(), text("tls=false")], "\"tls\"");
        check("x.prod.example", vec![hosts(), text("authSource=a/?b")], "characters of an address");
        check("x.prod.example:27017", vec![], "without a port");
        check("x.prod.example,y.prod.example", vec![], "one name");
        check("x.prod.example/?srvMaxHosts=2", vec![], "srvMaxHosts");
        check("s3c/ret@x.prod.example", vec![], "%-encode");
    }

    #[test]
    fn hosts_are_in_the_domain_after_the_first_label() {
        for (host, name, expected) in [
            ("db1.prod.example", "x.prod.example", true),
            ("evil.test:27017,x.prod.example", "x.prod.example", false),
            ("x/?tls=false&a=.prod.example", "x.prod.example", false),
            ("a.db1.PROD.example", "x.prod.example", true),
            ("db1.example", "x.prod.example", false),
            ("evilprod.example", "x.prod.example", false),
            ("prod.example", "x.prod.example", false),
            ("db1.evil.test", "x.prod.example", false),
            ("db1.prod.example", "prod.example", true),
            ("other.example", "prod.example", false),
            ("db1.local", "local", true),
        ] {
            assert_eq!(is_in_domain(host, name), expected, "{host} {name}");
        }
    }
}
