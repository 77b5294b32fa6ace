//! Requests in three forms: a command such as `{"find": "1h", "filter": {...}}`, a pipeline, or the
//! shell's `db.NAME.find({...})`.
//!
//! Must never know: the store. Every request is converted to a pipeline.

use std::ops::Range;

use super::{
    notation::{self, Call, Statement},
    path::Path,
    pushdown::{Conditions, NeededNames},
    stage::{self, Stage},
    value::{Fields, Value},
};
use crate::{
    model::{Span, UnixMillis},
    query::{QueryError, Selector},
};

/// Maximum number of patterns in a request.
const PATTERNS_MAX: usize = 20;

/// A parsed request.
#[derive(Debug, Clone)]
pub struct AggregateRequest {
    /// The collection: the name of a granularity for its slots, anything else for months with their
    /// levels.
    pub(super) collection: Option<String>,
    pub(super) selector: Selector,
    pub(super) range: Option<Range<UnixMillis>>,
    pub(super) stages: Vec<Stage>,
    pub(super) needed: NeededNames,
    pub(super) conditions: Conditions,
    pub(super) shape: AnswerShape,
    /// True to include the empty slots of preallocated documents.
    pub(super) shells: bool,
}

/// The form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerShape {
    Documents,
    /// The first document.
    One,
    Count,
    Values,
}

/// The operation of a command or method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandKind {
    Aggregate,
    Find,
    FindOne,
    Count,
    Distinct,
}

/// The names of commands and methods.
const COMMANDS: [(&str, CommandKind); 7] = [
    ("aggregate", CommandKind::Aggregate),
    ("find", CommandKind::Find),
    ("findOne", CommandKind::FindOne),
    ("count", CommandKind::Count),
    ("countDocuments", CommandKind::Count),
    ("estimatedDocumentCount", CommandKind::Count),
    ("distinct", CommandKind::Distinct),
];

/// Fields that every command accepts.
const COMMON_FIELDS: [&str; 7] =
    ["collection", "metric", "tags", "start", "end", "range", "shells"];

impl CommandKind {
    fn named(name: &str) -> Option<Self> {
        COMMANDS.iter().find(|(known, _)| *known == name).map(|(_, command)| *command)
    }

    fn shape(self) -> AnswerShape {
        match self {
            Self::Aggregate | Self::Find => AnswerShape::Documents,
            Self::FindOne => AnswerShape::One,
            Self::Count => AnswerShape::Count,
            Self::Distinct => AnswerShape::Values,
        }
    }

    /// Returns the fields of a command, in addition to [`COMMON_FIELDS`].
    fn fields(self) -> &'static [&'static str] {
        match self {
            // `cursor` and `allowDiskUse` are accepted and ignored.
            Self::Aggregate => &["pipeline", "cursor", "allowDiskUse"],
            Self::Find => &["filter", "projection", "sort", "skip", "limit"],
            Self::FindOne => &["filter", "projection", "sort", "skip"],
            Self::Count => &["filter", "query", "skip", "limit"],
            Self::Distinct => &["key", "filter", "query"],
        }
    }

    /// Returns the names of a method's arguments in order.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Aggregate => &["pipeline", "options"],
            Self::Find | Self::FindOne => &["filter", "projection"],
            Self::Count => &["filter", "options"],
            Self::Distinct => &["key", "filter"],
        }
    }
}

impl AggregateRequest {
    /// Parses a command, a pipeline, or the shell's `db.NAME.find({...})`.
    ///
    /// # Errors
    /// When the request is invalid; the message names the location and the remedy.
    pub fn read(text: &str, now: UnixMillis) -> Result<Self, QueryError> {
        match notation::read(text).map_err(QueryError::Invalid)? {
            Statement::Calls { collection, calls } => {
                let (command, fields) = parse_calls(calls).map_err(QueryError::Invalid)?;
                Self::new(Some(collection), command, &fields, now)
            }
            Statement::Value(Value::Fields(fields)) => {
                let (collection, command) = parse_document(&fields).map_err(QueryError::Invalid)?;
                Self::new(collection, command, &fields, now)
            }
            Statement::Value(pipeline) => {
                let fields = std::iter::once(("pipeline".into(), pipeline)).collect();
                Self::new(None, CommandKind::Aggregate, &fields, now)
            }
        }
    }

    fn new(
        collection: Option<String>,
        command: CommandKind,
        fields: &Fields,
        now: UnixMillis,
    ) -> Result<Self, QueryError> {
        if count_patterns(&Value::Fields(fields.clone())) > PATTERNS_MAX {
            return Err(QueryError::Invalid(format!(
                "there are more than {PATTERNS_MAX} patterns"
            )));
        }
        let (pipeline, stages) = if command == CommandKind::Aggregate {
            let pipeline = fields.get("pipeline").cloned().unwrap_or(Value::Null);
            let stages = stage::parse(&pipeline)?;
            (pipeline, stages)
        } else {
            let pipeline = to_pipeline(command, fields).map_err(QueryError::Invalid)?;
            let (values, stages) = pipeline.into_iter().unzip();
            (Value::List(values), stages)
        };
        Ok(Self {
            collection,
            selector: selector(fields)?,
            range: range(fields, now)?,
            needed: NeededNames::of(&pipeline, &stages),
            conditions: Conditions::of(&pipeline, &stages),
            stages,
            shape: command.shape(),
            shells: shells(fields)?,
        })
    }
}

/// Returns the collection and the operation of a document.
fn parse_document(fields: &Fields) -> Result<(Option<String>, CommandKind), String> {
    let mut commands =
        fields.iter().filter_map(|(name, value)| Some((name, CommandKind::named(name)?, value)));
    let (name, command, collection) = if let Some((name, command, value)) = commands.next() {
        (&**name, command, value)
    } else {
        let is_find = |name: &&str| fields.get(name).is_some();
        let is_find =
            CommandKind::Find.fields().iter().any(is_find) && fields.get("pipeline").is_none();
        let command = if is_find { CommandKind::Find } else { CommandKind::Aggregate };
        ("collection", command, fields.get("collection").unwrap_or(&Value::Null))
    };
    if commands.next().is_some() {
        return Err(format!("{name} is not the only command"));
    }
    let known = || COMMON_FIELDS.iter().chain(command.fields());
    let is_known = |field: &str| field == name || known().any(|known| *known == field);
    if let Some((other, _)) = fields.iter().find(|(field, _)| !is_known(field)) {
        let known: Vec<_> = known().copied().collect();
        return Err(format!("{other} is not known; use {}", known.join(", ")));
    }
    match collection {
        Value::Null => Ok((None, command)),
        Value::Text(collection) => Ok((Some(collection.to_string()), command)),
        _ => Err(format!("{name} takes the name of a collection")),
    }
}

/// Returns the operation of a method, and its arguments by name, including the arguments of chained
/// methods.
fn parse_calls(calls: Vec<Call>) -> Result<(CommandKind, Fields), String> {
    let mut calls = calls.into_iter();
    let Some(Call { method, arguments }) = calls.next() else {
        return Err("no method is called".to_owned());
    };
    let mut command = CommandKind::named(&method).ok_or_else(|| unknown_method(&method))?;
    let names = command.arguments();
    if arguments.len() > names.len() {
        return Err(format!("{method} takes {}", names.join(" and ")));
    }
    let mut fields = Fields::default();
    for (name, argument) in names.iter().zip(arguments) {
        match (*name, argument) {
            // Options of `find` are set by chained methods; options of `aggregate` are ignored.
            ("options", Value::Fields(options)) if command == CommandKind::Count => {
                options.into_iter().for_each(|(name, value)| fields.set(name, value));
            }
            ("options", _) => {}
            (name, argument) => fields.set(name.into(), argument),
        }
    }
    for Call { method, mut arguments } in calls {
        let argument = arguments.pop();
        let is_find = command == CommandKind::Find && arguments.is_empty();
        match (&*method, argument) {
            ("sort" | "skip" | "limit" | "projection", Some(argument)) if is_find => {
                fields.set(method.into(), argument);
            }
            ("count" | "size" | "itcount", None) if is_find => command = CommandKind::Count,
            ("toArray" | "pretty", None) => {}
            _ => {
                return Err(format!(
                    ".{method} is not known here; find accepts .sort({{...}}), .skip(n), \
                     .limit(n), .projection({{...}}), .count() and .toArray()"
                ));
            }
        }
    }
    Ok((command, fields))
}

fn unknown_method(method: &str) -> String {
    if method.starts_with("update") || method.starts_with("insert") {
        return format!("{method} writes samples: send it to POST /api/v1/update");
    }
    let known = COMMANDS.map(|(name, _)| name).join(", ");
    format!("{method} is not known; use one of {known}")
}

/// A stage as written in the request, with the parsed stage.
type WrittenStage = (Value, Stage);

/// Converts a command to a pipeline: filter, sort, skip, limit, projection.
fn to_pipeline(command: CommandKind, fields: &Fields) -> Result<Vec<WrittenStage>, String> {
    let mut out = Vec::new();
    let mut add = |name: &str, location: &str, argument: &Value| {
        let stage = Stage::parse(name, argument).map_err(|fault| format!("{location}: {fault}"))?;
        let fields = std::iter::once((name.into(), argument.clone())).collect();
        out.push((Value::Fields(fields), stage));
        Ok::<_, String>(())
    };
    let is_set = |value: &&Value| {
        !matches!(value, Value::Null) && **value != Value::Fields(Fields::default())
    };
    let field = |name: &str| fields.get(name).filter(is_set);
    if let Some(filter) = field("filter").or_else(|| field("query")) {
        add("$match", "filter", filter)?;
    }
    if let Some(sort) = field("sort") {
        add("$sort", "sort", sort)?;
    }
    if let Some(skip) = field("skip").filter(|count| count.number() != Some(0.0)) {
        add("$skip", "skip", skip)?;
    }
    // A limit of 0 means no limit. A negative limit requests a single batch; every answer is a
    // single batch.
    let limit = if command == CommandKind::FindOne { Some(&Value::Int(1)) } else { field("limit") };
    let limit = match limit {
        Some(Value::Int(limit)) => Some(Value::Int(limit.saturating_abs())),
        other => other.cloned(),
    };
    if let Some(limit) = limit.filter(|count| count.number() != Some(0.0)) {
        add("$limit", "limit", &limit)?;
    }
    match command {
        CommandKind::Count => add("$count", "count", &Value::text("n"))?,
        CommandKind::Distinct => {
            let key = fields.get("key").and_then(Value::as_text).ok_or("key must name a field")?;
            let path = Path::parse(key)?;
            out.push((Value::text(&format!("${key}")), Stage::Distinct(path)));
        }
        CommandKind::Aggregate | CommandKind::Find | CommandKind::FindOne => {
            if let Some(projection) = field("projection") {
                add("$project", "projection", projection)?;
            }
        }
    }
    Ok(out)
}

/// Returns the number of patterns in a value.
fn count_patterns(value: &Value) -> usize {
    match value {
        Value::List(values) => values.iter().map(count_patterns).sum(),
        Value::Fields(fields) => {
            let count = |(name, value): (&std::sync::Arc<str>, &Value)| {
                usize::from(matches!(&**name, "$regex" | "$regexMatch")) + count_patterns(value)
            };
            fields.iter().map(count).sum()
        }
        _ => 0,
    }
}

fn shells(fields: &Fields) -> Result<bool, QueryError> {
    match fields.get("shells") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(shells)) => Ok(*shells),
        Some(_) => Err(QueryError::Invalid("shells is true or false".to_owned())),
    }
}

fn text_of<'f>(fields: &'f Fields, name: &str) -> Result<Option<&'f str>, QueryError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(_) => Err(QueryError::Invalid(format!("{name} must be a text"))),
    }
}

fn selector(fields: &Fields) -> Result<Selector, QueryError> {
    let metric = text_of(fields, "metric")?.map(str::to_owned);
    let message = "tags must be a document of texts, such as {\"host\": \"web1\"}";
    let tags = match fields.get("tags") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Fields(tags)) => {
            let tag = |(name, value): (&std::sync::Arc<str>, &Value)| {
                Some((name.to_string(), value.as_text()?.to_string()))
            };
            let tags: Option<Vec<_>> = tags.iter().map(tag).collect();
            tags.ok_or_else(|| QueryError::Invalid(message.to_owned()))?
        }
        Some(_) => return Err(QueryError::Invalid(message.to_owned())),
    };
    Ok(Selector { metric, tags })
}

fn range(fields: &Fields, now: UnixMillis) -> Result<Option<Range<UnixMillis>>, QueryError> {
    let time = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let at =
                value.as_date().or_else(|| value.as_text().and_then(|text| notation::date(text)));
            at.map(Some).ok_or_else(|| {
                QueryError::Invalid(format!("{name} is not a time; use \"2026-11-21T08:00:00Z\""))
            })
        }
    };
    let (start, end) = (time("start")?, time("end")?.unwrap_or(now));
    let start = match (start, text_of(fields, "range")?) {
        (Some(_), Some(_)) => {
            let message = "use start and end, or range, not both";
            return Err(QueryError::Invalid(message.to_owned()));
        }
        (Some(start), None) => start,
        (None, Some(span)) => {
            let span: Span =
                span.parse().map_err(|cause| QueryError::Invalid(format!("range: {cause}")))?;
            span.before(end)
        }
        (None, None) if fields.get("end").is_none() => return Ok(None),
        (None, None) => UnixMillis::MIN,
    };
    if start >= end {
        return Err(QueryError::Invalid(format!("start {start} is not before end {end}")));
    }
    Ok(Some(start..end))
}
