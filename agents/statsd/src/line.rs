//! One line of StatsD (github.com/statsd/statsd, "Metric types") with the tags of DogStatsD
//! (docs.datadoghq.com, "Datagram format").

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Type {
    /// `c`: events, scaled up by the sample rate.
    Counter,
    /// `g`: a level; `is_relative` is true when the value is a change of the level.
    Gauge { is_relative: bool },
    /// `ms`, `h` and `d`: values whose distribution matters.
    Timer,
    /// `s`: members of a set are counted.
    Set,
}

/// A parsed line. A line may contain several values: `name:1:2:3|ms`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) values: Vec<&'a str>,
    pub(crate) kind: Type,
    /// The sample rate, above 0 and at most 1.
    pub(crate) rate: f64,
    /// The tags, sorted by name; the last of several tags with the same name is kept.
    pub(crate) tags: Vec<(&'a str, &'a str)>,
}

/// Parses a line.
///
/// # Errors
/// The reason why the line is invalid.
pub(crate) fn parse(line: &str) -> Result<Line<'_>, &'static str> {
    let (name, rest) = line.split_once(':').ok_or("there is no `:` after the name")?;
    if name.is_empty() {
        return Err("the name is empty");
    }
    let mut parts = rest.split('|');
    let values: Vec<_> = parts.next().unwrap_or_default().split(':').collect();
    let is_relative = values.iter().any(|value| value.starts_with(['+', '-']));
    let kind = match parts.next().ok_or("there is no `|` and type after the value")? {
        "c" => Type::Counter,
        "g" => Type::Gauge { is_relative },
        "ms" | "h" | "d" => Type::Timer,
        "s" => Type::Set,
        _ => return Err("the type is not one of c, g, ms, h, d and s"),
    };
    let mut line = Line { name, values, kind, rate: 1.0, tags: Vec::new() };
    for part in parts {
        match part.as_bytes().first() {
            Some(b'@') => line.rate = parse_rate(part)?,
            Some(b'#') => line.tags = parse_tags(part),
            // Later versions of DogStatsD add times and container IDs, which are ignored.
            _ => {}
        }
    }
    Ok(line)
}

fn parse_rate(part: &str) -> Result<f64, &'static str> {
    let rate = part.get(1..).and_then(|text| text.parse::<f64>().ok());
    rate.filter(|rate| *rate > 0.0 && *rate <= 1.0).ok_or("the sample rate is not between 0 and 1")
}

/// Parses `#name:value,flag`; a tag without a value has the value `true`.
fn parse_tags(part: &str) -> Vec<(&str, &str)> {
    let pairs = part.get(1..).unwrap_or_default().split(',').filter(|pair| !pair.is_empty());
    let mut tags: Vec<_> =
        pairs.map(|pair| pair.split_once(':').unwrap_or((pair, "true"))).collect();
    tags.reverse();
    tags.sort_by_key(|(name, _)| *name);
    tags.dedup_by_key(|(name, _)| *name);
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_type_are_read() {
        let line = parse("page.views:1|c|@0.1|#env:prod,beta,env:dev").unwrap();
        assert_eq!((line.name, line.kind, line.rate), ("page.views", Type::Counter, 0.1));
        assert_eq!(line.tags, [("beta", "true"), ("env", "dev")]);
        assert_eq!(parse("t:1:2.5:3|ms").unwrap().values, ["1", "2.5", "3"]);
        assert_eq!(parse("g:-4|g").unwrap().kind, Type::Gauge { is_relative: true });
        assert_eq!(parse("g:4|g|T1656581400").unwrap().kind, Type::Gauge { is_relative: false });
        assert_eq!(parse("users:bob|s").unwrap().kind, Type::Set);
        assert_eq!(parse("lat:9|d|#").unwrap().tags, []);
        for line in ["", "a", "a:1", ":1|c", "a:1|x", "a:1|c|@0", "a:1|c|@2", "a:1|c|@x"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
