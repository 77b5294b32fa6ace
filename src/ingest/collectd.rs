//! collectd's value lists as JSON (collectd.conf(5), "Plugin `write_http`"; data source types:
//! types.db(5)): each value of a list is a sample of the metric `plugin_type`, or
//! `plugin_type_source` if the type has several data sources.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    rows::{DescribedSeries, Rows},
    series_cache::Fingerprint,
};
use crate::{
    model::{Kind, SeriesKey, UnixMillis},
    policy::RefusalReason,
};

const PROTOCOL: u8 = 6;

#[derive(Debug, Deserialize)]
struct ValueList<'a> {
    /// The values; `null` for a missing value.
    values: Vec<Option<f64>>,
    dstypes: Vec<SourceType>,
    dsnames: Vec<String>,
    /// The time in Unix seconds.
    time: f64,
    #[serde(borrow)]
    host: Cow<'a, str>,
    #[serde(borrow)]
    plugin: Cow<'a, str>,
    #[serde(borrow, default)]
    plugin_instance: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    of_type: Cow<'a, str>,
    #[serde(borrow, default)]
    type_instance: Cow<'a, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SourceType {
    Gauge,
    Derive,
    Counter,
    /// The growth since the last reading.
    Absolute,
}

impl SourceType {
    fn kind(self) -> Kind {
        match self {
            Self::Gauge => Kind::Gauge,
            Self::Derive | Self::Counter => Kind::Counter,
            Self::Absolute => Kind::Delta,
        }
    }
}

/// Decodes an array of value lists. A malformed list does not affect the others.
///
/// # Errors
/// The body is not an array, or is truncated.
pub fn decode(body: &[u8], rows: &mut Rows<'_>) -> Result<(), String> {
    let fault = |fault: serde_json::Error| format!("body: {fault}");
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    deserializer.deserialize_seq(ListVisitor(rows)).map_err(fault)?;
    deserializer.end().map_err(fault)
}

/// Decodes one list after the other, so that only one is in memory.
struct ListVisitor<'a, 'r>(&'a mut Rows<'r>);

impl<'de> Visitor<'de> for ListVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of collectd's value lists")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut lists: A) -> Result<(), A::Error> {
        let mut index = 0_u64;
        while let Some(text) = lists.next_element::<&'de RawValue>()? {
            index += 1;
            if self.0.is_full() {
                continue;
            }
            if let Err((values, fault)) = read_list(text, self.0) {
                self.0.refuse(RefusalReason::BadSample, values, || {
                    format!("value list {index}: {fault}")
                });
            }
        }
        Ok(())
    }
}

/// Decodes one list. On failure, returns the number of lost samples and the reason.
fn read_list(text: &RawValue, rows: &mut Rows<'_>) -> Result<(), (u64, String)> {
    let list: ValueList<'_> =
        serde_json::from_str(text.get()).map_err(|fault| (1, fault.to_string()))?;
    let count = list.values.len();
    let lost = |fault: &str| Err((count.max(1) as u64, fault.to_owned()));
    if list.dstypes.len() != count || list.dsnames.len() != count {
        return lost("values, dstypes and dsnames differ in length");
    }
    let millis = (list.time * 1000.0).round();
    if millis.abs() > 1e15 {
        return lost("the time is out of range");
    }
    let parts =
        [&list.host, &list.plugin, &list.plugin_instance, &list.of_type, &list.type_instance];
    if !rows.fits(parts.iter().map(|part| part.len()).sum(), count as u64) {
        return Ok(());
    }
    let mut written = String::new();
    for part in parts {
        written.push_str(part);
        written.push('\0');
    }
    let shared = Fingerprint::new(PROTOCOL, written.as_bytes());
    for ((value, source), name) in list.values.iter().zip(&list.dstypes).zip(&list.dsnames) {
        let source_name = if count > 1 { name.as_str() } else { "" };
        let target = rows.series(shared.and(source_name.as_bytes()), |limits| {
            let metric = metric(&list, source_name);
            let tags = [
                ("host", &*list.host),
                ("instance", &list.plugin_instance),
                ("type_instance", &list.type_instance),
            ];
            let key = SeriesKey::new(&metric, tags, limits).map_err(|cause| cause.to_string())?;
            Ok(DescribedSeries { key, kind: source.kind(), unit: "".into(), is_declared: false })
        });
        rows.push_finite(target, UnixMillis(millis as i64), value.unwrap_or(f64::NAN));
    }
    Ok(())
}

/// Returns the metric's name. `cpu` of the type `cpu` is `cpu`, not `cpu_cpu`, as in collectd's
/// Prometheus exporter.
fn metric(list: &ValueList<'_>, source: &str) -> String {
    let mut metric = list.plugin.to_string();
    if list.plugin != list.of_type {
        metric.push('_');
        metric.push_str(&list.of_type);
    }
    if !source.is_empty() {
        metric.push('_');
        metric.push_str(source);
    }
    metric
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ingest::series_cache::SeriesCache, model::SeriesLimits};

    fn decoded(body: &str) -> Result<(usize, Vec<String>), String> {
        let (mut cache, limits) = (SeriesCache::default(), SeriesLimits::default());
        let known = |_: &SeriesKey| None;
        let mut rows = Rows::new(&mut cache, &known, &limits, "");
        decode(body.as_bytes(), &mut rows)?;
        let decoded = rows.finish();
        let text = |definition: &crate::model::SeriesInfo| {
            let tags: Vec<_> = definition.key.tags().map(|(k, v)| format!("{k}={v}")).collect();
            format!("{}{{{}}} {:?}", definition.key.metric(), tags.join(","), definition.kind)
        };
        Ok((decoded.len(), decoded.definitions().iter().map(text).collect()))
    }

    const DISK: &str = r#"{"values":[1971,1.5],"dstypes":["derive","gauge"],
        "dsnames":["read","write"],"time":1795264496.123,"interval":10.0,"host":"a.b",
        "plugin":"disk","plugin_instance":"sda","type":"octets","type_instance":"x"}"#;

    #[test]
    fn lists_become_series_of_their_kinds() {
        let body = format!(
            r#"[{DISK},{{"values":[2],"dstypes":["absolute"],"dsnames":["value"],"time":1,
            "host":"a","plugin":"load","type":"load","meta":{{"deep":[[{{}}]]}}}}]"#
        );
        let (samples, series) = decoded(&body).unwrap();
        let expected = [
            "disk_octets_read{host=a.b,instance=sda,type_instance=x} Counter",
            "disk_octets_write{host=a.b,instance=sda,type_instance=x} Gauge",
            "load{host=a} Delta",
        ];
        assert_eq!((samples, series), (3, expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn a_malformed_list_does_not_affect_the_others() {
        let bad = [
            "7",
            "null",
            r#"{"values":[1]}"#,
            &DISK.replace("\"derive\"", "\"other\""),
            &DISK.replace("[1971,", "["),
            &DISK.replace("1795264496.123", "1e300"),
            &DISK.replace("\"disk\"", "3"),
        ];
        for bad in bad {
            assert_eq!(decoded(&format!("[{bad},{DISK}]")).unwrap().0, 2, "{bad}");
        }
        // A missing value is null.
        assert_eq!(decoded(&format!("[{}]", DISK.replace("1971", "null"))).unwrap().0, 1);
        for body in ["", "{}", "[", &format!("[{DISK}"), &format!("[{DISK}] x")] {
            assert!(decoded(body).is_err(), "{body}");
        }
        assert!(decoded(&"[".repeat(1 << 20)).is_err());
    }
}
