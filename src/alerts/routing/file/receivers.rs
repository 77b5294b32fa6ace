//! The conversion of a file's raw receivers to checked ones, with Alertmanager's defaults and
//! Granary's default texts.
//!
//! Must never know: YAML.

use std::{collections::BTreeMap, path::PathBuf};

use super::{
    check::FileChecker,
    raw::{RawAction, RawCommand, RawEmail, RawPagerduty, RawReceiver, RawSlack, RawWebhook},
};
use crate::alerts::routing::receiver::{
    Command, Email, Integration, Pagerduty, Receiver, Secret, Slack, SlackField, Target, Webhook,
};

const PAGERDUTY_URL: &str = "https://events.pagerduty.com/v2/enqueue";
/// The default timeout of a command, in milliseconds.
const COMMAND_MS: i64 = 30_000;
/// The maximum timeout of a command or a webhook, in milliseconds.
const SENDING_MS_MAX: i64 = 300_000;
pub(super) const SUBJECT: &str = "{{ template \"granary.title\" . }}";
pub(super) const TEXT: &str = "{{ template \"granary.text\" . }}";
/// The page that lists all alerts.
const ALERTS_LINK: &str = "{{ with .ExternalURL }}{{ . }}/alerts{{ end }}";
const HTML: &str = "{{ template \"granary.html\" . }}";

/// True when the integration also gets messages about ended alerts, and the target.
pub(super) type ReadTarget = (bool, Target);

impl FileChecker<'_> {
    pub(super) fn receiver(&mut self, raw: RawReceiver) -> Receiver {
        let mut integrations = Vec::new();
        let name = raw.name.clone();
        let mut add = |kind: &str, at: usize, (send_resolved, target): ReadTarget| {
            integrations.push(Integration { key: format!("{kind}/{at}"), send_resolved, target });
        };
        let location = |checker: &mut Self, kind: &str, at: usize| {
            checker.location = format!("receiver {name:?}, {kind}_configs[{at}]");
        };
        for (at, settings) in raw.webhook_configs.into_iter().enumerate() {
            location(self, "webhook", at);
            add("webhook", at, self.webhook(settings));
        }
        for (at, settings) in raw.slack_configs.into_iter().enumerate() {
            location(self, "slack", at);
            add("slack", at, self.slack(settings));
        }
        for (at, settings) in raw.pagerduty_configs.into_iter().enumerate() {
            location(self, "pagerduty", at);
            add("pagerduty", at, self.pagerduty(settings));
        }
        for (at, settings) in raw.email_configs.into_iter().enumerate() {
            location(self, "email", at);
            add("email", at, self.email(settings));
        }
        for (at, settings) in raw.opsgenie_configs.into_iter().enumerate() {
            location(self, "opsgenie", at);
            add("opsgenie", at, self.opsgenie(settings));
        }
        for (at, settings) in raw.msteams_configs.into_iter().enumerate() {
            location(self, "msteams", at);
            add("msteams", at, self.teams(settings));
        }
        for (at, settings) in raw.telegram_configs.into_iter().enumerate() {
            location(self, "telegram", at);
            add("telegram", at, self.telegram(settings));
        }
        for (at, settings) in raw.discord_configs.into_iter().enumerate() {
            location(self, "discord", at);
            add("discord", at, self.discord(settings));
        }
        for (at, settings) in raw.command_configs.into_iter().enumerate() {
            location(self, "command", at);
            add("command", at, self.command(settings));
        }
        Receiver { name: raw.name, integrations }
    }

    fn webhook(&mut self, raw: RawWebhook) -> ReadTarget {
        let url = self.secret_address("url", raw.url, raw.url_file);
        let http = self.http(raw.http_config);
        // In Alertmanager, 0 means the default.
        let timeout = raw.timeout.as_deref().filter(|text| !matches!(*text, "0" | "0s"));
        let timeout_ms = self.positive_duration("timeout", timeout);
        if timeout_ms.is_some_and(|ms| ms > SENDING_MS_MAX) {
            self.fault(format!("timeout: use {SENDING_MS_MAX} ms at most"));
        }
        let webhook = Webhook { url, max_alerts: raw.max_alerts, timeout_ms, http };
        (raw.send_resolved.unwrap_or(true), Target::Webhook(Box::new(webhook)))
    }

    fn slack(&mut self, raw: RawSlack) -> ReadTarget {
        let has_url = raw.api_url.is_some() || raw.api_url_file.is_some();
        let (url, file) = if has_url {
            (raw.api_url, raw.api_url_file)
        } else {
            (self.global.slack_api_url.clone(), self.global.slack_api_url_file.clone())
        };
        let color = "{{ if eq .Status \"firing\" }}danger{{ else }}good{{ end }}";
        let texts = [
            ("channel", raw.channel),
            ("username", Some(raw.username.unwrap_or_else(|| "Granary".to_owned()))),
            ("icon_emoji", raw.icon_emoji),
            ("icon_url", raw.icon_url),
        ];
        let attachment = [
            ("color", Some(raw.color.unwrap_or_else(|| color.to_owned()))),
            ("title", Some(raw.title.unwrap_or_else(|| SUBJECT.to_owned()))),
            ("title_link", Some(raw.title_link.unwrap_or_else(|| ALERTS_LINK.to_owned()))),
            ("pretext", raw.pretext),
            ("text", Some(raw.text.unwrap_or_else(|| TEXT.to_owned()))),
            ("fallback", Some(raw.fallback.unwrap_or_else(|| SUBJECT.to_owned()))),
            ("footer", raw.footer),
        ];
        let field = |field: super::raw::RawField| SlackField {
            title: field.title,
            value: field.value,
            short: field.short,
        };
        let api_url = self.secret_address("api_url", url, file);
        let slack = Slack {
            api_url,
            texts: present_texts(texts),
            attachment: present_texts(attachment),
            fields: raw.fields.into_iter().map(field).collect(),
            actions: raw.actions.into_iter().map(action).collect(),
            mrkdwn_in: raw
                .mrkdwn_in
                .unwrap_or_else(|| ["fallback", "pretext", "text"].map(str::to_owned).to_vec()),
            link_names: raw.link_names.unwrap_or(false),
            http: self.http(raw.http_config),
        };
        (raw.send_resolved.unwrap_or(false), Target::Slack(Box::new(slack)))
    }

    fn pagerduty(&mut self, raw: RawPagerduty) -> ReadTarget {
        let or = |text: Option<String>, default: &str| text.unwrap_or_else(|| default.to_owned());
        let url = raw.url.or_else(|| self.global.pagerduty_url.clone());
        let url = or(url, PAGERDUTY_URL);
        self.check_address("url", &url);
        let payload = [
            ("summary", Some(or(raw.description, SUBJECT))),
            ("severity", Some(or(raw.severity, "error"))),
            ("source", Some(or(raw.source, "Granary"))),
            ("class", raw.class),
            ("component", raw.component),
            ("group", raw.group),
        ];
        let mut details = raw.details;
        for (key, text) in [
            ("firing", "{{ template \"granary.alerts\" .Alerts.Firing }}"),
            ("resolved", "{{ template \"granary.alerts\" .Alerts.Resolved }}"),
            ("num_firing", "{{ .Alerts.Firing | len }}"),
            ("num_resolved", "{{ .Alerts.Resolved | len }}"),
        ] {
            details.entry(key.to_owned()).or_insert_with(|| text.to_owned());
        }
        let pagerduty = Pagerduty {
            routing_key: self.required_secret("routing_key", raw.routing_key, raw.routing_key_file),
            url,
            client: or(raw.client, "Granary"),
            client_url: or(raw.client_url, ALERTS_LINK),
            payload: present_texts(payload),
            details,
            http: self.http(raw.http_config),
        };
        (raw.send_resolved.unwrap_or(true), Target::Pagerduty(Box::new(pagerduty)))
    }

    fn email(&mut self, raw: RawEmail) -> ReadTarget {
        let global = &self.global;
        let smarthost = raw.smarthost.or_else(|| global.smtp_smarthost.clone());
        let username = raw.auth_username.or_else(|| global.smtp_auth_username.clone());
        let has_password = raw.auth_password.is_some() || raw.auth_password_file.is_some();
        let (password, file) = if has_password {
            (raw.auth_password, raw.auth_password_file)
        } else {
            (global.smtp_auth_password.clone(), global.smtp_auth_password_file.clone())
        };
        let from = raw.from.or_else(|| global.smtp_from.clone());
        let hello = raw.hello.or_else(|| global.smtp_hello.clone());
        let require_tls = raw.require_tls.or(global.smtp_require_tls).unwrap_or(true);
        let auth =
            username.map(|name| (name, self.required_secret("auth_password", password, file)));
        let mut headers = raw.headers;
        if !headers.keys().any(|name| name.eq_ignore_ascii_case("subject")) {
            headers.insert("Subject".to_owned(), SUBJECT.to_owned());
        }
        for (key, is_given) in [("to", raw.to.is_some()), ("from", from.is_some())] {
            if !is_given {
                self.fault(format!("{key} is missing: set it to an address"));
            }
        }
        let email = Email {
            to: raw.to.unwrap_or_default(),
            from: from.unwrap_or_default(),
            smarthost: self.smarthost(smarthost.as_deref()),
            hello: hello.unwrap_or_else(|| "localhost".to_owned()),
            auth,
            require_tls,
            tls: self.tls(raw.tls_config),
            headers,
            html: raw.html.unwrap_or_else(|| HTML.to_owned()),
            text: raw.text.unwrap_or_else(|| TEXT.to_owned()),
        };
        (raw.send_resolved.unwrap_or(false), Target::Email(Box::new(email)))
    }

    fn command(&mut self, raw: RawCommand) -> ReadTarget {
        self.check_is_file("command", "run commands");
        if raw.command.first().is_none_or(String::is_empty) {
            self.fault("command names no program");
        }
        if raw.command.iter().any(|text| text.contains('\0')) {
            self.fault("command: an argument contains a NUL character");
        }
        let timeout_ms =
            self.positive_duration("timeout", raw.timeout.as_deref()).unwrap_or(COMMAND_MS);
        if timeout_ms > SENDING_MS_MAX {
            self.fault(format!("timeout: use {SENDING_MS_MAX} ms at most"));
        }
        let command = Command { command: raw.command, timeout_ms };
        (raw.send_resolved.unwrap_or(true), Target::Command(command))
    }

    /// Returns a URL that may be a secret; checks it unless it is in a file.
    pub(super) fn secret_address(
        &mut self,
        key: &str,
        text: Option<String>,
        file: Option<PathBuf>,
    ) -> Secret {
        let secret = self.required_secret(key, text, file);
        if let Secret::Text(url) = &secret {
            self.check_address(key, url);
        }
        secret
    }

    fn smarthost(&mut self, text: Option<&str>) -> (String, u16) {
        let read = text.and_then(|text| {
            let (host, port) = text.rsplit_once(':')?;
            let host = host.trim_start_matches('[').trim_end_matches(']');
            Some((host.to_owned(), port.parse().ok()?))
        });
        read.unwrap_or_else(|| {
            self.fault("smarthost must be a host and a port, such as mail.example.org:587");
            (String::new(), 0)
        })
    }

    /// Adds a fault unless a text is an HTTP address.
    pub(super) fn check_address(&mut self, key: &str, url: &str) {
        let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        if host.is_none_or(str::is_empty) {
            self.fault(format!("{key} is not a URL; write https://example.org/path"));
        }
    }
}

fn action(raw: RawAction) -> BTreeMap<&'static str, String> {
    present_texts([
        ("type", Some(raw.kind)),
        ("text", Some(raw.text)),
        ("url", raw.url),
        ("style", raw.style),
        ("name", raw.name),
        ("value", raw.value),
    ])
}

fn present_texts<const N: usize>(
    texts: [(&'static str, Option<String>); N],
) -> BTreeMap<&'static str, String> {
    texts.into_iter().filter_map(|(key, text)| Some((key, text?))).collect()
}
