//! Messages by HTTP: to webhooks in Alertmanager's format, to Slack, and to `PagerDuty`.
//!
//! Must never know: groups, when anything is sent.

use std::{collections::BTreeMap, io::Read, time::Duration};

use granary_https::{RequestFailure, TrustOptions};
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_128;

use super::{
    client::{client, is_refusal, json_request},
    outcome::{DeliveryOutcome, SendResult, expand, failed, one_line},
    secret,
};
use crate::alerts::{Http, Message, MessageTemplates, Pagerduty, Slack, Webhook};

/// The timeout of a response, unless the receiver sets one.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a response that is read, in bytes.
const RESPONSE_BYTES_MAX: u64 = 64 << 10;
/// The error message for an invalid URL.
const INVALID_URL: &str = "the URL is invalid: use one such as https://example.org/path";
/// The maximum length of an event's summary at `PagerDuty`, in characters.
const SUMMARY_MAX: usize = 1024;

pub(super) fn webhook(webhook: &Webhook, message: &Message) -> SendResult {
    let url = secret::read(&webhook.url).map_err(failed)?;
    let timeout = webhook.timeout_ms.map(|ms| Duration::from_millis(ms.unsigned_abs()));
    let settings =
        PostSettings { timeout: timeout.unwrap_or(TIMEOUT), ..PostSettings::of(&webhook.http) };
    Ok(post(&settings, &url, message.to_json(webhook.max_alerts))?.summary)
}

/// The response of a receiver that accepted a message.
pub(super) struct Response {
    /// The beginning of the response's body.
    pub(super) text: String,
    /// The status and the text in one line.
    pub(super) summary: String,
}

/// The settings of a request: client settings, timeout and authorization.
pub(super) struct PostSettings<'a> {
    pub(super) http: &'a Http,
    pub(super) timeout: Duration,
    /// The value of the header `Authorization`, if the service requires its own.
    pub(super) authorization: Option<String>,
}

impl<'a> PostSettings<'a> {
    pub(super) fn of(http: &'a Http) -> Self {
        Self { http, timeout: TIMEOUT, authorization: None }
    }
}

pub(super) fn slack(slack: &Slack, message: &Message, templates: &MessageTemplates) -> SendResult {
    let url = secret::read(&slack.api_url).map_err(failed)?;
    let body = slack_body(slack, message, templates)?;
    let response = post(&PostSettings::of(&slack.http), &url, body.to_string())?;
    // Slack's API returns a success status even when it rejects a message.
    let content: Value = serde_json::from_str(&response.text).unwrap_or_default();
    if content.get("ok") == Some(&Value::Bool(false)) {
        return Err(DeliveryOutcome::Refused(format!("Slack answered {}", content["error"])));
    }
    Ok(response.summary)
}

fn slack_body(
    slack: &Slack,
    message: &Message,
    templates: &MessageTemplates,
) -> Result<Value, DeliveryOutcome> {
    let expand = |text: &str| expand(templates, text, message);
    let mut fields = Vec::new();
    for field in &slack.fields {
        let (title, value) = (expand(&field.title)?, expand(&field.value)?);
        fields.push(json!({ "title": title, "value": value, "short": field.short }));
    }
    let mut attachment = expand_all(&slack.attachment, expand)?;
    if let Some(more) = message.unlisted_line() {
        for key in ["text", "fallback"] {
            let text = attachment.get(key).and_then(Value::as_str).unwrap_or_default();
            let text = if text.is_empty() { more.clone() } else { format!("{text}\n{more}") };
            attachment.insert(key.to_owned(), text.into());
        }
    }
    attachment.insert("fields".to_owned(), fields.into());
    attachment.insert("mrkdwn_in".to_owned(), json!(slack.mrkdwn_in));
    let actions: Result<Vec<_>, _> =
        slack.actions.iter().map(|action| expand_all(action, expand)).collect();
    let actions = actions?;
    if !actions.is_empty() {
        attachment.insert("actions".to_owned(), json!(actions));
    }
    let mut body = expand_all(&slack.texts, expand)?;
    body.insert("link_names".to_owned(), slack.link_names.into());
    body.insert("attachments".to_owned(), json!([attachment]));
    Ok(Value::Object(body))
}

pub(super) fn pagerduty(
    pagerduty: &Pagerduty,
    message: &Message,
    templates: &MessageTemplates,
) -> SendResult {
    let event = pagerduty_event(pagerduty, message, templates)?;
    Ok(post(&PostSettings::of(&pagerduty.http), &pagerduty.url, event.to_string())?.summary)
}

fn pagerduty_event(
    pagerduty: &Pagerduty,
    message: &Message,
    templates: &MessageTemplates,
) -> Result<Value, DeliveryOutcome> {
    let expand = |text: &str| expand(templates, text, message);
    let is_firing = message.status() == "firing";
    let mut event = json!({
        "routing_key": secret::read(&pagerduty.routing_key).map_err(failed)?,
        "event_action": if is_firing { "trigger" } else { "resolve" },
        "dedup_key": format!("{:032x}", xxh3_128(message.group_key.as_bytes())),
    });
    if is_firing {
        let mut payload = expand_all(&pagerduty.payload, expand)?;
        if let Some(Value::String(summary)) = payload.get_mut("summary") {
            let more = message.unlisted_line().map(|more| format!(", {more}")).unwrap_or_default();
            let rest = SUMMARY_MAX.saturating_sub(more.chars().count());
            *summary = summary.chars().take(rest).collect::<String>() + &more;
        }
        let mut details = Map::new();
        for (key, text) in &pagerduty.details {
            details.insert(key.clone(), expand(text)?.into());
        }
        payload.insert("custom_details".to_owned(), details.into());
        event["payload"] = payload.into();
        event["client"] = expand(&pagerduty.client)?.into();
        let client_url = expand(&pagerduty.client_url)?;
        if !client_url.is_empty() {
            event["client_url"] = client_url.into();
        }
    }
    Ok(event)
}

/// Expands templates and skips empty results.
fn expand_all(
    all: &BTreeMap<&'static str, String>,
    expand: impl Fn(&str) -> Result<String, DeliveryOutcome>,
) -> Result<Map<String, Value>, DeliveryOutcome> {
    let mut expanded = Map::new();
    for (key, text) in all {
        let text = expand(text)?;
        if !text.is_empty() {
            expanded.insert((*key).to_owned(), text.into());
        }
    }
    Ok(expanded)
}

/// Posts JSON. Error messages contain no part of the URL, which may be a secret.
pub(super) fn post(
    settings: &PostSettings<'_>,
    url: &str,
    body: String,
) -> Result<Response, DeliveryOutcome> {
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(failed(INVALID_URL));
    }
    post_with(&client_of(settings)?, settings, url, body)
}

/// Returns a client for one request or for several in a row.
pub(super) fn client_of(settings: &PostSettings<'_>) -> Result<ureq::Agent, DeliveryOutcome> {
    client(settings.http, settings.timeout).map_err(failed)
}

/// Posts JSON with an existing client.
pub(super) fn post_with(
    client: &ureq::Agent,
    settings: &PostSettings<'_>,
    url: &str,
    body: String,
) -> Result<Response, DeliveryOutcome> {
    let mut request = json_request(client, settings.http, url).map_err(failed)?;
    if let Some(authorization) = &settings.authorization {
        request = request.header("Authorization", authorization);
    }
    let response = request.send(body).map_err(|cause| {
        let is_invalid = matches!(cause, ureq::Error::BadUri(_));
        let explained = || RequestFailure::of(&cause, TrustOptions::TlsConfig).text;
        failed(if is_invalid { INVALID_URL.to_owned() } else { explained() })
    })?;
    let status = response.status();
    let mut bytes = Vec::new();
    // Only the status decides the outcome, so an error while reading the body is ignored.
    drop(response.into_body().into_reader().take(RESPONSE_BYTES_MAX).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let summary = one_line(&format!("{status}: {}", without_secrets(&text, url)));
    if status.is_success() {
        return Ok(Response { text, summary });
    }
    if status.is_redirection() {
        let status = status.as_u16();
        return Err(failed(format!(
            "the server redirects (status {status}): configure the URL that it redirects to"
        )));
    }
    Err(if is_refusal(status.as_u16()) {
        DeliveryOutcome::Refused(summary)
    } else {
        DeliveryOutcome::Failed(summary)
    })
}

/// Removes all parts of the request's URL that may be secret from a response.
fn without_secrets(text: &str, url: &str) -> String {
    /// Shorter parts of a path are ordinary words.
    const WORD_MAX: usize = 8;
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let parts = rest.split(['/', '?', '&', '=', '#', '@', ':']).skip(1);
    let secrets = parts.filter(|part| part.len() > WORD_MAX);
    secrets.fold(text.to_owned(), |text, part| text.replace(part, "***"))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, Read, Write},
        net::TcpListener,
        thread,
    };

    use super::*;
    use crate::{alerts::Secret, notify::outcome::message_of_tests};

    fn webhook_at(url: Secret) -> SendResult {
        let settings = Webhook { url, max_alerts: 0, timeout_ms: None, http: Http::default() };
        webhook(&settings, &message_of_tests())
    }

    /// Returns the outcome of a message whose first request gets this status; a second request
    /// would succeed.
    fn outcome_of(status: &str) -> SendResult {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let first = format!(
            "HTTP/1.1 {status}\r\nLocation: {url}other\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        thread::spawn(move || {
            let second = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            for (stream, answer) in listener.incoming().zip([first.as_str(), second]) {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut line, mut length) = (String::new(), 0);
                while reader.read_line(&mut line).unwrap() > 2 {
                    if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
                        length = text.trim().parse().unwrap();
                    }
                    line.clear();
                }
                reader.read_exact(&mut vec![0; length]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        webhook_at(Secret::Text(url))
    }

    #[test]
    fn only_a_response_with_a_2xx_status_confirms_a_message() {
        for status in ["200 OK", "202 Accepted", "204 No Content"] {
            let summary = outcome_of(status).unwrap();
            assert_eq!(summary.split(' ').next(), status.split(' ').next(), "{status}: {summary}");
        }
        for status in
            ["301 Moved", "302 Found", "303 See Other", "304 Not Modified", "307 T", "308 P"]
        {
            let outcome = outcome_of(status);
            assert!(matches!(outcome, Err(DeliveryOutcome::Failed(_))), "{status}: {outcome:?}");
        }
        for status in ["500 Oh", "503 Busy", "429 Slow", "408 Late"] {
            let outcome = outcome_of(status);
            assert!(matches!(outcome, Err(DeliveryOutcome::Failed(_))), "{status}: {outcome:?}");
        }
        for status in ["400 Bad", "401 No", "404 None", "413 Large", "422 Odd"] {
            let outcome = outcome_of(status);
            assert!(matches!(outcome, Err(DeliveryOutcome::Refused(_))), "{status}: {outcome:?}");
        }
    }

    #[test]
    fn alerts_left_out_are_counted_in_every_text() {
        let templates = MessageTemplates::new(&[]).unwrap();
        let message = Message { left_out: 1400, ..message_of_tests() };
        let secret = || Secret::Text("https://example.org".to_owned());
        for text in ["", "of my own"] {
            let slack = Slack {
                api_url: secret(),
                texts: BTreeMap::new(),
                attachment: [("text", text.to_owned()), ("title", "a".to_owned())].into(),
                fields: Vec::new(),
                actions: vec![[("type", "button".to_owned())].into()],
                mrkdwn_in: Vec::new(),
                link_names: false,
                http: Http::default(),
            };
            let body = slack_body(&slack, &message, &templates).unwrap();
            let attachment = &body["attachments"][0];
            for key in ["text", "fallback"] {
                let text = attachment[key].as_str().unwrap();
                assert!(text.ends_with("and 1400 more alerts"), "{attachment}");
            }
            assert_eq!(attachment["actions"], json!([{ "type": "button" }]));
            let pagerduty = Pagerduty {
                routing_key: secret(),
                url: String::new(),
                client: String::new(),
                client_url: String::new(),
                payload: [("summary", format!("{text}{}", "x".repeat(2000)))].into(),
                details: BTreeMap::new(),
                http: Http::default(),
            };
            let event = pagerduty_event(&pagerduty, &message, &templates).unwrap();
            let summary = event["payload"]["summary"].as_str().unwrap();
            assert!(summary.ends_with(", and 1400 more alerts"), "{summary}");
            assert_eq!(summary.chars().count(), SUMMARY_MAX);
        }
    }

    #[test]
    fn errors_contain_no_part_of_a_secret_url() {
        let folder = tempfile::tempdir().unwrap();
        for text in [
            "hooks.example.org/the-secret",
            "https://the-secret:port/",
            "http://the secret/",
            "",
            "http://",
        ] {
            let file = folder.path().join("url");
            std::fs::write(&file, text).unwrap();
            let outcome = webhook_at(Secret::File(file));
            let Err(DeliveryOutcome::Failed(cause)) = &outcome else {
                panic!("{text}: {outcome:?}")
            };
            assert!(!cause.contains("secret") && !cause.contains("port/"), "{text}: {cause}");
        }
    }
}
