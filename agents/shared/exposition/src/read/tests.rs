//! Text that upstream Prometheus accepts and rejects (from the tests of its package
//! model/textparse), and Protocol Buffers messages with the same content as text.

use proptest::prelude::*;

use super::*;
use crate::{Names, parts};

/// Returns `series kind unit time value` of each sample.
fn sample_lines(body: &[u8], format: Format) -> Result<Vec<String>, Fault> {
    let mut lines = Vec::new();
    read(body, format, |sample, families| {
        let parts = parts(sample.series, Names::Valid)?;
        if parts.metric.is_empty() {
            return Err("no metric".to_owned());
        }
        let family = families.find(&parts.metric).cloned().unwrap_or_default();
        let labels: Vec<_> =
            parts.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        let time = sample.time_ms.map_or("-".to_owned(), |time| time.to_string());
        lines.push(format!(
            "{}{{{}}} {} {:?} {time} {}",
            parts.metric,
            labels.join(","),
            family.kind_of(&parts.metric),
            family.unit_of(&parts.metric),
            sample.value
        ));
        Ok(())
    })?;
    Ok(lines)
}

#[test]
fn text_is_parsed_as_prometheus_parses_it() {
    let check = |line: &str, expected: &str| {
        let comments = "# HELP s A summary.\n# \tTYPE s summary\n# TYPE g gauge\n# TYPE c counter\n\
                   # Help is no word\n#\n# HELP n1\n# HELP n2 \n# HELP n3 zero\x00byte\n";
        let lines = sample_lines(format!("{comments}{line}").as_bytes(), Format::Prometheus);
        assert_eq!(lines, Ok(vec![expected.to_owned()]), "{line}");
    };
    check("s{quantile=\"0\"} 4.9351e-05", r#"s{quantile="0"} gauge "" - 0.000049351"#);
    check("s{quantile=\"0.25\",} 7e-5", r#"s{quantile="0.25"} gauge "" - 0.00007"#);
    check("s{quantile=\"0.8\", a=\"b\"} 1", r#"s{quantile="0.8",a="b"} gauge "" - 1"#);
    check("s{ quantile=\"0.9\", a=\"b\"} 1", r#"s{quantile="0.9",a="b"} gauge "" - 1"#);
    check("s { quantile=\"1.0\", a=\"b\" } 1\n", r#"s{quantile="1.0",a="b"} gauge "" - 1"#);
    check("s { quantile = \"1.0\", a = \"b\", } 1", r#"s{quantile="1.0",a="b"} gauge "" - 1"#);
    check("s_count 99", r#"s_count{} counter "" - 99"#);
    check("some:rate5m{a_b=\"c\"}\t1", r#"some:rate5m{a_b="c"} gauge "" - 1"#);
    check("g 33  \t123123", r#"g{} gauge "" 123123 33"#);
    check("_x{_y=\"z\"} -1e3", r#"_x{_y="z"} gauge "" - -1000"#);
    check(r#"m{l="\"bar\""} 1"#, r#"m{l="\"bar\""} gauge "" - 1"#);
    check(r#"m{l="a\\b\nc}"} 1"#, r#"m{l="a\\b\nc}"} gauge "" - 1"#);
    check("m{a=\"abc\x00\"} 1", "m{a=\"abc\\0\"} gauge \"\" - 1");
    check("m +Inf", "m{} gauge \"\" - inf");
    check("m NaN", "m{} gauge \"\" - NaN");
    check("c 5", "c{} counter \"\" - 5");
    check("m_total 5", "m_total{} counter \"\" - 5");
    // Quoted names may contain any letters.
    check("{\"go.gc\",quantile=\"0\"} 1", r#"go.gc{quantile="0"} gauge "" - 1"#);
    check(
        "{ \"go.gc\", quantile= \"1.0\", a= \"b\", } 1",
        r#"go.gc{quantile="1.0",a="b"} gauge "" - 1"#,
    );
    check(
        "{\"a €\\n{b}\",\"'c' \\\"d\\\"\"=\"6\"} 10.0",
        "a €\n{b}{'c' \"d\"=\"6\"} gauge \"\" - 10",
    );
}

#[test]
fn text_is_rejected_where_prometheus_rejects_it() {
    let invalid_lines: [&[u8]; 26] = [
        b"a",
        b"a{b='c'} 1\n",
        b"a{b=\n",
        b"a{\xff=\"foo\"} 1\n",
        b"a{b=\"\xff\"} 1\n",
        b"{\"a\", \"b = \"c\"}",
        b"{\"a\",b\\nc=\"d\"} 1",
        b"a true\n",
        b"something_weird{problem=\"",
        b"empty_label_name{=\"\"} 0",
        b"foo 1_2\n",
        b"foo 0x1p-3\n",
        b"foo 0x1P-3\n",
        b"foo 0 1_2\n",
        b"{a=\"ok\"} 1",
        b"# TYPE #\n#EOF\n",
        b"# HELP #\n#EOF\n",
        b"a{b=\x00\"ssss\"} 1\n",
        b"a{b=\"\x00",
        b"a{b\x00=\"hiih\"}\t1",
        b"a\x00{b=\"ddd\"} 1",
        b"a 0 1\x00",
        b"1a 0",
        b"a-b 0",
        b"a 0 1 2",
        b"a{b=\"c\"}{d=\"e\"} 1",
    ];
    for line in invalid_lines {
        let lines = sample_lines(line, Format::Prometheus);
        assert!(lines.is_err(), "{:?} is {lines:?}", String::from_utf8_lossy(line));
    }
    let fault = sample_lines(b"a 1\nb x\n", Format::Prometheus).unwrap_err();
    assert_eq!(fault.to_string(), "line 2: not `series value timestamp`: \"b x\"");
}

#[test]
fn open_metrics_has_seconds_units_exemplars_and_an_end() {
    let text = "# TYPE lat histogram\n# UNIT lat seconds\n# HELP lat Time.\n\
                lat_bucket{le=\"1.0\"} 3 # {trace=\"x\"} 0.4 1520879607.789\n\
                lat_sum 2.5 1520879607.789 # {} 1\nlat_count 3\n\
                # TYPE c counter\n# UNIT c bytes\nc_total{a=\"b\"} 17.0 1520879607.5\nc_created 1\n\
                # TYPE i info\ni_info{v=\"1\"} 1\n# TYPE s stateset\ns{s=\"on\"} 1\n# EOF\n";
    let expected = [
        r#"lat_bucket{le="1.0"} counter "" - 3"#,
        r#"lat_sum{} counter "seconds" 1520879607789 2.5"#,
        r#"lat_count{} counter "" - 3"#,
        r#"c_total{a="b"} counter "bytes" 1520879607500 17"#,
        r#"c_created{} gauge "bytes" - 1"#,
        r#"i_info{v="1"} gauge "" - 1"#,
        r#"s{s="on"} gauge "" - 1"#,
    ];
    assert_eq!(sample_lines(text.as_bytes(), Format::OpenMetrics).unwrap(), expected);
    let check =
        |text: &str| sample_lines(text.as_bytes(), Format::OpenMetrics).unwrap_err().location;
    assert_eq!(check("a 1\n"), "at the end");
    assert_eq!(check(""), "at the end");
    assert_eq!(check("a 1\n# EOF\nb 1\n"), "line 3");
    assert_eq!(check("a 1 x\n# EOF\n"), "line 1");
    assert_eq!(check("a 1 NaN\n# EOF\n"), "line 1");
}

fn bytes_field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut message = vec![(number << 3) as u8 | 2];
    push_length(&mut message, bytes.len());
    message.extend_from_slice(bytes);
    message
}

fn push_length(message: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        message.push(number as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}

fn double_field(number: u32, value: f64) -> Vec<u8> {
    let mut message = vec![(number << 3) as u8 | 1];
    message.extend(value.to_le_bytes());
    message
}

fn family_message(name: &str, kind: u8, metric: &[Vec<u8>]) -> Vec<u8> {
    let parts =
        [bytes_field(1, name.as_bytes()), vec![3 << 3, kind], bytes_field(4, &metric.concat())];
    let message = parts.concat();
    let mut prefixed = Vec::new();
    push_length(&mut prefixed, message.len());
    prefixed.extend(message);
    prefixed
}

#[test]
fn messages_yield_the_same_samples_as_text() {
    let label = bytes_field(1, &[bytes_field(1, b"a"), bytes_field(2, b"x\"\\\ny")].concat());
    let created = bytes_field(3, &[1 << 3, 100, 2 << 3, 0]);
    let counter = family_message(
        "c_total",
        0,
        &[label, bytes_field(3, &[double_field(1, 7.0), created].concat())],
    );
    let gauge =
        family_message("g", 1, &[vec![6 << 3, 200, 1], bytes_field(2, &double_field(1, -2.5))]);
    let untyped = family_message("u", 3, &[bytes_field(5, &double_field(1, 1.0))]);
    let quantile = bytes_field(3, &[double_field(1, 0.5), double_field(2, 0.25)].concat());
    let summary = family_message(
        "s",
        2,
        &[bytes_field(4, &[vec![8, 4], double_field(2, 1.5), quantile].concat())],
    );
    let bucket =
        |count: u8, bound| bytes_field(3, &[vec![8, count], double_field(2, bound)].concat());
    let buckets = [vec![8, 3], double_field(2, 9.5), bucket(1, 1.0), bucket(2, 1e6)].concat();
    let histogram = family_message("h", 4, &[bytes_field(7, &buckets)]);
    let native = family_message(
        "n",
        4,
        &[bytes_field(7, &[vec![8, 3], double_field(2, 9.5), vec![5 << 3, 6]].concat())],
    );
    let body = [counter, gauge, untyped, summary, histogram, native].concat();
    let expected = [
        r#"c_total{a="x\"\\\ny"} counter "" - 7"#,
        r#"g{} gauge "" 200 -2.5"#,
        r#"u{} gauge "" - 1"#,
        r#"s{quantile="0.5"} gauge "" - 0.25"#,
        r#"s_sum{} counter "" - 1.5"#,
        r#"s_count{} counter "" - 4"#,
        r#"h_bucket{le="1.0"} counter "" - 1"#,
        r#"h_bucket{le="1e+06"} counter "" - 2"#,
        r#"h_bucket{le="+Inf"} counter "" - 3"#,
        r#"h_sum{} counter "" - 9.5"#,
        r#"h_count{} counter "" - 3"#,
        r#"n_sum{} counter "" - 9.5"#,
        r#"n_count{} counter "" - 3"#,
    ];
    assert_eq!(sample_lines(&body, Format::Protobuf).unwrap(), expected);
    let mut starts = Vec::new();
    read(&body, Format::Protobuf, |sample, _| {
        starts.extend(sample.start_ms);
        Ok(())
    })
    .unwrap();
    assert_eq!(starts, [100_000]);
    for end in 1..body.len() {
        // A truncated response is refused, or ends after a complete family.
        drop(sample_lines(&body[..end], Format::Protobuf));
    }
    assert!(sample_lines(&body[..body.len() - 1], Format::Protobuf).is_err());
}

#[test]
fn numbers_in_labels_are_written_as_go_writes_them() {
    let check = |number, expected: &str| assert_eq!(crate::proto::format_number(number), expected);
    check(0.0, "0.0");
    check(1.0, "1.0");
    check(0.005, "0.005");
    check(1e-5, "1e-05");
    check(123_456.0, "123456.0");
    check(1_234_567.0, "1.234567e+06");
    check(1e21, "1e+21");
    check(-2.5, "-2.5");
    check(f64::INFINITY, "+Inf");
    check(f64::NEG_INFINITY, "-Inf");
    check(f64::NAN, "NaN");
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_rejected(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        text in r#"(([a-z]{0,2}[{]?([a-z"=\\,} ]{0,9})[}]?|[#] (TYPE|EOF) a?) [0-9. ]{0,6}\n){0,6}"#,
    ) {
        fuzz(&bytes);
        fuzz(text.as_bytes());
    }

    #[test]
    fn any_label_value_is_kept(value in "\\PC{1,12}", number in prop::num::f64::NORMAL) {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let lines = sample_lines(format!("m{{a=\"{escaped}\"}} {number}\n").as_bytes(), Format::Prometheus);
        prop_assert_eq!(lines, Ok(vec![format!("m{{a={value:?}}} gauge \"\" - {number}")]));
    }
}
