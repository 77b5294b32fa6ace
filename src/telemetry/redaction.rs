//! Removal of secrets from texts that leave the machine.
//!
//! Must never know: where a text comes from.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The user and the password of an address.
const ADDRESS: &str = r#"://[^/\s"'<>]*@"#;
/// The credentials of an HTTP header.
const HEADER: &str = r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+";
/// A name of a secret with its value.
const NAMED: &str = concat!(
    r#"(?i)(["']?[\w-]*(?:passw(?:or)?d|passphrase|secrets?|token|api[_-]?key|credentials|"#,
    r#"authorization)["']?\s*[:=]\s*)("[^"]*"|'[^']*'|[^\s,&}\])\["'({]+)"#
);

/// A key or a one-time code of the daemon, or the beginning of one; its ID stays, so that an
/// operator finds the key.
const KEY: &str = r"(gr[yc]_[0-9a-z]{12}_)[0-9a-z]+";

static PATTERNS: LazyLock<Option<[Regex; 4]>> = LazyLock::new(|| {
    let [address, header, named, key] =
        [ADDRESS, HEADER, NAMED, KEY].map(|text| Regex::new(text).ok());
    Some([address?, header?, named?, key?])
});

/// Returns a text without the passwords, tokens and keys that it names, and without the users and
/// passwords of addresses. A text in JSON stays JSON.
pub fn without_secrets(text: &str) -> String {
    // The patterns are constant, and a test compiles them.
    let Some([address, header, named, key]) = &*PATTERNS else { return String::new() };
    let text = address.replace_all(text, "://***@");
    let text = header.replace_all(&text, "$1 (hidden)");
    let hidden = |found: &Captures<'_>| {
        let value = if found[2].starts_with('"') { "\"(hidden)\"" } else { "(hidden)" };
        format!("{}{value}", &found[1])
    };
    let text = named.replace_all(&text, hidden);
    key.replace_all(&text, "$1(hidden)").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_removed_and_the_rest_stays() {
        for (text, expected) in [
            ("get http://ann:pa:ss@host/x?a=b@c", "get http://***@host/x?a=b@c"),
            ("https://token@host", "https://***@host"),
            ("Authorization: Bearer abc.def", "Authorization: (hidden) (hidden)"),
            (r#"{"api_key":"a b","keep":"5s"}"#, r#"{"api_key":"(hidden)","keep":"5s"}"#),
            ("url=/x?token=abc&range=1h", "url=/x?token=(hidden)&range=1h"),
            ("smtp_password = 'x'", "smtp_password = (hidden)"),
            ("GET /write?p=gry_0123456789ab_x1y2", "GET /write?p=gry_0123456789ab_(hidden)"),
            ("enroll grc_0123456789ab_x1y2", "enroll grc_0123456789ab_(hidden)"),
            ("granary_series 5", "granary_series 5"),
            (r#"{"secrets":["(hidden)"],"a":1}"#, r#"{"secrets":["(hidden)"],"a":1}"#),
            ("limits.series_max = 5", "limits.series_max = 5"),
        ] {
            assert_eq!(without_secrets(text), expected);
        }
    }
}
