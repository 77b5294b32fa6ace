//! Messages by mail: SMTP by lettre, with STARTTLS unless it is turned off.
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

use super::{
    outcome::{Outcome, Sent, expand, failed, one_line},
    secret,
};
use crate::{
    alerts::{Email, Message, MessageTemplates},
    model::chain,
};

/// The timeout of each response of the server.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The port with TLS from the start (RFC 8314).
const TLS_PORT: u16 = 465;

pub(super) fn send(own: &Email, message: &Message, templates: &MessageTemplates) -> Sent {
    let mail = written(own, message, templates)?;
    let sent = transport(own)?.send(&mail);
    let refused = |cause: lettre::transport::smtp::Error| {
        let text = chain(&cause);
        if cause.is_permanent() { Outcome::Refused(text) } else { Outcome::Failed(text) }
    };
    let answer = sent.map_err(refused)?;
    let lines: Vec<_> = answer.message().collect();
    Ok(one_line(&format!("{} {}", answer.code(), lines.join(" "))))
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
    if let Some((name, password)) = &own.auth {
        let password = secret::read(password).map_err(failed)?;
        builder = builder.credentials(Credentials::new(name.clone(), password));
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
    // A mail that is tried again has the same id, by which a mailbox can know it; a repeat has another
    // one: many mailboxes show a mail whose id they know once.
    let alerts: Vec<_> =
        message.alerts.iter().map(|own| (own.fingerprint(), own.starts_at, own.ends_at)).collect();
    let what = (&message.group_key, &own.to, message.decided_at, alerts);
    let id = xxh3_128(format!("{what:?}").as_bytes());
    let host = &from.email.domain().to_owned();
    let mut builder = lettre::Message::builder()
        .from(from)
        .message_id(Some(format!("<granary-{id:032x}@{host}>")));
    for to in to {
        builder = builder.to(to);
    }
    for (name, text) in &own.headers {
        // A line break would begin another header.
        let text = expand(text)?.replace(char::is_control, " ");
        let name =
            HeaderName::new_from_ascii(name.clone()).map_err(|cause| refused("headers", &cause))?;
        builder = builder.raw_header(HeaderValue::new(name, text));
    }
    let html =
        templates.expand_html(&own.html, message).map_err(|cause| refused("html", &cause))?;
    let more = message.more().unwrap_or_default();
    let html = if more.is_empty() || html.is_empty() { html } else { with_line(&html, &more) };
    let text = expand(&own.text)?;
    let text = if more.is_empty() { text } else { format!("{text}\n{more}\n") };
    let text = SinglePart::builder().header(ContentType::TEXT_PLAIN).body(text);
    let mail = if html.is_empty() {
        builder.singlepart(text)
    } else {
        let html = SinglePart::builder().header(ContentType::TEXT_HTML).body(html);
        builder.multipart(MultiPart::alternative().singlepart(text).singlepart(html))
    };
    mail.map_err(|cause| refused("mail", &cause))
}

/// Inserts a line before the end of a document.
fn with_line(html: &str, line: &str) -> String {
    let paragraph = format!("<p>{line}</p>\n");
    let (begin, end) = html.rfind("</body>").map_or((html, ""), |at| html.split_at(at));
    format!("{begin}{paragraph}{end}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{alerts::Tls, notify::outcome::message_of_tests};

    fn email() -> Email {
        Email {
            to: "ops@example.org".to_owned(),
            from: "granary@example.org".to_owned(),
            smarthost: ("localhost".to_owned(), 25),
            hello: "localhost".to_owned(),
            auth: None,
            require_tls: false,
            tls: Tls::default(),
            headers: BTreeMap::new(),
            html: "{{ template \"granary.html\" . }}".to_owned(),
            text: "{{ template \"granary.text\" . }}".to_owned(),
        }
    }

    /// A written mail and its id.
    fn mail(message: &Message) -> (String, String) {
        let mail = written(&email(), message, &MessageTemplates::new(&[]).unwrap()).unwrap();
        let text = String::from_utf8(mail.formatted()).unwrap();
        let id = text.lines().find(|line| line.starts_with("Message-ID")).unwrap().to_owned();
        (text, id)
    }

    #[test]
    fn a_repeated_mail_has_another_id_and_one_that_is_tried_again_has_the_same() {
        let message = message_of_tests();
        let repeated = Message { decided_at: 14_400_000, ..message.clone() };
        assert_eq!(mail(&message).1, mail(&message).1);
        assert_ne!(mail(&message).1, mail(&repeated).1);
    }

    #[test]
    fn alerts_that_are_too_many_are_counted_in_both_texts() {
        let message = Message { left_out: 1400, ..message_of_tests() };
        let text = mail(&message).0;
        assert_eq!(text.matches("and 1400 more alerts").count(), 2, "{text}");
        assert!(!mail(&message_of_tests()).0.contains("more alert"));
    }
}
