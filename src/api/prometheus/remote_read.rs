//! `POST /api/v1/read`: Prometheus remote read
//! (<https://prometheus.io/docs/prometheus/latest/querying/remote_read_api>).
//!
//! A client gets samples, or a stream of XOR chunks when it prefers them. Errors are plain text, as
//! in Prometheus. Must never know: how samples are read.

use actix_web::{
    HttpRequest, HttpResponse,
    body::BoxBody,
    http::header,
    web::{self, Bytes},
};
use prost::Message;

use super::{
    fault::Fault,
    query::fault,
    read_answer::{FramesAnswer, ReadAnswer, SamplesAnswer},
    read_messages::{MatchType, ReadQuery, ReadRequest, ResponseType},
    receive::{Received, run_in_turn},
};
use crate::{
    api::{
        QueryParts,
        answer::{
            self,
            pulled::PulledBody,
            slow::{CHUNK_BYTES, SlowReaders},
        },
        body::{Body, FORM_BYTES_MAX},
    },
    model::UnixMillis,
    query::{
        self, Budget, ExpressionLimits, MatchOperator, QueryError, ReadingsRequest, SeriesMatcher,
        whole_pattern,
    },
    telemetry::QueryOutcome,
};

/// The maximum number of queries in a request. Prometheus sends one.
const QUERIES_MAX: usize = 64;
/// The maximum number of matchers in a query.
const MATCHERS_MAX: usize = 64;
/// The memory of a decoded request as a multiple of its bytes: an empty matcher takes two bytes.
const DECODED_BYTES: usize = 128;
/// The function name that requests series without samples.
const LOOKUP: &str = "series";

pub(super) async fn read((request, payload, parts): Received) -> HttpResponse {
    let metrics = parts.metrics.clone();
    let refused = |outcome, response| answer::count_refusal(&metrics, outcome, response);
    let received = parts.bodies.receive_query(&request, payload, FORM_BYTES_MAX).await;
    let body = match received {
        Ok(Body { bytes, mut memory }) => {
            memory.grow(bytes.len() * DECODED_BYTES).map(|()| (bytes, memory)).map_err(Into::into)
        }
        Err(refusal) => Err(refusal),
    };
    let (bytes, _memory) = match body {
        Ok(body) => body,
        Err(refusal) => return refused(QueryOutcome::Invalid, refusal.response()),
    };
    metrics.queries.with_label_values(&["remote_read"]).inc();
    match read_answer(&request, &bytes, parts).await {
        Ok(response) => response,
        Err(fault) => refused(fault.outcome(), fault.text_response()),
    }
}

async fn read_answer(
    request: &HttpRequest,
    bytes: &[u8],
    parts: web::Data<QueryParts>,
) -> Result<HttpResponse, Fault> {
    let decoded = ReadRequest::decode(bytes).map_err(|cause| {
        let encoding = request.headers().get(header::CONTENT_ENCODING);
        Fault::bad_data(format!(
            "the body is not a ReadRequest: {cause}; send Protocol Buffers with \
             Content-Encoding: snappy (Content-Encoding is {encoding:?})"
        ))
    })?;
    if decoded.queries.len() > QUERIES_MAX {
        return Err(Fault::bad_data(format!(
            "{} queries in a request exceed the limit of {QUERIES_MAX}: send fewer at a time",
            decoded.queries.len()
        )));
    }
    let slow = SlowReaders::new(&parts.metrics, parts.client_timeout);
    let limit = parts.promql.get().timeout;
    let form = response_type(&decoded.accepted)?;
    let run = move |parts: &QueryParts, budget: &Budget| match form {
        ResponseType::Samples => samples(parts, budget, &decoded.queries),
        ResponseType::StreamedXorChunks => {
            let found = run_with_retries(parts, budget, &decoded.queries, FramesAnswer::default)?;
            if !found.lacks_histograms {
                Ok(AnswerBody::Frames(found.frames))
            } else if decoded.accepted.contains(&ResponseType::Samples.into()) {
                samples(parts, budget, &decoded.queries)
            } else {
                Err(Fault::bad_data(
                    "some series are native histograms, which chunks do not contain: also accept \
                     SAMPLES (0)",
                ))
            }
        }
    };
    let mut response = HttpResponse::Ok();
    match run_in_turn(parts, limit, run).await? {
        (AnswerBody::Samples(body), memory) => {
            response.content_type("application/x-protobuf");
            response.insert_header((header::CONTENT_ENCODING, "snappy"));
            let body = Bytes::from(body);
            let parts = (0..body.len()).step_by(CHUNK_BYTES).map(move |from| {
                let end = body.len().min(from + CHUNK_BYTES);
                body.slice(from..end)
            });
            Ok(streamed_response(response, parts, memory, slow))
        }
        (AnswerBody::Frames(frames), memory) => {
            response.content_type(
                "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse",
            );
            Ok(streamed_response(response, frames.into_iter().map(Bytes::from), memory, slow))
        }
    }
}

/// The encoded answer.
enum AnswerBody {
    Samples(Vec<u8>),
    Frames(Vec<Vec<u8>>),
}

fn samples(
    parts: &QueryParts,
    budget: &Budget,
    queries: &[ReadQuery],
) -> Result<AnswerBody, Fault> {
    let samples = run_with_retries(parts, budget, queries, SamplesAnswer::default)?;
    let finished = samples.finish(&parts.promql.get().limits(budget)).map_err(fault)?;
    Ok(AnswerBody::Samples(finished))
}

/// Returns the first form of the answer that the client accepts and that is supported.
fn response_type(accepted: &[i32]) -> Result<ResponseType, Fault> {
    if accepted.is_empty() {
        return Ok(ResponseType::Samples);
    }
    accepted.iter().find_map(|kind| ResponseType::try_from(*kind).ok()).ok_or_else(|| {
        Fault::bad_data(format!(
            "none of the accepted response types {accepted:?} is supported: use SAMPLES (0) or \
             STREAMED_XOR_CHUNKS (1)"
        ))
    })
}

/// Sends the parts of a body while the client reads them.
fn streamed_response(
    mut response: actix_web::HttpResponseBuilder,
    mut parts: impl Iterator<Item = Bytes> + 'static,
    memory: Option<crate::query::Reservation>,
    slow: SlowReaders,
) -> HttpResponse {
    let body = PulledBody::new(move || parts.next(), memory, slow);
    response.message_body(BoxBody::new(body)).unwrap_or_else(HttpResponse::from_error)
}

fn run_with_retries<A: ReadAnswer>(
    parts: &QueryParts,
    budget: &Budget,
    queries: &[ReadQuery],
    empty: impl Fn() -> A,
) -> Result<A, Fault> {
    let run = || {
        let mut answer = empty();
        let limits = parts.promql.get().limits(budget);
        for (index, query) in queries.iter().enumerate() {
            read_query(parts, &limits, query, index, &mut answer)?;
        }
        Ok(answer)
    };
    query::run_with_retries(budget, run, QueryError::is_transient).map_err(fault)
}

fn read_query(
    parts: &QueryParts,
    limits: &ExpressionLimits<'_>,
    query: &ReadQuery,
    index: usize,
    answer: &mut impl ReadAnswer,
) -> Result<(), QueryError> {
    if query.matchers.len() > MATCHERS_MAX {
        return Err(QueryError::Invalid(format!(
            "{} matchers in a query exceed the limit of {MATCHERS_MAX}",
            query.matchers.len()
        )));
    }
    let matchers = query.matchers.iter().map(|matcher| {
        let value = matcher.value.clone();
        let operator = match MatchType::try_from(matcher.kind) {
            Ok(MatchType::Equal) => MatchOperator::Equal(value),
            Ok(MatchType::NotEqual) => MatchOperator::NotEqual(value),
            Ok(MatchType::Pattern) => MatchOperator::Pattern(whole_pattern(&value, limits)?),
            Ok(MatchType::NotPattern) => MatchOperator::NotPattern(whole_pattern(&value, limits)?),
            Err(_) => {
                let kind = matcher.kind;
                return Err(QueryError::Invalid(format!("matcher type {kind} is not known")));
            }
        };
        Ok(SeriesMatcher { tag: matcher.name.clone(), operator })
    });
    let sets = [matchers.collect::<Result<Vec<_>, QueryError>>()?];
    let now = parts.clock.moment().earliest();
    answer.begin_query(index, limits)?;
    let request = readings_request(query);
    let store = &parts.store;
    query::each_series(store, &sets, &request, limits, now, &mut |series| {
        answer.add(&series, limits)
    })?;
    answer.end_query(limits)
}

/// Returns the range of a query, narrowed to the range of its hints.
fn readings_request(query: &ReadQuery) -> ReadingsRequest {
    let time = |ms: i64| UnixMillis(ms.clamp(UnixMillis::MIN.0, UnixMillis::MAX.0));
    let (mut start, mut end) = (time(query.start_ms), time(query.end_ms));
    let hints = query.hints.as_ref();
    if let Some(hints) = hints.filter(|hints| 0 < hints.start_ms && hints.start_ms <= hints.end_ms)
    {
        start = start.max(time(hints.start_ms));
        end = end.min(time(hints.end_ms));
    }
    let labels_only = hints.is_some_and(|hints| hints.function == LOOKUP);
    ReadingsRequest { range: start..end.plus(1), labels_only }
}

#[cfg(test)]
mod tests {
    use super::{super::read_messages::ReadHints, *};

    #[test]
    fn hints_narrow_the_range_and_a_lookup_reads_no_samples() {
        let query =
            |start_ms, end_ms, hints| ReadQuery { start_ms, end_ms, matchers: Vec::new(), hints };
        let hints = |function: &str, start_ms, end_ms| {
            Some(ReadHints { function: function.to_owned(), start_ms, end_ms })
        };
        let check = |query: ReadQuery, start: i64, end: i64, labels_only: bool| {
            let range = UnixMillis(start)..UnixMillis(end);
            assert_eq!(readings_request(&query), ReadingsRequest { range, labels_only });
        };
        check(query(10, 20, None), 10, 21, false);
        check(query(10, 20, hints("rate", 12, 30)), 12, 21, false);
        check(query(10, 20, hints("series", 0, 0)), 10, 21, true);
        check(query(i64::MIN, i64::MAX, None), 0, UnixMillis::MAX.0 + 1, false);
    }

    #[test]
    fn the_first_supported_form_that_the_client_accepts_is_sent() {
        assert_eq!(response_type(&[]).unwrap(), ResponseType::Samples);
        assert_eq!(response_type(&[1, 0]).unwrap(), ResponseType::StreamedXorChunks);
        assert_eq!(response_type(&[7, 0]).unwrap(), ResponseType::Samples);
        assert!(response_type(&[7]).unwrap_err().to_string().contains("use SAMPLES"));
    }
}
