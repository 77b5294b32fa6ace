//! The output of Nagios plugins, as in the "Development Guidelines" of the Monitoring Plugins.
//!
//! The first line is text for people, and more text may follow in other lines. Both parts may
//! contain a vertical bar, followed by performance data:
//! `'label'=value[unit];[warn];[crit];[min];[max]`. The exit code is the state.

use granary_agent_kit::Readings;
use granary_protocol::Kind;

use super::ParsedSample;

/// The states: ok, warning, critical, unknown.
const STATES: std::ops::RangeInclusive<i32> = 0..=3;

/// Parses the output of a plugin. Items without a label or a number, such as `a=U`, are skipped;
/// the last of them is reported as a problem.
///
/// # Errors
/// The exit code is not a state.
pub(crate) fn parse_output(
    output: &[u8],
    code: i32,
    readings: &mut Readings,
) -> Result<(), String> {
    if !STATES.contains(&code) {
        return Err(format!("exit code {code} is not a state; use 0 to 3"));
    }
    readings.gauge("nagios_state", "", &[], f64::from(code));
    let text = String::from_utf8_lossy(output);
    // The data of the first line begins after its first bar, and that of the other lines after the
    // first bar in any of them. Further bars only separate items.
    let first = text.split_once('\n').map_or(&*text, |(first, _)| first);
    let rest = text.get(first.len()..).unwrap_or_default();
    for part in [first, rest].iter().filter_map(|part| part.split_once('|')).map(|(_, data)| data) {
        for word in split_words(&part.replace('|', " ")) {
            match parse_item(&word) {
                Some(sample) => sample.push(None, readings),
                None => readings.problem("performance data", format!("cannot parse {word:?}")),
            }
        }
    }
    Ok(())
}

/// Splits a text into words; a quoted label may contain spaces.
fn split_words(data: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in data.chars() {
        is_quoted ^= letter == '\'';
        if letter.is_whitespace() && !is_quoted {
            words.push(std::mem::take(&mut word));
        } else {
            word.push(letter);
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Parses an item of performance data.
fn parse_item(word: &str) -> Option<ParsedSample> {
    let (label, rest) = word.rsplit_once('=')?;
    let label = label.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(label);
    // A quote in a label is doubled.
    let label = label.replace("''", "'");
    let value = rest.split(';').next()?;
    let is_part_of_number = |letter: char| letter.is_ascii_digit() || "+-.eE".contains(letter);
    let end = value.find(|letter| !is_part_of_number(letter)).unwrap_or(value.len());
    // `1e3s` is a thousand seconds; no plugin uses `E` as a unit prefix.
    let (number, unit) = value.split_at_checked(end)?;
    let number: f64 = number.parse().ok()?;
    let (factor, unit, kind) = match unit {
        "us" => (1e-6, "seconds", Kind::Gauge),
        "ms" => (1e-3, "seconds", Kind::Gauge),
        "s" => (1.0, "seconds", Kind::Gauge),
        "%" => (1.0, "percent", Kind::Gauge),
        "c" => (1.0, "", Kind::Counter),
        "" => (1.0, "", Kind::Gauge),
        other => {
            let power = ["B", "KB", "MB", "GB", "TB"].iter().position(|known| *known == other);
            match power {
                Some(power) => (1024_f64.powi(power as i32), "bytes", Kind::Gauge),
                None => (1.0, other, Kind::Gauge),
            }
        }
    };
    (!label.is_empty()).then(|| ParsedSample {
        metric: "nagios_value".to_owned(),
        tags: vec![("label".to_owned(), label)],
        kind,
        unit: unit.to_owned(),
        value: number * factor,
        start_ms: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns label, value and unit of each item.
    fn parse_data(output: &str) -> Vec<(String, f64, String)> {
        let mut readings = Readings::default();
        parse_output(output.as_bytes(), 0, &mut readings).unwrap();
        let data = readings.as_slice().iter().filter(|reading| reading.metric == "nagios_value");
        data.map(|reading| (reading.tags[0].1.clone(), reading.value, reading.unit.to_string()))
            .collect()
    }

    #[test]
    fn performance_data_is_read_with_its_units() {
        let text = "PING OK - Packet loss = 0%, RTA = 0.80 ms | percent_packet_loss=0%;5;10 rta=0.80ms;;;0\n";
        let expected = [
            ("percent_packet_loss".to_owned(), 0.0, "percent".to_owned()),
            ("rta".to_owned(), 0.0008, "seconds".to_owned()),
        ];
        assert_eq!(parse_data(text), expected);
        // The guidelines' example of several lines; its last label has a space and a quote.
        let text = "DISK OK - free space: / 3326 MB (56%); | /=2643MB;5948;5958;0;5968\n/ 15272 MB (77%);\n/boot 68 MB (69%);\n/home 69357 MB (27%);\n/var/log 819 MB (84%); | /boot=68MB;88;93;0;98\n/home=69357MB;253404;253409;0;253414\n'/var/ l''og'=818MB\n";
        let values: Vec<_> =
            parse_data(text).into_iter().map(|(label, value, _)| (label, value)).collect();
        let mib = |count: u32| f64::from(count) * 1_048_576.0;
        let expected = [("/", 2643), ("/boot", 68), ("/home", 69_357), ("/var/ l'og", 818)];
        assert_eq!(values, expected.map(|(label, count)| (label.to_owned(), mib(count))));
    }

    #[test]
    fn a_state_is_one_of_four_exit_codes_and_malformed_data_is_reported() {
        let mut readings = Readings::default();
        assert!(parse_output(b"", 4, &mut readings).is_err() && readings.is_empty());
        parse_output(b"UNKNOWN|a=U;1 b=1.5c c =x", 3, &mut readings).unwrap();
        let values: Vec<_> = readings.as_slice().iter().map(|reading| reading.value).collect();
        assert_eq!(values, [3.0, 1.5]);
        assert_eq!(readings.as_slice()[1].kind, Kind::Counter);
        assert_eq!(readings.problems().len(), 1);
    }
}
