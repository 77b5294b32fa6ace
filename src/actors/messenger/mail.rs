//! Messages by mail: lettre speaks SMTP, with STARTTLS unless that is not wanted.
//!
//! Must never know: groups, when anything is sent.

use std::{fs, time::Duration};

use lettre::{
    SmtpTransport, Transport,
    message::{
        Mailbox, Mailboxes, MultiPart, SinglePart,
        header::{ContentType, HeaderName, HeaderValue},
    },
    transport::smtp::{
        authentication::Credentials,
        client::{Certificate, Tls as Encryption, TlsParameters},
        extension::ClientId,
    },
};
use xxhash_rust::xxh3::xxh3_128;

use super::delivery::{Outcome, expand, failed};
use crate::{
    alerts::{Email, Message, MessageTemplates},
    model::chain,
};

/// How long each word of the server may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The port at which TLS is spoken from the start (RFC 8314).
const TLS_PORT: u16 = 465;

pub(super) fn send(
    own: &Email,
    message: &Message,
    templates: &MessageTemplates,
) -> Result<(), Outcome> {
    let mail = written(own, message, templates)?;
    let sent = transport(own)?.send(&mail);
    let refused = |cause: lettre::transport::smtp::Error| {
        let text = chain(&cause);
        if cause.is_permanent() { Outcome::Refused(text) } else { Outcome::Failed(text) }
    };
    sent.map(drop).map_err(refused)
}

fn transport(own: &Email) -> Result<SmtpTransport, Outcome> {
    let (host, port) = &own.smarthost;
    let encryption = if own.require_tls || *port == TLS_PORT {
        let mut tls = TlsParameters::builder(host.clone())
            .dangerous_accept_invalid_certs(own.tls.insecure_skip_verify)
            .dangerous_accept_invalid_hostnames(own.tls.insecure_skip_verify);
        if let Some(file) = &own.tls.ca_file {
            let named = |cause: &dyn std::fmt::Display| {
                Outcome::Failed(format!("{}: {cause}", file.display()))
            };
            let pem = fs::read(file).map_err(|cause| named(&cause))?;
            tls = tls
                .add_root_certificate(Certificate::from_pem(&pem).map_err(|cause| named(&cause))?);
        }
        let tls = tls.build().map_err(|cause| Outcome::Failed(chain(&cause)))?;
        if *port == TLS_PORT { Encryption::Wrapper(tls) } else { Encryption::Required(tls) }
    } else {
        Encryption::None
    };
    let mut builder = SmtpTransport::builder_dangerous(host)
        .port(*port)
        .tls(encryption)
        .timeout(Some(TIMEOUT))
        .hello_name(ClientId::Domain(own.hello.clone()));
    if let Some((name, secret)) = &own.auth {
        let secret = secret.read().map_err(failed)?;
        builder = builder.credentials(Credentials::new(name.clone(), secret));
    }
    Ok(builder.build())
}

fn written(
    own: &Email,
    message: &Message,
    templates: &MessageTemplates,
) -> Result<lettre::Message, Outcome> {
    let refused =
        |what: &str, cause: &dyn std::fmt::Display| Outcome::Refused(format!("{what}: {cause}"));
    let expand = |text: &str| expand(templates, text, message);
    let from: Mailbox = expand(&own.from)?.parse().map_err(|cause| refused("from", &cause))?;
    let to: Mailboxes = expand(&own.to)?.parse().map_err(|cause| refused("to", &cause))?;
    // The same mail again has the same name, by which a mailbox can know it.
    let alerts: Vec<_> =
        message.alerts.iter().map(|own| (own.fingerprint(), own.starts_at, own.ends_at)).collect();
    let id = xxh3_128(format!("{} {alerts:?}", message.group_key).as_bytes());
    let host = &from.email.domain().to_owned();
    let mut builder = lettre::Message::builder()
        .from(from)
        .message_id(Some(format!("<granary-{id:032x}@{host}>")));
    for to in to {
        builder = builder.to(to);
    }
    for (name, text) in &own.headers {
        // A line's end would begin another header.
        let text = expand(text)?.replace(char::is_control, " ");
        let name =
            HeaderName::new_from_ascii(name.clone()).map_err(|cause| refused("headers", &cause))?;
        builder = builder.raw_header(HeaderValue::new(name, text));
    }
    let html =
        templates.expand_html(&own.html, message).map_err(|cause| refused("html", &cause))?;
    let text = SinglePart::builder().header(ContentType::TEXT_PLAIN).body(expand(&own.text)?);
    let mail = if html.is_empty() {
        builder.singlepart(text)
    } else {
        let html = SinglePart::builder().header(ContentType::TEXT_HTML).body(html);
        builder.multipart(MultiPart::alternative().singlepart(text).singlepart(html))
    };
    mail.map_err(|cause| refused("mail", &cause))
}
