//! The keys of notification files: the supported keys of Alertmanager, and Granary's own keys
//! `escalate` and `command_configs`. Any other key is an error.
//!
//! Must never know: what the values mean.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

use super::raw_http::{RawHttp, RawTls};
use crate::alerts::routing::interval::RawInterval;

pub(super) type TextMap = BTreeMap<String, String>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    #[serde(default)]
    pub(super) global: RawGlobal,
    pub(super) route: RawRoute,
    #[serde(default)]
    pub(super) inhibit_rules: Vec<RawInhibition>,
    #[serde(default)]
    pub(super) receivers: Vec<RawReceiver>,
    #[serde(default)]
    pub(super) time_intervals: Vec<RawNamedInterval>,
    /// The former name of `time_intervals`.
    #[serde(default)]
    pub(super) mute_time_intervals: Vec<RawNamedInterval>,
    #[serde(default)]
    pub(super) templates: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGlobal {
    pub(super) resolve_timeout: Option<String>,
    pub(super) smtp_from: Option<String>,
    pub(super) smtp_smarthost: Option<String>,
    pub(super) smtp_hello: Option<String>,
    pub(super) smtp_auth_username: Option<String>,
    pub(super) smtp_auth_password: Option<String>,
    pub(super) smtp_auth_password_file: Option<PathBuf>,
    pub(super) smtp_require_tls: Option<bool>,
    pub(super) slack_api_url: Option<String>,
    pub(super) slack_api_url_file: Option<PathBuf>,
    pub(super) pagerduty_url: Option<String>,
    pub(super) opsgenie_api_url: Option<String>,
    pub(super) opsgenie_api_key: Option<String>,
    pub(super) opsgenie_api_key_file: Option<PathBuf>,
    pub(super) telegram_api_url: Option<String>,
    pub(super) http_config: Option<RawHttp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRoute {
    pub(super) receiver: Option<String>,
    pub(super) group_by: Option<Vec<String>>,
    pub(super) group_wait: Option<String>,
    pub(super) group_interval: Option<String>,
    pub(super) repeat_interval: Option<String>,
    #[serde(default, rename = "match")]
    pub(super) match_equal: TextMap,
    #[serde(default)]
    pub(super) match_re: TextMap,
    #[serde(default)]
    pub(super) matchers: Vec<String>,
    #[serde(default, rename = "continue")]
    pub(super) continues: bool,
    #[serde(default)]
    pub(super) mute_time_intervals: Vec<String>,
    #[serde(default)]
    pub(super) active_time_intervals: Vec<String>,
    #[serde(default)]
    pub(super) escalate: Vec<RawEscalation>,
    #[serde(default)]
    pub(super) routes: Vec<RawRoute>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEscalation {
    pub(super) after: String,
    pub(super) receiver: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawInhibition {
    #[serde(default)]
    pub(super) source_match: TextMap,
    #[serde(default)]
    pub(super) source_match_re: TextMap,
    #[serde(default)]
    pub(super) source_matchers: Vec<String>,
    #[serde(default)]
    pub(super) target_match: TextMap,
    #[serde(default)]
    pub(super) target_match_re: TextMap,
    #[serde(default)]
    pub(super) target_matchers: Vec<String>,
    #[serde(default)]
    pub(super) equal: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNamedInterval {
    pub(super) name: String,
    #[serde(default)]
    pub(super) time_intervals: Vec<RawInterval>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawReceiver {
    pub(super) name: String,
    #[serde(default)]
    pub(super) webhook_configs: Vec<RawWebhook>,
    #[serde(default)]
    pub(super) slack_configs: Vec<RawSlack>,
    #[serde(default)]
    pub(super) pagerduty_configs: Vec<RawPagerduty>,
    #[serde(default)]
    pub(super) email_configs: Vec<RawEmail>,
    #[serde(default)]
    pub(super) opsgenie_configs: Vec<RawOpsgenie>,
    #[serde(default)]
    pub(super) msteams_configs: Vec<RawTeams>,
    #[serde(default)]
    pub(super) telegram_configs: Vec<RawTelegram>,
    #[serde(default)]
    pub(super) discord_configs: Vec<RawDiscord>,
    #[serde(default)]
    pub(super) command_configs: Vec<RawCommand>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWebhook {
    pub(super) send_resolved: Option<bool>,
    pub(super) url: Option<String>,
    pub(super) url_file: Option<PathBuf>,
    #[serde(default)]
    pub(super) max_alerts: usize,
    pub(super) timeout: Option<String>,
    pub(super) http_config: Option<RawHttp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSlack {
    pub(super) send_resolved: Option<bool>,
    pub(super) api_url: Option<String>,
    pub(super) api_url_file: Option<PathBuf>,
    pub(super) channel: Option<String>,
    pub(super) username: Option<String>,
    pub(super) color: Option<String>,
    pub(super) title: Option<String>,
    pub(super) title_link: Option<String>,
    pub(super) pretext: Option<String>,
    pub(super) text: Option<String>,
    pub(super) fallback: Option<String>,
    pub(super) footer: Option<String>,
    pub(super) icon_emoji: Option<String>,
    pub(super) icon_url: Option<String>,
    pub(super) link_names: Option<bool>,
    #[serde(default)]
    pub(super) fields: Vec<RawField>,
    #[serde(default)]
    pub(super) actions: Vec<RawAction>,
    pub(super) mrkdwn_in: Option<Vec<String>>,
    pub(super) http_config: Option<RawHttp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawField {
    pub(super) title: String,
    pub(super) value: String,
    #[serde(default)]
    pub(super) short: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAction {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: String,
    pub(super) url: Option<String>,
    pub(super) style: Option<String>,
    pub(super) name: Option<String>,
    pub(super) value: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawOpsgenie {
    pub(super) send_resolved: Option<bool>,
    pub(super) api_key: Option<String>,
    pub(super) api_key_file: Option<PathBuf>,
    pub(super) api_url: Option<String>,
    pub(super) message: Option<String>,
    pub(super) description: Option<String>,
    pub(super) source: Option<String>,
    pub(super) note: Option<String>,
    pub(super) priority: Option<String>,
    pub(super) entity: Option<String>,
    pub(super) tags: Option<String>,
    pub(super) actions: Option<String>,
    #[serde(default)]
    pub(super) details: TextMap,
    #[serde(default)]
    pub(super) responders: Vec<TextMap>,
    pub(super) http_config: Option<RawHttp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTeams {
    pub(super) send_resolved: Option<bool>,
    pub(super) webhook_url: Option<String>,
    pub(super) webhook_url_file: Option<PathBuf>,
    pub(super) title: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) text: Option<String>,
    pub(super) http_config: Option<RawHttp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTelegram {
    pub(super) send_resolved: Option<bool>,
    pub(super) api_url: Option<String>,
    pub(super) bot_token: Option<String>,
    pub(super) bot_token_file: Option<PathBuf>,
    pub(super) chat_id: Option<i64>,
    pub(super) message_thread_id: Option<i64>,
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) disable_notifications: bool,
    pub(super) parse_mode: Option<String>,
    pub(super) http_config: Option<RawHttp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDiscord {
    pub(super) send_resolved: Option<bool>,
    pub(super) webhook_url: Option<String>,
    pub(super) webhook_url_file: Option<PathBuf>,
    pub(super) title: Option<String>,
    pub(super) message: Option<String>,
    pub(super) http_config: Option<RawHttp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPagerduty {
    pub(super) send_resolved: Option<bool>,
    pub(super) routing_key: Option<String>,
    pub(super) routing_key_file: Option<PathBuf>,
    pub(super) url: Option<String>,
    pub(super) client: Option<String>,
    pub(super) client_url: Option<String>,
    pub(super) description: Option<String>,
    pub(super) severity: Option<String>,
    pub(super) source: Option<String>,
    pub(super) class: Option<String>,
    pub(super) component: Option<String>,
    pub(super) group: Option<String>,
    #[serde(default)]
    pub(super) details: TextMap,
    pub(super) http_config: Option<RawHttp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEmail {
    pub(super) send_resolved: Option<bool>,
    pub(super) to: Option<String>,
    pub(super) from: Option<String>,
    pub(super) smarthost: Option<String>,
    pub(super) hello: Option<String>,
    pub(super) auth_username: Option<String>,
    pub(super) auth_password: Option<String>,
    pub(super) auth_password_file: Option<PathBuf>,
    pub(super) require_tls: Option<bool>,
    #[serde(default)]
    pub(super) tls_config: RawTls,
    #[serde(default)]
    pub(super) headers: TextMap,
    pub(super) html: Option<String>,
    pub(super) text: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCommand {
    pub(super) send_resolved: Option<bool>,
    pub(super) command: Vec<String>,
    pub(super) timeout: Option<String>,
}
