//! Receivers after parsing: checked, with all defaults. Their texts are templates.
//!
//! Must never know: how anything is sent.

use std::{collections::BTreeMap, fmt, path::PathBuf};

/// A receiver of notifications.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Receiver {
    /// The unique name.
    pub name: String,
    /// The integrations, each of which gets every notification.
    pub integrations: Vec<Integration>,
}

/// An integration: one destination of a receiver, with its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Integration {
    /// The key within the receiver, such as `webhook/0`.
    pub key: String,
    /// `send_resolved`: true when the receiver gets the ends of alerts.
    pub send_resolved: bool,
    /// The destination of its messages.
    pub target: Target,
}

/// The destination of an integration's messages.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the types describe the variants")]
pub enum Target {
    Webhook(Box<Webhook>),
    Slack(Box<Slack>),
    Pagerduty(Box<Pagerduty>),
    Email(Box<Email>),
    Opsgenie(Box<Opsgenie>),
    Teams(Box<Teams>),
    Telegram(Box<Telegram>),
    Discord(Box<Discord>),
    Command(Command),
}

impl Target {
    /// Returns the templates, by key.
    pub(super) fn texts(&self) -> Vec<(&str, &str)> {
        let mut texts: Vec<(&str, &str)> = Vec::new();
        match self {
            Self::Webhook(_) | Self::Command(_) => {}
            Self::Slack(slack) => {
                let all = slack.texts.iter().chain(&slack.attachment);
                texts.extend(all.map(|(key, text)| (*key, text.as_str())));
                texts.extend(slack.fields.iter().flat_map(|field| {
                    [("fields", field.title.as_str()), ("fields", field.value.as_str())]
                }));
                let actions = slack.actions.iter().flatten();
                texts.extend(actions.map(|(_, text)| ("actions", text.as_str())));
            }
            Self::Pagerduty(pagerduty) => {
                texts.extend([
                    ("client", pagerduty.client.as_str()),
                    ("client_url", &pagerduty.client_url),
                ]);
                texts.extend(pagerduty.payload.iter().map(|(key, text)| (*key, text.as_str())));
                texts.extend(
                    pagerduty.details.iter().map(|(key, text)| (key.as_str(), text.as_str())),
                );
            }
            Self::Opsgenie(opsgenie) => {
                texts.extend(opsgenie.texts());
                texts.extend(
                    opsgenie.details.iter().map(|(key, text)| (key.as_str(), text.as_str())),
                );
                let responders = opsgenie.responders.iter().flatten();
                texts.extend(responders.map(|(_, text)| ("responders", text.as_str())));
            }
            Self::Teams(teams) => {
                texts.extend([("title", teams.title.as_str()), ("summary", &teams.summary)]);
                texts.push(("text", &teams.text));
            }
            Self::Telegram(telegram) => texts.push(("message", &telegram.message)),
            Self::Discord(discord) => {
                texts.extend([("title", discord.title.as_str()), ("message", &discord.message)]);
            }
            Self::Email(email) => {
                let all = [
                    ("to", &email.to),
                    ("from", &email.from),
                    ("html", &email.html),
                    ("text", &email.text),
                ];
                texts.extend(all.map(|(key, text)| (key, text.as_str())));
                texts.extend(email.headers.iter().map(|(key, text)| (key.as_str(), text.as_str())));
            }
        }
        texts
    }
}

/// A secret that no log shows: a literal, or a file that is read at each use.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// A literal.
    Text(String),
    /// A file; the line break at its end is not part of the secret.
    File(PathBuf),
}

impl Default for Secret {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("<secret>"),
            Self::File(path) => write!(f, "<secret in {}>", path.display()),
        }
    }
}

/// The settings of an HTTP client.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Http {
    /// The header `Authorization`: its scheme and its credentials.
    pub authorization: Option<(String, Secret)>,
    /// A user name and its password.
    pub basic: Option<(String, Secret)>,
    /// Further headers.
    pub headers: Vec<(String, Secret)>,
    /// The URL of the proxy.
    pub proxy: Option<String>,
    /// The TLS settings.
    pub tls: Tls,
}

/// The settings by which a server is verified.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tls {
    /// Additional certificates, as PEM.
    pub ca_file: Option<PathBuf>,
    /// True when any certificate is accepted.
    pub insecure_skip_verify: bool,
}

/// A webhook, which gets Alertmanager's JSON.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are Alertmanager's")]
pub struct Webhook {
    pub url: Secret,
    /// The maximum number of listed alerts; 0: all of them.
    pub max_alerts: usize,
    /// The timeout of a response, in milliseconds, if one is set.
    pub timeout_ms: Option<i64>,
    pub http: Http,
}

/// A message to Slack or a compatible service.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are Slack's")]
pub struct Slack {
    pub api_url: Secret,
    /// The texts of the message, by key.
    pub texts: BTreeMap<&'static str, String>,
    /// The texts of the attachment, by key.
    pub attachment: BTreeMap<&'static str, String>,
    pub fields: Vec<SlackField>,
    /// The texts of each button, by key.
    pub actions: Vec<BTreeMap<&'static str, String>>,
    pub mrkdwn_in: Vec<String>,
    pub link_names: bool,
    pub http: Http,
}

/// A field of the attachment of a message to Slack.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are Slack's")]
pub struct SlackField {
    pub title: String,
    pub value: String,
    pub short: bool,
}

/// An event of `PagerDuty`'s API, version 2.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are PagerDuty's")]
pub struct Pagerduty {
    pub routing_key: Secret,
    pub url: String,
    pub client: String,
    pub client_url: String,
    /// The texts of the payload, by key.
    pub payload: BTreeMap<&'static str, String>,
    pub details: BTreeMap<String, String>,
    pub http: Http,
}

/// An alert at Opsgenie.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(missing_docs, reason = "the fields are Opsgenie's")]
pub struct Opsgenie {
    pub api_key: Secret,
    pub api_url: String,
    pub message: String,
    pub description: String,
    pub source: String,
    pub note: String,
    pub priority: String,
    pub entity: String,
    /// The tags, separated by commas.
    pub tags: String,
    /// The actions, separated by commas.
    pub actions: String,
    pub details: BTreeMap<String, String>,
    /// The texts of each responder, by key.
    pub responders: Vec<BTreeMap<String, String>>,
    pub http: Http,
}

impl Opsgenie {
    fn texts(&self) -> [(&'static str, &str); 8] {
        [
            ("message", &self.message),
            ("description", &self.description),
            ("source", &self.source),
            ("note", &self.note),
            ("priority", &self.priority),
            ("entity", &self.entity),
            ("tags", &self.tags),
            ("actions", &self.actions),
        ]
    }
}

/// A card in a channel of Microsoft Teams.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are Alertmanager's")]
pub struct Teams {
    pub webhook_url: Secret,
    pub title: String,
    pub summary: String,
    pub text: String,
    pub http: Http,
}

/// A message of a bot at Telegram.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are Alertmanager's")]
pub struct Telegram {
    pub bot_token: Secret,
    pub api_url: String,
    pub chat_id: i64,
    pub message_thread_id: Option<i64>,
    pub message: String,
    pub disable_notifications: bool,
    /// `HTML`, `Markdown`, `MarkdownV2`, or nothing.
    pub parse_mode: String,
    pub http: Http,
}

/// A message in a channel of Discord.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are Alertmanager's")]
pub struct Discord {
    pub webhook_url: Secret,
    pub title: String,
    pub message: String,
    pub http: Http,
}

/// A mail.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are Alertmanager's")]
pub struct Email {
    pub to: String,
    pub from: String,
    /// The host and the port.
    pub smarthost: (String, u16),
    pub hello: String,
    pub auth: Option<(String, Secret)>,
    pub require_tls: bool,
    pub tls: Tls,
    pub headers: BTreeMap<String, String>,
    pub html: String,
    pub text: String,
}

/// A command, which gets the webhook's JSON on its standard input.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The timeout, in milliseconds.
    pub timeout_ms: i64,
}
