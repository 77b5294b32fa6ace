//! Messages by mail: SMTP by lettre, with STARTTLS unless it is disabled, or with implicit TLS on
//! port 465.
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
    outcome::{DeliveryOutcome, SendResult, expand, failed, one_line},
    secret,
};
use crate::{
    alerts::{Email, Message, MessageTemplates},
    model::with_causes,
};

/// The timeout of each response of the server.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The port of SMTP over implicit TLS (RFC 8314).
const TLS_PORT: u16 = 465;

pub(super) fn send(email: &Email, message: &Message, templates: &MessageTemplates) -> SendResult {
    let mail = compose(email, message, templates)?;
    let sent = transport(email)?.send(&mail);
    let outcome = |cause: lettre::transport::smtp::Error| {
        let text = with_causes(&cause);
        if cause.is_permanent() {
            DeliveryOutcome::Refused(text)
        } else {
            DeliveryOutcome::Failed(text)
        }
    };
    let response = sent.map_err(outcome)?;
    let lines: Vec<_> = response.message().collect();
    Ok(one_line(&format!("{} {}", response.code(), lines.join(" "))))
}

fn transport(email: &Email) -> Result<SmtpTransport, DeliveryOutcome> {
    let (host, port) = &email.smarthost;
    let encryption = if email.require_tls || *port == TLS_PORT {
        let mut tls = TlsParameters::builder(host.clone())
            .dangerous_accept_invalid_certs(email.tls.insecure_skip_verify)
            .dangerous_accept_invalid_hostnames(email.tls.insecure_skip_verify);
        if let Some(file) = &email.tls.ca_file {
            let in_file = |cause: &dyn std::fmt::Display| {
                DeliveryOutcome::Failed(format!("{}: {cause}", file.display()))
            };
            let pem = fs::read(file).map_err(|cause| in_file(&cause))?;
            tls = tls.add_root_certificate(
                Certificate::from_pem(&pem).map_err(|cause| in_file(&cause))?,
            );
        }
        let tls = tls.build().map_err(|cause| DeliveryOutcome::Failed(with_causes(&cause)))?;
        if *port == TLS_PORT { Encryption::Wrapper(tls) } else { Encryption::Required(tls) }
    } else {
        Encryption::None
    };
    let mut builder = SmtpTransport::builder_dangerous(host)
        .port(*port)
        .tls(encryption)
        .timeout(Some(TIMEOUT))
        .hello_name(ClientId::Domain(email.hello.clone()));
    if let Some((name, password)) = &email.auth {
        let password = secret::read(password).map_err(failed)?;
        builder = builder.credentials(Credentials::new(name.clone(), password));
    }
    Ok(builder.build())
}

fn compose(
    email: &Email,
    message: &Message,
    templates: &MessageTemplates,
) -> Result<lettre::Message, DeliveryOutcome> {
    let refused = |part: &str, cause: &dyn std::fmt::Display| {
        DeliveryOutcome::Refused(format!("{part}: {cause}"))
    };
    let expand = |text: &str| expand(templates, text, message);
    let from: Mailbox = expand(&email.from)?.parse().map_err(|cause| refused("from", &cause))?;
    let to: Mailboxes = expand(&email.to)?.parse().map_err(|cause| refused("to", &cause))?;
    // A mail that is retried has the same ID, so that a mailbox can recognize a duplicate. A
    // repeated notification has another ID, because many mailboxes show only one mail per ID.
    let alerts: Vec<_> = message
        .alerts
        .iter()
        .map(|alert| (alert.fingerprint(), alert.starts_at, alert.ends_at))
        .collect();
    let identity = (&message.group_key, &email.to, message.decided_at, alerts);
    let id = xxh3_128(format!("{identity:?}").as_bytes());
    let host = &from.email.domain().to_owned();
    let mut builder = lettre::Message::builder()
        .from(from)
        .message_id(Some(format!("<granary-{id:032x}@{host}>")));
    for to in to {
        builder = builder.to(to);
    }
    for (name, text) in &email.headers {
        // A line break would begin another header.
        let text = expand(text)?.replace(char::is_control, " ");
        let name =
            HeaderName::new_from_ascii(name.clone()).map_err(|cause| refused("headers", &cause))?;
        builder = builder.raw_header(HeaderValue::new(name, text));
    }
    let html =
        templates.expand_html(&email.html, message).map_err(|cause| refused("html", &cause))?;
    let more = message.unlisted_line().unwrap_or_default();
    let html = if more.is_empty() || html.is_empty() { html } else { with_line(&html, &more) };
    let text = expand(&email.text)?;
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

/// Inserts a line at the end of an HTML document.
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

    /// Returns a mail in the format in which it is sent, and its ID.
    fn mail(message: &Message) -> (String, String) {
        let mail = compose(&email(), message, &MessageTemplates::new(&[]).unwrap()).unwrap();
        let text = String::from_utf8(mail.formatted()).unwrap();
        let id = text.lines().find(|line| line.starts_with("Message-ID")).unwrap().to_owned();
        (text, id)
    }

    #[test]
    fn a_repeated_mail_has_another_id_and_a_retried_mail_has_the_same() {
        let message = message_of_tests();
        let repeated = Message { decided_at: 14_400_000, ..message.clone() };
        assert_eq!(mail(&message).1, mail(&message).1);
        assert_ne!(mail(&message).1, mail(&repeated).1);
    }

    #[test]
    fn alerts_left_out_are_counted_in_both_texts() {
        let message = Message { left_out: 1400, ..message_of_tests() };
        let text = mail(&message).0;
        assert_eq!(text.matches("and 1400 more alerts").count(), 2, "{text}");
        assert!(!mail(&message_of_tests()).0.contains("more alert"));
    }
}
