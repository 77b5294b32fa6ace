//! Messages to the APIs of chat and on-call services: Opsgenie, Microsoft Teams, Telegram and
//! Discord.
//!
//! Must never know: groups, when anything is sent.

use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_128;

use super::{
    http::{self, PostSettings},
    outcome::{DeliveryOutcome, SendResult, expand, failed},
    secret,
};
use crate::alerts::{Discord, Message, MessageTemplates, Opsgenie, Teams, Telegram};

/// The maximum length of a message at Opsgenie, and of its description, in characters.
const OPSGENIE_MESSAGE_MAX: usize = 130;
const OPSGENIE_DESCRIPTION_MAX: usize = 15_000;
/// The maximum length of a message at Telegram, in characters.
const TELEGRAM_MAX: usize = 4096;
/// The maximum length of a title at Discord, and of a description, in characters.
const DISCORD_TITLE_MAX: usize = 256;
const DISCORD_TEXT_MAX: usize = 2048;
/// The maximum length of a text at Teams, in characters; the limit of a card is 28 KB.
const TEAMS_MAX: usize = 24_000;

/// The color of a firing group, and of a resolved group.
const FIRING: u32 = 0x00b0_0000;
const RESOLVED: u32 = 0x0000_7000;

pub(super) fn opsgenie(
    opsgenie: &Opsgenie,
    message: &Message,
    templates: &MessageTemplates,
) -> SendResult {
    let key = secret::read(&opsgenie.api_key).map_err(failed)?;
    let (path, body) = opsgenie_call(opsgenie, message, templates)?;
    let url = format!("{}/{path}", opsgenie.api_url.trim_end_matches('/'));
    let settings = PostSettings {
        authorization: Some(format!("GenieKey {key}")),
        ..PostSettings::of(&opsgenie.http)
    };
    Ok(http::post(&settings, &url, body.to_string())?.summary)
}

/// Returns the path and the body of a request to Opsgenie.
fn opsgenie_call(
    opsgenie: &Opsgenie,
    message: &Message,
    templates: &MessageTemplates,
) -> Result<(String, Value), DeliveryOutcome> {
    let expand = |text: &str| expand(templates, text, message);
    let alias = format!("{:032x}", xxh3_128(message.group_key.as_bytes()));
    let source = expand(&opsgenie.source)?;
    if message.status() != "firing" {
        let path = format!("v2/alerts/{alias}/close?identifierType=alias");
        return Ok((path, json!({ "source": source })));
    }
    let mut details = Map::new();
    for (key, text) in &opsgenie.details {
        details.insert(key.clone(), expand(text)?.into());
    }
    let mut body = json!({
        "alias": alias,
        "message": cut(&expand(&opsgenie.message)?, OPSGENIE_MESSAGE_MAX, None),
        "description": cut(
            &expand(&opsgenie.description)?,
            OPSGENIE_DESCRIPTION_MAX,
            message.unlisted_line(),
        ),
        "details": details,
        "source": source,
    });
    for (key, text) in
        [("note", &opsgenie.note), ("priority", &opsgenie.priority), ("entity", &opsgenie.entity)]
    {
        let text = expand(text)?;
        if !text.is_empty() {
            body[key] = text.into();
        }
    }
    for (key, text) in [("tags", &opsgenie.tags), ("actions", &opsgenie.actions)] {
        let text = expand(text)?;
        let parts: Vec<_> =
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        if !parts.is_empty() {
            body[key] = json!(parts);
        }
    }
    let mut responders = Vec::new();
    for responder in &opsgenie.responders {
        let mut shown = Map::new();
        for (key, text) in responder {
            let text = expand(text)?;
            if !text.is_empty() {
                shown.insert(key.clone(), text.into());
            }
        }
        responders.push(Value::Object(shown));
    }
    if !responders.is_empty() {
        body["responders"] = responders.into();
    }
    Ok(("v2/alerts".to_owned(), body))
}

pub(super) fn teams(teams: &Teams, message: &Message, templates: &MessageTemplates) -> SendResult {
    let url = secret::read(&teams.webhook_url).map_err(failed)?;
    let body = teams_card(teams, message, templates)?;
    Ok(http::post(&PostSettings::of(&teams.http), &url, body.to_string())?.summary)
}

fn teams_card(
    teams: &Teams,
    message: &Message,
    templates: &MessageTemplates,
) -> Result<Value, DeliveryOutcome> {
    let expand = |text: &str| expand(templates, text, message);
    let mut card = json!({
        "@context": "http://schema.org/extensions",
        "@type": "MessageCard",
        "title": expand(&teams.title)?,
        "summary": expand(&teams.summary)?,
        "text": cut(&expand(&teams.text)?, TEAMS_MAX, message.unlisted_line()),
        "themeColor": format!("{:06x}", color(message)),
    });
    if let Some(url) = message.alerts_url() {
        let targets = json!([{ "os": "default", "uri": url }]);
        card["potentialAction"] =
            json!([{ "@type": "OpenUri", "name": "Open in Granary", "targets": targets }]);
    }
    Ok(card)
}

pub(super) fn telegram(
    telegram: &Telegram,
    message: &Message,
    templates: &MessageTemplates,
) -> SendResult {
    let token = secret::read(&telegram.bot_token).map_err(failed)?;
    let url = format!("{}/bot{token}/sendMessage", telegram.api_url.trim_end_matches('/'));
    let body = telegram_message(telegram, message, templates)?;
    Ok(http::post(&PostSettings::of(&telegram.http), &url, body.to_string())?.summary)
}

fn telegram_message(
    telegram: &Telegram,
    message: &Message,
    templates: &MessageTemplates,
) -> Result<Value, DeliveryOutcome> {
    let mut body = json!({
        "chat_id": telegram.chat_id,
        "disable_notification": telegram.disable_notifications,
        "disable_web_page_preview": true,
    });
    if let Some(thread) = telegram.message_thread_id {
        body["message_thread_id"] = thread.into();
    }
    let more = message.unlisted_line();
    let text = if telegram.parse_mode == "HTML" {
        templates.expand_html(&telegram.message, message).map_err(DeliveryOutcome::Refused)?
    } else {
        expand(templates, &telegram.message, message)?
    };
    let room = more.as_ref().map_or(0, |more| more.chars().count() + 1);
    if text.chars().count() + room <= TELEGRAM_MAX {
        body["text"] = cut(&text, TELEGRAM_MAX, more).into();
        if !telegram.parse_mode.is_empty() {
            body["parse_mode"] = telegram.parse_mode.as_str().into();
        }
        return Ok(body);
    }
    // Telegram rejects markup that is cut off, so a text that is too long is sent as plain text,
    // with its link at the end.
    let footer = [more, message.alerts_url()].into_iter().flatten().collect::<Vec<_>>().join("\n");
    let footer = (!footer.is_empty()).then_some(footer);
    body["text"] =
        cut(&expand(templates, &telegram.message, message)?, TELEGRAM_MAX, footer).into();
    Ok(body)
}

pub(super) fn discord(
    discord: &Discord,
    message: &Message,
    templates: &MessageTemplates,
) -> SendResult {
    let url = secret::read(&discord.webhook_url).map_err(failed)?;
    let body = discord_embed(discord, message, templates)?;
    Ok(http::post(&PostSettings::of(&discord.http), &url, body.to_string())?.summary)
}

fn discord_embed(
    discord: &Discord,
    message: &Message,
    templates: &MessageTemplates,
) -> Result<Value, DeliveryOutcome> {
    let expand = |text: &str| expand(templates, text, message);
    let mut embed = json!({
        "title": cut(&expand(&discord.title)?, DISCORD_TITLE_MAX, None),
        "description": cut(&expand(&discord.message)?, DISCORD_TEXT_MAX, message.unlisted_line()),
        "color": color(message),
    });
    if let Some(url) = message.alerts_url() {
        embed["url"] = url.into();
    }
    Ok(json!({ "content": "", "embeds": [embed] }))
}

fn color(message: &Message) -> u32 {
    if message.status() == "firing" { FIRING } else { RESOLVED }
}

/// Shortens a text to a maximum length, and appends a line that is never shortened.
fn cut(text: &str, characters_max: usize, line: Option<String>) -> String {
    let line = line.map(|line| format!("\n{line}")).unwrap_or_default();
    let room = characters_max.saturating_sub(line.chars().count());
    if text.chars().count() <= room {
        return text.to_owned() + &line;
    }
    text.chars().take(room.saturating_sub(1)).collect::<String>() + "\u{2026}" + &line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        alerts::{Http, LabelSet, MessageAlert, Secret},
        notify::outcome::message_of_tests,
    };

    fn secret() -> Secret {
        Secret::Text("the-key".to_owned())
    }

    fn templates() -> MessageTemplates {
        MessageTemplates::new(&[]).unwrap()
    }

    fn resolved_message() -> Message {
        let mut message = message_of_tests();
        message.alerts.iter_mut().for_each(|alert| alert.ends_at = Some(1));
        message
    }

    /// Returns a message whose alerts contain HTML and exceed the length of every service.
    fn large_message() -> Message {
        let alert = |at: usize| MessageAlert {
            labels: LabelSet::from([("alertname".to_owned(), format!("<{at}> & more"))]),
            ..MessageAlert::default()
        };
        let alerts = (0..1000).map(alert).collect();
        Message { alerts, left_out: 1400, ..message_of_tests() }
    }

    const TEXT: &str = "{{ template \"granary.text\" . }}";
    const TITLE: &str = "{{ template \"granary.title\" . }}";

    #[test]
    fn opsgenie_opens_an_alert_and_closes_it() {
        let opsgenie = Opsgenie {
            api_key: secret(),
            api_url: "https://api.opsgenie.com/".to_owned(),
            message: TITLE.to_owned(),
            description: TEXT.to_owned(),
            tags: "a, {{ .Status }}".to_owned(),
            responders: vec![
                [("name", "ops"), ("type", "team")]
                    .map(|(a, b)| (a.to_owned(), b.to_owned()))
                    .into(),
            ],
            ..Opsgenie::default()
        };
        let (path, body) = opsgenie_call(&opsgenie, &message_of_tests(), &templates()).unwrap();
        assert_eq!((path.as_str(), &body["tags"]), ("v2/alerts", &json!(["a", "firing"])));
        assert_eq!(body["message"], "[FIRING:1] High");
        assert_eq!(body["responders"], json!([{ "name": "ops", "type": "team" }]));
        let (path, _) = opsgenie_call(&opsgenie, &resolved_message(), &templates()).unwrap();
        let alias = body["alias"].as_str().unwrap();
        assert_eq!(path, format!("v2/alerts/{alias}/close?identifierType=alias"));
        let (_, body) = opsgenie_call(&opsgenie, &large_message(), &templates()).unwrap();
        assert!(body["message"].as_str().unwrap().chars().count() <= OPSGENIE_MESSAGE_MAX);
        assert!(body["description"].as_str().unwrap().ends_with("\nand 1400 more alerts"));
    }

    #[test]
    fn texts_fit_the_services_and_always_count_the_alerts_left_out() {
        let (title, summary, text) = (TITLE.to_owned(), TITLE.to_owned(), TEXT.to_owned());
        let teams = Teams { webhook_url: secret(), title, summary, text, http: Http::default() };
        let card = teams_card(&teams, &large_message(), &templates()).unwrap();
        assert!(card.to_string().len() < 28 << 10 && card["themeColor"] == "b00000");
        assert_eq!(
            teams_card(&teams, &resolved_message(), &templates()).unwrap()["themeColor"],
            "007000"
        );
        let discord = Discord {
            webhook_url: secret(),
            title: TITLE.to_owned(),
            message: TEXT.to_owned(),
            http: Http::default(),
        };
        let embed = &discord_embed(&discord, &large_message(), &templates()).unwrap()["embeds"][0];
        let telegram = Telegram {
            bot_token: secret(),
            api_url: "https://api.telegram.org".to_owned(),
            chat_id: -7,
            message_thread_id: None,
            message: TEXT.to_owned(),
            disable_notifications: false,
            parse_mode: "HTML".to_owned(),
            http: Http::default(),
        };
        let message = telegram_message(&telegram, &large_message(), &templates()).unwrap();
        for (service, text, characters_max) in [
            ("Teams", &card["text"], TEAMS_MAX),
            ("Discord", &embed["description"], DISCORD_TEXT_MAX),
            ("Telegram", &message["text"], TELEGRAM_MAX),
        ] {
            let text = text.as_str().unwrap();
            assert!(text.ends_with("\nand 1400 more alerts"), "{service}: {text}");
            assert_eq!(text.chars().count(), characters_max, "{service}");
        }
        // Telegram rejects markup that is cut off.
        assert!(message["parse_mode"].is_null(), "{message}");
        let small = Message { alerts: large_message().alerts[..1].to_vec(), ..message_of_tests() };
        let message = telegram_message(&telegram, &small, &templates()).unwrap();
        assert_eq!((&message["chat_id"], &message["parse_mode"]), (&json!(-7), &json!("HTML")));
        assert!(message["text"].as_str().unwrap().contains("&lt;0&gt; &amp; more"), "{message}");
    }
}
