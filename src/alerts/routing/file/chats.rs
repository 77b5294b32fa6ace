//! Receivers at chat and paging services, with Alertmanager's defaults.
//!
//! Must never know: YAML.

use super::{
    check::FileChecker,
    raw::{RawDiscord, RawOpsgenie, RawTeams, RawTelegram},
    receivers::{ReadTarget, SUBJECT, TEXT},
};
use crate::alerts::routing::receiver::{Discord, Opsgenie, Target, Teams, Telegram};

const OPSGENIE_URL: &str = "https://api.opsgenie.com/";
const TELEGRAM_URL: &str = "https://api.telegram.org";
/// The parse modes of Telegram.
const PARSE_MODES: [&str; 4] = ["", "HTML", "Markdown", "MarkdownV2"];
/// The keys of a responder in Opsgenie.
const RESPONDER_KEYS: [&str; 4] = ["id", "name", "username", "type"];

fn or_default(text: Option<String>, default: &str) -> String {
    text.unwrap_or_else(|| default.to_owned())
}

impl FileChecker<'_> {
    pub(super) fn opsgenie(&mut self, raw: RawOpsgenie) -> ReadTarget {
        let has_key = raw.api_key.is_some() || raw.api_key_file.is_some();
        let (key, file) = if has_key {
            (raw.api_key, raw.api_key_file)
        } else {
            (self.global.opsgenie_api_key.clone(), self.global.opsgenie_api_key_file.clone())
        };
        let api_url =
            or_default(raw.api_url.or_else(|| self.global.opsgenie_api_url.clone()), OPSGENIE_URL);
        self.check_address("api_url", &api_url);
        for name in raw.responders.iter().flat_map(|responder| responder.keys()) {
            if !RESPONDER_KEYS.contains(&name.as_str()) {
                self.fault(format!("responders: {name:?} is not one of id, name, username, type"));
            }
        }
        let opsgenie = Opsgenie {
            api_key: self.required_secret("api_key", key, file),
            api_url,
            message: or_default(raw.message, SUBJECT),
            description: or_default(raw.description, TEXT),
            source: or_default(raw.source, "Granary"),
            note: or_default(raw.note, ""),
            priority: or_default(raw.priority, ""),
            entity: or_default(raw.entity, ""),
            tags: or_default(raw.tags, ""),
            actions: or_default(raw.actions, ""),
            details: raw.details,
            responders: raw.responders,
            http: self.http(raw.http_config),
        };
        (raw.send_resolved.unwrap_or(true), Target::Opsgenie(Box::new(opsgenie)))
    }

    pub(super) fn teams(&mut self, raw: RawTeams) -> ReadTarget {
        let teams = Teams {
            webhook_url: self.secret_address("webhook_url", raw.webhook_url, raw.webhook_url_file),
            title: or_default(raw.title, SUBJECT),
            summary: or_default(raw.summary, SUBJECT),
            text: or_default(raw.text, TEXT),
            http: self.http(raw.http_config),
        };
        (raw.send_resolved.unwrap_or(true), Target::Teams(Box::new(teams)))
    }

    pub(super) fn telegram(&mut self, raw: RawTelegram) -> ReadTarget {
        let api_url =
            or_default(raw.api_url.or_else(|| self.global.telegram_api_url.clone()), TELEGRAM_URL);
        self.check_address("api_url", &api_url);
        let parse_mode = or_default(raw.parse_mode, "HTML");
        if !PARSE_MODES.contains(&parse_mode.as_str()) {
            self.fault(format!(
                "parse_mode: {parse_mode:?} is not one of HTML, Markdown, MarkdownV2"
            ));
        }
        if raw.chat_id.is_none_or(|id| id == 0) {
            self.fault("chat_id is missing: set it to the number of a chat");
        }
        let telegram = Telegram {
            bot_token: self.required_secret("bot_token", raw.bot_token, raw.bot_token_file),
            api_url,
            chat_id: raw.chat_id.unwrap_or_default(),
            message_thread_id: raw.message_thread_id,
            message: or_default(raw.message, TEXT),
            disable_notifications: raw.disable_notifications,
            parse_mode,
            http: self.http(raw.http_config),
        };
        (raw.send_resolved.unwrap_or(true), Target::Telegram(Box::new(telegram)))
    }

    pub(super) fn discord(&mut self, raw: RawDiscord) -> ReadTarget {
        let discord = Discord {
            webhook_url: self.secret_address("webhook_url", raw.webhook_url, raw.webhook_url_file),
            title: or_default(raw.title, SUBJECT),
            message: or_default(raw.message, TEXT),
            http: self.http(raw.http_config),
        };
        (raw.send_resolved.unwrap_or(true), Target::Discord(Box::new(discord)))
    }
}
